"""Performs a recorded trace again, step by step."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from conformance.lockstep import DivergenceError
from conformance.machines import MACHINES
from conformance.scratch import scratch_directory
from conformance.trace import Trace, TraceError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from conformance.kafka.fetch import Progress
    from conformance.lockstep import Divergence
    from conformance.operations import Observation, Operation


@dataclass(frozen=True)
class Replayed:
    """What a replay came to: ``FIXED`` if nobody diverges (any more), ``FAILED`` with the divergence otherwise."""

    verdict: Literal["FIXED", "FAILED"]
    divergence: Divergence | None
    steps: int


def find_trace(name: str, directories: Iterable[Path]) -> Trace:
    """A trace by path, or by id among the traces of some directories.

    Raises:
        TraceError: there is none, or it cannot be read.
    """
    path = Path(name)
    if path.exists() or path.suffix == ".json":
        if path.is_dir():
            raise TraceError(f"{path} is a directory, not a trace")
        return Trace.load(path)
    found = [file for directory in directories for file in sorted(directory.rglob(f"*{name}.json"))]
    if not found:
        raise TraceError(f"no trace {name!r}: neither a file nor the id of one that was recorded here")
    return Trace.load(found[0])


def replay(
    trace: Trace,
    releases: Sequence[str],
    implementations: Sequence[str],
    tell: Callable[[int, Operation, Observation | None, Divergence | None], None] = lambda *_: None,
    progress: Progress | None = None,
) -> Replayed:
    """Performs every step of a trace in lockstep.

    Args:
        trace: what to perform.
        releases: whose dialects and classes.
        implementations: specifications such as ``"jvm"``; none for the reference and the model alone.
        tell: told of every step: its number from 0, the operation, the reference's observation, the divergence if any.
        progress: told while jars are being fetched.

    Raises:
        TraceError: its machine is unknown.
        ToolError: an implementation cannot be had here.
    """
    if trace.machine not in MACHINES:
        raise TraceError(f"the trace is of the machine {trace.machine!r}; there are {', '.join(MACHINES)}")
    machine = MACHINES[trace.machine]
    subjects = [machine.subject(name, release, progress) for name in implementations for release in releases]
    with scratch_directory() as scratch:
        lockstep = machine.new_lockstep(subjects, scratch, releases=releases)
        lockstep.begin()
        number = -1
        try:
            for number, operation in enumerate(trace.operations):
                tell(number, operation, lockstep.perform(operation), None)
        except DivergenceError as error:
            tell(number, trace.operations[number], None, error.divergence)
            return Replayed("FAILED", error.divergence, number + 1)
        finally:
            lockstep.end()
    return Replayed("FIXED", None, len(trace.operations))
