"""Fuzzing run: every bit of a small file is flipped, then file contents are mutated until the time limit.

A finding is a divergence or a crash. The first finding of each operation and differing aspect is saved as a trace.
Contents with new outcomes are added to a corpus, which the next run also uses.

A format is fuzzed one content after the other in a lockstep, or in batches with Kafka's classes. The probe of a
content is the list of operations that write the content to a file, open the file and query it.
"""

from __future__ import annotations

import hashlib
import math
import random
import resource
import time
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from hypothesis import HealthCheck, Phase, given, settings

from conformance.errors import ToolError
from conformance.implementations.spec import parse_spec
from conformance.lockstep.divergence import CRASH_ASPECT, failure_json
from conformance.operations.trace import Trace
from conformance.runs.sameness import Sameness
from conformance.scratch import scratch_directory
from conformance.studies.fuzz.batches import BatchedExecutor
from conformance.studies.fuzz.corpus import Corpus
from conformance.studies.fuzz.executor import CaseExecutor
from conformance.studies.fuzz.mutations import contents, every_flip, mutated
from conformance.studies.fuzz.probes import MACHINE_OF
from conformance.studies.fuzz.seed_files import SEEDS

if TYPE_CHECKING:
    from conformance.kafka.jar_fetch import Progress
    from conformance.studies.fuzz.batches import BatchResult
    from conformance.studies.fuzz.executor import ExecutionResult
    from conformance.studies.study import Request

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
        executor: A factory of the executor for one content in lockstep.
        corpus: The corpus of the format.
        choose_inputs: A function that chooses the inputs, or None for random mutations.

    Attributes:
        result: The result so far.
        seen: The signatures (kinds of all outcomes) of the contents until now.
    """

    def __init__(
        self,
        request: Request,
        format_name: str,
        executor: Callable[[], CaseExecutor],
        corpus: Corpus,
        choose_inputs: InputChooser | None = None,
    ) -> None:
        self.request = request
        self.format_name = format_name
        self.corpus = corpus
        self.choose_inputs = choose_inputs
        self.result = FuzzResult(format_name)
        self.rng = random.Random(request.seed)  # noqa: S311 -- nothing secret
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
        if self.request.examples is not None and self.result.cases < enough:
            self._note_missing(int(enough) - self.result.cases, self.request.examples, "inputs")

    def _note_missing(self, missing: int, wanted: int, what: str) -> None:
        self.result.missing.append(
            f"{missing} of {wanted} {what} of the format {self.format_name} not run (--max-time)"
        )

    def enough(self) -> float:
        """Return the number of cases at which the run ends."""
        most = self.request.examples
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
        provenance = {"fuzz": self.format_name, "kind": digest, "seed": self.request.seed}
        trace = Trace(self.executor.machine, self.request.releases[-1], tuple(operations), difference, kind, provenance)
        assert self.request.directory is not None
        path = trace.save(self.request.directory)
        self.result.findings[kind] = str(path)
        self.request.found(f"{self.format_name}: {kind}: {crash or ''}\n  replay: conformance replay {path}")


class BatchedRun(Run):
    """Run of one format in batches with Kafka's classes; a lockstep executes a differing content again.

    Args:
        request: The request; see the base class.
        executor: A factory of the executor.
    """

    def __init__(
        self,
        request: Request,
        format_name: str,
        executor: Callable[[], CaseExecutor],
        corpus: Corpus,
        batches: BatchedExecutor,
    ) -> None:
        super().__init__(request, format_name, executor, corpus)
        self._batches = batches
        limit = _BATCH // (_LOG_COST if format_name == "log" else 1)
        self._size = max(_SMALLEST_BATCH, limit // (len(request.releases) * len(request.implementations)))
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


@dataclass
class FuzzResult:
    """Result for one format.

    Attributes:
        flips: The number of bits of the small seed file whose flipping has each result: ``accepted, same answers``,
            ``accepted, different answers``, ``rejected: KIND by OPERATION``, or ``implementations differ``.
        cases: The number of executed contents, including the flips.
        compared: The number of contents whose results were compared with kidx. The other contents were only compared
            between releases that must have the same results.
        kept: The number of contents in the corpus, including the seed files.
        new: The number of contents that this run added to the corpus.
        findings: The path of a trace for each kind of divergence or crash.
        seconds: The duration.
        peak_bytes: The peak of the resident memory.
        processor_seconds: The CPU time of this process's threads.
        settled: The number of contents that differed in a batch, but not in the lockstep, which tolerates differences
            such as exhausted memory.
        missing: What was not executed before the time limit although it was requested.
        idle: The implementations that were compared in nothing, each with the reason.
        coverage: The coverage of Kafka's classes by implementation, as (class, reached lines, all lines, reached
            branches, all branches).
    """

    format: str
    flips: Counter[str] = field(default_factory=Counter)
    cases: int = 0
    compared: int = 0
    kept: int = 0
    new: int = 0
    findings: dict[str, str] = field(default_factory=dict)
    seconds: float = 0.0
    peak_bytes: int = 0
    processor_seconds: float = 0.0
    settled: int = 0
    missing: list[str] = field(default_factory=list)
    idle: list[str] = field(default_factory=list)
    coverage: dict[str, list[tuple[str, int, int, int, int]]] = field(default_factory=dict)

    def to_json(self) -> dict[str, Any]:
        """Return the object that ``--json`` prints."""
        return dict(
            self.__dict__,
            flips=dict(self.flips.most_common()),
            seconds=round(self.seconds, 3),
            processor_seconds=round(self.processor_seconds, 3),
        )


def peak_bytes() -> int:
    """Return the peak of this process's resident memory."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def fuzz(request: Request, progress: Progress | None = None) -> list[FuzzResult]:
    """Run the formats one after another, each with an equal share of the time.

    Args:
        request: The request; its machines are the formats.
        progress: A callback that is called while jars are downloaded.

    Raises:
        ToolError: An implementation is not available, or a directory cannot be used.
    """
    until = time.monotonic() + (request.seconds or 0)
    results = list[FuzzResult]()
    for format_name in request.machines:
        seconds = (until - time.monotonic()) / (len(request.machines) - len(results))
        results.append(fuzz_format(request, format_name, seconds, progress))
    return results


