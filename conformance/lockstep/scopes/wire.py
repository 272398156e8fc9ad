"""Lockstep of the reference and a broker that is driven only by its protocol.

A divergence does not end a topic if both sides still contain the same records. It is recorded once per signature, with
the steps that led to it. If the records differ, the topic is abandoned.
"""

from __future__ import annotations

import itertools
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final

from conformance.clauses import load_clauses
from conformance.implementations.broker.reference import Checkpoints, ReferencePartition
from conformance.implementations.wire.broker import NO_ANSWER, TIMED_OUT
from conformance.implementations.wire.contract import EARLIEST, LARGEST, LATEST, ListOffsetsContract, clause_of
from conformance.implementations.wire.expected import ExpectedRows, Row
from conformance.implementations.wire.partition_history import PartitionHistory, StoredBatch, StoredRecord, committed
from conformance.implementations.wire.queries import (
    TIMESTAMPLESS_TARGETS,
    ExpectedError,
    Query,
    error_queries,
    leader_epoch_queries,
    queries,
    targets,
)
from conformance.kafka.client import ClientError, ErrorResponseError, RequestTimedOutError
from conformance.kafka.client.responses import ISOLATION_LEVELS
from conformance.kafka.polling import Deadline
from conformance.lockstep.divergence import Divergence
from conformance.lockstep.scopes.wire_topic import Situation, Statistics, Topic, WireDivergenceError
from conformance.operations.batches import as_sent
from kidx.errors import KidxError
from kidx.records import iter_memory_batches

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence
    from pathlib import Path
    from typing import Literal

    from conformance.implementations.broker.producers import Sent
    from conformance.implementations.wire.broker import WireBroker
    from conformance.implementations.wire.contract import View
    from conformance.kafka.client import Isolation, PartitionOffsetResponse, ProduceResult
    from conformance.kafka.client.responses import FetchedBatches
    from conformance.operations import Operation
    from kidx.records import SimpleRecord

MACHINE: Final = "wire"
_PART: Final = 1 << 16
"""The maximum size in bytes of a fetch."""
_MOST_LATE: Final = 3
"""The number of responses that may exceed the time limit, which is long, before no more requests are sent."""
_FETCHES: Final = 12
"""The number of consecutive fetches per isolation level: more than a topic has segments."""
_ZSTD_SINCE: Final = 10
"""The first version of Fetch that returns the batches of a topic with compression zstd (KIP-110)."""
_LOG_START_SINCE: Final = 5
"""The first version of Fetch whose response has a log start offset."""
_REQUESTS: Final = {
    "append_batch": ("append", "LG-1"),
    "append_corrupt": ("append_corrupt", "LG-1"),
    "delete_before": ("delete_before", "LG-12"),
}
"""For an operation, the beginning of the signature if it gets no response, and the clause; otherwise its name, FE-1."""


