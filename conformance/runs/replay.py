"""Replay of a recorded trace, step by step, by implementations and on servers.

Every run first replays the regression traces of the package, which are steps that once showed a divergence.
They are the lines of ``conformance/traces/<machine>.ndjson``. They are short and do not need Hypothesis, so a replay
takes milliseconds. Their steps are executed in the dialect of every release of the run, not only of the release for
which they were recorded.
"""

from __future__ import annotations

import os
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import cache, partial
from importlib.resources import files
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal

from conformance.clauses.editions import counted_clauses, use_edition
from conformance.clauses.machines import SERVER_MACHINES
from conformance.errors import ToolError
from conformance.implementations.forms import directory_of, is_server, machine_of
from conformance.implementations.spec import build_of
from conformance.lockstep import DivergenceError
from conformance.lockstep.divergence import Decision, can_continue
from conformance.machines import MACHINES
from conformance.operations import OK, Effect, Observation
from conformance.operations.trace import Trace, TraceError
from conformance.operations.trace_file import SUFFIX, find_in_file, load_traces, only_trace
from conformance.quoting import quoted
from conformance.scratch import scratch_directory

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from conformance.kafka.broker import Broker
    from conformance.kafka.jar_fetch import Progress
    from conformance.lockstep import Divergence, Lockstep
    from conformance.lockstep.scopes.broker import BrokerLockstep
    from conformance.lockstep.scopes.wire import WireLockstep
    from conformance.operations import Operation
    from conformance.runs.wire_options import WireOptions

Level = Literal["must", "api", "observed"]
_DONE: Final = Observation(OK, None)
"""The observation of every step, because a server has no state to observe."""
# The modules that need an optional dependency are imported where a server is used.


def replay_on_server(
    trace: Trace,
    release: str,
    implementation: str,
    on_step: Callable[[int, Operation, Observation | None, Divergence | None], None],
    progress: Progress | None = None,
    options: WireOptions | None = None,
    level: Level = "observed",
) -> tuple[Divergence | None, int]:
    """Execute the steps of a trace in one topic, and compare everything after each step.

    A broker of the harness is started before and stopped cleanly after the last step; then its files are compared.

    Returns:
        The first divergence or None, and the number of steps until then.

    Raises:
        BrokerError: The broker did not start, died, or did not execute a request.
        ToolError: The implementation is no server of the trace's machine, or the connection is lost; Java, the jars or
            kafka-python are missing; or the broker cannot start before the last step, as kidx predicts.
    """
    from conformance.lockstep.scopes.broker import ExpectedStartFailureError  # noqa: PLC0415

    operations, done = trace.operations, 0
    with ExitStack() as stack:
        lockstep: Any
        if trace.machine == "wire":
            lockstep = stack.enter_context(_wire_for_replay(implementation, release, level, options))
        else:
            lockstep = stack.enter_context(_broker_for_replay(implementation, release, level, progress))
        try:
            for operation in operations:
                lockstep.perform(operation)
                on_step(done, operation, _DONE, None)
                done += 1
            lockstep.finish()
        except DivergenceError as error:
            step = min(done, len(operations) - 1)
            on_step(step, operations[step], None, error.divergence)
            return error.divergence, step + 1
        except ExpectedStartFailureError as error:
            if done + 1 < len(operations):
                raise ToolError(
                    f"{lockstep.name} does not start after step {done + 1} of the trace, as kidx predicts ({error}):"
                    f" the {len(operations) - done - 1} steps after it cannot be checked"
                ) from None
    return None, len(operations)


@contextmanager
def broker_lockstep(broker: Broker, **options: Any) -> Iterator[BrokerLockstep]:
    """Start a broker, connect a lockstep to it, and always stop it.

    Args:
        **options: Further arguments of the lockstep.

    Raises:
        BrokerError: The broker does not start, dies, or fails to execute a request.
    """
    from conformance.implementations.broker.topic import RunningBroker  # noqa: PLC0415
    from conformance.lockstep.scopes.broker import BrokerLockstep  # noqa: PLC0415

    with broker, scratch_directory() as scratch:
        participant = RunningBroker(broker)
        try:
            yield BrokerLockstep(participant, scratch, **options)
        finally:
            participant.disconnect()


@contextmanager
def _broker_for_replay(name: str, release: str, level: Level, progress: Progress | None) -> Iterator[BrokerLockstep]:
    from conformance.kafka.broker import LocalBroker  # noqa: PLC0415
    from conformance.kafka.builds import require_broker  # noqa: PLC0415

    build = build_of(directory_of(name) or "") if is_server(name) else None
    if build is not None:
        require_broker(build)
    broker = LocalBroker(release, progress=progress, build=build)
    with broker_lockstep(broker, on_divergence=partial(_is_outside_the_edition, level)) as lockstep:
        yield lockstep


