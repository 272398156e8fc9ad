"""Scope and lockstep of a broker's topic: the files of its partition, and the results of lookups.

The broker executes an operation first, because the reference cannot know the leader epoch, the time of the broker, and
the compression of rewritten batches. Each observation of an operation has its own clauses, so it is compared and
counted separately.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from conformance.attribution.broker import RECORDS_STAY, clause_of_answer, clauses_of_files, clauses_of_operation
from conformance.implementations.broker.reference import EPOCHS, Files, ReferencePartition
from conformance.implementations.broker.reference_topic import ReferenceTopic
from conformance.implementations.broker.subject import BrokerTopic, Observed
from conformance.kafka.client import LARGEST_TARGET, SPECIAL_TARGETS
from conformance.lockstep.divergence import ServerStatistics
from conformance.lockstep.lockstep import Lockstep
from conformance.lockstep.participant import Participant
from conformance.lockstep.scope import Scope
from kidx.dialect import dialect_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from conformance.kafka.client import Isolation, OffsetResult
    from conformance.lockstep.batched_execution import Step
    from conformance.lockstep.divergence import Decision, Divergence
    from conformance.operations import Operation
    from kidx.records import RecordBatch

ISOLATION: Final[tuple[Isolation, ...]] = ("read_uncommitted", "read_committed")
UNKNOWN: Final = (-7, -8, -(1 << 63))
"""Negative targets that no release knows."""
_LATEST: Final = 12
"""The number of newest records whose timestamps are looked up after every step."""
_SPREAD: Final = 12
"""The approximate number of further timestamps that are looked up after every step."""
_DAY_MS: Final = 86_400_000


@dataclass(slots=True)
class BrokerStatistics(ServerStatistics):
    """Statistics of the topics of a broker, with the compared files."""

    files: int = 0
    """The number of compared files."""
    segments: int = 0
    """The number of segments in all comparisons of a stopped broker's files."""
    refused_starts: int = 0
    """The number of failed starts of the broker that kidx predicted, because a log cannot be recovered (LG-19)."""


class TopicParticipant(Participant):
    """Topic of the broker or of the reference."""

    def read(self) -> Files:
        """Return name and content of every file that is compared."""
        found: Files = self.implementation.files()
        return found


class TopicScope(Scope[Observed, Files]):
    """Scope of a topic's partition; each topic of a broker has its own lockstep.

    Args:
        subject: The topic on the broker.
        partition_type: The class of the reference's partition.
    """

    participant = TopicParticipant
    empty_observation: Observed
    aspects = ("outcome", "bytes")

    def __init__(self, subject: BrokerTopic, partition_type: type[ReferencePartition]) -> None:
        self.empty_observation, self.no_files = {}, {}
        self._subject = subject
        self._type = partition_type

    def rules(self, release: str) -> str:
        """Return the release: no two releases share a reference."""
        return release

    def key(self, release: str) -> str:
        """Return the same as :meth:`rules`."""
        return release

    def reference(self, release: str) -> ReferenceTopic:
        """See the base class."""
        del release
        return ReferenceTopic(self._subject, self._type)

    def clauses_of_outcome(self, operation: Operation, release: str) -> tuple[str, ...]:
        """Return the clauses about the response to an operation, and about the batches that it appends."""
        return clauses_of_operation(operation.name, release)