class WireLockstep:
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

    failure = None  # read by the machine; here, a divergence does not end the run

    def __init__(
        self,
        broker: WireBroker,
        release: str,
        scratch: Path,
        *,
        level: Literal["must", "observed"] = "observed",
        on_divergence: Callable[[Divergence, str], bool] = lambda *_: False,
        limit: int | None = None,
        is_over: Callable[[], bool] = lambda: False,
        stops_at_first: bool = False,
    ) -> None:
        self.broker = broker
        self.release = release
        self.name = f"the broker at {broker.address}"
        self.level = level
        self.statistics = Statistics()
        self.topics: list[Topic] = []
        self.differences: dict[tuple[str, str], WireDivergenceError] = {}
        self.watches = True
        self._scratch = scratch
        self._on_divergence = on_divergence
        self._limit = limit
        self._is_over = is_over
        self._stops_at_first = stops_at_first
        self._catalogue = load_clauses()
        self._fetch_version = itertools.cycle(broker.fetch_versions)
        self._late = 0

    @property
    def topic(self) -> Topic:
        """The topic of the current operations: the newest."""
        return self.topics[-1]

    @property
    def is_exhausted(self) -> bool:
        """True if the limit of results is reached, too many responses were late, or the time is up."""
        answered = self._limit is not None and self.statistics.answers >= self._limit
        return answered or self.is_given_up or self._is_over()

    @property
    def is_given_up(self) -> bool:
        """True if the lockstep creates no more topics, because too many responses were late."""
        return self._late >= _MOST_LATE

    @property
    def is_over(self) -> bool:
        """True if the topic receives no more requests, because it is abandoned or the lockstep is exhausted."""
        return not self.topic.active or self.is_exhausted

    # -- steps --------------------------------------------------------------------------------------------------------

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

    # -- comparison of responses --------------------------------------------------------------------------------------

    def _abandon(self, topic: Topic) -> None:
        topic.active = False
        self.statistics.abandoned += 1

    def _require(self, topic: Topic, *compared: Any) -> bool:
        """Compare two values without which the records cannot be equal; if they differ, abandon the topic."""
        if self._compare_values(topic, *compared):
            return True
        self._abandon(topic)
        return False

    @contextmanager
    def _answered(self, topic: Topic, what: str, clause: str) -> Iterator[None]:
        """Record a divergence if a request in this block gets no response that a client can use.

        The effect of the request on the broker is unknown, so the topic is abandoned, and a new connection is opened.

        Args:
            topic: The topic that the requests are about.
            what: The operation or request, with which the signature begins.
            clause: The id of the clause that a missing response violates.
        """
        try:
            yield
        except (ClientError, KidxError) as error:
            self._abandon(topic)
            said, how = (error.what, _failure_of(error)) if isinstance(error, ClientError) else (error, "unreadable")
            self._record(topic, "", clause, "a response", said, f"a response -> {how}", what)
            if isinstance(error, ErrorResponseError | KidxError):
                return
            self._late += isinstance(error, RequestTimedOutError)
            self.broker.recover()

    # -- comparing -------------------------------------------------------------------------------------------------

    def compare(self, topic: Topic, *, every: bool = False) -> None:
        """Read one topic back, send all requests about it, and compare the responses.

        Raises:
            ClientError: The broker is gone, hangs, or sends malformed responses.
        """
        with self._answered(topic, "fetch", "FE-1"):
            self._read_back(topic)
        if not topic.active:
            return
        with self._answered(topic, "list_offsets", "LO-14"):
            self._look_up(topic, every=every)

    def _look_up(self, topic: Topic, *, every: bool) -> None:
        """Send all requests to ListOffsets about one topic, and compare the responses."""
        versions = self.broker.versions
        wanted = targets(topic.timestamps, every=every)
        if "timestamps" in self.broker.without:
            wanted = [target for target in wanted if target in TIMESTAMPLESS_TARGETS]
        epoch = topic.account.leader_epoch
        asked = [*queries(topic.name, wanted, versions), *leader_epoch_queries(topic.name, epoch, versions)]
        self._compare_answers(topic, asked)
        self._compare_refusals(topic, list(error_queries(topic.name, epoch, versions)))

    def _compare_answers(self, topic: Topic, asked: list[Query]) -> None:
        """Send lookups of offsets, and compare the results with the result of Kafka, or only with guarantees."""
        is_partly_remote = topic.is_tiered and self.level == "observed"
        promises = ListOffsetsContract(topic.account, is_partly_remote=is_partly_remote)
        expected = self._expected_rows(topic)
        request = self.broker.request_settled if topic.is_tiered else self.broker.request_each
        for question, answers in zip(asked, request(each.request for each in asked), strict=True):
            self.statistics.answers += 1
            self.statistics.asked[_target_name(question.target)] += 1
            if len(answers) != 1 or (answers[0].topic, answers[0].partition) != (topic.name, 0):
                self._record(topic, question, "LO-14", "one answer for the partition", answers, "another partition")
                continue
            answer = _version_0_as_pair(answers[0])
            clause = self._clause(question.target)
            broken = promises.broken(question.target, question.request.version, question.view, answer)
            row = Row(answer.error, answer.offset, answer.timestamp, answer.leader_epoch)
            if self.level == "must" or promises.depends_on_tiers(question.target, question.request.version):
                if broken is not None:
                    self._record(topic, question, broken.clause, broken.allowed, row, _wrong_result(row))
                else:
                    self.statistics.clauses[clause] += 1
                    # The signature that a wrong result would have.
                    self._record_executed(topic, _situation_of(topic, question), _wrong_result(row))
                continue
            rows = list(expected.rows(question.target, question.request.version, question.view))
            if question.request.version == 0:
                rows = [each._replace(timestamp=-1) for each in rows]
            own = _observed_clauses(question.target, rows[0], promises, question.view)
            if row in rows:
                self.statistics.clauses.update({clause, *own} if row == rows[0] else {clause})
                self._record_executed(topic, _situation_of(topic, question), _result_word(rows[0], topic))
                continue
            named = broken.clause if broken is not None else (*own, clause)[0]
            if row._replace(leader_epoch=-1) in [each._replace(leader_epoch=-1) for each in rows]:
                named = "LO-14"
            self._record(topic, question, named, rows[0], row, _difference_of(rows[0], row, topic))

    def _expected_rows(self, topic: Topic) -> ExpectedRows:
        """Return the expected responses; with tiered storage, the local segments may begin with any segment."""
        segments = reversed(list(topic.reference.log.segments)) if topic.is_tiered else ()
        return ExpectedRows(topic.reference, [segment.base_offset for segment in segments] or [0])

    def _compare_refusals(self, topic: Topic, asked: list[ExpectedError]) -> None:
        """Send requests that the broker must reject, and compare the errors."""
        for refusal, answers in zip(asked, self.broker.request_each(a.request for a in asked), strict=True):
            self.statistics.answers += 1
            self.statistics.asked["refusals"] += 1
            self._record_executed(topic, _situation_of(topic, refusal))
            errors = {answer.error for answer in answers}
            is_any = self.level == "must" and "kind" not in self._catalogue[refusal.clause].promises
            is_right = errors == {refusal.error} or (is_any and errors and None not in errors)
            if is_right and all((a.offset, a.timestamp, a.leader_epoch) == (-1, -1, -1) for a in answers):
                self.statistics.clauses[refusal.clause] += 1
            elif self.level != "must" or self._catalogue[refusal.clause].counts("must"):
                said = " and ".join(sorted(str(Row(*_numbers(answer))) for answer in answers)) or "no answer"
                how = f"{refusal.error} -> {' and '.join(sorted(map(str, errors))) or 'no answer'}"
                how += " with an answer" if errors == {refusal.error} else ""
                self._record(topic, refusal, refusal.clause, refusal.error, said, how)

    def _read_back(self, topic: Topic) -> None:
        """Fetch all records of the topic, and compare them with the records that the broker has appended."""
        versions = [each for each in self.broker.fetch_versions if each >= _ZSTD_SINCE or topic.codec != "zstd"]
        version = next(self._fetch_version)
        if version not in versions:
            version = versions[-1] if versions else version
        for isolation in ISOLATION_LEVELS:
            offset: int | None = topic.account.start
            for _ in range(_FETCHES):
                if offset is None or offset >= topic.account.end:
                    break
                offset = self._compare_fetch(topic, offset, isolation, version)

    def _compare_fetch(self, topic: Topic, offset: int, isolation: Isolation, version: int) -> int | None:
        """Compare one fetch; return the offset of the next fetch, or None if no batch was returned."""
        account = topic.account
        self.statistics.fetches += 1
        found = self._fetch(topic, offset, isolation, version)
        question = f"Fetch version {version} from {offset}, {isolation}"
        if found.error is not None:
            self._record(topic, question, "FE-1", "batches", found.error, f"error {found.error}", "fetch")
            return None
        try:
            batches = [StoredBatch.of(b) for b in iter_memory_batches(found.records) if b.last_offset >= offset]
        except KidxError as error:
            self._record(topic, question, "FE-1", "batches", str(error), "unreadable batches", "fetch")
            return None
        self._compare_batches(topic, question, offset, isolation, batches)
        bounds = (found.high_watermark, found.last_stable_offset, found.log_start_offset)
        start = account.start if version >= _LOG_START_SINCE else -1
        allowed = [(account.end, stable, start) for stable in account.stable_ends]
        names = "high watermark, last stable offset, log start"
        if bounds not in allowed:
            how = [n for n, a, b in zip(names.split(", "), allowed[0], bounds, strict=True) if a != b]
            what = Situation("fetch", topic.circumstances)
            self._record(topic, f"{question}: {names}", "FE-3", allowed[0], bounds, f"another {', '.join(how)}", what)
        else:
            self._record_executed(topic, Situation("fetch", topic.circumstances))
            self.statistics.clauses["FE-3"] += 1
        if isolation == "read_committed":
            visible = [r for b in batches if not b.is_control and not account.is_aborted(b) for r in b.records]
            expected, actual = _offsets(visible), _offsets(committed(batches, found.aborted or ()))
            what = Situation("fetch", _of_aborted(account, batches))
            self._compare_values(topic, what, "FE-2", expected, actual, "other committed records", question)
        return batches[-1].last_offset + 1 if batches else None

    def _fetch(self, topic: Topic, offset: int, isolation: Isolation, version: int) -> FetchedBatches:
        """Fetch from a topic; for a tiered topic, repeat the fetch while the response lacks expected records.

        A broker returns an empty response without an error if remote storage takes longer than
        ``remote.fetch.max.wait.ms``.
        """
        deadline = Deadline(self.broker.client.limit)
        end = min(topic.account.stable_ends) if isolation == "read_committed" else topic.account.end
        while True:
            found = self.broker.client.fetch(topic.name, offset, isolation=isolation, max_bytes=_PART, version=version)
            expects_records = topic.is_tiered and offset < end and found.error is None
            if found.records or not expects_records or not deadline.pause():
                return found
            self.statistics.late_fetches += 1

    def _compare_batches(
        self, topic: Topic, question: str, offset: int, isolation: Isolation, batches: list[StoredBatch]
    ) -> None:
        """Compare the batches of a fetch with the batches that the broker has appended, from the offset on."""
        account = topic.account
        limits = account.stable_ends if isolation == "read_committed" else (account.end,)
        actual = self._comparable(batches)
        sides = []
        for limit in limits:  # if the stable offset is within a batch, the batch may be returned or not
            wanted = [b for b in account.batches if b.last_offset >= offset and b.base_offset < limit > offset]
            sides.append(self._comparable(wanted)[: max(len(actual), 1)])
        expected = actual if actual in sides else sides[0]
        self._compare_values(topic, "fetch", "FE-1", expected, actual, "other records than before", question)

    def _comparable(self, batches: list[StoredBatch]) -> list[Any]:
        """Return the compared part of batches: all of it at level observed, otherwise only the records."""
        return list(batches) if self.level == "observed" else [record for batch in batches for record in batch.records]

    # -- noting ----------------------------------------------------------------------------------------------------

    def _clause(self, target: int) -> str:
        """Return the clause about the results for a target of ListOffsets."""
        dialect = self.topic.reference.dialect
        if target == -3:
            return {"unknown": "LO-20", "remembered": "LO-9", "read": "LO-10"}[dialect.max_lookup]
        clause = clause_of(target)
        if clause in self._catalogue and not self._catalogue[clause].applies_to(self.release):
            return "LO-15c" if dialect.rejects_unknown_targets else "LO-15b"
        return clause

    def _compare_values(
        self, topic: Topic, what: str | Situation, clause: str, expected: Any, actual: Any, how: str, question: str = ""
    ) -> bool:
        """Return True if two values are equal; otherwise, record a divergence with the signature ``what``: ``how``."""
        self._record_executed(topic, what)
        if expected == actual:
            self.statistics.clauses[clause] += 1
            return True
        self._record(topic, question, clause, _short(expected), _short(actual), how, what)
        return False

    def _record(
        self,
        topic: Topic,
        question: object,
        clause: str,
        expected: object,
        actual: object,
        how: str,
        what: str | Situation = "",
    ) -> None:
        """Record a divergence, unless it is known; an earlier stop of the broker is one of its circumstances."""
        named = what or _situation_of(topic, question)
        prefix = f"{question}: " if str(question) else ""
        steps = tuple(topic.operations)
        divergence = Divergence(
            len(steps) - 1,
            steps[-1],
            self.name,
            self.release,
            "kidx",
            ("outcome",),
            f"{prefix}{expected}",
            f"{prefix}{actual}",
            (clause,),
        )
        found = [WireDivergenceError(divergence, steps, each, how) for each in _before_and_after_stop(named, topic)]
        key = next((each.key for each in found if each.key in self.differences), found[-1].key)
        self.statistics.occurrences[key] += 1
        if key in self.differences:
            return
        if any(self._on_divergence(divergence, each.shape) for each in found):
            self.statistics.expected += 1
            return
        self.differences[key] = found[-1]

    def _record_executed(self, topic: Topic, what: str | Situation, answered: str = "") -> None:
        """Record an executed operation or request and its result; after a stop, also with that circumstance."""
        for each in _before_and_after_stop(what, topic):
            self.statistics.performed.add(f"{each}" + (f": {answered}" if answered else ""))


