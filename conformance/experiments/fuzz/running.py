"""One format being fuzzed: content by content in lockstep, or many contents at once with Kafka's classes."""

from __future__ import annotations

import hashlib
import math
import random
import time
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Final

from hypothesis import HealthCheck, Phase, given, settings

from conformance.experiments.fuzz.mutations import contents, every_flip, mutated
from conformance.experiments.fuzz.plan import FuzzPlan, FuzzResult, Tell, peak_bytes
from conformance.lockstep.divergence import failure_json
from conformance.operations.trace import Trace

if TYPE_CHECKING:
    from conformance.experiments.fuzz.batches import Batches, Seen
    from conformance.experiments.fuzz.corpus import Corpus
    from conformance.experiments.fuzz.examiner import Examined, Examiner

_MEASURED_EVERY: Final = 100
"""Cases between two looks at the memory."""
_BATCH: Final = 1024
"""Cases that all releases together perform in one go."""
_SMALLEST_BATCH: Final = 64
_MORE_THAN_AN_INDEX: Final = 8
"""What a log takes, in indexes."""

Drive = Callable[[Callable[[bytes], object], float], None]
"""Calls a function with buffers for some seconds."""


class Run:
    """One format being fuzzed, one content after the other.

    Args:
        plan: what to do.
        format_name: which.
        examiner: makes what performs one content in lockstep.
        corpus: of the format.
        tell: called with every finding, in words.
        drive: chooses the buffers; random contents if None.
    """

    def __init__(
        self,
        plan: FuzzPlan,
        format_name: str,
        examiner: Callable[[], Examiner],
        corpus: Corpus,
        tell: Tell,
        drive: Drive | None = None,
    ) -> None:
        self.plan = plan
        self.format_name = format_name
        self.corpus = corpus
        self.drive = drive
        self.result = FuzzResult(format_name)
        self.chance = random.Random(plan.seed)  # noqa: S311 -- nothing secret
        self.tell = tell
        self.seen: set[object] = set()
        self._make_examiner = examiner
        self._examiner: Examiner | None = None
        self._found: set[str] = set()

    @property
    def examiner(self) -> Examiner:
        """Performs one content in lockstep; made when it is first asked for."""
        if self._examiner is None:
            self._examiner = self._make_examiner()
        return self._examiner

    def examine(self, content: bytes, asked_as: bytes | None = None) -> Examined:
        """Examines a content, keeps it if its outcomes are new, and writes down what is wrong."""
        examined = self.examiner.examine(content, asked_as)
        self.result.cases += 1
        if self.result.cases % _MEASURED_EVERY == 1:
            self.result.peak_bytes = peak_bytes()
        if examined.failure is not None or examined.crash is not None:
            self.report(examined)
        else:
            self.keep(content, new=examined.signature not in self.seen)
            self.seen.add(examined.signature)
        self.result.kept = len(self.corpus.contents)
        return examined

    def keep(self, content: bytes, *, new: bool) -> None:
        """Keeps a content in the corpus if it has shown something new, and only then."""
        if new:
            self.result.new += self.corpus.add(content)
        else:
            self.corpus.drop(content)

    def flip_every_bit(self, content: bytes, until: float) -> None:
        """Classifies every content that differs from a valid one in one bit."""
        del until
        sound = self.examine(content).outcomes
        for _, _, flipped in every_flip(content):
            examined = self.examine(flipped, asked_as=content)
            differs = examined.failure is not None or examined.crash is not None
            self.result.flips[classify(sound, examined.outcomes, differs=differs)] += 1

    def mutate(self, until: float) -> None:
        """Mutates known contents until the time comes; the known ones grow meanwhile."""
        for content in list(self.corpus.contents):
            if time.monotonic() >= until:
                return
            self.examine(content)
        if self.drive is not None:
            self._be_driven(self.drive, until)
            return
        enough = self.enough()
        while time.monotonic() < until and self.result.cases < enough:
            self.examine(mutated(self.chance, self.format_name, self.corpus.contents))

    def enough(self) -> float:
        """The number of cases at which the run ends."""
        most = self.plan.max_cases
        return math.inf if most is None else self.result.cases + most

    def _be_driven(self, drive: Drive, until: float) -> None:
        @settings(database=None, deadline=None, phases=(Phase.generate,), suppress_health_check=list(HealthCheck))
        @given(contents(self.format_name, self.corpus.contents))
        def case(content: bytes) -> None:
            self.examine(content)

        fuzz_one: Callable[[bytes], object] = case.hypothesis.fuzz_one_input  # type: ignore[attr-defined]
        drive(fuzz_one, until - time.monotonic())

    def finish(self) -> None:
        """Says what only the end shows."""

    def report(self, examined: Examined) -> None:
        """Writes down a difference or a crash as a trace, one of each kind."""
        failure, crash = examined.failure, examined.crash
        if failure is not None:
            divergence = failure.divergence
            kind = f"{divergence.participant}: {divergence.aspects[0]} of {divergence.operation.name} differs"
            difference = failure_json(divergence)
            operations: Sequence[Any] = failure.operations
        else:
            kind = f"{type(crash).__name__} escaped from {examined.operations[-1].name}"
            difference = None
            operations = examined.operations
        if kind in self._found:
            return
        self._found.add(kind)
        digest = hashlib.sha256(kind.encode()).hexdigest()[:8]
        made_by = {"fuzz": self.format_name, "kind": digest, "seed": self.plan.seed}
        trace = Trace(self.examiner.machine, self.plan.releases[-1], tuple(operations), difference, kind, made_by)
        path = trace.save(self.plan.findings)
        self.result.findings[kind] = str(path)
        self.tell(f"{self.format_name}: {kind}: {crash or ''}\n  replay: conformance replay {path}")


