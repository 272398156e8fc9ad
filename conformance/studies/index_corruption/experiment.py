"""Experiment: one broker starts with corrupt index files, and kidx's predictions are compared with what it does.

There is a topic for each case, which is the corruption of one index file after a clean stop, or after ``kill -9``. The
broker starts three times:

1. All topics get the same records, in three segments. The broker is stopped cleanly, and the files of the cases with a
  clean stop are corrupted.
2. The broker is started, queried and appended to. The topics of the other cases get more records. The broker is killed,
  and the files of these cases are corrupted. All records before the clean stop are known to be on disk, so only the
  active segment needs a recovery.
3. The broker is started, queried, appended to and stopped.

The cost of a wrong result of ``offsetsForTimes`` is what a consumer reads or misses that seeks to the returned offset.
"""

from __future__ import annotations

import shutil
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, Literal, NamedTuple

import msgspec

from conformance.implementations.broker.reference import COMPARED, ReferencePartition
from conformance.implementations.broker.topic import RunningBroker
from conformance.kafka.broker import Broker, BrokerError
from conformance.kafka.broker.workload import EPOCH_MS
from conformance.kafka.client import first_record
from conformance.operations.broker import records_of
from conformance.scratch import scratch_directory
from conformance.studies.index_corruption.cases import CASES, ENTRY, Case, Place, Shutdown, Suffix, corrupt, entries_of
from kidx.errors import KidxError
from kidx.records import build_batch

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence
    from pathlib import Path

    from conformance.kafka.client import OffsetResult


class OffsetTimestamp(NamedTuple):
    """Offset and timestamp of a record."""

    offset: int
    timestamp: int


class ConsumerCost(NamedTuple):
    """Cost of all lookups of a case.

    Attributes:
        wrong: The number of wrong results.
        missed: The number of records at or after the target's time that the consumer never reads; all of them if there
            is no result or an error.
        reread: The number of records before the correct position that the consumer reads although it need not.
    """

    lookups: int
    wrong: int
    missed: int
    reread: int


def oracle_offset(records: Iterable[OffsetTimestamp], target: int) -> int | None:
    """Return the offset of the first record, in log order, whose timestamp is not below the target, or None."""
    return next((record.offset for record in records if record.timestamp >= target), None)


def cost_of(records: Sequence[OffsetTimestamp], answers: Sequence[OffsetResult]) -> ConsumerCost:
    """Return the cost of the results, which are compared with a scan of the whole log."""
    end = records[-1].offset + 1 if records else 0
    wrong = missed = reread = 0
    for answer in answers:
        right = oracle_offset(records, answer.target)
        found = answer.offset
        if found == right and answer.error is None:
            continue
        wrong += 1
        begins = end if found is None else found
        should_begin = end if right is None else right
        missed = max(missed, begins - should_begin)
        reread = max(reread, should_begin - begins)
    return ConsumerCost(len(answers), wrong, missed, reread)


def targets_of(records: Iterable[OffsetTimestamp]) -> list[int]:
    """Return every timestamp of the log, and the timestamps one millisecond before and after it, in order."""
    return sorted({record.timestamp + step for record in records for step in (-1, 0, 1)})


Repair = Literal["kept", "rebuilt", "emptied", "gone"]

SEGMENTS: Final = 3
BATCHES: Final = 12
"""Number of batches in a segment. Each has two records; every second batch has an index entry."""
HOUR_MS: Final = 3_600_000
_LATE_MS: Final = 45
"""Difference between a late record's timestamp and the timestamp of the record before it."""
_APPENDS: Final = 4
"""Number of batches that are appended after the corruption."""


_SETTINGS: Final[dict[str, Any]] = {
    "segment.bytes": 1 << 20,
    "segment.index.bytes": 1200,
    "index.interval.bytes": 200,
    "segment.ms": HOUR_MS,
    "retention.ms": -1,
    "message.timestamp.type": "CreateTime",
}


class CaseResult(msgspec.Struct, frozen=True):
    """Result of one case.

    Attributes:
        shutdown: The case, with the next three members.
        broker_starts: True if the partition has a leader after the start.
        repair: The state of the corrupt file after the queries: kept unchanged, rebuilt from the log, re-created
            without entries (emptied), or missing (gone).
        lookups: With ``wrong``, ``missed`` and ``reread``, the consumer's :class:`ConsumerCost` of the results, before
            anything was appended.
        bad_fetches: The number of offsets at which a fetch does not return the record with that offset.
        appends: ``"ok"``, or the name of the error that a producer gets.
        as_predicted: True if kidx predicted everything.
        differences: The differences from kidx's predictions of results, files and errors.
        error: The reason why the partition has no leader; empty if it has one.
    """

    release: str
    shutdown: Shutdown
    place: Place
    suffix: Suffix
    damage: str
    broker_starts: bool
    repair: Repair = "kept"
    lookups: int = 0
    wrong: int = 0
    missed: int = 0
    reread: int = 0
    bad_fetches: int = 0
    appends: str = "ok"
    as_predicted: bool = True
    differences: tuple[str, ...] = ()
    error: str = ""