def _failure_of(error: ClientError) -> str:
    """Return the name of an error, for a signature."""
    if isinstance(error, ErrorResponseError):
        return error.error
    if isinstance(error, RequestTimedOutError):
        return TIMED_OUT
    return NO_ANSWER.get(type(error), "UNREACHABLE")


def _before_and_after_stop(named: str | Situation, topic: Topic) -> list[Situation]:
    """Return a situation and, if the broker was stopped, the same situation with the stop as a circumstance."""
    what = Situation(named) if isinstance(named, str) else named
    stopped = what._replace(circumstances=what.circumstances + topic.stopped)
    return [what, stopped] if topic.stopped else [what]


def _observed_clauses(target: int, row: Row, promises: ListOffsetsContract, view: View) -> tuple[str, ...]:
    """Return the OBSERVED clause that covers Kafka's result, or nothing if a guarantee covers the result."""
    start = promises.history.start
    if target >= 0:
        return ("LO-23",) if row.offset < 0 and promises.record_exists(target, view) else ()
    if target == LARGEST and 0 <= row.offset < start:
        return ("LG-24",)
    if target == LARGEST and row.offset < 0 and promises.history.undecided and row.error is None:
        return ("LO-27",)
    return ("LG-20",) if target == LATEST and 0 <= row.offset < start else ()


