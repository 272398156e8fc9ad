"""A running broker and kidx, step by step: the same records, then every answer and every file.

One broker serves many examples, each in a topic of its own, because a start costs seconds. A stop concerns them all:
every topic is part of every restart from the moment it is made, and its own operations are what a trace of it holds.
"""

from __future__ import annotations

import itertools
from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from conformance.attribution.broker import clause_of_answer, clauses_of_files, clauses_of_operation
from conformance.implementations.broker.reference import EPOCHS, ReferencePartition
from conformance.kafka.broker.errors import BrokerError
from conformance.kafka.client import LARGEST_TARGET, SPECIAL_TARGETS
from conformance.lockstep import Divergence, DivergenceError
from conformance.operations import Operation
from conformance.operations.broker import BROKER_SIGNATURES, records_of
from kidx.dialect import dialect_of
from kidx.errors import KidxError
from kidx.records import Codec, RecordBatch, build_batch

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence
    from pathlib import Path

    from conformance.implementations.broker.reference import Files
    from conformance.implementations.broker.topic import RunningBroker
    from conformance.kafka.client import Answer, Appended, Isolation, Producer
    from kidx.records import SimpleRecord

ISOLATION: Final[tuple[Isolation, ...]] = ("read_uncommitted", "read_committed")
UNKNOWN: Final = (-7, -8, -(1 << 63))
"""Negative targets that no release knows."""
_LATEST: Final = 12
_SPREAD: Final = 12
_TOO_LARGE: Final = ("MESSAGE_TOO_LARGE", "RECORD_LIST_TOO_LARGE")
_BEYOND_RECOVERY: Final = ("LG-19",)
_DAY_MS: Final = 86_400_000


class PredictedDeathError(Exception):
    """The broker does not come up again, and neither does kidx's log: its life is over, and nothing differs."""


@dataclass(slots=True)
class Tally:
    """What a lockstep has done: topics made, operations performed, answers and files compared."""

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


@dataclass(slots=True)
class _Transactional:
    """A transactional producer: who the coordinator says that it is, and how far its sequence numbers are."""

    producer: Producer
    sequence: int = 0
    is_open: bool = False


