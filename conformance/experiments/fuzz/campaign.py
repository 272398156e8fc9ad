"""A fuzzing run: every bit of a small file, then mutations until the time is over.

Findings are traces in a directory of the run; the same difference is kept once. The corpus survives, so that the next
run goes on where this one ended.
"""

from __future__ import annotations

import hashlib
import math
import random
import resource
import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from hypothesis import HealthCheck, Phase, given, settings

from conformance.errors import ToolError
from conformance.experiments.fuzz.corpus import Corpus
from conformance.experiments.fuzz.examiner import Examined, Examiner
from conformance.experiments.fuzz.mutations import contents, every_flip
from conformance.experiments.fuzz.scripts import MACHINE_OF
from conformance.experiments.fuzz.seeds import SEEDS
from conformance.lockstep.divergence import failure_json
from conformance.operations.trace import Trace
from conformance.scratch import scratch_directory

if TYPE_CHECKING:
    from conformance.kafka.fetch import Progress

_SMALLEST_BUFFER: Final = 64
_LARGEST_BUFFER: Final = 1024
_MEASURED_EVERY: Final = 100
"""Cases between two looks at the memory."""


@dataclass(frozen=True)
class FuzzPlan:
    """What a run does.

    Attributes:
        formats: of ``--format``.
        releases: whose dialects and classes.
        implementations: as ``-i`` takes them.
        corpus: where contents are kept, a directory for each format.
        findings: where traces are written.
        seed: of the mutations.
        max_time: seconds for everything.
        max_cases: contents of one format, besides every flipped bit; as many as the time allows if None.
    """

    formats: tuple[str, ...]
    releases: tuple[str, ...]
    implementations: tuple[str, ...]
    corpus: Path
    findings: Path
    seed: int
    max_time: float
    max_cases: int | None = None


@dataclass
class FuzzResult:
    """The result for one format.

    Attributes:
        format: its name.
        flips: how every flipped bit of the small seed file ended: ``accepted, same answers``, ``accepted, different
            answers``, or ``refused: KIND by OPERATION``.
        cases: contents examined, the flips included.
        kept: contents in the corpus, the seeds included.
        new: of them, added by this run.
        findings: traces of differences and of crashes, by their paths; one of each kind.
        seconds: that it took.
        peak_bytes: resident memory at the worst.
    """

    format: str
    flips: Counter[str] = field(default_factory=Counter)
    cases: int = 0
    kept: int = 0
    new: int = 0
    findings: dict[str, str] = field(default_factory=dict)
    seconds: float = 0.0
    peak_bytes: int = 0

    def to_json(self) -> dict[str, Any]:
        """As ``--json`` prints it."""
        return dict(self.__dict__, flips=dict(self.flips.most_common()), seconds=round(self.seconds, 1))


Tell = Callable[[str], None]
Drive = Callable[[Callable[[bytes], object], float], None]
"""Calls a function with buffers for some seconds."""


def fuzz(plan: FuzzPlan, tell: Tell = lambda _: None, progress: Progress | None = None) -> list[FuzzResult]:
    """Runs a plan, its formats one after another, each with its share of the time.

    Args:
        plan: what to do.
        tell: called with every finding, in words.
        progress: called while jars are fetched.

    Raises:
        ToolError: an implementation cannot be had, or a directory not be used.
    """
    started = time.monotonic()
    results = []
    for number, format_name in enumerate(plan.formats):
        left = plan.max_time - (time.monotonic() - started)
        share = left / (len(plan.formats) - number)
        results.append(fuzz_format(plan, format_name, share, tell, progress))
    return results


