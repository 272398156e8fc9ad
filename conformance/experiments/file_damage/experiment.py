"""One release: three starts of one broker, a topic for each case, and a prediction of kidx for everything seen.

1. All topics get the same records, three segments of them; the broker is stopped cleanly, and the files of the cases
   that are about a clean stop are damaged.
2. It is started, asked and appended to; the topics of the other cases get more records, the broker is killed, and their
   files are damaged. What lies before the clean stop is known to be on disk, so that only the active segment counts as
   in need of recovery.
3. It is started, asked and appended to again, and stopped.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal

from conformance.experiments.file_damage.cases import CASES, Case, Shutdown
from conformance.experiments.file_damage.damages import OFFSET_ENTRY, TIME_ENTRY, entries_of
from conformance.experiments.file_damage.judging import NOTHING, Cost, Stamp, cost_of, targets_of
from conformance.implementations.broker.reference import COMPARED, ReferencePartition
from conformance.implementations.broker.topic import RunningBroker
from conformance.kafka.broker import Broker, BrokerError
from conformance.kafka.broker.workload import EPOCH_MS
from conformance.kafka.client import first_record
from conformance.operations.broker import records_of
from conformance.scratch import scratch_directory
from kidx.errors import KidxError
from kidx.records import build_batch

if TYPE_CHECKING:
    from conformance.kafka.client import OffsetResult

Repair = Literal["kept", "rebuilt", "emptied", "gone"]

SEGMENTS: Final = 3
BATCHES: Final = 12
"""In a segment, of two records each; every other batch has an entry."""
HOUR_MS: Final = 3_600_000
_LATE_MS: Final = 45
_APPENDS: Final = 4


_SETTINGS: Final[dict[str, Any]] = {
    "segment.bytes": 1 << 20,
    "segment.index.bytes": 1200,
    "index.interval.bytes": 200,
    "segment.ms": HOUR_MS,
    "retention.ms": -1,
    "message.timestamp.type": "CreateTime",
}


@dataclass(frozen=True, slots=True)
class Outcome:
    """The result of one case.

    Attributes:
        comes_up: whether the partition has a leader again; ``error`` says why not.
        repair: what the broker had made of the damaged file once it had been asked: left it as it was, written it anew
            from the log, made one without entries, or none at all.
        cost: of its answers, before anything was appended.
        bad_fetches: how many offsets give a consumer that goes there something else than the record with that offset.
        appends: ``"ok"``, or the name of the error that a producer gets.
        as_predicted: whether kidx has the same answers, files and refusals; ``differences`` says where not.
    """

    release: str
    case: Case
    comes_up: bool
    repair: Repair = "kept"
    cost: Cost = NOTHING
    bad_fetches: int = 0
    appends: str = "ok"
    differences: tuple[str, ...] = ()
    error: str = ""

    @property
    def as_predicted(self) -> bool:
        """Whether kidx said so before."""
        return not self.differences


@dataclass(slots=True)
class _Topic:
    name: str
    case: Case
    records: list[Stamp] = field(default_factory=list)
    damaged: bytes | None = None
    reference: ReferencePartition | None = None
    epoch: int = 0
    refusal: str = ""
    outcome: dict[str, Any] = field(default_factory=dict)
    differences: list[str] = field(default_factory=list)


def damage_files(
    broker: Broker,
    cases: Sequence[Case] = CASES,
    tell: Callable[[str], None] = lambda _: None,
    reference: type[ReferencePartition] = ReferencePartition,
) -> list[Outcome]:
    """Damages files of a started broker, returns the result of each case, and stops the broker in the end.

    Args:
        broker: started.
        cases: what to try, each in a topic of its own.
        tell: called with a line of text for each activity.
        reference: the class that predicts; a defective one in a test.

    Raises:
        BrokerError: the broker does not do what it is asked, or does not come up at all.
    """
    with scratch_directory() as scratch:
        return _Experiment(broker, cases, scratch, tell, reference).run()


class _Experiment:
    def __init__(
        self,
        broker: Broker,
        cases: Sequence[Case],
        scratch: Path,
        tell: Callable[[str], None],
        reference: type[ReferencePartition],
    ) -> None:
        self.reference = reference
        self.running = RunningBroker(broker)
        self.release = broker.release
        self.scratch = scratch
        self.tell = tell
        self.settings = _SETTINGS
        self.topics = [_Topic(f"file-damage-{number}", case) for number, case in enumerate(cases)]

    def run(self) -> list[Outcome]:
        try:
            for topic in self.topics:
                self.running.client.create_topic(topic.name, {key: str(value) for key, value in self.settings.items()})
                topic.epoch = self.running.client.await_leader(topic.name)
                for number in range(SEGMENTS):
                    self._produce(topic, EPOCH_MS + number * 2 * HOUR_MS, BATCHES)
            self.tell(f"{self.release}: {len(self.topics)} topics of {SEGMENTS} segments")
            self._round("clean")
            for topic in self._of("killed"):
                self._produce(topic, EPOCH_MS + SEGMENTS * 2 * HOUR_MS, BATCHES)
            self._round("killed")
            self.running.stop(clean=True)
            self._compare_what_is_left()
        finally:
            self.running.hang_up()
        return [
            Outcome(self.release, topic.case, differences=tuple(topic.differences), **topic.outcome)
            for topic in self.topics
        ]

    def _of(self, shutdown: Shutdown) -> list[_Topic]:
        return [topic for topic in self.topics if topic.case.shutdown == shutdown]

    def _round(self, shutdown: Shutdown) -> None:
        """A stop of this kind, the damage, a start, and what can be seen then."""
        if not self._of(shutdown):
            return
        self.running.stop(clean=shutdown == "clean")
        for topic in self.topics:
            if topic.case.shutdown == shutdown:
                self._damage(topic)
            elif topic.reference is not None:
                topic.reference.stop(clean=False)
                topic.reference = None  # its case is closed
        self.running.start()
        for topic in self._of(shutdown):
            self._look(topic)
        wrong = sum(topic.outcome["cost"].wrong > 0 for topic in self._of(shutdown) if topic.outcome["comes_up"])
        self.tell(f"{self.release}: {shutdown}: {wrong} of {len(self._of(shutdown))} cases give wrong answers")

    # -- what is in the topics -------------------------------------------------------------------------------------

    def _produce(self, topic: _Topic, start: int, batches: int) -> None:
        """A segment: a clock that ticks, and in every fourth batch a record that is late."""
        rows = [
            [[start + 25 * n, None, 60], [start + 25 * n + (10 if n % 4 else -_LATE_MS), None, 60]]
            for n in range(batches)
        ]
        sent = [build_batch(records_of(each)) for each in rows]
        for each, appended in zip(rows, self.running.client.append_in_flight(topic.name, sent), strict=True):
            if appended.error is not None:
                raise BrokerError(f"{topic.name}: {appended.error}", self.running.broker.log)
            topic.records += [Stamp(appended.offset + n, int(row[0] or 0)) for n, row in enumerate(each)]

    # -- damage and prediction -------------------------------------------------------------------------------------

    def _damage(self, topic: _Topic) -> None:
        directory = self.running.directory(topic.name)
        topic.case.do(directory)
        path = topic.case.file(directory)
        topic.damaged = path.read_bytes() if path.exists() else None
        copy = self.scratch / topic.name / directory.name
        shutil.copytree(directory, copy)  # with the times of the files, which an answer may depend on (SEG-53)
        try:
            checkpoints = self.running.checkpoints(topic.name)
            topic.reference = self.reference(self.release, copy, self.settings, topic.epoch, checkpoints)
        except (KidxError, OSError) as error:
            topic.refusal = f"{error!r}"

    # -- seeing ----------------------------------------------------------------------------------------------------

    def _look(self, topic: _Topic) -> None:
        targets = targets_of(topic.records)
        try:
            epoch = self.running.client.await_leader(topic.name)
        except BrokerError as error:
            self._note(topic, "comes up", topic.reference is None, True)
            topic.outcome = {"comes_up": False, "error": str(error)}
            return
        answers = self.running.client.answers(topic.name, targets, "read_uncommitted", version=self.running.version)
        self._predict_answers(topic, epoch, targets, answers)
        path = topic.case.file(self.running.directory(topic.name))
        topic.outcome = {
            "comes_up": True,
            "repair": _repair(topic.damaged, path.read_bytes() if path.exists() else None, topic.case.suffix),
            "cost": cost_of(topic.records, answers),
            "bad_fetches": self._fetch(topic),
            "appends": self._append(topic),
        }

    def _predict_answers(self, topic: _Topic, epoch: int, targets: list[int], answers: list[OffsetResult]) -> None:
        if topic.reference is None:
            self._note(topic, "comes up", f"not: {topic.refusal}", "yes")
            return
        topic.reference.lead(epoch)
        predicted = topic.reference.answers(targets, "read_uncommitted")
        for mine, its in zip(predicted, answers, strict=True):
            if mine != its:
                self._note(topic, f"target {its.target}", mine.to_json()[1:], its.to_json()[1:])
                break
        self._compare_files(topic, "after the start")

    def _fetch(self, topic: _Topic) -> int:
        """Fetches at every offset, as a consumer that seeks to it does."""
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
        """A few batches, so that an index entry is due."""
        start = max(record.timestamp for record in topic.records) + 100
        for number in range(_APPENDS):
            data = build_batch(records_of([[start + 10 * number, None, 60]]))
            appended = self.running.client.append(topic.name, data)
            if topic.reference is not None:
                offset, refusal = topic.reference.append(data, stamp=appended.log_append_time)
                self._note(topic, "append", (offset, refusal is None), (appended.offset, appended.error is None))
            if appended.error is not None:
                return appended.error
        return "ok"

    # -- comparing -------------------------------------------------------------------------------------------------

    def _compare_what_is_left(self) -> None:
        for topic in self.topics:
            if topic.reference is not None:
                topic.reference.stop(clean=True)
                self._compare_files(topic, "after the stop")

    def _compare_files(self, topic: _Topic, moment: str) -> None:
        assert topic.reference is not None
        ours, theirs = topic.reference.files(), self.running.files(topic.name)
        names = {name for name in {*ours, *theirs} if name.endswith(COMPARED)}
        differ = sorted(name for name in names if ours.get(name) != theirs.get(name))
        self._note(topic, f"files {moment}", [], differ)

    def _note(self, topic: _Topic, what: str, expected: Any, actual: Any) -> None:
        if expected != actual:
            topic.differences.append(f"{what}: kidx {expected}, the broker {actual}")


def _predicted_fetch(reference: ReferencePartition, offset: int) -> int | None:
    """The offset of the first record that a fetch gives; None if it fails or gives none."""
    try:
        found = reference.fetch(offset)
    except (KidxError, OSError):
        return None
    return None if found is None else first_record(found[1], offset).offset


def _repair(damaged: bytes | None, after: bytes | None, suffix: str) -> Repair:
    """What has become of a damaged file; the room behind the entries does not count."""
    size = OFFSET_ENTRY if suffix == ".index" else TIME_ENTRY
    if after is None:
        return "gone"
    if damaged is not None and damaged.rstrip(b"\0") == after.rstrip(b"\0"):
        return "kept"
    return "rebuilt" if entries_of(after, size) else "emptied"
