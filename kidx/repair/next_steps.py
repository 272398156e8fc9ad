"""Advice on the next steps after a verification, with warnings against wrong ones."""

from __future__ import annotations

import os
from collections.abc import Collection, Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

from kidx.discovery import EPOCHS, INDEX_SUFFIXES
from kidx.printable import counted, shell_word
from kidx.rebuild.lock import LOCK_FILE, lock_owner, log_directories_of
from kidx.repair.plan import Kind, Plan, plan

if TYPE_CHECKING:
    from kidx.verify import Verification

_NAMED: Final = 8
"""Maximum number of directories in a command; if there are more, the command has the verified paths."""
_FEW: Final = 3
"""Maximum number of paths in a sentence."""

_SEALED: Final = (
    "do not count on a restart: after a clean stop a broker reads no .index or .timeindex; after an unclean stop it "
    "rebuilds only the indexes of segments from the recovery point on, and no sealed ones (SEG-35)"
)
_TIMES: Final = (
    "do not delete or cut a .timeindex: a broker does not rebuild it after a clean stop, but keeps it or makes an "
    "empty one, and consumers that look up a time then miss up to a segment (SEG-35, SEG-36)"
)
_FIRST: Final = "follow the steps above under start: first, in their order"
_LAST: Final = {
    True: "start the broker",
    False: "verify again: start the broker when the last line says yes, or when it only asks for copies that you have "
    "made",
}
_LIVE: Final = "do not replace files under a running broker: it continues with the content that it has read or mapped"
FROM_A_REPLICA: Final = (
    "if another broker leads the partition, move its directory out of the log directory and start this broker, which "
    "copies the partition from the leader"
)
_WHAT_TO_DO: Final[dict[Kind, str]] = {
    "log": f"a log cannot be repaired from itself: {FROM_A_REPLICA}; where none does, restore the directory",
    "times": "nothing can correct the headers of batches, and replicas have the same ones: consumers that read by "
    "offset get every record. Search by time with a query (kidx.read, times=), and do not rely on retention by time",
    "log start": "do not start the broker: it would delete the whole log; take the partition's line out of the "
    "checkpoint, and lower the number in its second line by one",
    "checkpoint": "move it away while the broker is stopped, which then begins a new one: without a recovery point it "
    "recovers all logs, and without a log start it shows deleted records again",
    "permission": "verify again as the user that the broker runs as",
    "path": "name a log directory, a partition's directory or a segment's file that exists",
    "marked": "nothing is to be done: no broker serves it. The broker deletes directories marked -delete; a "
    "directory marked -stray remains until somebody deletes it, and can be compared with the partition that is served "
    "before",
    "swap": "a start takes it over unchanged: while the broker is stopped, move the segments away that the .log.swap "
    "replaces, take .swap off the names of its files, and verify again: kidx repair then rebuilds its index files",
    "unfinished": "before any start, rename or remove the file that the finding names, and verify again: kidx repair "
    "then rebuilds index files",
    "file": "it is in the way or cannot be read: see what it is, and what the disk says",
    "link": "remove the link while the broker is stopped, and verify again: kidx repair then makes the file",
    "index": "it cannot be rebuilt alone",
}


class Advice(NamedTuple):
    """Next steps of an operator.

    Attributes:
        reason: possible remedy, in a sentence.
        steps: steps in order: sentences and commands.
        commands: shell commands among the steps.
        warnings: actions to avoid.
    """

    reason: str
    steps: tuple[str, ...] = ()
    commands: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()

    def lines(self) -> list[str]:
        """Return the advice as lines of text."""
        steps = [f"  {number}. {step}" for number, step in enumerate(self.steps, 1)]
        return [f"next: {self.reason}", *steps, *(f"  {warning}" for warning in self.warnings)]