class BatchedRun(Run):
    """The same with Kafka's classes, many contents at once; what differs is examined as one content is.

    Args:
        plan, format_name, examiner, corpus, tell: as the base class takes them.
        batches: performs contents.
    """

    def __init__(
        self,
        plan: FuzzPlan,
        format_name: str,
        examiner: Callable[[], Examiner],
        corpus: Corpus,
        tell: Tell,
        batches: Batches,
    ) -> None:
        super().__init__(plan, format_name, examiner, corpus, tell)
        self._batches = batches
        share = _BATCH // (_MORE_THAN_AN_INDEX if format_name == "log" else 1)
        self._size = max(_SMALLEST_BATCH, share // (len(plan.releases) * len(plan.implementations)))
        self._explained: set[tuple[str, int]] = set()

    def flip_every_bit(self, content: bytes, until: float) -> None:
        """See the base class; ends early where the time is over."""
        (sound,), _ = self._batches.flips(content, [content])
        flips = [flipped for _, _, flipped in every_flip(content)]
        for first in range(0, len(flips), self._size):
            if first and time.monotonic() >= until:
                return
            some = flips[first : first + self._size]
            for flipped, outcomes, differs in zip(some, *self._batches.flips(content, some), strict=True):
                self.result.cases += 1
                self.result.flips[classify(sound, outcomes, differs=differs is not None)] += 1
                self._settle(differs, flipped, content)

    def mutate(self, until: float) -> None:
        """See the base class."""
        known = list(self.corpus.contents)
        for first in range(0, len(known), self._size):
            if time.monotonic() >= until:
                return
            self._examine_all(known[first : first + self._size])
        enough = self.enough()
        while time.monotonic() < until and self.result.cases < enough:
            count = int(min(self._size, enough - self.result.cases))
            self._examine_all([mutated(self.chance, self.format_name, self.corpus.contents) for _ in range(count)])

    def finish(self) -> None:
        """Says how much of Kafka's classes has been reached."""
        self.result.coverage = {
            name: [(each.name, *each.lines, *each.branches) for each in classes]
            for name, classes in self._batches.coverage().items()
        }

    def _examine_all(self, some: Sequence[bytes]) -> None:
        for content, seen in zip(some, self._batches.examine(some), strict=True):
            self._look(content, seen)
        self.result.cases += len(some)
        self.result.kept = len(self.corpus.contents)
        self.result.peak_bytes = peak_bytes()

    def _look(self, content: bytes, seen: Seen) -> None:
        if seen.differs is None:
            self.keep(content, new=seen.new or seen.signature not in self.seen)
            self.seen.add(seen.signature)
        self._settle(seen.differs, content)

    def _settle(self, differs: tuple[str, int] | None, content: bytes, asked_as: bytes | None = None) -> None:
        """Performs a content that differs in lockstep, which decides; once for each way to differ that is confirmed."""
        if differs is None or differs in self._explained:
            return
        examined = self.examiner.examine(content, asked_as)
        if examined.failure is not None or examined.crash is not None:
            self.report(examined)
            self._explained.add(differs)
            return
        self.result.settled += 1
        self.tell(f"{self.format_name}: {content[:64].hex()}… differs among others and agrees by itself")


def classify(sound: Sequence[tuple[str, Any]], outcomes: Sequence[tuple[str, Any]], *, differs: bool) -> str:
    """How a changed content ended, beside the sound one."""
    if differs:
        return "implementations differ"
    if tuple(outcomes) == tuple(sound):
        return "accepted, same answers"
    # What the sound file is refused is refused for the script's own sake, such as an entry that does not exist.
    usual = {(name, outcome) for name, outcome in sound if isinstance(outcome, str)}
    for name, outcome in outcomes:
        if isinstance(outcome, str) and (name, outcome) not in usual:
            return f"refused: {outcome} by {name}"
    return "accepted, different answers"
