"""Base of the searches that open the remaining files in lockstep: of segments, and of caches of remote indexes."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from random import Random
from typing import TYPE_CHECKING, Any, ClassVar, Generic, NamedTuple

from conformance.experiments.power_loss.disk import Length, Loss
from conformance.experiments.power_loss.failures import CrashPoint, Failure, fewest, losses
from conformance.experiments.power_loss.signatures import HistoryType, PowerFailureFinding, Signature, signature_of
from conformance.implementations.jvm.journal import JournalledClasses

if TYPE_CHECKING:
    from pathlib import Path

    from conformance.experiments.power_loss.guarantees import Guarantee
    from conformance.implementations.jvm.cache import JvmCache
    from conformance.implementations.jvm.segment import JvmSegment
    from conformance.kafka.jar_fetch import Progress
    from conformance.machines.files import FilesMachine
    from conformance.operations.trace import Trace

_CUT = 0.5
"""Probability that a lost length becomes a random length between the old and the new one."""


class LockstepPlan(NamedTuple):
    """Limits of a search: how many examples, crash points and losses are tried.

    Attributes:
        seed: random seed.
        examples: number of generated examples; each is recorded as a history.
        crash_points: maximum number of crash points that are chosen in each history.
        losses: number of combinations of lost writes for each crash point; all of them if there are no more.
        seconds: time after which no new example begins; None for no limit.
    """

    seed: int = 0
    examples: int = 8
    crash_points: int = 4
    losses: int = 8
    seconds: float | None = None


@dataclass
class LockstepExploration(Generic[HistoryType]):
    """Result of a search for one release.

    Attributes:
        release: the release.
        examples: number of executed examples.
        states: number of disk contents that were opened.
        findings: one violation of a guarantee, or one divergence, for each cause.
    """

    release: str
    examples: int = 0
    states: int = 0
    findings: list[PowerFailureFinding[HistoryType]] = field(default_factory=list)


class LockstepExplorer(Generic[HistoryType]):
    """Search in one release. A subclass executes examples, records their histories, and checks their power failures.

    Args:
        release: release of the classes, which has what the subclass tests.
        scratch: an empty directory.
        progress: called while jars are fetched.

    Raises:
        ToolError: Java or a jar is missing.
    """

    machine: ClassVar[type[FilesMachine]]
    """Machine whose lockstep opens the remaining files; its name is the first word of the random seed of an example."""
    recorded: ClassVar[type[JvmSegment | JvmCache]]
    """Kafka's classes that are recorded."""
    apart: str = ""
    """Name of an operation: failures that interrupt it have other causes than all others; empty for none."""

    def __init__(self, release: str, scratch: Path, progress: Progress | None = None) -> None:
        self.release = release
        (scratch / "classes").mkdir(parents=True)
        self._directory = scratch / "recorded"
        self._journal = JournalledClasses(release, scratch / "classes", progress)
        self._recorded = self.recorded(release, loader=self._journal.loader)
        subjects = [self.machine.subject("jvm", release, progress)]
        self._lockstep = self.machine.new_lockstep(subjects, scratch / "opening", releases=[release])

    def explore(self, plan: LockstepPlan) -> LockstepExploration[HistoryType]:
        """Search until the limits of a plan, and return the findings."""
        explored = LockstepExploration[HistoryType](self.release)
        end = None if plan.seconds is None else time.monotonic() + plan.seconds
        for number in range(plan.examples):
            if end is not None and time.monotonic() > end:
                break
            chance = Random(f"{self.machine.kind} {plan.seed} {number}")  # noqa: S311 -- nothing secret
            history = self.drawn(chance)
            every = list(self.crash_points(history))
            for crash_point in chance.sample(every, min(plan.crash_points, len(every))):
                for loss in losses(crash_point.disk, plan.losses, chance):
                    for restart in crash_point.restarts:
                        explored.states += 1
                        self._note(history, Failure(crash_point, _cut(crash_point, loss, chance), restart), explored)
            explored.examples += 1
        return explored

    def drawn(self, chance: Random) -> HistoryType:
        """Execute a generated example, and return its history."""
        raise NotImplementedError

    def crash_points(self, history: HistoryType) -> Iterator[CrashPoint]:
        """Yield the crash points at which a write may be lost that could not be lost at an earlier one."""
        raise NotImplementedError

    def check(self, history: HistoryType, failure: Failure) -> dict[Guarantee | None, str]:
        """Return the evidence for each guarantee that a failure violates, and for None the divergence of kidx."""
        raise NotImplementedError

    def trace_of(self, finding: PowerFailureFinding[HistoryType]) -> Trace:
        """Return a trace that writes the remaining files and opens them."""
        raise NotImplementedError

    def _alike(self, one: Signature, other: Signature) -> bool:
        """Return True if both failures interrupt the operation :attr:`apart`, or neither does."""
        return (self.apart in one.during) == (self.apart in other.during)

    def _note(self, history: HistoryType, failure: Failure, explored: LockstepExploration[HistoryType]) -> None:
        """Check a failure, and count each violation as an occurrence of a known finding, or add a shrunk finding."""
        for guarantee in self.check(history, failure):
            signature = signature_of(history, failure, guarantee)
            causes = (
                each for each in explored.findings if each.signature.lost and self._alike(each.signature, signature)
            )
            known = next((each for each in causes if each.signature.explains(signature)), None)
            if known is None:

                def still(other: Failure, guarantee: Guarantee | None = guarantee) -> bool:
                    return guarantee in self.check(history, other)

                smallest = fewest(failure, still)
                signature = signature_of(history, smallest, guarantee)
                known = next((each for each in explored.findings if each.signature == signature), None)
                if known is None:
                    text = self.check(history, smallest)[guarantee]
                    explored.findings.append(PowerFailureFinding(signature, history, smallest, text))
                    continue
            known.times += 1


def _cut(crash_point: CrashPoint, loss: Loss, chance: Random) -> Loss:
    """Return a loss with some lengths that the file had only during a copy, which Java makes in one call."""
    found: dict[Any, Any] = dict(loss)
    for item, value in loss.items():
        last = crash_point.disk.files[item.file].lengths[-1] if isinstance(item, Length) else 0
        if isinstance(value, int) and value < last and chance.random() < _CUT:
            found[item] = chance.randrange(value, last)
    return found
