"""Performs a recorded trace again, step by step."""

from __future__ import annotations

import os
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from conformance.errors import ToolError
from conformance.implementations.forms import directory_of, is_server
from conformance.implementations.spec import build_of
from conformance.lockstep import DivergenceError
from conformance.lockstep.decision import Decision, can_continue
from conformance.machines import MACHINES
from conformance.operations import Effect
from conformance.operations.trace import Trace, TraceError
from conformance.operations.trace_file import SUFFIX, find_in_file, only_trace
from conformance.quoting import quoted
from conformance.runs.server_replays import SERVER_REPLAYS
from conformance.scratch import scratch_directory

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from conformance.kafka.jar_fetch import Progress
    from conformance.lockstep import Divergence, Lockstep
    from conformance.operations import Observation, Operation
    from conformance.runs.wire_options import WireOptions

Level = Literal["must", "api", "observed"]


@dataclass(frozen=True)
class Replayed:
    """The result of a replay: ``FIXED`` if no implementation diverges, ``FAILED`` with the divergence otherwise."""

    verdict: Literal["FIXED", "FAILED"]
    divergence: Divergence | None
    steps: int


def find_trace(name: str, directories: Iterable[Path]) -> Trace:
    """A trace by path, by ``FILE.ndjson#ID``, or by id among the traces of some directories.

    Raises:
        TraceError: there is none, or it cannot be read.
    """
    path = Path(name)
    pack, wanted = (name, "") if path.suffix == SUFFIX else name.rpartition("#")[::2]
    if pack.endswith(SUFFIX) and not Path(pack).is_dir():
        return only_trace(Path(pack), wanted)
    if os.path.lexists(path) or path.suffix == ".json":
        if path.is_dir():
            raise TraceError(f"{path} is a directory, not a trace")
        return Trace.load(path)
    for directory in directories:
        for file in sorted(directory.rglob("*.json")):
            if name in (file.stem, file.stem.rpartition("-")[2]):
                return Trace.load(file)
        for many in sorted(directory.rglob(f"*{SUFFIX}")):
            if found := find_in_file(many, name):
                return found
    raise TraceError(f"no trace {name!r}: neither a file nor the id of one that was recorded here")


def replay(
    trace: Trace,
    releases: Sequence[str],
    implementations: Sequence[str],
    tell: Callable[[int, Operation, Observation | None, Divergence | None], None] = lambda *_: None,
    progress: Progress | None = None,
    wire: WireOptions | None = None,
    level: Level | None = None,
) -> Replayed:
    """Performs every step of a trace in lockstep.

    What does not count at the level is set aside, as in the run that has recorded the trace. So is a difference in a
    step before the one that was recorded, if the participant can go on after it: it fails the replay in the end.

    Args:
        trace: what to perform.
        releases: whose dialects and classes.
        implementations: specifications such as ``"jvm"``; none for the reference and the model alone.
        tell: told of every step: its number from 0, the operation, the reference's observation, the divergence if any.
        progress: told while jars are being fetched.
        wire: how brokers behind ``wire:`` are reached.
        level: which differences count; those of the level that the trace was recorded at by default.

    Raises:
        TraceError: its machine is unknown, or a step makes no sense there.
        ToolError: an implementation cannot be had here, or has not performed every step: it does not have the
            operation, or ran out of memory.
    """
    if trace.machine in SERVER_REPLAYS:
        return _replay_on_servers(trace, releases, implementations, tell, progress)
    if trace.machine == "wire":
        from conformance.runs.wire_replay import replay_on_wire  # noqa: PLC0415 -- part of an extra

        difference, steps = replay_on_wire(trace, releases, implementations, tell, wire, _level(trace, level))
        return Replayed("FAILED" if difference is not None else "FIXED", difference, steps)
    if trace.machine not in MACHINES:
        raise TraceError(f"the trace is of the machine {trace.machine!r}; there are {', '.join(MACHINES)}")
    machine = MACHINES[trace.machine]
    aside = _Aside(trace, _level(trace, level))
    subjects = [machine.subject(name, release, progress) for name in implementations for release in releases]
    with scratch_directory() as scratch:
        lockstep = machine.new_lockstep(subjects, scratch, releases=releases, on_divergence=aside)
        done = 0

        def tell_and_count(number: int, operation: Operation, seen: Observation) -> None:
            nonlocal done
            lockstep.flush()
            _refuse_unsupported(lockstep, number)
            tell(number, operation, seen, aside.earlier.get(number))
            done = number + 1

        try:
            perform_all(lockstep, trace.operations, tell_and_count)
        except DivergenceError as error:
            tell(done, trace.operations[done], None, error.divergence)
            return Replayed("FAILED", error.divergence, done + 1)
        except (TypeError, ValueError, LookupError, OSError) as error:
            # Only a trace that no machine has recorded gets here: check_steps knows the steps of an index best.
            raise TraceError(
                f"step {done + 1} of the trace, {quoted(str(trace.operations[done]))}, cannot be performed:"
                f" {quoted(repr(error))}"
            ) from error
        _refuse_unperformed(lockstep)
        first = aside.conclude()
    return Replayed("FIXED" if first is None else "FAILED", first, len(trace.operations))


