"""Search for power failures that violate a guarantee of Kafka, or that kidx survives otherwise, with the fewest losses.

Kafka's classes execute a generated example, and a journal records their writes and syncs: the *history*. At some of its
*crash points*, the search chooses writes that are lost, opens the remaining files, and checks them.

Shrinking of a finding's operations: each unnecessary one is removed.
"""

from __future__ import annotations

import time
from dataclasses import replace
from itertools import islice, product
from random import Random
from typing import TYPE_CHECKING, Any, ClassVar, Final, Generic

from conformance.implementations.jvm.journal import JournalledClasses
from conformance.studies.power_loss.checking import Checker, Original
from conformance.studies.power_loss.disk import Length, Loss
from conformance.studies.power_loss.failures import CrashPoint, Failure, crash_points, fewest, losses
from conformance.studies.power_loss.histories import History, OperationGenerator, Recorder
from conformance.studies.power_loss.opening import Opener
from conformance.studies.power_loss.signatures import Finding, HistoryType, Signature, kind_of, signature_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from pathlib import Path

    from conformance.implementations.jvm.cache import JvmCache
    from conformance.implementations.jvm.segment import JvmSegment
    from conformance.kafka.builds import Build
    from conformance.kafka.jar_fetch import Progress
    from conformance.machines.files import FilesMachine
    from conformance.operations import Operation
    from conformance.operations.trace import Trace
    from conformance.studies.power_loss.guarantees import Guarantee

_CUT: Final = 0.5
"""Probability that a lost length becomes a random length between the old and the new one."""


class Explorer(Generic[HistoryType]):
    """Search in one release. A subclass executes examples, records their histories, and checks their power failures.

    Attributes:
        release: release of the classes.
        findings: one violation of a guarantee, or one divergence, for each cause.
        examples: number of executed examples.
        states: number of disk contents that were opened.
    """

    points: int = 4
    losses: int = 8
    """Maximum numbers of crash points that are chosen in each history, and of combinations of lost writes for each."""

    def __init__(self, release: str) -> None:
        self.release = release
        self.begin()

    def begin(self) -> None:
        """Forget all findings and numbers."""
        self.findings, self.examples, self.states = list[Finding[HistoryType]](), 0, 0

    def explore(self, seed: int, number: int) -> None:
        """Execute the example with a number, which is drawn from a seed, and note what its power failures show."""
        chance = self.chance(seed, number)
        history = self.drawn(chance)
        for failure in self.failures(history, chance):
            self.states += 1
            for guarantee in self.check(history, failure):
                self._note(history, failure, guarantee)
        self.examples += 1

    def chance(self, seed: int, number: int) -> Random:
        """Return the source of randomness of an example."""
        raise NotImplementedError

    def drawn(self, chance: Random) -> HistoryType:
        """Execute a generated example, and return its history."""
        raise NotImplementedError

    def failures(self, history: HistoryType, chance: Random) -> Iterator[Failure]:
        """Yield the power failures that are checked."""
        raise NotImplementedError

    def check(self, history: HistoryType, failure: Failure) -> dict[Guarantee | None, str]:
        """Return the evidence for each guarantee that a failure violates, and for None the divergence of kidx."""
        raise NotImplementedError

    def shows(self, history: HistoryType, failure: Failure, guarantee: Guarantee | None) -> str:
        """Return the evidence that a failure violates a guarantee; empty if it does not."""
        return self.check(history, failure).get(guarantee, "")

    def trace_of(self, finding: Finding[HistoryType]) -> Trace:
        """Return a trace that writes the remaining files and opens them."""
        raise NotImplementedError

    def explains(self, one: Signature, other: Signature) -> bool:
        """Return True if a failure with the other signature, not shrunk yet, may have the cause of the first one."""
        return one.explains(other)

    def _note(self, history: HistoryType, failure: Failure, guarantee: Guarantee | None) -> None:
        """Count a violation as an occurrence of a known finding, or add the finding with the fewest lost writes."""
        signature = signature_of(history, failure, guarantee)
        known = next((each for each in self.findings if self.explains(each.signature, signature)), None)
        if known is None:
            smallest = fewest(failure, lambda other: bool(self.shows(history, other, guarantee)))
            signature = signature_of(history, smallest, guarantee)
            known = next((each for each in self.findings if each.signature == signature), None)
            if known is None:
                text = self.shows(history, smallest, guarantee)
                self.findings.append(Finding(signature, history, smallest, text))
                return
        known.times += 1


