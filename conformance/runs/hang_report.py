"""Hang of a step in an experiment: the steps are shrunk, saved and reported, and the process ends."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from conformance.lockstep.divergence import failure_json
from conformance.lockstep.watchdog import exit_process, watch_steps
from conformance.operations import KINDS
from conformance.operations.trace import Trace
from conformance.runs.divergence_event import replay_command
from conformance.runs.shrinking.hang import shrink_hang
from conformance.runs.shrinking.search import SHRINK_SECONDS

if TYPE_CHECKING:
    from conformance.lockstep.watchdog import Hang
    from conformance.operations import Json


@dataclass(frozen=True)
class HangReport:
    """Report of a hang.

    Attributes:
        machine: The machine of the steps.
        hang: The step that hangs, and the steps before it.
        trace: The path of the trace.
        specification: The ``-i`` argument of the participant; empty for the reference.
        release: The release of the participant's classes or dialect.
    """

    machine: str
    hang: Hang
    trace: Path
    specification: str
    release: str

    @property
    def replay(self) -> str:
        """The command that replays the steps."""
        return replay_command(self.trace, self.release, self.specification)

    def to_json(self) -> Json:
        """Return the report as one document."""
        return {
            "verdict": "no answer",
            "machine": self.machine,
            "failure": failure_json(self.hang.divergence),
            "steps": [operation.to_json() for operation in self.hang.operations],
            "shrinking": self.hang.shrinking,
            "trace": str(self.trace),
            "replay": self.replay,
        }

    def __str__(self) -> str:
        divergence = self.hang.divergence
        return "\n".join(
            (
                f"{divergence.participant} timed out ({self.machine} machine), step {divergence.step + 1}",
                f"  expected     {divergence.expected}",
                *(f"  {line}" for line in str(divergence.actual).splitlines()),
                f"  steps        {self.hang.shrinking}",
                *(f"  {number:>3}  {step}" for number, step in enumerate(self.hang.operations, start=1)),
                f"  trace        {self.trace}",
                f"  replay       {self.replay}",
            )
        )


def report_hang(
    hang: Hang,
    traces: Path,
    limit: float,
    shrink_time: float = SHRINK_SECONDS,
    implementation: tuple[str, str] | None = None,
) -> HangReport:
    """Shrink the steps to a hang, and save them.

    Args:
        hang: The hang.
        traces: The directory for the trace.
        limit: The time in seconds that the step has taken.
        shrink_time: The maximum time in seconds for shrinking.
        implementation: The ``-i`` argument of the participant and its release; by default derived from its name.
    """
    specification, release = implementation or (_specification(hang), hang.divergence.release)
    machine = machine_of(hang)
    short = shrink_hang(hang, machine, specification, limit, shrink_time, release)
    provenance = {"shrinking": short.shrinking}
    failure = failure_json(short.divergence)
    trace = Trace(machine, release, short.operations, failure, "a step hangs", provenance)
    return HangReport(machine, short, trace.save(traces), specification, release)


@contextmanager
def exit_on_hang(
    traces: Path, on_report: Callable[[HangReport], None], limit: float, shrink_time: float = SHRINK_SECONDS
) -> Iterator[None]:
    """Watch the steps of an experiment. A hang is reported, and ends the process with exit code 1.

    Args:
        traces: The directory for traces.
        on_report: A callback that receives the report; it is called in another thread.
        limit: The maximum duration of a step in seconds.
        shrink_time: The maximum time in seconds for shrinking.
    """

    def give_up(hang: Hang) -> None:
        try:
            on_report(report_hang(hang, traces, limit, shrink_time))
        finally:
            exit_process(1)

    with watch_steps(limit, give_up):
        yield


def machine_of(hang: Hang) -> str:
    """Return the machine of the operations; for an index file, it is the kind of the index."""
    first = hang.operations[0]
    if first.name == "open" and first.args[0] in KINDS:
        return str(first.args[0])
    return "log" if any(operation.name.endswith("_log") for operation in hang.operations) else "segment"


def _specification(hang: Hang) -> str:
    """Return the ``-i`` argument of the participant, whose name is this argument followed by the release."""
    name = hang.divergence.participant.removesuffix(f" {hang.divergence.release}")
    return "" if name == "kidx" else name