@dataclass(slots=True)
class Topic:
    """One topic with its reference, and everything that has been done to it."""

    name: str
    settings: dict[str, Any]
    reference: ReferencePartition
    operations: list[Operation] = field(default_factory=list)
    timestamps: list[int] = field(default_factory=list)
    producers: dict[str, _Transactional] = field(default_factory=dict)
    active: bool = True

    @property
    def codec(self) -> str | None:
        """What the leader compresses with; None: as the producer did."""
        name = str(self.settings.get("compression.type", "producer"))
        return None if name == "producer" else "none" if name == "uncompressed" else name

    def targets(self, *, every: bool) -> list[int]:
        """The special targets, unknown ones, and a grid around all timestamps, or around two dozen of them."""
        stamps = sorted(set(self.timestamps))
        if not every and len(stamps) > _LATEST + _SPREAD:
            spread = stamps[:: max(1, len(stamps) // _SPREAD)]
            stamps = sorted({*spread, *self.timestamps[-_LATEST:]})
        around = {stamp + step for stamp in stamps for step in (-1, 0, 1)}
        outside = {0, 1, max(stamps, default=0) + _DAY_MS, LARGEST_TARGET}
        return [*SPECIAL_TARGETS, *UNKNOWN[1:], *sorted(target for target in around | outside if target >= 0)]


class BrokerLockstep:
    """The topics of one broker, each beside its reference.

    Args:
        broker: started.
        scratch: an empty directory for the references.
        reference: the class of the reference; a mutant's in a test.
        excuse: decides about a difference: True leaves the topic out from then on, False raises.
        prefix: of its topics' names, of which no other lockstep of the broker has the same.
    """

    def __init__(
        self,
        broker: RunningBroker,
        scratch: Path,
        *,
        reference: type[ReferencePartition] = ReferencePartition,
        excuse: Callable[[Divergence], bool] = lambda _: False,
        prefix: str = "example",
    ) -> None:
        self.broker = broker
        self.release = broker.release
        self.scratch = scratch
        self.reference = reference
        self.excuse = excuse
        self.tally = Tally()
        self.topics: list[Topic] = []
        self.failure: DivergenceError | None = None
        self._names = (f"{prefix}-{number}" for number in itertools.count(1))

    @property
    def topic(self) -> Topic:
        """The one that the operations are about: the newest."""
        return self.topics[-1]

    def supports(self, operation: str) -> bool:
        """Whether it has an operation of that name."""
        return operation in BROKER_SIGNATURES

    def perform(self, operation: Operation) -> None:
        """One step of both, and everything that can be compared after it.

        Raises:
            DivergenceError: they differ, and it counts.
            BrokerError: the broker died or failed.
        """
        if operation.name == "create_topic":
            self._create(*operation.args)
        if operation.name in ("restart_broker", "kill_broker"):
            self.tally.steps += 1
            self._restart(operation)
        else:
            self.perform_on(self.topic, operation)

    def perform_on(self, topic: Topic, operation: Operation) -> None:
        """The same for one topic, which need not be the newest.

        Raises:
            DivergenceError: they differ, and it counts.
            BrokerError: the broker died or failed.
        """
        self.tally.steps += 1
        topic.operations.append(operation)
        if topic.active:
            if operation.name != "create_topic":
                getattr(self, f"_{operation.name}")(topic, *operation.args)
            self.compare(topic)

    def kill_while_appending(self, topic: Topic, rows: Sequence[list[list[Any]]], *, acknowledged: int) -> None:
        """Sends batches without waiting, kills the broker after so many acknowledgements, and starts it again.

        Raises:
            DivergenceError: the log does not hold the beginning of them, or less than was acknowledged; or as `start`.
            BrokerError: it does not come up.
        """
        self.tally.steps += 1
        topic.operations.append(Operation("append_batch", (rows[0], "none", None)))
        records = [records_of(each) for each in rows]
        batches = [build_batch(each) for each in records]
        end = topic.reference.log.end_offset
        replies = self.broker.client.append_in_flight(topic.name, batches)
        seen = [reply for _, reply in zip(range(acknowledged), replies, strict=False)]
        self.broker.stop(clean=False)
        self.tally.kills += 1
        self.tally.acknowledged += len(seen)
        self._take_over_beginning(topic, end, records, seen)
        for each in self._active():
            each.reference.stop(clean=False)
            self._compare_logs(each)
        self.start()

    def _take_over_beginning(
        self, topic: Topic, end: int, sent: list[list[SimpleRecord]], seen: Sequence[Appended]
    ) -> None:
        """What the killed broker had appended of a row of batches."""
        found = self.broker.batches_from(topic.name, end)
        stamped = topic.settings.get("message.timestamp.type") == "LogAppendTime"
        content = [[(None if stamped else r.timestamp, r.key, r.value) for r in batch] for batch in found]
        wanted = [[(None if stamped else r.timestamp, r.key, r.value) for r in each] for each in sent]
        self._hold(topic, "outcome", wanted[: len(found)], content, ("LG-16",))
        first = end
        offsets = [first := first + len(each) for each in [[], *sent]]
        self._hold(topic, "outcome", offsets[: len(seen)], [reply.offset for reply in seen], ("LG-1",))
        self._hold(topic, "outcome", True, len(found) >= len(seen), ("LG-16",))
        for batch in found:
            self._take_over(topic, batch, rebuilt=topic.codec not in (None, "none"))
            topic.timestamps += [record.timestamp for record in batch]
        end = topic.reference.log.end_offset
        if len(found) < len(sent) and self.broker.last_segment(topic.name) == end:
            topic.reference.roll(end)  # the kill came when the next batch had a segment, and was not in it yet

    def _compare_logs(self, topic: Topic) -> None:
        """The logs alone: a kill may come between the append to a log and the one to its index."""
        ours = {name: data for name, data in topic.reference.files().items() if name.endswith(".log")}
        theirs = {name: data for name, data in self.broker.files(topic.name).items() if name.endswith(".log")}
        self.tally.files += len(theirs)
        self._hold(topic, "bytes", _only_different(ours, theirs), _only_different(theirs, ours), ("LG-16",))

    # -- operations ------------------------------------------------------------------------------------------------

    def _create(self, settings: dict[str, Any]) -> None:
        name = next(self._names)
        self.broker.client.create_topic(name, {key: str(value) for key, value in settings.items()})
        epoch = self.broker.client.await_leader(name)
        reference = self.reference(self.release, self.scratch / name / f"{name}-0", settings, epoch)
        self.topics.append(Topic(name, settings, reference))
        self.tally.topics += 1

    def _append_batch(self, topic: Topic, rows: list[list[Any]], codec: str, producer: str | None) -> None:
        records, fields, transactional_id = records_of(rows), {}, None
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
        """The reference appends what the broker has appended or refused; offset and refusal must be the same."""
        rebuilt = topic.codec not in (None, codec)
        theirs = (appended.offset, appended.error)
        if appended.error in _TOO_LARGE:
            theirs = (appended.offset, "too large")
        if rebuilt and appended.error is None:
            ours = self._rebuilt(topic, records, appended)
        else:
            ours = topic.reference.append(data, stamp=appended.log_append_time)
        self._hold(topic, "outcome", ours, theirs, clauses_of_operation("append", self.release))
        if appended.error is None:
            self.tally.acknowledged += 1
            stamped = appended.log_append_time
            topic.timestamps += [record.timestamp if stamped < 0 else stamped for record in records]

    def _rebuilt(self, topic: Topic, records: list[SimpleRecord], appended: Appended) -> tuple[int, str | None]:
        """Takes over what the leader has compressed anew, once it is seen to hold what was sent."""
        (batch,) = self.broker.await_batches(topic.name, topic.reference.log.end_offset)
        stamp = appended.log_append_time
        sent = [(r.timestamp if stamp < 0 else stamp, r.key, r.value) for r in records]
        found = [(r.timestamp, r.key, r.value) for r in batch]
        self._hold(topic, "outcome", sent, found, clauses_of_operation("append", self.release))
        offset = topic.reference.log.end_offset
        topic.reference.append_rebuilt(batch.to_bytes())
        return offset, None

    def _send_records(self, topic: Topic, rows: list[list[Any]], codec: str) -> None:
        records, end = records_of(rows), topic.reference.log.end_offset
        self.broker.send(topic.name, records, codec)
        batches = self.broker.await_batches(topic.name, end)
        sent = [(record.key, record.value) for record in records]
        found = [(record.key, record.value) for batch in batches for record in batch]
        self._hold(topic, "outcome", sent, found, clauses_of_operation("append", self.release))
        for batch in batches:
            self._take_over(topic, batch, rebuilt=topic.codec not in (None, codec))
            topic.timestamps += [record.timestamp for record in batch]

    def _take_over(self, topic: Topic, batch: RecordBatch, *, rebuilt: bool) -> None:
        """Appends a batch that is in the broker's log, as its leader did."""
        data = batch.to_bytes()
        if rebuilt:
            topic.reference.append_rebuilt(data)
            return
        stamp = batch.max_timestamp if topic.settings.get("message.timestamp.type") == "LogAppendTime" else -1
        # As it was sent: the first offset is the leader's, and not part of the checksum.
        topic.reference.append(bytes(8) + data[8:], stamp=stamp, from_client=not batch.is_control)

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
        transactional_id, end = f"{topic.name}-{name}", topic.reference.log.end_offset
        self.broker.client.end_and_await_marker(topic.name, transactional_id, who.producer, commit=commit)
        # Once the coordinator gives out the next epoch, it has noted the end: it writes no second marker after a crash.
        topic.producers[name] = _Transactional(self.broker.client.init_producer(transactional_id))
        batches = self.broker.await_batches(topic.name, end)
        seen = [(batch.is_control, batch.producer_id, batch.count) for batch in batches]
        self._hold(topic, "outcome", [(True, who.producer.producer_id, 1)], seen, ("TX-15",))
        for batch in batches:
            self._take_over(topic, batch, rebuilt=False)

    def _delete_before(self, topic: Topic, offset: int) -> None:
        theirs = self.broker.client.delete_records(topic.name, offset)
        clauses = clauses_of_operation("delete_records", self.release)
        self._hold(topic, "outcome", topic.reference.delete_records(offset), theirs, clauses)

    def _restart(self, operation: Operation) -> None:
        clean = operation.name == "restart_broker"
        for topic in self.topics:
            topic.operations.append(operation)
        self.stop(clean=clean)
        self.start()

    # -- stopping and starting -------------------------------------------------------------------------------------

    def stop(self, *, clean: bool) -> None:
        """Stops the broker; then the files of all topics are compared, of a killed one with the room in its indexes.

        Raises:
            DivergenceError: they differ, and it counts.
            BrokerError: it had died, or does not shut down cleanly.
        """
        self.broker.stop(clean=clean)
        if clean:
            self.tally.restarts += 1
        else:
            self.tally.kills += 1
        for topic in self._active():
            self._let_retention_run(topic)
            topic.reference.stop(clean=clean)
            self._compare_files(topic, "clean stop" if clean else "kill")
            self.tally.segments += sum(name.endswith(".log") for name in topic.reference.files())

    def start(self) -> None:
        """Starts the broker on what lies there, and the references too; then everything is compared.

        Raises:
            DivergenceError: they differ, and it counts.
            PredictedDeathError: it does not come up, and neither does a reference.
            BrokerError: it does not come up, and kidx cannot tell why.
        """
        refused = self._start_references()
        try:
            self.broker.start()
        except BrokerError as error:
            if not refused:
                raise
            self.tally.refused_starts += 1
            self.tally.clauses.update(_BEYOND_RECOVERY)
            raise PredictedDeathError(refused[0][1]) from error
        for topic, why in refused:
            self._hold(topic, "outcome", f"does not come up: {why}", "comes up", _BEYOND_RECOVERY)
        for topic in self._active():
            topic.reference.lead(self.broker.client.await_leader(topic.name))
            self.compare(topic, every=True, moment="start")

    def _start_references(self) -> list[tuple[Topic, str]]:
        """The topics whose log cannot be loaded, and why."""
        refused: list[tuple[Topic, str]] = []
        for topic in self._active():
            try:
                topic.reference.start(self.broker.checkpoints(topic.name))
            except (KidxError, OSError) as error:
                refused.append((topic, f"{topic.name}: {error}"))
        return refused

    def _active(self) -> Iterable[Topic]:
        return [topic for topic in self.topics if topic.active]

    # -- comparing -------------------------------------------------------------------------------------------------

    def compare(self, topic: Topic, *, every: bool = False, moment: str = "running") -> None:
        """Holds files and answers of one topic of the running broker to its reference.

        Raises:
            DivergenceError: they differ, and it counts.
        """
        self._let_retention_run(topic)
        self._compare_files(topic, moment)
        targets = topic.targets(every=every)
        for isolation in ISOLATION:
            theirs = self.broker.client.answers(topic.name, targets, isolation, version=self.broker.version)
            ours = topic.reference.answers(targets, isolation)
            if ours != theirs and self._let_retention_run(topic):
                theirs = self.broker.client.answers(topic.name, targets, isolation, version=self.broker.version)
                ours = topic.reference.answers(targets, isolation)
            self.tally.answers += len(targets)
            self._hold_answers(topic, isolation, ours, theirs)

    def _hold_answers(self, topic: Topic, isolation: Isolation, ours: list[Answer], theirs: list[Answer]) -> None:
        dialect = dialect_of(self.release)
        for mine, its in zip(ours, theirs, strict=True):
            clauses = clause_of_answer(its.target, its, dialect)
            if not topic.active:
                return
            if mine == its:
                self.tally.clauses.update(clauses)
            else:
                question = f"{isolation}, target {mine.target}: "
                self._hold(
                    topic, "outcome", question + str(mine.to_json()[1:]), question + str(its.to_json()[1:]), clauses
                )

    def _compare_files(self, topic: Topic, moment: str) -> None:
        ours, theirs = topic.reference.files(), self.broker.files(topic.name)
        if moment != "clean stop":  # newer releases write the epochs' file when they find the time
            ours.pop(EPOCHS, None)
            theirs.pop(EPOCHS, None)
        clauses = clauses_of_files(moment, self.release)
        self.tally.files += len(theirs)
        self._hold(topic, "bytes", _only_different(ours, theirs), _only_different(theirs, ours), clauses)

    def _let_retention_run(self, topic: Topic) -> bool:
        """If the broker's retention has deleted segments since the last look, so does the reference's."""
        if self.broker.first_segment(topic.name) > topic.reference.log.segments.first.base_offset:
            topic.reference.retain()
            return True
        return False

    def _hold(self, topic: Topic, aspect: str, ours: Any, theirs: Any, clauses: tuple[str, ...]) -> None:
        """Compares what both have done; what is left out of the topic, or excused, is evidence for no clause.

        Raises:
            DivergenceError: they differ, and it counts.
        """
        if not topic.active:
            return
        if ours == theirs:
            self.tally.clauses.update(clauses)
            return
        step = len(topic.operations) - 1
        operation = topic.operations[step]
        divergence = Divergence(
            step, operation, self.broker.name, self.release, "kidx", (aspect,), ours, theirs, clauses
        )
        if self.excuse(divergence):
            topic.active = False
            self.tally.expected += 1
            return
        self.failure = DivergenceError(divergence, topic.operations)
        raise self.failure


def _only_different(ours: Files, theirs: Files) -> tuple[tuple[str, bytes | None], ...]:
    """The files of one side that the other has not, or not so, by name; None for one that only the other has."""
    names = sorted(name for name in {*ours, *theirs} if ours.get(name) != theirs.get(name))
    return tuple((name, ours.get(name)) for name in names)
