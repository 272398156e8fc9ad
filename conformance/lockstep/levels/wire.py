"""A broker by its protocol alone and the reference, step by step: every append, every answer, everything read back.

A difference does not end a topic as long as both sides still hold the same records. It is noted, once for each thing
that is wrong, with the steps that led to it; where the records differ, the topic is left and the next one begins.
"""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from conformance.clauses import load_clauses
from conformance.implementations.broker.reference import ReferencePartition
from conformance.implementations.wire.account import Account, StoredBatch, StoredRecord, committed
from conformance.implementations.wire.expected import ExpectedRows, Row
from conformance.implementations.wire.promises import Promises, clause_of
from conformance.implementations.wire.questions import Asked, Refusal, believing, questions, refusals, targets
from conformance.lockstep.divergence import Divergence
from conformance.operations.broker import records_of
from kidx.errors import KidxError
from kidx.records import Codec, build_batch, iter_memory_batches

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path
    from typing import Literal

    from conformance.implementations.wire.broker import WireBroker
    from conformance.kafka.client import Appended, Isolation, OffsetAnswer, Producer
    from conformance.operations import Operation
    from kidx.records import SimpleRecord

MACHINE: Final = "wire"
_TOO_LARGE: Final = ("MESSAGE_TOO_LARGE", "RECORD_LIST_TOO_LARGE")
_PART: Final = 1 << 16
"""Bytes of a fetch that reads back from the middle of a topic."""
_LOG_START_SINCE: Final = 5
"""The version of Fetch whose answer has a log start offset."""
_KAFKAS_OWN: Final = {"LO-6": "LO-23", "LO-10": "LG-24", "LO-2b": "LG-20"}
"""Which OBSERVED clause speaks of answers that keep a promise and are not Kafka's."""


class Difference(NamedTuple):
    """One thing that is wrong, as it was seen first.

    Attributes:
        divergence: as of any lockstep.
        shape: what it is known by, such as ``"list_offsets -3: a record -> nothing"``.
        operations: the steps of the topic, up to the one that shows it.
    """

    divergence: Divergence
    shape: str
    operations: tuple[Operation, ...]


@dataclass(slots=True)
class Tally:
    """What a lockstep has done."""

    topics: int = 0
    left: int = 0
    """Topics that were left before their end, as their records differ."""
    steps: int = 0
    answers: int = 0
    fetches: int = 0
    acknowledged: int = 0
    expected: int = 0
    asked: Counter[str] = field(default_factory=Counter)
    """Answers by what was asked for."""
    clauses: Counter[str] = field(default_factory=Counter)
    seen: Counter[tuple[str, str]] = field(default_factory=Counter)
    """How often each (clause, shape) was seen."""


@dataclass(slots=True)
class _Transactional:
    producer: Producer
    sequence: int = 0
    is_open: bool = False


@dataclass(slots=True)
class Topic:
    """One topic: its reference, its account, and everything that has been done to it."""

    name: str
    settings: dict[str, Any]
    reference: ReferencePartition
    account: Account
    operations: list[Operation] = field(default_factory=list)
    timestamps: list[int] = field(default_factory=list)
    producers: dict[str, _Transactional] = field(default_factory=dict)
    active: bool = True

    @property
    def is_stamped(self) -> bool:
        """Whether the broker's clock gives the timestamps."""
        return bool(self.settings.get("message.timestamp.type") == "LogAppendTime")

    @property
    def codec(self) -> str | None:
        """What the leader compresses with; None: as the producer did."""
        name = str(self.settings.get("compression.type", "producer"))
        return None if name == "producer" else "none" if name == "uncompressed" else name