@dataclass(slots=True)
class _Topic:
    """Topic of one case.

    Attributes:
        records: All records until the corruption.
        corrupted: The content of the file after the corruption; None if it does not exist.
        reference: kidx's copy of the partition, while its case is in progress.
        epoch: The leader epoch before the corruption.
        error: The error of kidx when it loaded the corrupt files.
        outcome: The results, as the fields of :class:`CaseResult`.
        differences: The differences from kidx's predictions.
    """

    name: str
    case: Case
    records: list[OffsetTimestamp] = field(default_factory=list)
    corrupted: bytes | None = None
    reference: ReferencePartition | None = None
    epoch: int = 0
    error: str = ""
    outcome: dict[str, Any] = field(default_factory=dict)
    differences: list[str] = field(default_factory=list)


def run_corruption_cases(
    broker: Broker,
    cases: Sequence[Case] = CASES,
    report: Callable[[str], None] = lambda _: None,
    reference: type[ReferencePartition] = ReferencePartition,
) -> list[CaseResult]:
    """Corrupt files of a started broker, return the result of each case, and stop the broker at the end.

    Args:
        broker: The started broker.
        cases: The cases, each in a separate topic.
        report: A callback that receives a line of text for each activity.
        reference: The class that predicts; a test may pass a defective one.

    Raises:
        BrokerError: The broker rejects a request, or does not start at all.
    """
    with scratch_directory() as scratch:
        return _Experiment(broker, cases, scratch, report, reference).run()