def _is_outside_the_edition(level: Level, divergence: Divergence, _signature: str = "") -> bool:
    return counted_clauses(divergence.clauses, level) is None


@contextmanager
def _wire_for_replay(name: str, release: str, level: Level, options: WireOptions | None) -> Iterator[WireLockstep]:
    from conformance.lockstep.scopes.wire import WireLockstep  # noqa: PLC0415
    from conformance.runs.wire_options import WireOptions  # noqa: PLC0415

    if machine_of(name) != "wire":
        raise ToolError(f"a trace of the wire machine needs -i wire:HOST:PORT or -i subject:NAME, not {name}")
    with (options or WireOptions()).open(name) as broker, scratch_directory() as scratch:
        compared: Literal["must", "observed"] = "must" if level == "must" else "observed"
        outside = partial(_is_outside_the_edition, level)
        yield WireLockstep(broker, release, scratch, level=compared, stops_at_first=True, on_divergence=outside)


@dataclass(frozen=True)
class Replayed:
    """Result of a replay.

    Attributes:
        verdict: ``FIXED`` if no implementation diverges, otherwise ``FAILED``.
        divergence: The first divergence that counts, or None.
        steps: The number of executed steps.
    """

    verdict: Literal["FIXED", "FAILED"]
    divergence: Divergence | None
    steps: int


def find_trace(name: str, directories: Iterable[Path]) -> Trace:
    """Return a trace.

    Args:
        name: A path, ``FILE.ndjson#ID``, or the id of a trace in one of the directories.
        directories: Directories with traces.

    Raises:
        TraceError: The trace does not exist, or cannot be read.
    """
    path = Path(name)
    file_name, trace_id = (name, "") if path.suffix == SUFFIX else name.rpartition("#")[::2]
    if file_name.endswith(SUFFIX) and not Path(file_name).is_dir():
        return only_trace(Path(file_name), trace_id)
    if os.path.lexists(path) or path.suffix == ".json":
        if path.is_dir():
            raise TraceError(f"{path} is a directory, not a trace")
        return Trace.load(path)
    for directory in directories:
        for file in sorted(directory.rglob("*.json")):
            if name in (file.stem, file.stem.rpartition("-")[2]):
                return Trace.load(file)
        for traces in sorted(directory.rglob(f"*{SUFFIX}")):
            if found := find_in_file(traces, name):
                return found
    raise TraceError(f"no trace {name!r}: neither a file nor the id of one that was recorded here")


def replay(
    trace: Trace,
    releases: Sequence[str],
    implementations: Sequence[str],
    on_step: Callable[[int, Operation, Observation | None, Divergence | None], None] = lambda *_: None,
    progress: Progress | None = None,
    wire: WireOptions | None = None,
    level: Level | None = None,
    edition: str | None = None,
) -> Replayed:
    """Execute every step of a trace in lockstep.

    Divergences that do not count at the level are ignored, as in the run that recorded the trace. If a participant
    diverges in a step before the recorded one and can continue, the replay continues, too, and fails at the end.

    Args:
        releases: The releases whose dialects and classes are used.
        implementations: ``-i`` arguments such as ``"jvm"``; empty to execute only the reference and the model.
        on_step: A callback that receives every step: its number from 0, the operation, the reference's observation, and
            the divergence or None.
        progress: A callback that receives the progress of downloads.
        wire: The connection options of ``wire:`` brokers.
        level: The level at which divergences count; by default the level at which the trace was recorded.
        edition: The edition whose clauses alone count; by default the edition of the run that recorded the trace.

    Raises:
        TraceError: The machine is unknown, or a step is invalid for it.
        ToolError: An implementation is not available, lacks an operation of the trace, or ran out of memory.
    """
    if trace.machine not in MACHINES:
        raise TraceError(f"unknown machine {trace.machine!r} of the trace; choose from {', '.join(MACHINES)}")
    with use_edition(edition_of(trace, edition)):
        return _replayed(trace, releases, implementations, on_step, progress, wire, level_of(trace, level))


