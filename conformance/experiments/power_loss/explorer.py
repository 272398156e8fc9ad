"""Explorer of power failures in lives that are opened in lockstep: of segments, and of caches."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from random import Random
from typing import TYPE_CHECKING, Any, ClassVar, Generic, NamedTuple

from conformance.experiments.power_loss.disk import Length, Loss
from conformance.experiments.power_loss.failures import Failure, Moment, fewest, losses
from conformance.experiments.power_loss.signatures import LifeType, Signature, SmallFinding, signature_of
from conformance.implementations.jvm.journal import JournalledClasses

if TYPE_CHECKING:
    from pathlib import Path

    from conformance.experiments.power_loss.promises import Promise
    from conformance.implementations.jvm.cache import JvmCache
    from conformance.implementations.jvm.segment import JvmSegment
    from conformance.kafka.jar_fetch import Progress
    from conformance.machines import FilesMachine
    from conformance.operations.trace import Trace

_CUT = 0.5
"""Share of the lost lengths that are between two lengths that the file had."""


class SmallPlan(NamedTuple):
    """Amount of work.

    Attributes:
        seed: random seed.
        lives: number of generated lives.
        moments: maximum number of moments in each life.
        losses: number of losses for each moment; all possible ones if there are no more.
        seconds: time after which no new life begins; None for no limit.
    """

    seed: int = 0
    lives: int = 8
    moments: int = 4
    losses: int = 8
    seconds: float | None = None


@dataclass
class SmallExplored(Generic[LifeType]):
    """Result of a plan for one release."""

    release: str
    lives: int = 0
    states: int = 0
    findings: list[SmallFinding[LifeType]] = field(default_factory=list)


class SmallExplorer(Generic[LifeType]):
    """Base of the explorers of one release. A subclass records lives, and checks their failures.

    Args:
        release: release of the classes, which has what the subclass tests.
        scratch: an empty directory.
        progress: called while jars are fetched.

    Raises:
        ToolError: Java or a jar is missing.
    """

    machine: ClassVar[type[FilesMachine]]
    """Machine whose lockstep opens the remaining files; its name is the first word of the seed of a life."""
    recorded: ClassVar[type[JvmSegment | JvmCache]]
    """Kafka's classes that are recorded."""
    apart: str = ""
    """Operation whose failures have separate causes; an empty text if no operation does."""

    def __init__(self, release: str, scratch: Path, progress: Progress | None = None) -> None:
        self.release = release
        (scratch / "classes").mkdir(parents=True)
        self._directory = scratch / "recorded"
        self._journal = JournalledClasses(release, scratch / "classes", progress)
        self._recorded = self.recorded(release, loader=self._journal.loader)
        subjects = [self.machine.subject("jvm", release, progress)]
        self._lockstep = self.machine.new_lockstep(subjects, scratch / "opening", releases=[release])

    def explore(self, plan: SmallPlan) -> SmallExplored[LifeType]:
        """Return the result of a plan."""
        explored = SmallExplored[LifeType](self.release)
        end = None if plan.seconds is None else time.monotonic() + plan.seconds
        for number in range(plan.lives):
            if end is not None and time.monotonic() > end:
                break
            chance = Random(f"{self.machine.kind} {plan.seed} {number}")  # noqa: S311 -- nothing secret
            life = self.drawn(chance)
            every = list(self.moments(life))
            for moment in chance.sample(every, min(plan.moments, len(every))):
                for loss in losses(moment.disk, plan.losses, chance):
                    for restart in moment.restarts:
                        explored.states += 1
                        self._note(life, Failure(moment, _cut(moment, loss, chance), restart), explored)
            explored.lives += 1
        return explored

    def drawn(self, chance: Random) -> LifeType:
        """Return a life that was drawn and executed."""
        raise NotImplementedError

    def moments(self, life: LifeType) -> Iterator[Moment]:
        """Yield the moments at which something may be lost that could not be lost before."""
        raise NotImplementedError

    def judge(self, life: LifeType, failure: Failure) -> dict[Promise | None, str]:
        """Return the evidence for each guarantee that a failure breaks, and for None the divergence of kidx."""
        raise NotImplementedError

    def trace_of(self, finding: SmallFinding[LifeType]) -> Trace:
        """Return a trace that writes the remaining files and opens them."""
        raise NotImplementedError

    def _alike(self, one: Signature, other: Signature) -> bool:
        return (self.apart in one.during) == (self.apart in other.during)

    def _note(self, life: LifeType, failure: Failure, explored: SmallExplored[LifeType]) -> None:
        for promise in self.judge(life, failure):
            signature = signature_of(life, failure, promise)
            causes = (
                each for each in explored.findings if each.signature.lost and self._alike(each.signature, signature)
            )
            known = next((each for each in causes if each.signature.explains(signature)), None)
            if known is None:

                def still(other: Failure, promise: Promise | None = promise) -> bool:
                    return promise in self.judge(life, other)

                smallest = fewest(failure, still)
                signature = signature_of(life, smallest, promise)
                known = next((each for each in explored.findings if each.signature == signature), None)
                if known is None:
                    text = self.judge(life, smallest)[promise]
                    explored.findings.append(SmallFinding(signature, life, smallest, text))
                    continue
            known.times += 1


def _cut(moment: Moment, loss: Loss, chance: Random) -> Loss:
    """Return a loss with some lengths that the file had only during a copy, which Java makes in one call."""
    found: dict[Any, Any] = dict(loss)
    for item, value in loss.items():
        last = moment.disk.files[item.file].lengths[-1] if isinstance(item, Length) else 0
        if isinstance(value, int) and value < last and chance.random() < _CUT:
            found[item] = chance.randrange(value, last)
    return found
