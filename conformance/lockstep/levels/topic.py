"""A broker's topic to a lockstep: the files of its partition, and every answer to a look-up.

The broker performs an operation first, because it decides what the reference cannot know: the leader's epoch, its own
clock, and how batches are compressed anew. Each thing that an operation shows has clauses of its own, so it is compared
and counted by itself.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from conformance.attribution.broker import RECORDS_STAY, clause_of_answer, clauses_of_files, clauses_of_operation
from conformance.implementations.broker.reference import EPOCHS, Files, ReferencePartition
from conformance.implementations.broker.reference_topic import ReferenceTopic
from conformance.implementations.broker.subject import BrokerTopic, Observed
from conformance.kafka.client import LARGEST_TARGET, SPECIAL_TARGETS
from conformance.lockstep.level import Level
from conformance.lockstep.lockstep import Lockstep
from conformance.lockstep.participant import Participant
from kidx.dialect import dialect_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from conformance.kafka.client import Isolation, OffsetResult
    from conformance.lockstep.batched_execution import Step
    from conformance.lockstep.divergence import Divergence
    from conformance.operations import Operation
    from kidx.records import RecordBatch

ISOLATION: Final[tuple[Isolation, ...]] = ("read_uncommitted", "read_committed")
UNKNOWN: Final = (-7, -8, -(1 << 63))
"""Negative targets that no release knows."""
_LATEST: Final = 12
_SPREAD: Final = 12
_DAY_MS: Final = 86_400_000


@dataclass(slots=True)
class BrokerStatistics:
    """What the topics of a broker have been through: operations performed, answers and files compared."""

    topics: int = 0
    steps: int = 0
    answers: int = 0
    files: int = 0
    segments: int = 0
    """Segments whose every file was compared while the broker was down, once for each stop."""
    restarts: int = 0
    kills: int = 0
    refused_starts: int = 0
    """Starts that the broker refused as kidx had said: a log that is beyond recovery (LG-19)."""
    acknowledged: int = 0
    """Batches that all replicas have acknowledged, and that every later stop has to leave where they are."""
    expected: int = 0
    clauses: Counter[str] = field(default_factory=Counter)


class TopicParticipant(Participant):
    """A topic, whose files are the broker's, or the reference's of it."""

    def read(self) -> Files:
        """Name and content of every file that is compared."""
        found: Files = self.implementation.files()
        return found


class TopicLevel(Level[Observed, Files]):
    """The files of a partition; several topics of one broker are several locksteps.

    Args:
        subject: the topic on the broker.
        partition_type: the class of the reference's partition.
    """

    nothing: Observed
    aspects = ("outcome", "bytes")

    def __init__(self, subject: BrokerTopic, partition_type: type[ReferencePartition]) -> None:
        self.nothing, self.no_files = {}, {}
        self._subject = subject
        self._type = partition_type

    def rules(self, release: str) -> str:
        """A broker is compared with its own release."""
        return release

    def key(self, release: str) -> str:
        """As :meth:`rules`."""
        return release

    def participant(self, implementation: Any, directory: Path) -> TopicParticipant:
        """See the base class."""
        return TopicParticipant(implementation, directory)

    def reference(self, release: str) -> ReferenceTopic:
        """See the base class."""
        del release
        return ReferenceTopic(self._subject, self._type)

    def clauses_of_outcome(self, operation: Operation, release: str) -> tuple[str, ...]:
        """The clauses that say what an operation answers, and what the log gets from it."""
        return clauses_of_operation(operation.name, release)


class TopicLockstep(Lockstep[Observed, Files]):
    """A topic on a broker beside its reference.

    Args:
        subject: the topic on the broker.
        scratch: an empty directory for the reference.
        partition_type: the class of the reference's partition.
        excuse: decides about a difference: True leaves the topic out from then on, False raises.
        statistics: of all topics of the broker.
    """

    level: TopicLevel

    def __init__(
        self,
        subject: BrokerTopic,
        scratch: Path,
        *,
        partition_type: type[ReferencePartition] = ReferencePartition,
        excuse: Callable[[Divergence], int] = lambda _: False,
        statistics: BrokerStatistics,
    ) -> None:
        self.level = TopicLevel(subject, partition_type)
        super().__init__([subject], scratch, excuse=excuse, attribute=False, model=False)
        self.subject = subject
        self.broker_statistics = statistics
        self._subject, self._reference = self.primary.subjects[0], self.primary.reference
        self._subject.perform = subject.observation  # it has performed the step by then, see `_refer`
        self.begin()

    @property
    def name(self) -> str:
        """The topic's."""
        return self.subject.topic

    @property
    def active(self) -> bool:
        """Whether it is still compared: no difference was excused."""
        return self._subject.active

    @property
    def reference(self) -> ReferencePartition:
        """The reference's partition."""
        partition: ReferencePartition = self._reference.implementation.partition
        return partition

    def perform(self, operation: Operation) -> Observed:
        """One step of both, and everything that can be compared after it; nothing once a difference was excused.

        Raises:
            DivergenceError: they differ, and it counts.
            BrokerError: the broker died or failed.
        """
        if not self.active:
            self.operations.append(operation)
            return {}
        return super().perform(operation)

    def _refer(self, operation: Operation) -> None:
        """The broker performs an operation, and then the reference, which takes over what the broker has decided."""
        self.subject.perform(operation)
        super()._refer(operation)

    def _hold(self, participant: Participant, group: int, step: Step) -> None:
        """Compares what the operation has shown, then everything else."""
        clauses = self.level.clauses_of_outcome(step.operation, self.subject.release)
        expected, actual = step.expected[group][0], participant.perform(step.operation)
        for what in actual:
            self.hold("outcome", expected[what], actual[what], clauses)
        appended = self.subject.decided.appended
        if appended is not None and appended.error is None:
            self.broker_statistics.acknowledged += 1
        self.compare()

    def hold(self, aspect: str, ours: Any, theirs: Any, clauses: tuple[str, ...]) -> None:
        """Compares one thing; what is left out, or excused, is evidence for no clause.

        Raises:
            DivergenceError: they differ, and it counts.
        """
        if not self.active:
            return
        if ours == theirs:
            self.broker_statistics.clauses.update(clauses)
            return
        self._diverged(self._subject, "kidx", {aspect: (ours, theirs)}, clauses)
        self.broker_statistics.expected += 1

    def take_over(self, batches: Iterable[RecordBatch]) -> None:
        """The reference appends what lies in the log of a broker that was killed while it appended."""
        for batch in batches:
            self._reference.implementation.take_over(batch, rebuilt=self.subject.rebuilds("none"))
            self.subject.timestamps += [record.timestamp for record in batch]

    # -- everything else -------------------------------------------------------------------------------------------

    def compare(self, *, every: bool = False, moment: str = "running") -> None:
        """Compares the files and the answers of the running broker with the reference's.

        Raises:
            DivergenceError: they differ, and it counts.
        """
        self.let_retention_run()
        self.compare_files(moment)
        targets = self.targets(every=every)
        for isolation in ISOLATION:
            ours, theirs = self._answers(targets, isolation)
            if ours != theirs and self.let_retention_run():
                ours, theirs = self._answers(targets, isolation)
            self.broker_statistics.answers += len(targets)
            self.hold_answers(isolation, ours, theirs)

    def _answers(self, targets: list[int], isolation: Isolation) -> tuple[list[OffsetResult], list[OffsetResult]]:
        broker = self.subject.broker
        theirs = broker.client.answers(self.name, targets, isolation, version=broker.version)
        return self.reference.answers(targets, isolation), theirs

    def hold_answers(self, isolation: Isolation, ours: list[OffsetResult], theirs: list[OffsetResult]) -> None:
        """Compares answers one by one, each with its own clauses.

        Raises:
            DivergenceError: two differ, and it counts.
        """
        dialect = dialect_of(self.subject.release)
        for mine, its in zip(ours, theirs, strict=True):
            expected, actual = (f"{isolation}, target {each.target}: {each.to_json()[1:]}" for each in (mine, its))
            self.hold("outcome", expected, actual, clause_of_answer(its.target, its, dialect))

    def compare_files(self, moment: str) -> None:
        """Compares all files while the broker is running, after a stop or a kill, or after a start.

        Raises:
            DivergenceError: they differ, and it counts.
        """
        ours, theirs = self._reference.read(), self._subject.read()
        if moment != "clean stop":  # newer releases write the epochs' file when they find the time
            ours.pop(EPOCHS, None)
            theirs.pop(EPOCHS, None)
        self._hold_files(ours, theirs, clauses_of_files(moment, self.subject.release))

    def compare_logs(self) -> None:
        """Compares the logs alone: a kill may come between the append to a log and the one to its index.

        Raises:
            DivergenceError: they differ, and it counts.
        """
        ours, theirs = (
            {name: data for name, data in side.read().items() if name.endswith(".log")}
            for side in (self._reference, self._subject)
        )
        self._hold_files(ours, theirs, (RECORDS_STAY,))

    def _hold_files(self, ours: Files, theirs: Files, clauses: tuple[str, ...]) -> None:
        self.broker_statistics.files += len(theirs)
        self.hold("bytes", ours, theirs, clauses)

    def let_retention_run(self) -> bool:
        """If the broker's retention has deleted segments since the last look, so does the reference's."""
        if self.subject.broker.first_segment(self.name) > self.reference.log.segments.first.base_offset:
            self.reference.retain()
            return True
        return False

    def targets(self, *, every: bool) -> list[int]:
        """The special targets, unknown ones, and a grid around all timestamps, or around two dozen of them."""
        timestamps = self.subject.timestamps
        stamps = sorted(set(timestamps))
        if not every and len(stamps) > _LATEST + _SPREAD:
            spread = stamps[:: max(1, len(stamps) // _SPREAD)]
            stamps = sorted({*spread, *timestamps[-_LATEST:]})
        around = {stamp + step for stamp in stamps for step in (-1, 0, 1)}
        outside = {0, 1, max(stamps, default=0) + _DAY_MS, LARGEST_TARGET}
        return [*SPECIAL_TARGETS, *UNKNOWN[1:], *sorted(target for target in around | outside if target >= 0)]
