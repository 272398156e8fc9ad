"""Comparison of a broker's responses with Kafka, or only with guarantees; divergences are recorded."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final

from conformance.clauses import load_clauses
from conformance.implementations.wire.broker import NO_ANSWER, TIMED_OUT
from conformance.implementations.wire.contract import LARGEST, LATEST, ListOffsetsContract, clause_of
from conformance.implementations.wire.expected import ExpectedRows, Row
from conformance.implementations.wire.partition_history import StoredBatch, StoredRecord, committed
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
from kidx.errors import KidxError
from kidx.records import iter_memory_batches

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path
    from typing import Literal

    from conformance.implementations.wire.broker import WireBroker
    from conformance.implementations.wire.contract import View
    from conformance.implementations.wire.partition_history import PartitionHistory
    from conformance.kafka.client import Isolation, PartitionOffsetResponse
    from conformance.kafka.client.responses import FetchedBatches

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


class WireComparison:
    """Base class of :class:`WireLockstep` that sends requests and compares responses; see there for the arguments."""

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
        expected = ExpectedRows(topic.reference)
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

    def _compare_refusals(self, topic: Topic, asked: list[ExpectedError]) -> None:
        """Send requests that the broker must reject, and compare the errors."""
        for refusal, answers in zip(asked, self.broker.request_each(a.request for a in asked), strict=True):
            self.statistics.answers += 1
            self.statistics.asked["refusals"] += 1
            self._record_executed(topic, _situation_of(topic, refusal))
            errors = {answer.error for answer in answers}
            is_any = self.level == "must" and not self._catalogue[refusal.clause].promises_kind
            is_right = errors == {refusal.error} or (is_any and errors and None not in errors)
            if is_right and all((a.offset, a.timestamp, a.leader_epoch) == (-1, -1, -1) for a in answers):
                self.statistics.clauses[refusal.clause] += 1
            else:
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