class _Experiment:
    def __init__(
        self,
        broker: Broker,
        cases: Sequence[Case],
        scratch: Path,
        report: Callable[[str], None],
        reference: type[ReferencePartition],
    ) -> None:
        self.reference = reference
        self.running = RunningBroker(broker)
        self.release = broker.release
        self.scratch = scratch
        self.report = report
        self.settings = _SETTINGS
        self.topics = [_Topic(f"file-damage-{number}", case) for number, case in enumerate(cases)]

    def run(self) -> list[CaseResult]:
        try:
            for topic in self.topics:
                self.running.client.create_topic(topic.name, {key: str(value) for key, value in self.settings.items()})
                topic.epoch = self.running.client.await_leader(topic.name)
                for number in range(SEGMENTS):
                    self._produce(topic, EPOCH_MS + number * 2 * HOUR_MS, BATCHES)
            self.report(f"{self.release}: {len(self.topics)} topics of {SEGMENTS} segments")
            self._round("clean")
            for topic in self._of("killed"):
                self._produce(topic, EPOCH_MS + SEGMENTS * 2 * HOUR_MS, BATCHES)
            self._round("killed")
            self.running.stop(clean=True)
            self._compare_remaining_files()
        finally:
            self.running.disconnect()
        return [
            CaseResult(
                self.release,
                *topic.case,
                as_predicted=not topic.differences,
                differences=tuple(topic.differences),
                **topic.outcome,
            )
            for topic in self.topics
        ]

    def _of(self, shutdown: Shutdown) -> list[_Topic]:
        return [topic for topic in self.topics if topic.case.shutdown == shutdown]

    def _round(self, shutdown: Shutdown) -> None:
        """Stop the broker, corrupt the files, start the broker again, and record the results."""
        if not self._of(shutdown):
            return
        self.running.stop(clean=shutdown == "clean")
        for topic in self.topics:
            if topic.case.shutdown == shutdown:
                self._damage(topic)
            elif topic.reference is not None:
                topic.reference.stop(clean=False)
                topic.reference = None  # its case is finished
        self.running.start()
        for topic in self._of(shutdown):
            self._observe(topic)
        wrong = sum(topic.outcome.get("wrong", 0) > 0 for topic in self._of(shutdown))
        self.report(f"{self.release}: {shutdown}: {wrong} of {len(self._of(shutdown))} cases return wrong offsets")

    # -- contents of the topics ------------------------------------------------------------------------------------

    def _produce(self, topic: _Topic, start: int, batches: int) -> None:
        """Append a segment whose timestamps increase, except for one late record in every fourth batch."""
        rows = [
            [[start + 25 * n, None, 60], [start + 25 * n + (10 if n % 4 else -_LATE_MS), None, 60]]
            for n in range(batches)
        ]
        sent = [build_batch(records_of(each)) for each in rows]
        for each, appended in zip(rows, self.running.client.append_in_flight(topic.name, sent), strict=True):
            if appended.error is not None:
                raise BrokerError(f"cannot append to {topic.name}: {appended.error}", self.running.broker.log)
            topic.records += [OffsetTimestamp(appended.offset + n, int(row[0] or 0)) for n, row in enumerate(each)]

    # -- corruption and prediction ---------------------------------------------------------------------------------

    def _damage(self, topic: _Topic) -> None:
        directory = self.running.directory(topic.name)
        path = topic.case.file(directory)
        corrupt(path, topic.case.corruption)
        topic.corrupted = path.read_bytes() if path.exists() else None
        copy = self.scratch / topic.name / directory.name
        shutil.copytree(directory, copy)  # including the files' times, on which a response may depend (SEG-53)
        try:
            checkpoints = self.running.checkpoints(topic.name)
            topic.reference = self.reference(self.release, copy, self.settings, topic.epoch, checkpoints)
        except (KidxError, OSError) as error:
            topic.error = f"{error!r}"

    # -- observing -------------------------------------------------------------------------------------------------

    def _observe(self, topic: _Topic) -> None:
        targets = targets_of(topic.records)
        try:
            epoch = self.running.client.await_leader(topic.name)
        except BrokerError as error:
            self._note(topic, "starts", topic.reference is None, True)
            topic.outcome = {"broker_starts": False, "error": str(error)}
            return
        answers = self.running.client.answers(topic.name, targets, "read_uncommitted", version=self.running.version)
        self._predict_answers(topic, epoch, targets, answers)
        path = topic.case.file(self.running.directory(topic.name))
        topic.outcome = {
            "broker_starts": True,
            "repair": _repair(topic.corrupted, path.read_bytes() if path.exists() else None, topic.case.suffix),
            **cost_of(topic.records, answers)._asdict(),
            "bad_fetches": self._fetch(topic),
            "appends": self._append(topic),
        }

    def _predict_answers(self, topic: _Topic, epoch: int, targets: list[int], answers: list[OffsetResult]) -> None:
        if topic.reference is None:
            self._note(topic, "starts", f"not: {topic.error}", "yes")
            return
        topic.reference.become_leader(epoch)
        predicted = topic.reference.answers(targets, "read_uncommitted")
        for expected, actual in zip(predicted, answers, strict=True):
            if expected != actual:
                self._note(topic, f"target {actual.target}", expected.to_json()[1:], actual.to_json()[1:])
                break
        self._compare_files(topic, "after the start")

    def _fetch(self, topic: _Topic) -> int:
        """Fetch at every offset, as after a seek; return the number of fetches with a wrong first record."""
        offsets = [record.offset for record in topic.records]
        found = self.running.client.fetch_each(topic.name, offsets)
        for offset, fetched in zip(offsets, found, strict=True):
            if topic.reference is not None:
                expected = _predicted_fetch(topic.reference, offset)
                if fetched.offset != expected:
                    self._note(topic, f"fetch from {offset}", expected, f"{fetched.offset} ({fetched.error})")
                    break
        return sum(fetched.offset != offset for offset, fetched in zip(offsets, found, strict=True))

    def _append(self, topic: _Topic) -> str:
        """Append a few batches, so that an index entry is due; return ``"ok"`` or the name of the error."""
        start = max(record.timestamp for record in topic.records) + 100
        for number in range(_APPENDS):
            data = build_batch(records_of([[start + 10 * number, None, 60]]))
            appended = self.running.client.append(topic.name, data)
            if topic.reference is not None:
                offset, error = topic.reference.append(data, stamp=appended.log_append_time)
                self._note(topic, "append", (offset, error is None), (appended.offset, appended.error is None))
            if appended.error is not None:
                return appended.error
        return "ok"

    # -- comparing -------------------------------------------------------------------------------------------------

    def _compare_remaining_files(self) -> None:
        for topic in self.topics:
            if topic.reference is not None:
                topic.reference.stop(clean=True)
                self._compare_files(topic, "after the stop")

    def _compare_files(self, topic: _Topic, moment: str) -> None:
        assert topic.reference is not None
        expected, actual = topic.reference.files(), self.running.files(topic.name)
        names = {name for name in {*expected, *actual} if name.endswith(COMPARED)}
        differ = sorted(name for name in names if expected.get(name) != actual.get(name))
        self._note(topic, f"files {moment}", [], differ)

    def _note(self, topic: _Topic, what: str, expected: Any, actual: Any) -> None:
        """Record a difference if the results are not equal."""
        if expected != actual:
            topic.differences.append(f"{what}: kidx {expected}, the broker {actual}")


def _predicted_fetch(reference: ReferencePartition, offset: int) -> int | None:
    """Return the offset of the first record that a fetch returns; None if it fails or returns no record."""
    try:
        found = reference.fetch(offset)
    except (KidxError, OSError):
        return None
    return None if found is None else first_record(found[1], offset).offset


def _repair(corrupted: bytes | None, after: bytes | None, suffix: str) -> Repair:
    """Return what the start has done to a corrupt file; the preallocated tail is ignored."""
    if after is None:
        return "gone"
    if corrupted is not None and corrupted.rstrip(b"\0") == after.rstrip(b"\0"):
        return "kept"
    return "rebuilt" if entries_of(after, ENTRY[suffix]) else "emptied"