class TopicLockstep(Lockstep[Observed, Files]):
    """Lockstep of a topic on a broker and its reference.

    Args:
        subject: The topic on the broker.
        scratch: An empty directory for the reference.
        partition_type: The class of the reference's partition.
        on_divergence: A callback that receives each divergence. It returns True to exclude the topic from now on, and
            False to raise DivergenceError.
        statistics: The statistics of all topics of the broker.
    """

    scope: TopicScope

    def __init__(
        self,
        subject: BrokerTopic,
        scratch: Path,
        *,
        partition_type: type[ReferencePartition] = ReferencePartition,
        on_divergence: Callable[[Divergence], Decision | bool] = lambda _: False,
        statistics: BrokerStatistics,
    ) -> None:
        self.scope = TopicScope(subject, partition_type)
        super().__init__([subject], scratch, on_divergence=on_divergence, attribute=False, model=False)
        self.subject = subject
        self.broker_statistics = statistics
        self._subject, self._reference = self.primary.subjects[0], self.primary.reference
        self._subject.perform = subject.observation  # `_run_references` has executed the step on the broker already
        self.begin()

    @property
    def name(self) -> str:
        """The name of the topic."""
        return self.subject.topic

    @property
    def active(self) -> bool:
        """True until a divergence of the topic is tolerated; then the topic is no longer compared."""
        return self._subject.active

    @property
    def reference(self) -> ReferencePartition:
        """The reference's partition."""
        partition: ReferencePartition = self._reference.implementation.partition
        return partition

    def perform(self, operation: Operation) -> Observed:
        """Execute one step with both sides, and compare all results and files, unless a divergence was tolerated.

        Raises:
            DivergenceError: The sides diverge, and the divergence counts.
            BrokerError: The broker died or failed.
        """
        if not self.active:
            self.operations.append(operation)
            return {}
        return super().perform(operation)

    def _run_references(self, operation: Operation) -> None:
        """Execute an operation on the broker, and then with the reference, which adopts the broker's decisions."""
        self.subject.perform(operation)
        super()._run_references(operation)

    def _compare_subject(self, participant: Participant, group: int, step: Step) -> None:
        """Compare the observations of the operation, then files and lookups."""
        clauses = self.scope.clauses_of_outcome(step.operation, self.subject.release)
        expected, actual = step.expected[group][0], participant.perform(step.operation)
        for what in actual:
            self.compare_values("outcome", expected[what], actual[what], clauses)
        appended = self.subject.decided.appended
        if appended is not None and appended.error is None:
            self.broker_statistics.acknowledged += 1
        self.compare()

    def compare_values(self, aspect: str, expected: Any, actual: Any, clauses: tuple[str, ...]) -> None:
        """Compare one observation, and count equal values as evidence for the clauses.

        Raises:
            DivergenceError: The sides diverge, and the divergence counts.
        """
        if not self.active:
            return
        if expected == actual:
            self.broker_statistics.clauses.update(clauses)
            return
        self._diverged(self._subject, "kidx", {aspect: (expected, actual)}, clauses)
        self.broker_statistics.expected += 1

    def adopt_batches(self, batches: Iterable[RecordBatch]) -> None:
        """Append batches from the log of the killed broker to the reference."""
        for batch in batches:
            self._reference.implementation.take_over(batch, rebuilt=self.subject.rebuilds("none"))
            self.subject.timestamps += [record.timestamp for record in batch]

    # -- everything else -------------------------------------------------------------------------------------------

    def compare(self, *, every: bool = False, moment: str = "running") -> None:
        """Compare the files and the lookup results of the running broker with the reference.

        Raises:
            DivergenceError: The sides diverge, and the divergence counts.
        """
        self.sync_retention()
        self.compare_files(moment)
        targets = self.targets(every=every)
        for isolation in ISOLATION:
            expected, actual = self._answers(targets, isolation)
            if expected != actual and self.sync_retention():
                expected, actual = self._answers(targets, isolation)
            self.broker_statistics.answers += len(targets)
            self.compare_answers(isolation, expected, actual)

    def _answers(self, targets: list[int], isolation: Isolation) -> tuple[list[OffsetResult], list[OffsetResult]]:
        broker = self.subject.broker
        actual = broker.client.answers(self.name, targets, isolation, version=broker.version)
        return self.reference.answers(targets, isolation), actual

    def compare_answers(self, isolation: Isolation, predicted: list[OffsetResult], results: list[OffsetResult]) -> None:
        """Compare lookup results one by one, each with its own clauses.

        Raises:
            DivergenceError: Two results differ, and the divergence counts.
        """
        dialect = dialect_of(self.subject.release)
        for prediction, result in zip(predicted, results, strict=True):
            expected, actual = (
                f"{isolation}, target {each.target}: {each.to_json()[1:]}" for each in (prediction, result)
            )
            self.compare_values("outcome", expected, actual, clause_of_answer(result.target, result, dialect))

    def compare_files(self, moment: str) -> None:
        """Compare all files.

        Args:
            moment: ``"running"``, ``"clean stop"``, ``"kill"`` or ``"start"``; it determines the clauses.

        Raises:
            DivergenceError: The files differ, and the divergence counts.
        """
        expected, actual = self._reference.read(), self._subject.read()
        if moment != "clean stop":  # a running broker writes the epoch file asynchronously
            expected.pop(EPOCHS, None)
            actual.pop(EPOCHS, None)
        self._compare_files(expected, actual, clauses_of_files(moment, self.subject.release))

    def compare_logs(self) -> None:
        """Compare the logs without indexes, because a broker may be killed between an append to a log and to its index.

        Raises:
            DivergenceError: The logs differ, and the divergence counts.
        """
        expected, actual = (
            {name: data for name, data in side.read().items() if name.endswith(".log")}
            for side in (self._reference, self._subject)
        )
        self._compare_files(expected, actual, (RECORDS_STAY,))

    def _compare_files(self, expected: Files, actual: Files, clauses: tuple[str, ...]) -> None:
        self.broker_statistics.files += len(actual)
        self.compare_values("bytes", expected, actual, clauses)

    def sync_retention(self) -> bool:
        """Apply retention to the reference if the broker has deleted segments; return True if so."""
        if self.subject.broker.first_segment(self.name) > self.reference.log.segments.first.base_offset:
            self.reference.run_retention()
            return True
        return False

    def targets(self, *, every: bool) -> list[int]:
        """Return special targets, unknown targets, and timestamps around the timestamps of records.

        Args:
            every: True for all timestamps of records; False for at most two dozen.
        """
        timestamps = self.subject.timestamps
        stamps = sorted(set(timestamps))
        if not every and len(stamps) > _LATEST + _SPREAD:
            some = stamps[:: max(1, len(stamps) // _SPREAD)]
            stamps = sorted({*some, *timestamps[-_LATEST:]})
        around = {stamp + step for stamp in stamps for step in (-1, 0, 1)}
        outside = {0, 1, max(stamps, default=0) + _DAY_MS, LARGEST_TARGET}
        return [*SPECIAL_TARGETS, *UNKNOWN[1:], *sorted(target for target in around | outside if target >= 0)]