class LogExplorer(Explorer[History]):
    """Search in one release's log.

    Args:
        release: release of the classes.
        scratch: an empty directory.
        progress: called while jars are fetched.
        build: build whose classes are used instead, or None.
        drawn: class that generates the operations of an example.
        change: function that plants a defect in a history; if given, only failures that the defect makes possible
            count, and kidx does not open the files.

    Attributes:
        recorder: Kafka's classes, with a journal of their writes and syncs.
        opener: Kafka's classes and kidx, which open the remaining files.

    Raises:
        ToolError: Java or a jar is missing.
    """

    points, losses = 6, 16

    def __init__(
        self,
        release: str,
        scratch: Path,
        progress: Progress | None = None,
        build: Build | None = None,
        drawn: type[OperationGenerator] = OperationGenerator,
        change: Callable[[History], History] | None = None,
    ) -> None:
        super().__init__(release)
        self._drawn, self._change = drawn, change
        self._original: History | None = None
        self._checker: Checker | None = None
        self.recorder = Recorder(release, scratch / "recording", progress, build)
        self.opener = Opener(release, scratch / "opening", progress, build)

    def explore(self, seed: int, number: int) -> None:
        """Execute an example; see the base class."""
        super().explore(seed, number)
        self.opener.end()

    def chance(self, seed: int, number: int) -> Random:
        """Return the source of randomness of an example."""
        return Random(f"{seed} {number}")  # noqa: S311 -- nothing secret

    def drawn(self, chance: Random) -> History:
        """Execute a generated example, and return its history, with the planted defect."""
        self._original = self.recorder.record(self._drawn(chance))
        return self._original if self._change is None else self._change(self._original)

    def failures(self, history: History, chance: Random) -> Iterator[Failure]:
        """Yield the power failures that leave different files; with a planted defect, those that it makes possible."""
        checker, seen = self._checker_of(history), set[int]()
        every = list(crash_points(history))
        chosen = chance.sample(every, min(self.points, len(every)))
        if not checker.has_defect:
            chosen += [each for each in every if _is_shut_down(each, history) and each not in chosen]
        for crash_point in chosen:
            for failure in _failures(crash_point, self.losses, chance):
                state = hash((crash_point.step, failure.restart, *sorted(failure.files().items())))
                if state not in seen and checker.counts(failure):
                    seen.add(state)
                    yield failure

    def check(self, history: History, failure: Failure) -> dict[Guarantee | None, str]:
        """Return the evidence for each violated guarantee, and for None the divergence; see the base class."""
        checker = self._checker_of(history)
        found = checker.check(failure, lockstep=not checker.has_defect)
        return {each: text for each, text in found.items() if not checker.has_defect or checker.shows(failure, each)}

    def shows(self, history: History, failure: Failure, guarantee: Guarantee | None) -> str:
        """Return the evidence that a failure violates a guarantee; empty if it does not."""
        return self._checker_of(history).shows(failure, guarantee)

    def _checker_of(self, history: History) -> Checker:
        if self._checker is None or self._checker.history is not history:
            original = self._original if self._change is not None else None
            self._checker = Checker(history, self.opener, None if original is None else Original(original))
        return self._checker


def _is_shut_down(crash_point: CrashPoint, history: History) -> bool:
    """Return True after a shutdown: a start trusts all files then, so each loss counts (PF-2, PF-3)."""
    return crash_point.done and history.operations[crash_point.step].name == "close_log"


def _failures(crash_point: CrashPoint, most: int, chance: Random) -> Iterator[Failure]:
    for loss in losses(crash_point.disk, most, chance):
        restarts = crash_point.restarts
        yield Failure(crash_point, loss, restarts[0])
        if len(restarts) > 1:
            yield Failure(crash_point, loss, chance.choice(restarts[1:]))


