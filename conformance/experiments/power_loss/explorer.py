"""Explorer of power failures in lives that are opened in lockstep: of segments, and of caches."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from random import Random
from typing import TYPE_CHECKING, Any, Generic, NamedTuple, Protocol, TypeVar

from conformance.experiments.power_loss.disk import Length, Loss
from conformance.experiments.power_loss.failures import Failure, Moment, fewest, losses
from conformance.experiments.power_loss.signatures import Signature, signature_of

if TYPE_CHECKING:
    from conformance.experiments.power_loss.promises import Promise
    from conformance.implementations.jvm.journal import Event
    from conformance.operations import Operation
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


class RecordedLife(Protocol):
    """Recorded history of a segment or of a cache."""

    @property
    def operations(self) -> tuple[Operation, ...]:
        """Operations in their order."""

    @property
    def events(self) -> tuple[Event, ...]:
        """File operations of Kafka's classes in the meantime."""


LifeType = TypeVar("LifeType", bound=RecordedLife)


@dataclass
class SmallFinding(Generic[LifeType]):
    """Guarantee that a power failure breaks, or a divergence of kidx.

    Attributes:
        signature: signature of all failures with the same cause.
        life: the life.
        failure: the failure with the fewest losses.
        text: evidence.
        times: number of occurrences.
    """

    signature: Signature
    life: LifeType
    failure: Failure
    text: str
    times: int = 1

    def lines(self) -> list[str]:
        """Return evidence, operations and losses, a line each."""
        moment = self.failure.moment
        steps = enumerate(self.life.operations[: moment.step + 1], start=1)
        return [
            f"shows        {self.text}",
            "steps",
            *(f"{number:>5}  {step}" for number, step in steps),
            f"power fails  {'after' if moment.done else 'during'} step {moment.step + 1}",
            *(f"lost         {lost}" for lost in self.failure.described()),
        ]


@dataclass
class SmallExplored(Generic[LifeType]):
    """Result of a plan for one release."""

    release: str
    lives: int = 0
    states: int = 0
    findings: list[SmallFinding[LifeType]] = field(default_factory=list)


class SmallExplorer(Generic[LifeType]):
    """Base of the explorers. A subclass records lives, and checks their failures."""

    release: str
    name: str
    """First word of the seed of a life."""
    apart: str = ""
    """Operation whose failures have separate causes; an empty text if no operation does."""

    def explore(self, plan: SmallPlan) -> SmallExplored[LifeType]:
        """Return the result of a plan."""
        explored = SmallExplored[LifeType](self.release)
        end = None if plan.seconds is None else time.monotonic() + plan.seconds
        for number in range(plan.lives):
            if end is not None and time.monotonic() > end:
                break
            chance = Random(f"{self.name} {plan.seed} {number}")  # noqa: S311 -- nothing secret
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