def advice(
    result: Verification,
    paths: Iterable[str | os.PathLike[str]],
    release: str | None = None,
    *,
    may_start: bool = True,
    has_steps: bool = False,
    rebuilt: Collection[Path] = (),
    treated: Collection[Path] = (),
) -> Advice | None:
    """Return advice on the faults that were found; None without any, or if other lines already have the advice.

    Args:
        result: result of :func:`kidx.verify.verify_paths`.
        paths: paths that were verified.
        release: release whose rules were requested.
        may_start: True if a start does no harm.
        has_steps: True if other lines have steps, which come first if a start does harm.
        rebuilt: files that a start rebuilds.
        treated: files and partition directories for which other lines already have advice.
    """
    planned = plan(result)
    others = _others(planned, set(map(str, treated)))
    first = [_FIRST] if has_steps and not may_start else []
    if not planned.directories:
        if not others:
            return None
        others = [*first, *others]
        reason = f"{counted(len(planned.remaining), 'file')} at fault, and no index file whose log is sound"
        return Advice(f"{reason}: {others[0]}") if len(others) == 1 else Advice(reason, tuple(others))
    found = _what(planned)
    asked = [os.fspath(path) for path in paths]
    if any("://" in path for path in asked):
        return Advice(f"{found} can be rebuilt: kidx repair, where these are files of a stopped broker")
    directories = planned.directories
    more = f" and {len(directories) - _NAMED} more" if len(directories) > _NAMED else ""
    sources = "its log" if planned.index_files + len(planned.epochs) == 1 else "their logs"
    names = ", ".join(map(str, directories[:_NAMED]))
    reason = f"{found} of {names}{more} can be rebuilt from {sources}"
    targets: Sequence[str | os.PathLike[str]] = directories if len(directories) <= _NAMED else asked
    words = ["kidx", "repair", *map(shell_word, targets), "--kafka", release or "RELEASE"]
    command = " ".join(words)
    steps = [*first, _stop(directories), f"{command} --dry-run", command, *others, _LAST[may_start]]
    if release is None:
        steps.insert(
            1 + len(first), "write the broker's release for RELEASE in these commands: its recovery is followed"
        )
    return Advice(reason, tuple(steps), (f"{command} --dry-run", command), _warnings(planned, rebuilt))


def _what(planned: Plan) -> str:
    parts = [counted(planned.index_files, "index file")] if planned.repairs else []
    if planned.epochs:
        parts.append(counted(len(planned.epochs), EPOCHS))
    return " and ".join(parts)


def _others(planned: Plan, treated: Collection[str]) -> list[str]:
    """Return a sentence for each kind of remaining fault, with the remedy and the paths."""
    by_kind: dict[Kind, list[str]] = {}
    for fault in planned.remaining:
        if fault.path in treated or (fault.kind == "log" and fault.place in treated):
            continue
        path = fault.place if fault.kind in {"log", "marked"} else fault.path
        by_kind.setdefault(fault.kind, []).append(path)
    lines = []
    for kind, said in _WHAT_TO_DO.items():
        if places := list(dict.fromkeys(by_kind.get(kind, ()))):
            more = f" and {len(places) - _FEW} more" if len(places) > _FEW else ""
            lines.append(f"{said} ({', '.join(places[:_FEW])}{more})")
    return lines


def _stop(directories: Iterable[Path]) -> str:
    locks = sorted({lock for directory in directories for lock in log_directories_of(directory)})
    held = [lock for lock in locks if lock_owner(lock) is not None]
    if held:
        return f"stop the broker: it holds {', '.join(shell_word(lock / LOCK_FILE) for lock in held)}"
    return f"keep the broker of {', '.join(map(shell_word, locks))} stopped: none is running on this machine now"


def _warnings(planned: Plan, rebuilt: Collection[Path]) -> tuple[str, ...]:
    files = [log.with_suffix(suffix) for log, suffixes in planned.repairs.items() for suffix in suffixes]
    assert {path.suffix for path in files} <= {*INDEX_SUFFIXES}
    kept = [path for path in files if path not in rebuilt]
    by_itself = len(files) - len(kept)
    said = [f"a start rebuilds {counted(by_itself, 'index file')} of these automatically"] if by_itself else []
    said += [_SEALED] if kept else []
    return (*said, *((_TIMES,) if any(path.suffix == ".timeindex" for path in kept) else ()), _LIVE)
