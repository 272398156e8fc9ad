"""Experiment that generates log histories and power failures, and finds broken guarantees with the fewest losses."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING, NamedTuple

from conformance.experiments.power_loss.failures import Failure, Moment, fewest, losses, moments
from conformance.experiments.power_loss.judging import Judge
from conformance.experiments.power_loss.lives import DrawnLife, Life, Recorder
from conformance.experiments.power_loss.opening import Opener
from conformance.experiments.power_loss.original import Original
from conformance.experiments.power_loss.signatures import Finding, Signature, during_of, signature_of

if TYPE_CHECKING:
    from conformance.kafka.builds import Build
    from conformance.kafka.jar_fetch import Progress


class Plan(NamedTuple):
    """Amount of work.

    Attributes:
        seed: random seed.
        lives: number of generated lives.
        moments: maximum number of moments in each life.
        losses: number of losses for each moment; all possible ones if there are no more.
        seconds: time after which no new life begins; None for no limit.
        lockstep: True to open the remaining files with kidx too.
        flushes: True to let logs be flushed during appends.
    """

    seed: int = 0
    lives: int = 40
    moments: int = 6
    losses: int = 16
    seconds: float | None = None
    lockstep: bool = True
    flushes: bool = True


@dataclass
class Explored:
    """Result of a plan for one release."""

    release: str
    lives: int = 0
    states: int = 0
    findings: list[Finding] = field(default_factory=list)


class Explorer:
    """Runner of power failures for one release's log.

    Args:
        release: release of the classes.
        scratch: an empty directory.
        progress: called while jars are fetched.
        build: build whose classes are used instead, or None.
        drawn: generator of the operations of a life.

    Raises:
        ToolError: Java or a jar is missing.
    """

    def __init__(
        self,
        release: str,
        scratch: Path,
        progress: Progress | None = None,
        build: Build | None = None,
        drawn: type[DrawnLife] = DrawnLife,
    ) -> None:
        self.release, self._drawn = release, drawn
        self.recorder = Recorder(release, scratch / "recording", progress, build)
        self.opener = Opener(release, scratch / "opening", progress, build)

    def explore(
        self,
        plan: Plan,
        change: Callable[[Life], Life] | None = None,
        stop: Callable[[Explored], bool] | None = None,
    ) -> Explored:
        """Return the result of a plan.

        Args:
            plan: amount of work.
            change: a planted defect; if given, only failures that it makes possible count.
            stop: returns True if the findings are sufficient.
        """
        explored = Explored(self.release)
        end = None if plan.seconds is None else time.monotonic() + plan.seconds
        for number in range(plan.lives):
            if end is not None and time.monotonic() > end:
                break
            chance = Random(f"{plan.seed} {number}")  # noqa: S311 -- nothing secret
            life = self.recorder.record(self._drawn(chance, flushes=plan.flushes))
            if change is None:
                self._explore_life(Judge(life, self.opener), plan, chance, explored)
            else:
                self._explore_life(Judge(change(life), self.opener, Original(life)), plan, chance, explored)
            explored.lives += 1
            if stop is not None and stop(explored):
                break
        self.opener.end()
        return explored

    def _explore_life(self, judge: Judge, plan: Plan, chance: Random, explored: Explored) -> None:
        life = judge.life
        every = list(moments(life))
        seen = set[int]()
        chosen = chance.sample(every, min(plan.moments, len(every)))
        if not judge.has_defect:
            chosen += [each for each in every if _is_shut_down(each, life) and each not in chosen]
        for moment in chosen:
            for failure in _failures(moment, plan.losses, chance):
                state = hash((moment.step, failure.restart, *sorted(failure.files().items())))
                if state in seen or not judge.counts(failure):
                    continue
                seen.add(state)
                explored.states += 1
                for promise in judge.judge(failure, lockstep=plan.lockstep):
                    if judge.has_defect and not judge.shows(failure, promise):
                        continue
                    self._note(signature_of(life, failure, promise), failure, judge, life, explored)

    @staticmethod
    def _note(signature: Signature, failure: Failure, judge: Judge, life: Life, explored: Explored) -> None:
        during = during_of(life, failure)
        for finding in explored.findings:
            if finding.signature.explains(signature):
                finding.times += 1
                finding.durings.add(during)
                return
        promise = signature.promise
        smallest = fewest(failure, lambda other: bool(judge.shows(other, promise)))
        found = Finding(signature_of(life, smallest, promise), life, smallest, judge.shows(smallest, promise))
        found.durings.add(during)
        for finding in explored.findings:
            if finding.signature == found.signature:
                finding.times += 1
                finding.durings.add(during)
                return
        explored.findings.append(found)


def _is_shut_down(moment: Moment, life: Life) -> bool:
    """Return True after a shutdown: a start trusts all files then, so each loss counts (PF-2, PF-3)."""
    return moment.done and life.operations[moment.step].name == "close_log"


def _failures(moment: Moment, most: int, chance: Random) -> Iterator[Failure]:
    for loss in losses(moment.disk, most, chance):
        restarts = moment.restarts
        yield Failure(moment, loss, restarts[0])
        if len(restarts) > 1:
            yield Failure(moment, loss, chance.choice(restarts[1:]))