class _Aside:
    """The differences that a replay goes on after; called with each of them.

    Attributes:
        earlier: those that count, in steps before the recorded one, by the number of their step.
    """

    def __init__(self, trace: Trace, level: Level) -> None:
        self.level = level
        self._last = len(trace.operations) - 1
        self._recorded = trace.failure["step"] if trace.failure is not None else 0
        self.earlier: dict[int, Divergence] = {}
        self._left: list[Divergence] = []

    def __call__(self, divergence: Divergence) -> Decision:
        stays = can_continue(divergence, self.level)
        if not divergence.counts(self.level):
            if divergence.step < self._last and not stays:
                self._left.append(divergence)
            return Decision.CONTINUE if stays else Decision.SKIP_EXAMPLE
        if divergence.step >= self._recorded or not stays:
            return Decision.RAISE
        self.earlier.setdefault(divergence.step, divergence)
        return Decision.CONTINUE

    def conclude(self) -> Divergence | None:
        """Return the first of those that count.

        Raises:
            ToolError: there is none, and an implementation has not performed every step.
        """
        if self.earlier:
            return self.earlier[min(self.earlier)]
        for each in self._left:
            raise ToolError(
                f"{each.participant} cannot go on after step {each.step + 1}: it differs in what does not count at"
                f" level {self.level}, and nothing can be said of the steps after it; --level observed stops there"
            )
        return None


def _level(trace: Trace, level: Level | None) -> Level:
    """The level that is asked for, or that the trace was recorded at; older traces do not say."""
    recorded = trace.made_by.get("level")
    return level or ("must" if recorded == "must" else "api" if recorded == "api" else "observed")


def _replay_on_servers(
    trace: Trace,
    releases: Sequence[str],
    implementations: Sequence[str],
    tell: Callable[[int, Operation, Observation | None, Divergence | None], None],
    progress: Progress | None,
) -> Replayed:
    steps = 0
    for release, text in product(releases, implementations):
        build = build_of(directory_of(text) or "") if is_server(text) else None
        difference, steps = SERVER_REPLAYS[trace.machine](trace.operations, release, tell, progress, build)
        if difference is not None:
            return Replayed("FAILED", difference, steps)
    return Replayed("FIXED", None, steps)


def perform_all(
    lockstep: Lockstep,
    operations: Iterable[Operation],
    tell: Callable[[int, Operation, Observation], None] = lambda *_: None,
) -> None:
    """One example, made of these operations; directories are compared where the machines do.

    Raises:
        DivergenceError: a participant differs.
    """
    closed = True
    lockstep.begin()
    try:
        for number, operation in enumerate(operations):
            seen = lockstep.perform(operation)
            closed = operation.effect is not Effect.OPENS and (closed or operation.effect is not None)
            if closed or operation.name in _MOVING:
                lockstep.compare_directories()
            tell(number, operation, seen)
    finally:
        lockstep.end()


# The machines compare directories when an index or a segment has been let go of or moved: an open one may keep files of
# its own. Of a log every file is compared after every step.
_MOVING = frozenset({"rename", "rename_segment", "delete_segment"})


def _refuse_unsupported(lockstep: Lockstep, number: int) -> None:
    """Fails if an implementation lacks an operation.

    Raises:
        ToolError: one lacks the operation of this step.
    """
    for participant, operation in lockstep.statistics.unsupported:
        raise ToolError(
            f"{participant} does not have {operation!r}, step {number + 1} of the trace: nothing can be said"
        )


def _refuse_unperformed(lockstep: Lockstep) -> None:
    """Fails if an implementation ran out of memory.

    Raises:
        ToolError: one had no memory for a step.
    """
    for participant, operation in lockstep.statistics.out_of_memory:
        raise ToolError(f"{participant} ran out of memory in {operation!r} of the trace: nothing can be said")
