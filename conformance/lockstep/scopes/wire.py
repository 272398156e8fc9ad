"""Lockstep of the reference and a broker that is driven only by its protocol.

A divergence does not end a topic if both sides still contain the same records. It is recorded once per signature, with
the steps that led to it. If the records differ, the topic is abandoned.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, Final

from conformance.implementations.broker.reference import Checkpoints, ReferencePartition
from conformance.implementations.wire.broker import NO_ANSWER
from conformance.implementations.wire.contract import EARLIEST, LATEST
from conformance.implementations.wire.partition_history import PartitionHistory, StoredBatch
from conformance.kafka.client import ErrorResponseError, RequestTimedOutError
from conformance.lockstep.scopes.wire_responses import WireComparison
from conformance.lockstep.scopes.wire_topic import Topic
from conformance.operations.batches import as_sent
from kidx.errors import KidxError
from kidx.records import iter_memory_batches

if TYPE_CHECKING:
    from conformance.implementations.broker.producers import Sent
    from conformance.kafka.client import ProduceResult
    from conformance.operations import Operation
    from kidx.records import SimpleRecord

MACHINE: Final = "wire"
_REQUESTS: Final = {
    "append_batch": ("append", "LG-1"),
    "append_corrupt": ("append_corrupt", "LG-1"),
    "delete_before": ("delete_before", "LG-12"),
}
"""For an operation, the beginning of the signature if it gets no response, and the clause; otherwise its name, FE-1."""


class WireLockstep(WireComparison):
    """Topics of one broker, each with its reference, and in ``account`` the history of its partition.

    Args:
        broker: The broker, which is connected.
        release: The release whose dialect Kafka's own responses follow.
        scratch: An empty directory for the references.
        level: ``"observed"`` compares every response with Kafka, ``"must"`` only with guarantees.
        on_divergence: A callback that receives a divergence and its signature, and returns True if it is known and does
            not count.
        limit: The number of results after which no more requests are sent; None for no limit.
        is_over: A callback that returns True if the time is up.
        stops_at_first: True to raise the first divergence that counts, at the end of its step.

    Attributes:
        watches: True to read back and compare the topic after every step.
        differences: The divergences that count, by clause and signature.
    """

    def perform(self, operation: Operation) -> None:
        """Execute one step with both sides, and compare the responses to all requests afterwards.

        A request without a usable response is a divergence, except while a topic is created.

        Raises:
            DivergenceError: The broker diverges, and the lockstep stops at the first divergence.
            ClientError: The broker does not create a topic.
        """
        self.statistics.steps += 1
        if operation.name == "create_topic":
            self._create(operation)
        else:
            if self.is_over:
                return
            self.topic.operations.append(operation)
            with self._answered(self.topic, *_REQUESTS.get(operation.name, (operation.name, "FE-1"))):
                getattr(self, f"_{operation.name}")(self.topic, *operation.args)
        if self.topic.active and self.watches:
            self.compare(self.topic)
        self._raise_first()

    def finish(self) -> None:
        """Abort open transactions, so that the coordinator can forget them.

        Raises:
            DivergenceError: The broker diverges, and the lockstep stops at the first divergence.
        """
        producers = self.topic.producers
        with self._answered(self.topic, "end_transaction", "FE-1"):
            for name, producer in producers.begun.items() if self.topic.active else ():
                self.broker.client.end_transaction(producers.id_of(name), producer, commit=False)
        self._raise_first()

    def _raise_first(self) -> None:
        if self._stops_at_first:  # not earlier, because all responses have to be read
            for difference in self.differences.values():
                raise difference

    # -- operations ------------------------------------------------------------------------------------------------

    def _create(self, operation: Operation) -> None:
        (settings,) = operation.args
        if self.is_given_up:
            raise RequestTimedOutError(self.name, f"has left {self._late} requests without a response in time")
        name, epoch = self.broker.create(settings)
        kept = {key: value for key, value in settings.items() if key not in self.broker.refused_settings}
        reference = ReferencePartition(self.release, self._scratch / name / f"{name}-0", kept, epoch)
        self.topics.append(Topic(name, kept, reference, PartitionHistory(epoch), [operation]))
        self.statistics.topics += 1

    def _append_batch(self, topic: Topic, rows: list[list[Any]], codec: str, producer: str | None) -> None:
        if producer is None or "transactions" not in self.broker.without:
            self._append_to_reference(topic, topic.producers.append(self.broker.client, rows, codec, producer), codec)

    def _append_corrupt(self, topic: Topic, rows: list[list[Any]]) -> None:
        self._record_executed(topic, "append_corrupt")
        self._append_to_reference(topic, topic.producers.append_corrupt(self.broker.client, rows), "none")

    def _append_to_reference(self, topic: Topic, sent: Sent, codec: str) -> None:
        """Append to the reference the batches that the broker has appended, and compare both results."""
        data, records, appended = sent
        end = topic.account.end
        if appended.error is None:
            self.statistics.acknowledged += 1
            try:
                stored = self.broker.await_stored(topic.name, end)
            except KidxError as error:
                refused = topic.reference.append(data)[1]
                what = "append_corrupt" if refused == "CORRUPT_MESSAGE" else "append"
                how = f"{refused or 'appended'} -> unreadable batches"
                self._require(topic, what, "LG-1", refused, str(error), how)
                return
            if not self._has_expected_timestamp_type(topic, stored.batches):
                return
            stamp = max(b.max_timestamp for b in stored.batches) if topic.is_stamped else -1
            if not self._is_as_sent(topic, records, appended, stored.batches):
                return
            if topic.codec in (None, codec) and len(stored.batches) == 1:
                expected = topic.reference.append(data, stamp=stamp)
            else:
                try:
                    topic.reference.append_rebuilt(stored.data)
                except KidxError as error:
                    how = "appended -> batches that no follower takes"
                    self._require(topic, "append", "LG-1", None, str(error), how)
                    return
                expected = (end, None)
            self._enter(topic, stored.batches)
        else:
            expected = topic.reference.append(data)
        actual = (appended.offset if sent.error is None else -1, sent.error)
        self._require(topic, "append", "LG-1", expected, actual, _kind(expected) + " -> " + _kind(actual))

    def _has_expected_timestamp_type(self, topic: Topic, batches: Sequence[StoredBatch]) -> bool:
        """Check that batches have the topic's timestamp type; return True if the topic can continue.

        If the broker ignores LogAppendTime from the first batch on, the topic continues with CreateTime.
        """
        wanted = "LogAppendTime" if topic.is_stamped else "CreateTime"
        found = " and ".join(sorted({"LogAppendTime" if batch.is_stamped else "CreateTime" for batch in batches}))
        if self._compare_values(
            topic, f"append to {wanted}", "FE-1", wanted, found, f"batches of {found}", "timestamp type"
        ):
            return True
        if wanted == "CreateTime" or found != "CreateTime" or topic.account.batches:
            self._abandon(topic)
            return False
        topic.settings = topic.settings | {"message.timestamp.type": found}
        directory = self._scratch / f"{topic.name}-unstamped" / f"{topic.name}-0"
        topic.reference = ReferencePartition(self.release, directory, topic.settings, topic.account.leader_epoch)
        self.statistics.without_log_append_time += 1
        return True

    def _is_as_sent(
        self, topic: Topic, records: list[SimpleRecord], appended: ProduceResult, batches: Sequence[StoredBatch]
    ) -> bool:
        """Check that the records are as sent, with LogAppendTime if the topic requires it."""
        end, found = topic.account.end, [record for batch in batches for record in batch.records]
        stamps = {record.timestamp for record in found} if topic.is_stamped else set()
        sent = [
            (end + number, None if topic.is_stamped else r.timestamp, r.key, r.value)
            for number, r in enumerate(records)
        ]
        actual = [(r.offset, None if topic.is_stamped else r.timestamp, r.key, r.value) for r in found]
        if not self._require(topic, "fetch", "FE-1", sent, actual, "other records than were sent"):
            return False
        if topic.is_stamped and appended.log_append_time >= 0:
            self._compare_values(
                topic, "fetch", "FE-1", {appended.log_append_time}, stamps, "other timestamps than acknowledged"
            )
        return True

    def _enter(self, topic: Topic, batches: Iterable[StoredBatch]) -> None:
        """Add batches that the broker has appended to the topic's history."""
        for batch in batches:
            topic.account.add(batch)
            topic.timestamps += [record.timestamp for record in batch.records]

    def _end_transaction(self, topic: Topic, name: str, commit: bool) -> None:
        producer, client = topic.producers.begun.get(name), self.broker.client
        if producer is None:
            return
        client.end_transaction(topic.producers.id_of(name), producer, commit=commit)
        stored = self.broker.await_stored(topic.name, topic.account.end)
        topic.producers.renew(client, name)
        seen = [(batch.is_control, batch.producer_id, len(batch.records)) for batch in stored.batches]
        marker = [(True, producer.producer_id, 1)]
        if not self._require(topic, "end_transaction", "FE-1", marker, seen, "another marker"):
            return
        for batch in iter_memory_batches(stored.data):
            stamp = batch.max_timestamp if topic.is_stamped else -1
            expected = topic.reference.append(as_sent(batch.to_bytes()), stamp=stamp, from_client=False)
            actual = (batch.base_offset, None)
            how = _kind(expected) + " -> " + _kind(actual)
            if not self._require(topic, "end_transaction", "LG-1", expected, actual, how):
                return
        self._enter(topic, stored.batches)

    def _delete_before(self, topic: Topic, offset: int) -> None:
        if "delete-records" in self.broker.without:
            return
        actual = self.broker.answered(lambda client: client.delete_records(topic.name, offset), str)
        if actual in NO_ANSWER.values():
            self._compare_values(topic, "delete_before", "LG-12", "an answer", actual, f"an answer -> {actual}")
            return
        expected = topic.reference.delete_records(offset)
        how = f"{expected or 'done'} -> {actual or 'done'}"
        what = "delete_before the log start" if 0 <= offset < topic.account.start else "delete_before"
        self._compare_values(topic, what, "LG-12", expected, actual, how)
        if actual is None:
            topic.account.start = max(topic.account.start, topic.account.end if offset < 0 else offset)
        if topic.reference.log.start_offset != topic.account.start:  # only one side has deleted something
            self._abandon(topic)

    # -- stopping --------------------------------------------------------------------------------------------------

    def _restart_broker(self, topic: Topic) -> None:
        self._stop(topic, clean=True)
        self.statistics.restarts += 1

    def _kill_broker(self, topic: Topic) -> None:
        self._stop(topic, clean=False)
        self.statistics.kills += 1

    def _stop(self, topic: Topic, *, clean: bool) -> None:
        """Restart the broker, and check that acknowledged records survive, even a kill of the broker's process."""
        self.broker.restart(clean=clean)
        topic.stopped = ("a restart" if clean else "a kill",)
        what = "restart_broker" if clean else "kill_broker"
        try:
            epoch = self.broker.await_leader(topic.name)
        except ErrorResponseError as error:
            self._require(topic, what, "FE-1", "the topic", error.error, "the topic is gone")
            return
        ends = self.broker.client.list_offset(topic.name, LATEST).offset
        if not self._require(topic, what, "FE-1", topic.account.end, ends, "another end of the log"):
            return
        start = topic.account.start
        found = self.broker.client.list_offset(topic.name, EARLIEST).offset
        if not clean and found is not None and 0 <= found < start:
            # After a kill, the broker has the last checkpoint of the log start. A client cannot see its other state.
            topic.active = False
            return
        topic.reference.stop(clean=clean)
        topic.reference.start(Checkpoints(clean, topic.account.end if clean else 0, start))
        topic.reference.become_leader(epoch)
        topic.account.leader_epoch = epoch


def _kind(outcome: tuple[int, str | None]) -> str:
    """Return the kind of the result of an append, for a signature; the outcome is an offset and an error."""
    return outcome[1] or "appended"