class WireLockstep:
    """The topics of one broker, each beside its reference and its account.

    Args:
        broker: connected.
        release: whose dialect Kafka's own answers are in.
        scratch: an empty directory for the references.
        level: ``"observed"`` holds every answer to Kafka's, ``"must"`` to what is promised.
        excuse: told of a difference by its divergence and shape; True if it is known and does not count.
        limit: answers after which no topic is asked any more; None for none.
        is_over: asked before each step whether the time is up.
    """

    failure = None  # the machine asks; a difference does not end an example here

    def __init__(
        self,
        broker: WireBroker,
        release: str,
        scratch: Path,
        *,
        level: Literal["must", "observed"] = "observed",
        excuse: Callable[[Divergence, str], bool] = lambda *_: False,
        limit: int | None = None,
        is_over: Callable[[], bool] = lambda: False,
    ) -> None:
        self.broker = broker
        self.release = release
        self.name = f"the broker at {broker.address}"
        self.level = level
        self.tally = Tally()
        self.topics: list[Topic] = []
        self.differences: dict[tuple[str, str], Difference] = {}
        self.watches = True
        self._scratch = scratch
        self._excuse = excuse
        self._limit = limit
        self._is_over = is_over
        self._catalogue = load_clauses()
        self._fetch_version = itertools.cycle(broker.fetch_versions)

    @property
    def topic(self) -> Topic:
        """The one that the operations are about: the newest."""
        return self.topics[-1]

    @property
    def is_over(self) -> bool:
        """Whether the limit of answers is reached, or the topic is left."""
        is_full = self._limit is not None and self.tally.answers >= self._limit
        return is_full or not self.topic.active or self._is_over()

    def perform(self, operation: Operation) -> None:
        """One step of both, and every question after it.

        Raises:
            ClientError: the broker is gone, hangs, or talks nonsense.
        """
        self.tally.steps += 1
        if operation.name == "create_topic":
            self._create(operation)
        else:
            if self.is_over:
                return
            self.topic.operations.append(operation)
            getattr(self, f"_{operation.name}")(self.topic, *operation.args)
        if self.topic.active and self.watches:
            self.compare(self.topic)

    def close_topic(self) -> None:
        """Decides what is undecided, so that the coordinator can forget it; nothing is compared."""
        for name, who in self.topic.producers.items():
            if who.is_open and self.topic.active:
                self.broker.client.end_transaction(f"{self.topic.name}-{name}", who.producer, commit=False)

    # -- operations ------------------------------------------------------------------------------------------------

    def _create(self, operation: Operation) -> None:
        (settings,) = operation.args
        name, epoch = self.broker.create(settings)
        kept = {key: value for key, value in settings.items() if key not in self.broker.refused_settings}
        reference = ReferencePartition(self.release, self._scratch / name / f"{name}-0", kept, epoch)
        self.topics.append(Topic(name, kept, reference, Account(epoch), [operation]))
        self.tally.topics += 1

    def _append_batch(self, topic: Topic, rows: list[list[Any]], codec: str, producer: str | None) -> None:
        records, fields, transactional_id = records_of(rows), {}, None
        if producer is not None and "transactions" in self.broker.without:
            return
        if producer is not None:
            transactional_id = f"{topic.name}-{producer}"
            who = self._begun(topic, producer)
            fields = {**who.producer._asdict(), "base_sequence": who.sequence, "is_transactional": True}
        data = build_batch(records, codec=Codec[codec.upper()], **fields)
        appended = self.broker.client.append(topic.name, data, transactional_id=transactional_id)
        if producer is not None and appended.error is None:
            topic.producers[producer].sequence += len(records)
        self._settle(topic, data, records, codec, appended)

    def _append_corrupt(self, topic: Topic, rows: list[list[Any]]) -> None:
        data = bytearray(build_batch(records_of(rows)))
        data[-1] ^= 1
        appended = self.broker.client.append(topic.name, bytes(data))
        self._settle(topic, bytes(data), records_of(rows), "none", appended)

    def _settle(self, topic: Topic, data: bytes, records: list[SimpleRecord], codec: str, appended: Appended) -> None:
        """The reference appends what the broker has appended, as it gives it back."""
        end = topic.account.end
        if appended.error is None:
            self.tally.acknowledged += 1
            stored = self.broker.await_stored(topic.name, end)
            stamp = max(b.max_timestamp for b in stored.batches) if topic.is_stamped else -1
            if not self._is_as_sent(topic, records, appended, stored.batches):
                return
            if topic.codec in (None, codec) and len(stored.batches) == 1:
                ours = topic.reference.append(data, stamp=stamp)
            else:
                topic.reference.append_rebuilt(stored.data)
                ours = (end, None)
            self._enter(topic, stored.batches)
        else:
            ours = topic.reference.append(data)
        error = "too large" if appended.error in _TOO_LARGE else appended.error
        theirs = (appended.offset if error is None else -1, error)
        if not self._hold(topic, "append", "LG-1", ours, theirs, _kind(ours) + " -> " + _kind(theirs)):
            self._leave(topic)

    def _is_as_sent(
        self, topic: Topic, records: list[SimpleRecord], appended: Appended, batches: Sequence[StoredBatch]
    ) -> bool:
        """What comes back is what was sent, stamped where the topic wants that."""
        end, found = topic.account.end, [record for batch in batches for record in batch.records]
        stamps = {record.timestamp for record in found} if topic.is_stamped else set()
        sent = [
            (end + number, None if topic.is_stamped else r.timestamp, r.key, r.value)
            for number, r in enumerate(records)
        ]
        theirs = [(r.offset, None if topic.is_stamped else r.timestamp, r.key, r.value) for r in found]
        if not self._hold(topic, "fetch", "FE-1", sent, theirs, "other records than were sent"):
            self._leave(topic)
            return False
        if topic.is_stamped and appended.log_append_time >= 0:
            self._hold(topic, "fetch", "FE-1", {appended.log_append_time}, stamps, "other timestamps than acknowledged")
        return True

    def _enter(self, topic: Topic, batches: Iterable[StoredBatch]) -> None:
        for batch in batches:
            topic.account.add(batch)
            topic.timestamps += [record.timestamp for record in batch.records]

    def _begun(self, topic: Topic, name: str) -> _Transactional:
        transactional_id = f"{topic.name}-{name}"
        if name not in topic.producers:
            topic.producers[name] = _Transactional(self.broker.client.init_producer(transactional_id))
        who = topic.producers[name]
        if not who.is_open:
            self.broker.client.join_transaction(topic.name, transactional_id, who.producer)
            who.is_open = True
        return who

    def _end_transaction(self, topic: Topic, name: str, commit: bool) -> None:
        who = topic.producers.get(name)
        if who is None or not who.is_open:
            return
        transactional_id = f"{topic.name}-{name}"
        self.broker.client.end_transaction(transactional_id, who.producer, commit=commit)
        stored = self.broker.await_stored(topic.name, topic.account.end)
        # The next epoch is given out once the end is noted.
        topic.producers[name] = _Transactional(self.broker.client.init_producer(transactional_id))
        seen = [(batch.is_control, batch.producer_id, len(batch.records)) for batch in stored.batches]
        if not self._hold(
            topic, "end_transaction", "FE-1", [(True, who.producer.producer_id, 1)], seen, "another marker"
        ):
            self._leave(topic)
            return
        for batch in iter_memory_batches(stored.data):
            data = batch.to_bytes()
            topic.reference.append(
                bytes(8) + data[8:], stamp=batch.max_timestamp if topic.is_stamped else -1, from_client=False
            )
        self._enter(topic, stored.batches)

    def _delete_before(self, topic: Topic, offset: int) -> None:
        if "delete-records" in self.broker.without:
            return
        theirs = self.broker.client.delete_records(topic.name, offset)
        ours = topic.reference.delete_records(offset)
        shape = f"{ours or 'done'} -> {theirs or 'done'}"
        if not self._hold(topic, "delete_before", "LG-12", ours, theirs, shape):
            self._leave(topic)
        elif theirs is None:
            topic.account.start = max(topic.account.start, topic.account.end if offset < 0 else offset)

    def _leave(self, topic: Topic) -> None:
        topic.active = False
        self.tally.left += 1

    # -- comparing -------------------------------------------------------------------------------------------------

    def compare(self, topic: Topic, *, every: bool = False) -> None:
        """Asks every question of one topic, and reads it back.

        Raises:
            ClientError: the broker is gone, hangs, or talks nonsense.
        """
        self._read_back(topic)
        if not topic.active:
            return
        versions = self.broker.versions
        wanted = targets(topic.timestamps, every=every)
        epoch = topic.account.leader_epoch
        asked = [*questions(topic.name, wanted, versions), *believing(topic.name, epoch, versions)]
        self._compare_answers(topic, asked)
        self._compare_refusals(topic, list(refusals(topic.name, epoch, versions)))

    def _compare_answers(self, topic: Topic, asked: list[Asked]) -> None:
        promises, expected = Promises(topic.account), ExpectedRows(topic.reference)
        for question, answers in zip(asked, self.broker.client.ask_each(a.request for a in asked), strict=True):
            self.tally.answers += 1
            self.tally.asked[_asked_for(question.target)] += 1
            if len(answers) != 1 or (answers[0].topic, answers[0].partition) != (topic.name, 0):
                self._note(topic, question, "LO-14", "one answer for the partition", answers, "another partition")
                continue
            answer = _of_every_version(answers[0])
            clause = self._clause(question.target)
            broken = promises.broken(question.target, question.request.version, question.view, answer)
            row = Row(answer.error, answer.offset, answer.timestamp, answer.leader_epoch)
            if self.level == "must":
                if broken is not None:
                    self._note(topic, question, broken.clause, broken.allowed, row, _how(row))
                else:
                    self.tally.clauses[clause] += 1
                continue
            rows = list(expected.rows(question.target, question.request.version, question.view))
            if question.request.version == 0:
                rows = [each._replace(timestamp=-1) for each in rows]
            if row in rows:
                self.tally.clauses[clause] += 1
                continue
            named = broken.clause if broken is not None else _KAFKAS_OWN.get(clause, clause)
            if row._replace(leader_epoch=-1) in [each._replace(leader_epoch=-1) for each in rows]:
                named = "LO-14"
            self._note(topic, question, named, rows[0], row, f"{_kind_of(rows[0], row, topic)}")

    def _compare_refusals(self, topic: Topic, asked: list[Refusal]) -> None:
        for refusal, answers in zip(asked, self.broker.client.ask_each(a.request for a in asked), strict=True):
            self.tally.answers += 1
            self.tally.asked["refusals"] += 1
            errors = {answer.error for answer in answers}
            is_right = errors == {refusal.error} or (self.level == "must" and errors and None not in errors)
            if is_right and all((a.offset, a.timestamp, a.leader_epoch) == (-1, -1, -1) for a in answers):
                self.tally.clauses[refusal.clause] += 1
            else:
                said = " and ".join(sorted(str(Row(*_numbers(answer))) for answer in answers)) or "no answer"
                how = f"{refusal.error} -> {' and '.join(sorted(map(str, errors))) or 'no answer'}"
                self._note(topic, refusal, refusal.clause, refusal.error, said, how)

    def _read_back(self, topic: Topic) -> None:
        account, version = topic.account, next(self._fetch_version)
        if account.start >= account.end:
            return
        left = [batch for batch in account.batches if batch.last_offset >= account.start]
        starts = {account.start, left[len(left) // 2].base_offset if len(left) > 1 else account.start}
        for offset, isolation in itertools.product(
            sorted(max(each, account.start) for each in starts), ("read_uncommitted", "read_committed")
        ):
            self._compare_fetch(topic, offset, isolation, version)  # type: ignore[arg-type]

    def _compare_fetch(self, topic: Topic, offset: int, isolation: Isolation, version: int) -> None:
        account = topic.account
        self.tally.fetches += 1
        found = self.broker.client.fetch(topic.name, offset, isolation=isolation, max_bytes=_PART, version=version)
        question = f"Fetch version {version} from {offset}, {isolation}"
        if found.error is not None:
            self._note(topic, question, "FE-1", "batches", found.error, f"error {found.error}", "fetch")
            return
        try:
            batches = [StoredBatch.of(b) for b in iter_memory_batches(found.records) if b.last_offset >= offset]
        except KidxError as error:
            self._note(topic, question, "FE-1", "batches", str(error), "unreadable batches", "fetch")
            return
        self._compare_batches(topic, question, offset, isolation, batches)
        bounds = (found.high_watermark, found.last_stable_offset, found.log_start_offset)
        start = account.start if version >= _LOG_START_SINCE else -1
        allowed = [(account.end, stable, start) for stable in account.stable_ends]
        names = "high watermark, last stable offset, log start"
        if bounds not in allowed:
            how = [n for n, a, b in zip(names.split(", "), allowed[0], bounds, strict=True) if a != b]
            self._note(topic, f"{question}: {names}", "FE-3", allowed[0], bounds, f"another {', '.join(how)}", "fetch")
        else:
            self.tally.clauses["FE-3"] += 1
        if isolation == "read_committed":
            visible = [r for b in batches if not b.is_control and not account.is_aborted(b) for r in b.records]
            ours, theirs = _offsets(visible), _offsets(committed(batches, found.aborted or ()))
            self._hold(topic, "fetch", "FE-2", ours, theirs, "other committed records", question)

    def _compare_batches(
        self, topic: Topic, question: str, offset: int, isolation: Isolation, batches: list[StoredBatch]
    ) -> None:
        account = topic.account
        limits = account.stable_ends if isolation == "read_committed" else (account.end,)
        theirs = self._comparable(batches)
        sides = []
        for limit in limits:  # within a batch, either end may count
            wanted = [b for b in account.batches if b.last_offset >= offset and b.base_offset < limit > offset]
            sides.append(self._comparable(wanted)[: max(len(theirs), 1)])
        ours = theirs if theirs in sides else sides[0]
        self._hold(topic, "fetch", "FE-1", ours, theirs, "other records than before", question)

    def _comparable(self, batches: list[StoredBatch]) -> list[Any]:
        """What has to be the same: batches as Kafka keeps them, or the records alone."""
        return list(batches) if self.level == "observed" else [record for batch in batches for record in batch.records]

    # -- noting ----------------------------------------------------------------------------------------------------

    def _clause(self, target: int) -> str:
        dialect = self.topic.reference.dialect
        if target == -3:
            return {"M0": "LO-20", "M1": "LO-9", "M2": "LO-10"}[dialect.max_lookup]
        clause = clause_of(target)
        if clause in self._catalogue and not self._catalogue[clause].applies_to(self.release):
            return "LO-15c" if dialect.refuses_unknown_targets else "LO-15b"
        return clause

    def _hold(self, topic: Topic, what: str, clause: str, ours: Any, theirs: Any, how: str, question: str = "") -> bool:
        if ours == theirs:
            self.tally.clauses[clause] += 1
            return True
        self._note(topic, question, clause, _short(ours), _short(theirs), how, what)
        return False

    def _note(
        self, topic: Topic, question: object, clause: str, ours: object, theirs: object, how: str, what: str = ""
    ) -> None:
        """Enters a difference, unless it is known."""
        asked = what or (
            f"list_offsets {_asked_for(question.target)}" if isinstance(question, Asked) else "list_offsets refusals"
        )
        shape = f"{asked}: {how}"
        prefix = f"{question}: " if str(question) else ""
        steps = tuple(topic.operations)
        divergence = Divergence(
            len(steps) - 1,
            steps[-1],
            self.name,
            self.release,
            "kidx",
            ("outcome",),
            f"{prefix}{ours}",
            f"{prefix}{theirs}",
            (clause,),
        )
        key = clause, shape
        self.tally.seen[key] += 1
        if key in self.differences:
            return
        if self._excuse(divergence, shape):
            self.tally.expected += 1
            return
        self.differences[key] = Difference(divergence, shape, steps)


def _of_every_version(answer: OffsetAnswer) -> OffsetAnswer:
    """The answer of version 0 is a list of offsets."""
    return answer._replace(offset=answer.old_offsets[0]) if answer.old_offsets else answer


def _numbers(answer: OffsetAnswer) -> tuple[str | None, int, int, int]:
    return answer.error, answer.offset, answer.timestamp, answer.leader_epoch


def _asked_for(target: int) -> str:
    return "timestamp" if target >= 0 else str(target) if target >= -6 else "unknown"


def _how(row: Row) -> str:
    return f"{row.error}" if row.error else "nothing" if row.offset < 0 else "a wrong record"


def _kind_of(ours: Row, theirs: Row, topic: Topic) -> str:
    """How two answers differ, and whether that is about deleted records, an open transaction or the broker's clock."""
    if ours._replace(leader_epoch=-1) == theirs._replace(leader_epoch=-1):
        return "another leader epoch"
    words = [row.error or ("nothing" if row.offset < 0 else "a record") for row in (ours, theirs)]
    if words[0] == words[1] == "a record":
        words[1] = "the same record's other timestamp" if ours.offset == theirs.offset else "another record"
    where = " of LogAppendTime" if topic.is_stamped else ""
    where += ", with deleted records" if topic.account.start else ""
    where += ", with an open transaction" if topic.account.undecided else ""
    return f"{words[0]} -> {words[1]}{where}"


def _kind(outcome: tuple[int, str | None]) -> str:
    return outcome[1] or "appended"


def _offsets(records: Iterable[StoredRecord]) -> list[int]:
    return [record.offset for record in records]


def _short(value: Any) -> Any:
    text = str(value)
    return value if len(text) <= 600 else f"{text[:280]} … {text[-280:]}"
