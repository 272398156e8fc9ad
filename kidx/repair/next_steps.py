"""What an operator does next about a verification, and what not."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

from kidx.discovery import INDEX_SUFFIXES
from kidx.printable import counted, shell_word
from kidx.rebuild.lock import LOCK_FILE, held_by, log_directories_of
from kidx.repair.plan import Plan, plan

if TYPE_CHECKING:
    from kidx.verify import Verification

_NAMED: Final = 8
"""Partitions that a command names; of more it names the paths that were looked at."""

_SEALED: Final = (
    "do not count on a restart: a broker that was stopped cleanly does not look into any .index or .timeindex, and one "
    "that was not rebuilds only those of segments from the recovery point on: sealed ones stay as they are (SEG-35)"
)
_TIMES: Final = (
    "do not delete or cut a .timeindex: a broker does not rebuild it after a clean stop, but keeps it or makes an "
    "empty one, and consumers that look up a time then miss up to a segment (SEG-35, SEG-36)"
)
_LIVE: Final = "do not replace index files under a running broker: it goes on with the old ones, which it has mapped"
_LOGS: Final = (
    "a log cannot be repaired from itself: let the broker copy the partition from another replica, or restore it"
)


class Advice(NamedTuple):
    """What to do next.

    Attributes:
        reason: what can be done about it, in a sentence.
        steps: what to do, in order: sentences and commands.
        commands: those of the steps that a shell performs.
        warnings: what not to do.
    """

    reason: str
    steps: tuple[str, ...] = ()
    commands: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()

    def lines(self) -> list[str]:
        """As text."""
        steps = [f"  {number}. {step}" for number, step in enumerate(self.steps, 1)]
        return [f"next: {self.reason}", *steps, *(f"  {warning}" for warning in self.warnings)]


def advice(result: Verification, paths: Iterable[str | os.PathLike[str]], release: str | None = None) -> Advice | None:
    """What to do about what was found; None if nothing is wrong.

    Args:
        result: of :func:`kidx.verify.verify_paths`.
        paths: that were looked at.
        release: whose rules were asked for.
    """
    planned = plan(result)
    if not planned.files:
        if not planned.refused:
            return None
        faults = counted(len(planned.refused), "fault")
        return Advice(f"{faults}, and none in an index file whose log is sound: {_LOGS}")
    asked = [os.fspath(path) for path in paths]
    if any("://" in path for path in asked):
        found = counted(planned.files, "index file")
        return Advice(f"{found} can be rebuilt: kidx repair, where these are files of a stopped broker")
    directories = planned.directories
    names = ", ".join(directory.name for directory in directories[:_NAMED])
    more = f" and {len(directories) - _NAMED} more" if len(directories) > _NAMED else ""
    sources = "its log" if planned.files == 1 else "their logs"
    reason = f"{counted(planned.files, 'index file')} of {names}{more} can be rebuilt from {sources}"
    targets: Sequence[str | os.PathLike[str]] = directories if len(directories) <= _NAMED else asked
    words = ["kidx", "repair", *map(shell_word, targets), *(("--kafka", release) if release else ())]
    command = " ".join(words)
    steps = [_stop(directories), f"{command} --dry-run", command, "start the broker"]
    if release is None:
        steps.insert(1, "add --kafka RELEASE, the broker's, to these commands: that release's recovery is followed")
    if planned.refused:
        steps.append(f"{counted(len(planned.refused), 'fault')} of other kinds stay: {_LOGS}")
    return Advice(reason, tuple(steps), (f"{command} --dry-run", command), _warnings(planned))


def _stop(directories: Iterable[Path]) -> str:
    locks = sorted({lock for directory in directories for lock in log_directories_of(directory)})
    held = [lock for lock in locks if held_by(lock) is not None]
    if held:
        return f"stop the broker: it holds {', '.join(shell_word(lock / LOCK_FILE) for lock in held)}"
    return f"keep the broker of {', '.join(map(shell_word, locks))} stopped: none is running on this machine now"


def _warnings(planned: Plan) -> tuple[str, ...]:
    suffixes = {suffix for each in planned.repairs.values() for suffix in each}
    assert suffixes <= {*INDEX_SUFFIXES}
    return (_SEALED, *((_TIMES,) if ".timeindex" in suffixes else ()), _LIVE)