def fuzz_format(
    plan: FuzzPlan,
    format_name: str,
    seconds: float,
    tell: Tell = lambda _: None,
    progress: Progress | None = None,
    drive: Drive | None = None,
    watch: Callable[[FuzzResult], None] = lambda _: None,
) -> FuzzResult:
    """Runs one format for some seconds.

    Args:
        plan: as :func:`fuzz` takes it.
        format_name: which.
        seconds: for everything.
        tell: as :func:`fuzz` takes it.
        progress: likewise.
        drive: chooses the buffers; random ones if None.
        watch: given the result before it begins to fill.

    Raises:
        ToolError: as :func:`fuzz`.
    """
    from conformance.machines import MACHINES  # noqa: PLC0415 -- the machines are heavy, --help is not

    started = time.monotonic()
    machine = MACHINES.get(MACHINE_OF[format_name])
    if machine is None:
        raise ToolError(f"there is no machine for the format {format_name!r}")
    with scratch_directory() as scratch:
        seeds = SEEDS[format_name](scratch)
        corpus = Corpus(plan.corpus / format_name, seeds)
        pairs = [(name, release) for name in plan.implementations for release in plan.releases]
        subjects = [machine.subject(name, release, progress) for name, release in pairs]
        lockstep = machine.new_lockstep(subjects, scratch / "participants", releases=plan.releases)
        run = _Run(plan, format_name, Examiner(format_name, lockstep), corpus, tell, drive)
        watch(run.result)
        run.flip_every_bit(seeds[0])
        run.mutate(started + seconds)
    run.result.kept = len(corpus.contents)
    run.result.seconds = time.monotonic() - started
    run.result.peak_bytes = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    return run.result


class _Run:
    """One format being fuzzed."""

    def __init__(
        self,
        plan: FuzzPlan,
        format_name: str,
        examiner: Examiner,
        corpus: Corpus,
        tell: Tell,
        drive: Drive | None = None,
    ) -> None:
        self.plan = plan
        self.format_name = format_name
        self.examiner = examiner
        self.corpus = corpus
        self.drive = drive
        self.result = FuzzResult(format_name)
        self._tell = tell
        self._seen: set[tuple[str, ...]] = set()
        self._found: set[str] = set()

    def examine(self, content: bytes, asked_as: bytes | None = None) -> Examined:
        """Examines a content, keeps it if its outcomes are new, and writes down what is wrong."""
        examined = self.examiner.examine(content, asked_as)
        self.result.cases += 1
        self.result.kept = len(self.corpus.contents)
        if self.result.cases % _MEASURED_EVERY == 1:
            self.result.peak_bytes = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
        if examined.failure is not None or examined.crash is not None:
            self._report(examined)
        elif examined.signature not in self._seen:
            self._seen.add(examined.signature)
            self.result.new += self.corpus.add(content)
        return examined

    def flip_every_bit(self, content: bytes) -> None:
        """Classifies every content that differs from a valid one in one bit."""
        sound = self.examine(content).outcomes
        for _, _, flipped in every_flip(content):
            examined = self.examine(flipped, asked_as=content)
            self.result.flips[_classify(sound, examined)] += 1

    def mutate(self, until: float) -> None:
        """Mutates known contents until the time comes; the known ones grow meanwhile."""
        for content in list(self.corpus.contents):
            if time.monotonic() >= until:
                return
            self.examine(content)

        @settings(database=None, deadline=None, phases=(Phase.generate,), suppress_health_check=list(HealthCheck))
        @given(contents(self.format_name, self.corpus.contents))
        def case(content: bytes) -> None:
            self.examine(content)

        fuzz_one: Callable[[bytes], object] = case.hypothesis.fuzz_one_input  # type: ignore[attr-defined]
        if self.drive is not None:
            self.drive(fuzz_one, until - time.monotonic())
            return
        chance = random.Random(self.plan.seed)  # noqa: S311 -- nothing secret
        most = self.plan.max_cases
        enough = math.inf if most is None else self.result.cases + most
        while time.monotonic() < until and self.result.cases < enough:
            fuzz_one(chance.randbytes(chance.randint(_SMALLEST_BUFFER, _LARGEST_BUFFER)))

    def _report(self, examined: Examined) -> None:
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
        self._tell(f"{self.format_name}: {kind}: {crash or ''}\n  replay: conformance replay {path}")


def _classify(sound: tuple[tuple[str, Any], ...], examined: Examined) -> str:
    if examined.failure is not None or examined.crash is not None:
        return "implementations differ"
    if examined.outcomes == sound:
        return "accepted, same answers"
    # What the sound file is refused is refused for the script's own sake, such as an entry that does not exist.
    usual = {(name, outcome) for name, outcome in sound if isinstance(outcome, str)}
    for name, outcome in examined.outcomes:
        if isinstance(outcome, str) and (name, outcome) not in usual:
            return f"refused: {outcome} by {name}"
    return "accepted, different answers"