class LockstepExplorer(Explorer[HistoryType]):
    """Search in one release's segment or cache, whose remaining files are opened in lockstep.

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
    apart: ClassVar[str] = ""
    """Name of an operation: failures that interrupt it have other causes than all others; empty for none."""

    def __init__(self, release: str, scratch: Path, progress: Progress | None = None) -> None:
        super().__init__(release)
        (scratch / "classes").mkdir(parents=True)
        self._directory = scratch / "recorded"
        self._journal = JournalledClasses(release, scratch / "classes", progress)
        self._recorded = self.recorded(release, loader=self._journal.loader)
        subjects = [self.machine.subject("jvm", release, progress)]
        self._lockstep = self.machine.new_lockstep(subjects, scratch / "opening", releases=[release])

    def chance(self, seed: int, number: int) -> Random:
        """Return the source of randomness of an example."""
        return Random(f"{self.machine.kind} {seed} {number}")  # noqa: S311 -- nothing secret

    def failures(self, history: HistoryType, chance: Random) -> Iterator[Failure]:
        """Yield the power failures that are checked."""
        every = list(self.crash_points(history))
        for crash_point in chance.sample(every, min(self.points, len(every))):
            for loss in losses(crash_point.disk, self.losses, chance):
                for restart in crash_point.restarts:
                    yield Failure(crash_point, _cut(crash_point, loss, chance), restart)

    def crash_points(self, history: HistoryType) -> Iterator[CrashPoint]:
        """Yield the crash points at which a write may be lost that could not be lost at an earlier one."""
        raise NotImplementedError

    def explains(self, one: Signature, other: Signature) -> bool:
        """Return True if both failures interrupt the operation :attr:`apart`, or neither does; see the base class."""
        return bool(one.lost) and (self.apart in one.during) == (self.apart in other.during) and one.explains(other)


def _cut(crash_point: CrashPoint, loss: Loss, chance: Random) -> Loss:
    """Return a loss with some lengths that the file had only during a copy, which Java makes in one call."""
    found: dict[Any, Any] = dict(loss)
    for item, value in loss.items():
        last = crash_point.disk.files[item.file].lengths[-1] if isinstance(item, Length) else 0
        if isinstance(value, int) and value < last and chance.random() < _CUT:
            found[item] = chance.randrange(value, last)
    return found


_MOST = 64
"""Maximum number of losses that are tried at one crash point."""


def shrunk(finding: Finding[History], explorer: LogExplorer, seconds: float) -> Finding[History]:
    """Return the same finding with fewer operations, as far as time allows.

    Args:
        seconds: time limit.
    """
    end = time.monotonic() + seconds
    best = _of(finding.history.operations[: finding.failure.crash_point.step + 1], finding, explorer) or finding
    width = max(1, (len(best.history.operations) - 1) // 2)
    while width:
        at = len(best.history.operations) - 1 - width
        while at >= 1 and time.monotonic() < end:
            operations = best.history.operations
            smaller = _of((*operations[:at], *operations[at + width :]), finding, explorer)
            if smaller is not None:
                best = smaller
            at -= width
        width //= 2
    return best


def _of(operations: Sequence[Operation], finding: Finding[History], explorer: LogExplorer) -> Finding[History] | None:
    """Return the same finding at the last of these operations, or None."""
    history = explorer.recorder.perform(operations)
    if len(history.operations) < len(operations):
        return None
    checker = Checker(history, explorer.opener)
    wanted = finding.signature
    for failure in _candidates(history, wanted):
        shown = checker.shows(failure, wanted.guarantee)
        if shown and signature_of(history, failure, wanted.guarantee).lost <= wanted.lost:
            smallest = fewest(failure, lambda other: bool(checker.shows(other, wanted.guarantee)))
            signature = signature_of(history, smallest, wanted.guarantee)
            if bool(signature.lost) == bool(wanted.lost):
                return replace(
                    finding,
                    history=history,
                    failure=smallest,
                    text=checker.shows(smallest, wanted.guarantee),
                    signature=signature,
                )
    return None


def _candidates(history: History, wanted: Signature) -> Iterator[Failure]:
    """Yield failures at the last operation whose losses are among the kinds that the finding lost."""
    for crash_point in crash_points(history):
        if crash_point.step < len(history.operations) - 1:
            continue
        options = {
            item: values
            for item, values in crash_point.disk.options().items()
            if kind_of(crash_point.disk, item) in wanted.lost
        }
        chosen = product(*([None, *values] for values in options.values()))
        for restart in crash_point.restarts:
            if restart.clean != wanted.clean:
                continue
            for values in islice(chosen, _MOST):
                pairs = zip(options, values, strict=True)
                yield Failure(crash_point, {item: value for item, value in pairs if value is not None}, restart)