def fuzz_format(
    request: Request,
    format_name: str,
    seconds: float,
    progress: Progress | None = None,
    choose_inputs: InputChooser | None = None,
    on_start: Callable[[FuzzResult], None] = lambda _: None,
) -> FuzzResult:
    """Fuzz files of one format for some seconds.

    Args:
        request: The request, as for :func:`fuzz`.
        format_name: The format: ``offset``, ``time``, ``txn`` or ``log``.
        seconds: The time limit.
        progress: A callback, as for :func:`fuzz`.
        choose_inputs: A function that chooses the inputs, such as a coverage-guided fuzzer, or None for random
            mutations.
        on_start: A callback that receives the result object before the run, which updates the object.

    Raises:
        ToolError: As :func:`fuzz`.
    """
    from conformance.machines import MACHINES  # noqa: PLC0415 -- --help has to be fast

    started, processor = time.monotonic(), time.process_time()
    machine = MACHINES.get(MACHINE_OF[format_name])  # the state machine that tests files of the format
    if machine is None:
        raise ToolError(f"the format {format_name!r} cannot be fuzzed: no machine reads it")
    with ExitStack() as stack:
        scratch = stack.enter_context(scratch_directory())
        seeds = SEEDS[format_name](scratch)
        corpus = Corpus(request.options.corpus / format_name, seeds)

        def executor() -> CaseExecutor:
            pairs = [(name, release) for name in request.implementations for release in request.releases]
            subjects = [machine.subject(name, release, progress) for name, release in pairs]
            lockstep = machine.new_lockstep(subjects, scratch / "participants", releases=request.releases)
            return CaseExecutor(format_name, lockstep)

        run: Run
        if choose_inputs is None and all(parse_spec(text).form == "jvm" for text in request.implementations):
            (scratch / "batches").mkdir()
            batches = BatchedExecutor(
                format_name, request.releases, request.implementations, scratch / "batches", progress
            )
            stack.callback(batches.close)
            run = BatchedRun(request, format_name, executor, corpus, batches)
        else:
            run = Run(request, format_name, executor, corpus, choose_inputs)
        on_start(run.result)
        run.flip_every_bit(seeds[0], started + seconds)
        run.mutate(started + seconds)
        run.finish()
    run.result.kept = len(corpus.contents)
    run.result.seconds = time.monotonic() - started
    run.result.processor_seconds = time.process_time() - processor
    run.result.peak_bytes = peak_bytes()
    return run.result
