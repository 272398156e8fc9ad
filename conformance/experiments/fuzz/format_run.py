"""Fuzzing of one file format: one content after the other in a lockstep, or in batches with Kafka's classes.

The probe of a content is the list of operations that write the content to a file, open the file and query it.
"""

from __future__ import annotations

import hashlib
import math
import random
import time
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Final

from hypothesis import HealthCheck, Phase, given, settings

from conformance.experiments.fuzz.mutations import contents, every_flip, mutated
from conformance.experiments.fuzz.plan import FindingCallback, FuzzPlan, FuzzResult, peak_bytes
from conformance.lockstep.divergence import CRASH_ASPECT, failure_json
from conformance.operations.trace import Trace
from conformance.runs.sameness import Sameness

if TYPE_CHECKING:
    from conformance.experiments.fuzz.batches import BatchedExecutor, BatchResult
    from conformance.experiments.fuzz.corpus import Corpus
    from conformance.experiments.fuzz.executor import CaseExecutor, ExecutionResult

_MEASURED_EVERY: Final = 100
"""Number of cases between two measurements of memory."""
_BATCH: Final = 1024
"""Number of cases that all releases together execute in one call."""
_SMALLEST_BATCH: Final = 64
_LOG_COST: Final = 8
"""Duration of a case of a log, divided by the duration of a case of an index."""

InputChooser = Callable[[Callable[[bytes], object], float], None]
"""Function that calls a given function with one input after the other, for a number of seconds."""


class Run:
    """Run of one format, one content after the other.

    Args:
        plan: The plan.
        format_name: The format.
        executor: A factory of the executor for one content in lockstep.
        corpus: The corpus of the format.
        on_finding: A callback that receives a description of every finding.
        choose_inputs: A function that chooses the inputs, or None for random mutations.

    Attributes:
        result: The result so far.
        seen: The signatures (kinds of all outcomes) of the contents until now.
    """

    def __init__(
        self,
        plan: FuzzPlan,
        format_name: str,
        executor: Callable[[], CaseExecutor],
        corpus: Corpus,
        on_finding: FindingCallback,
        choose_inputs: InputChooser | None = None,
    ) -> None:
        self.plan = plan
        self.format_name = format_name
        self.corpus = corpus
        self.choose_inputs = choose_inputs
        self.result = FuzzResult(format_name)
        self.rng = random.Random(plan.seed)  # noqa: S311 -- nothing secret
        self.on_finding = on_finding
        self.seen: set[object] = set()
        self._make_executor = executor
        self._executor: CaseExecutor | None = None
        self._reported: set[Sameness] = set()

    @property
    def executor(self) -> CaseExecutor:
        """Executor of one content in lockstep, created on first use."""
        if self._executor is None:
            self._executor = self._make_executor()
        return self._executor

    def examine(self, content: bytes, queries_from: bytes | None = None) -> ExecutionResult:
        """Execute the probe of a content; add the content to the corpus if its outcomes are new; report a finding."""
        case = self.executor.examine(content, queries_from)
        self.result.cases += 1
        self.result.compared += 1
        if self.result.cases % _MEASURED_EVERY == 1:
            self.result.peak_bytes = peak_bytes()
        if case.failure is not None or case.crash is not None:
            self.report(case)
        else:
            self.keep(content, new=case.signature not in self.seen)
            self.seen.add(case.signature)
        self.result.kept = len(self.corpus.contents)
        return case

    def keep(self, content: bytes, *, new: bool) -> None:
        """Add a content to the corpus if its outcomes are new; otherwise remove it if an earlier run added it."""
        if new:
            self.result.new += self.corpus.add(content)
        else:
            self.corpus.drop(content)

    def flip_every_bit(self, content: bytes, until: float) -> None:
        """Count the results of all contents that differ from a valid content in one bit; ``until`` is ignored."""
        del until
        sound = self.examine(content).outcomes
        for _, _, flipped in every_flip(content):
            case = self.examine(flipped, queries_from=content)
            differs = case.failure is not None or case.crash is not None
            self.result.flips[classify(sound, case.outcomes, differs=differs)] += 1

    def mutate(self, until: float) -> None:
        """Execute the corpus, then mutate contents of the corpus until the time limit."""
        known = list(self.corpus.contents)
        for number, content in enumerate(known):
            if time.monotonic() >= until:
                self._note_missing(len(known) - number, len(known), "contents of the corpus")
                return
            self.examine(content)
        if self.choose_inputs is not None:
            self._run_chosen(self.choose_inputs, until)
            return
        enough = self.enough()
        while time.monotonic() < until and self.result.cases < enough:
            self.examine(mutated(self.rng, self.format_name, self.corpus.contents))
        self._note_unmade(enough)

    def _note_unmade(self, enough: float) -> None:
        """Note the inputs of ``--max-examples`` that were not made before the time limit."""
        if self.plan.max_cases is not None and self.result.cases < enough:
            self._note_missing(int(enough) - self.result.cases, self.plan.max_cases, "inputs")

    def _note_missing(self, missing: int, wanted: int, what: str) -> None:
        self.result.missing.append(
            f"{missing} of {wanted} {what} of the format {self.format_name} not run (--max-time)"
        )

    def enough(self) -> float:
        """Return the number of cases at which the run ends."""
        most = self.plan.max_cases
        return math.inf if most is None else self.result.cases + most

    def _run_chosen(self, choose_inputs: InputChooser, until: float) -> None:
        @settings(database=None, deadline=None, phases=(Phase.generate,), suppress_health_check=list(HealthCheck))
        @given(contents(self.format_name, self.corpus.contents))
        def case(content: bytes) -> None:
            self.examine(content)

        fuzz_one: Callable[[bytes], object] = case.hypothesis.fuzz_one_input  # type: ignore[attr-defined]
        choose_inputs(fuzz_one, until - time.monotonic())

    def finish(self) -> None:
        """Report results that are known only at the end."""
        self.result.idle += self.executor.compared.idle

    def report(self, case: ExecutionResult) -> None:
        """Save a divergence or a crash as a trace, unless the same operation already differed in the same aspect."""
        failure, crash = case.failure, case.crash
        if failure is not None:
            divergence = failure.divergence
            same = Sameness(divergence.participant, "", divergence.operation.name, divergence.aspects[0])
            kind = f"{same.implementation}: {same.aspect} of {same.operation} differs"
            difference = failure_json(divergence)
            operations: Sequence[Any] = failure.operations
        else:
            same = Sameness(type(crash).__name__, "", case.operations[-1].name, CRASH_ASPECT)
            kind = f"{same.implementation} escaped from {same.operation}"
            difference = None
            operations = case.operations
        if same in self._reported:
            return
        self._reported.add(same)
        digest = hashlib.sha256(kind.encode()).hexdigest()[:8]
        provenance = {"fuzz": self.format_name, "kind": digest, "seed": self.plan.seed}
        trace = Trace(self.executor.machine, self.plan.releases[-1], tuple(operations), difference, kind, provenance)
        path = trace.save(self.plan.findings)
        self.result.findings[kind] = str(path)
        self.on_finding(f"{self.format_name}: {kind}: {crash or ''}\n  replay: conformance replay {path}")


