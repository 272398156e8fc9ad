"""Search for power failures of a log that violate a guarantee of Kafka, with the fewest lost writes.

Kafka's classes execute a generated example, and a journal records their writes and syncs: the *history*. At some of its
*crash points*, the search chooses writes that are lost, opens the remaining files, and checks them.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING, NamedTuple

from conformance.experiments.power_loss.checking import Checker
from conformance.experiments.power_loss.failures import CrashPoint, Failure, crash_points, fewest, losses
from conformance.experiments.power_loss.histories import History, OperationGenerator, Recorder
from conformance.experiments.power_loss.opening import Opener
from conformance.experiments.power_loss.original import Original
from conformance.experiments.power_loss.signatures import Finding, Signature, during_of, signature_of

if TYPE_CHECKING:
    from conformance.kafka.builds import Build
    from conformance.kafka.jar_fetch import Progress


class Plan(NamedTuple):
    """Limits of a search: how many examples, crash points and losses are tried.

    Attributes:
        seed: random seed.
        examples: number of generated examples; each is recorded as a history.
        crash_points: maximum number of crash points that are chosen in each history.
        losses: number of combinations of lost writes for each crash point; all of them if there are no more.
        seconds: time after which no new example begins; None for no limit.
        lockstep: True to open the remaining files with kidx too.
        flushes: True to let logs be flushed during appends.
    """

    seed: int = 0
    examples: int = 40
    crash_points: int = 6
    losses: int = 16
    seconds: float | None = None
    lockstep: bool = True
    flushes: bool = True


@dataclass
class Exploration:
    """Result of a search for one release.

    Attributes:
        release: the release.
        examples: number of executed examples.
        states: number of disk contents that were opened.
        findings: one violation of a guarantee for each cause.
    """

    release: str
    examples: int = 0
    states: int = 0
    findings: list[Finding] = field(default_factory=list)


class Explorer:
    """Search in one release's log.

    Args:
        release: release of the classes.
        scratch: an empty directory.
        progress: called while jars are fetched.
        build: build whose classes are used instead, or None.
        drawn: class that generates the operations of an example.

    Attributes:
        recorder: Kafka's classes, with a journal of their writes and syncs.
        opener: Kafka's classes and kidx, which open the remaining files.

    Raises:
        ToolError: Java or a jar is missing.
    """

    def __init__(
        self,
        release: str,
        scratch: Path,
        progress: Progress | None = None,
        build: Build | None = None,
        drawn: type[OperationGenerator] = OperationGenerator,
    ) -> None:
        self.release, self._drawn = release, drawn
        self.recorder = Recorder(release, scratch / "recording", progress, build)
        self.opener = Opener(release, scratch / "opening", progress, build)

    def explore(
        self,
        plan: Plan,
        change: Callable[[History], History] | None = None,
        stop: Callable[[Exploration], bool] | None = None,
    ) -> Exploration:
        """Search until the limits of a plan, and return the findings.

        Args:
            plan: limits of the search.
            change: function that plants a defect in a history; if given, only failures that the defect makes possible
                count.
            stop: returns True if the findings are sufficient.
        """
        explored = Exploration(self.release)
        end = None if plan.seconds is None else time.monotonic() + plan.seconds
        for number in range(plan.examples):
            if end is not None and time.monotonic() > end:
                break
            chance = Random(f"{plan.seed} {number}")  # noqa: S311 -- nothing secret
            history = self.recorder.record(self._drawn(chance, flushes=plan.flushes))
            if change is None:
                self._explore_history(Checker(history, self.opener), plan, chance, explored)
            else:
                self._explore_history(Checker(change(history), self.opener, Original(history)), plan, chance, explored)
            explored.examples += 1
            if stop is not None and stop(explored):
                break
        self.opener.end()
        return explored

    def _explore_history(self, checker: Checker, plan: Plan, chance: Random, explored: Exploration) -> None:
        history = checker.history
        every = list(crash_points(history))
        seen = set[int]()
        chosen = chance.sample(every, min(plan.crash_points, len(every)))
        if not checker.has_defect:
            chosen += [each for each in every if _is_shut_down(each, history) and each not in chosen]
        for crash_point in chosen:
            for failure in _failures(crash_point, plan.losses, chance):
                state = hash((crash_point.step, failure.restart, *sorted(failure.files().items())))
                if state in seen or not checker.counts(failure):
                    continue
                seen.add(state)
                explored.states += 1
                for guarantee in checker.check(failure, lockstep=plan.lockstep):
                    if checker.has_defect and not checker.shows(failure, guarantee):
                        continue
                    self._note(signature_of(history, failure, guarantee), failure, checker, history, explored)

    @staticmethod
    def _note(
        signature: Signature, failure: Failure, checker: Checker, history: History, explored: Exploration
    ) -> None:
        """Count a failure as an occurrence of a known finding, or shrink it and add a finding."""
        during = during_of(history, failure)
        for finding in explored.findings:
            if finding.signature.explains(signature):
                finding.times += 1
                finding.interrupted_operations.add(during)
                return
        guarantee = signature.guarantee
        smallest = fewest(failure, lambda other: bool(checker.shows(other, guarantee)))
        found = Finding(
            signature_of(history, smallest, guarantee), history, smallest, checker.shows(smallest, guarantee)
        )
        found.interrupted_operations.add(during)
        for finding in explored.findings:
            if finding.signature == found.signature:
                finding.times += 1
                finding.interrupted_operations.add(during)
                return
        explored.findings.append(found)


def _is_shut_down(crash_point: CrashPoint, history: History) -> bool:
    """Return True after a shutdown: a start trusts all files then, so each loss counts (PF-2, PF-3)."""
    return crash_point.done and history.operations[crash_point.step].name == "close_log"


def _failures(crash_point: CrashPoint, most: int, chance: Random) -> Iterator[Failure]:
    for loss in losses(crash_point.disk, most, chance):
        restarts = crash_point.restarts
        yield Failure(crash_point, loss, restarts[0])
        if len(restarts) > 1:
            yield Failure(crash_point, loss, chance.choice(restarts[1:]))
