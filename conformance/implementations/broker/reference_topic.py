"""Reference of a topic, which repeats the broker's decisions; kidx determines everything else."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from conformance.implementations.broker.subject import ANSWER, CONTENT, BrokerTopic, Observed
from conformance.implementations.protocol import OptionalMembers
from conformance.operations.batches import as_sent

if TYPE_CHECKING:
    from conformance.implementations.broker.reference import Files, ReferencePartition
    from conformance.operations import Operation
    from kidx.records import RecordBatch


class ReferenceTopic(OptionalMembers):
    """Partition of a topic, implemented by kidx in the dialect of the broker's release.

    Args:
        subject: The broker's topic, which executes each operation first.
        partition_type: The class of the partition; a test may pass a defective one.
    """

    speaks_kafka = True
    partition: ReferencePartition

    def __init__(self, subject: BrokerTopic, partition_type: type[ReferencePartition]) -> None:
        self.name = f"kidx {subject.release}"
        self.release = subject.release
        self._subject = subject
        self._type = partition_type

    def begin(self, directory: Path) -> None:
        """Use a directory with the name of the broker's partition."""
        self._directory = directory / f"{self._subject.topic}-0"

    def end(self) -> None:
        """Do nothing, because the topic remains until the broker ends."""

    def supports(self, operation: str) -> bool:
        """Return True if there is an operation of that name."""
        return self._subject.supports(operation)

    def files(self) -> Files:
        """Return name and content of every file that is compared."""
        return self.partition.files()

    def perform(self, operation: Operation) -> Observed:
        """Execute an operation, and return what the broker's topic must show."""
        observed: Observed = getattr(self, f"_{operation.name}")(*operation.args)
        return observed

    def take_over(self, batch: RecordBatch, *, rebuilt: bool) -> None:
        """Append a batch of the broker's log as the leader did."""
        data = batch.to_bytes()
        if rebuilt:
            self.partition.append_rebuilt(data)
            return
        stamp = batch.max_timestamp if self._subject.stamped else -1
        self.partition.append(as_sent(data), stamp=stamp, from_client=not batch.is_control)

    # -- operations ------------------------------------------------------------------------------------------------

    def _create_topic(self, settings: dict[str, Any]) -> Observed:
        self.partition = self._type(self.release, self._directory, settings, self._subject.decided.epoch)
        return {}

    def _append_batch(self, *_: Any) -> Observed:
        decided, appended = self._subject.decided, self._subject.decided.appended
        assert appended is not None
        stamp = appended.log_append_time
        if not decided.rebuilt:
            return {ANSWER: self.partition.append(decided.data, stamp=stamp)}
        sent = [(r.timestamp if stamp < 0 else stamp, r.key, r.value) for r in decided.records]
        answer = (self.partition.log.end_offset, None)
        for batch in decided.batches:
            if sent == [(r.timestamp, r.key, r.value) for r in batch]:  # if not, the lockstep reports the divergence
                self.take_over(batch, rebuilt=True)
        return {CONTENT: sent, ANSWER: answer}

    _append_corrupt = _append_batch

    def _send_records(self, *_: Any) -> Observed:
        decided = self._subject.decided
        sent = [(record.key, record.value) for record in decided.records]
        if sent == [(record.key, record.value) for batch in decided.batches for record in batch]:
            for batch in decided.batches:
                self.take_over(batch, rebuilt=decided.rebuilt)
        return {CONTENT: sent}

    def _end_transaction(self, *_: Any) -> Observed:
        decided = self._subject.decided
        if decided.ending is None:
            return {}
        for batch in decided.batches:
            self.take_over(batch, rebuilt=False)
        return {CONTENT: [(True, decided.ending.producer_id, 1)]}

    def _delete_before(self, offset: int) -> Observed:
        return {ANSWER: self.partition.delete_records(offset)}