class BatchedRun(Run):
    """Run of one format in batches with Kafka's classes; a lockstep executes a differing content again.

    Args:
        plan: The plan; see the base class.
        format_name: The format.
        executor: A factory of the executor.
        corpus: The corpus.
        on_finding: A callback for findings.
        batches: The batched executor of contents.
    """

    def __init__(
        self,
        plan: FuzzPlan,
        format_name: str,
        executor: Callable[[], CaseExecutor],
        corpus: Corpus,
        on_finding: FindingCallback,
        batches: BatchedExecutor,
    ) -> None:
        super().__init__(plan, format_name, executor, corpus, on_finding)
        self._batches = batches
        limit = _BATCH // (_LOG_COST if format_name == "log" else 1)
        self._size = max(_SMALLEST_BATCH, limit // (len(plan.releases) * len(plan.implementations)))
        self._confirmed: set[tuple[str, int]] = set()

    def flip_every_bit(self, content: bytes, until: float) -> None:
        """See the base class; the time limit ends the classification."""
        (sound,), _ = self._batches.flips(content, [content])
        flips = [flipped for _, _, flipped in every_flip(content)]
        for first in range(0, len(flips), self._size):
            if first and time.monotonic() >= until:
                self._note_missing(len(flips) - first, len(flips), "flipped bits")
                return
            some = flips[first : first + self._size]
            for flipped, outcomes, differs in zip(some, *self._batches.flips(content, some), strict=True):
                self.result.cases += 1
                self.result.compared += 1
                self.result.flips[classify(sound, outcomes, differs=differs is not None)] += 1
                self._confirm(differs, flipped, content)

    def mutate(self, until: float) -> None:
        """See the base class."""
        known = list(self.corpus.contents)
        for first in range(0, len(known), self._size):
            if time.monotonic() >= until:
                self._note_missing(len(known) - first, len(known), "contents of the corpus")
                return
            self._examine_all(known[first : first + self._size])
        enough = self.enough()
        while time.monotonic() < until and self.result.cases < enough:
            count = int(min(self._size, enough - self.result.cases))
            self._examine_all([mutated(self.rng, self.format_name, self.corpus.contents) for _ in range(count)])
        self._note_unmade(enough)

    def finish(self) -> None:
        """Report the coverage of Kafka's classes."""
        self.result.coverage = {
            name: [(each.name, *each.lines, *each.branches) for each in classes]
            for name, classes in self._batches.coverage().items()
        }

    def _examine_all(self, some: Sequence[bytes]) -> None:
        for content, seen in zip(some, self._batches.examine(some), strict=True):
            self._record(content, seen)
        self.result.cases += len(some)
        self.result.kept = len(self.corpus.contents)
        self.result.peak_bytes = peak_bytes()

    def _record(self, content: bytes, seen: BatchResult) -> None:
        self.result.compared += seen.compared
        if seen.differs is None:
            self.keep(content, new=seen.new or seen.signature not in self.seen)
            self.seen.add(seen.signature)
        self._confirm(seen.differs, content)

    def _confirm(self, differs: tuple[str, int] | None, content: bytes, queries_from: bytes | None = None) -> None:
        """Execute a content in a lockstep if it differed in a batch, unless an equal difference was confirmed before.

        Args:
            differs: The diverging implementation and the code of the operation, or None.
            content: The content.
            queries_from: The content from which the queries are derived; None for ``content``.
        """
        if differs is None or differs in self._confirmed:
            return
        case = self.executor.examine(content, queries_from)
        if case.failure is not None or case.crash is not None:
            self.report(case)
            self._confirmed.add(differs)
            return
        self.result.settled += 1


def classify(sound: Sequence[tuple[str, Any]], outcomes: Sequence[tuple[str, Any]], *, differs: bool) -> str:
    """Classify the outcomes of a changed content by comparison with the outcomes of the valid content."""
    if differs:
        return "implementations differ"
    if tuple(outcomes) == tuple(sound):
        return "accepted, same answers"
    # Errors that also occur with the valid file are due to the probe, such as a query for an entry that does not exist.
    usual = {(name, outcome) for name, outcome in sound if isinstance(outcome, str)}
    for name, outcome in outcomes:
        if isinstance(outcome, str) and (name, outcome) not in usual:
            return f"rejected: {outcome} by {name}"
    return "accepted, different answers"