def _replayed(
    trace: Trace,
    releases: Sequence[str],
    implementations: Sequence[str],
    on_step: Callable[[int, Operation, Observation | None, Divergence | None], None],
    progress: Progress | None,
    wire: WireOptions | None,
    level: Level,
) -> Replayed:
    if trace.machine in SERVER_MACHINES:
        for name, release in product(implementations, releases):
            difference, steps = replay_on_server(trace, release, name, on_step, progress, wire, level)
            if difference is not None:
                return Replayed("FAILED", difference, steps)
        return Replayed("FIXED", None, len(trace.operations))
    machine = MACHINES[trace.machine]
    handler = _DivergenceHandler(trace, level)
    subjects = [machine.subject(name, release, progress) for name in implementations for release in releases]
    with scratch_directory() as scratch:
        lockstep = machine.new_lockstep(subjects, scratch, releases=releases, on_divergence=handler)
        done = 0

        def report_step(number: int, operation: Operation, seen: Observation) -> None:
            nonlocal done
            lockstep.flush()
            _require_supported(lockstep, number)
            on_step(number, operation, seen, handler.earlier.get(number))
            done = number + 1

        try:
            replay_operations(lockstep, trace.operations, report_step)
        except DivergenceError as error:
            on_step(done, trace.operations[done], None, error.divergence)
            return Replayed("FAILED", error.divergence, done + 1)
        except (TypeError, ValueError, LookupError, OSError) as error:
            # This happens only for a trace written by hand: check_steps has verified the steps of an index.
            raise TraceError(
                f"step {done + 1} of the trace, {quoted(str(trace.operations[done]))}, cannot be executed:"
                f" {quoted(repr(error))}"
            ) from error
        _require_memory(lockstep)
        first = handler.conclude()
    return Replayed("FIXED" if first is None else "FAILED", first, len(trace.operations))


class _DivergenceHandler:
    """Callback for the divergences of a replay, which continues after some of them.

    Attributes:
        earlier: The divergences that count in steps before the recorded one, by step number.
    """

    def __init__(self, trace: Trace, level: Level) -> None:
        self.level = level
        self._last = len(trace.operations) - 1
        self._recorded = trace.failure["step"] if trace.failure is not None else 0
        self.earlier: dict[int, Divergence] = {}
        self._incomplete: list[Divergence] = []

    def __call__(self, divergence: Divergence) -> Decision:
        """Decide whether the replay fails, continues, or skips the remaining steps of the participant."""
        continues = can_continue(divergence, self.level)
        if not divergence.counts(self.level):
            if divergence.step < self._last and not continues:
                self._incomplete.append(divergence)
            return Decision.CONTINUE if continues else Decision.SKIP_EXAMPLE
        if divergence.step >= self._recorded or not continues:
            return Decision.RAISE
        self.earlier.setdefault(divergence.step, divergence)
        return Decision.CONTINUE

    def conclude(self) -> Divergence | None:
        """Return the first divergence that counts, or None.

        Raises:
            ToolError: No divergence counts, and an implementation has not executed every step.
        """
        if self.earlier:
            return self.earlier[min(self.earlier)]
        for each in self._incomplete:
            raise ToolError(
                f"{each.participant} cannot execute the steps after step {each.step + 1}: it diverges there from "
                "clauses that"
                f" level {self.level} ignores; --level observed reports this divergence as FAILED"
            )
        return None


def level_of(trace: Trace, level: Level | None) -> Level:
    """Return the given level, or else the level at which the trace was recorded; older traces have none."""
    recorded = trace.provenance.get("level")
    return level or ("must" if recorded == "must" else "api" if recorded == "api" else "observed")


def edition_of(trace: Trace, edition: str | None = None) -> str:
    """Return the given edition, or else the one of the run that recorded the trace; empty for the catalogue."""
    return str(trace.provenance.get("edition", "")) if edition is None else edition


def replay_operations(
    lockstep: Lockstep,
    operations: Iterable[Operation],
    on_step: Callable[[int, Operation, Observation], None] = lambda *_: None,
) -> None:
    """Execute the operations as one example; compare directories after the same operations as the machines do.

    Raises:
        DivergenceError: A participant diverges.
    """
    closed = True
    with lockstep.example():
        for number, operation in enumerate(operations):
            seen = lockstep.perform(operation)
            closed = operation.effect is not Effect.OPENS and (closed or operation.effect is not None)
            if closed or operation.name in _MOVING:
                lockstep.compare_directories()
            on_step(number, operation, seen)


# The machines compare directories after an index or a segment has been released or moved, because an open one may have
# temporary files. All files of a log are compared after every step.
_MOVING = frozenset({"rename", "rename_segment", "delete_segment"})


def _require_supported(lockstep: Lockstep, number: int) -> None:
    """Raise an error if an implementation lacks an operation.

    Raises:
        ToolError: An implementation lacks the operation of this step.
    """
    for participant, operation in lockstep.statistics.unsupported:
        raise ToolError(
            f"{participant} does not have {operation!r}, step {number + 1} of the trace: the trace cannot be checked"
        )


def _require_memory(lockstep: Lockstep) -> None:
    """Raise an error if an implementation ran out of memory.

    Raises:
        ToolError: An implementation ran out of memory in a step.
    """
    for participant, operation in lockstep.statistics.out_of_memory:
        raise ToolError(f"{participant} ran out of memory in {operation!r} of the trace: the trace cannot be checked")


@cache
def load_regression_traces(machine: str) -> tuple[Trace, ...]:
    """Return the traces of a machine, in the order of their ids; a machine without traces has no file.

    Raises:
        TraceError: A trace cannot be read.
    """
    file = files("conformance") / "traces" / f"{machine}.ndjson"
    return load_traces(file) if file.is_file() else ()