def _version_0_as_pair(answer: PartitionOffsetResponse) -> PartitionOffsetResponse:
    """Return a response of version 0, which is a list of offsets, in the form of later versions."""
    return answer._replace(offset=answer.old_offsets[0]) if answer.old_offsets else answer


def _numbers(answer: PartitionOffsetResponse) -> tuple[str | None, int, int, int]:
    return answer.error, answer.offset, answer.timestamp, answer.leader_epoch


def _target_name(target: int) -> str:
    return "timestamp" if target >= 0 else str(target) if target >= -6 else "unknown"


def _wrong_result(row: Row) -> str:
    return f"{row.error}" if row.error else "nothing" if row.offset < 0 else "a wrong record"


def _situation_of(topic: Topic, question: object) -> Situation:
    """Return a request to ListOffsets as a situation, with the topic's circumstances."""
    if isinstance(question, Query):
        return Situation(f"list_offsets {_target_name(question.target)}", topic.circumstances)
    return Situation("list_offsets refusals")


def _difference_of(expected: Row, actual: Row, topic: Topic) -> str:
    """Return a description of the difference between two results."""
    if expected._replace(leader_epoch=-1) == actual._replace(leader_epoch=-1):
        return "another leader epoch"
    words = [_result_word(expected, topic), _result_word(actual, topic)]
    if min(expected.offset, actual.offset) >= 0:
        words[1] = "the same record's other timestamp" if expected.offset == actual.offset else "another record"
    return f"{words[0]} -> {words[1]}"


def _result_word(row: Row, topic: Topic) -> str:
    found = "a deleted record" if row.offset < topic.account.start else "a record"
    return row.error or ("nothing" if row.offset < 0 else found)


def _of_aborted(account: PartitionHistory, batches: list[StoredBatch]) -> tuple[str, ...]:
    """Return the circumstances that the aborted transactions of a fetch may depend on."""
    if not any(map(account.is_aborted, batches)):
        return ()
    is_cut = batches[-1].last_offset + 1 < min(account.stable_ends)
    return ("an aborted transaction", *(("its size cut",) if is_cut else ()))


def _offsets(records: Iterable[StoredRecord]) -> list[int]:
    return [record.offset for record in records]


def _short(value: Any) -> Any:
    text = str(value)
    return value if len(text) <= 600 else f"{text[:280]} … {text[-280:]}"


def _kind(outcome: tuple[int, str | None]) -> str:
    """Return the kind of the result of an append, for a signature; the outcome is an offset and an error."""
    return outcome[1] or "appended"
