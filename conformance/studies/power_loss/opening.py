"""Opening of the files after a power failure, with Kafka's classes and with kidx."""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from conformance.implementations.jvm.log import JvmLog
from conformance.implementations.kidx.log import ReferenceLog
from conformance.lockstep.scopes.directory import COMPARED
from conformance.operations import OK, Operation
from conformance.operations.batches import first_batch
from conformance.operations.log import TOPIC_DIRECTORY, LogState
from conformance.studies.power_loss.batches import Batch, batches_of_log, inside, targets_of
from conformance.studies.power_loss.compaction import is_compacted
from conformance.studies.power_loss.guarantees import OpenedLog

if TYPE_CHECKING:
    from conformance.kafka.builds import Build
    from conformance.kafka.jar_fetch import Progress
    from conformance.operations import Outcome

_SPECIAL: Final = (-1, -2, -3)
_LATER: Final = 1 << 40
"""Timestamp after all records."""
_NEXT: Final = 10_000_000
"""Timestamp of the record that is appended after a failure, later than all others."""


class Opener:
    """Kafka's classes of a release and kidx, each with a directory for opening logs.

    Args:
        release: release of the classes.
        scratch: an empty directory.
        progress: called while jars are fetched.
        build: build whose classes are used instead, or None.
    """

    def __init__(
        self, release: str, scratch: Path, progress: Progress | None = None, build: Build | None = None
    ) -> None:
        self._kafka, self._reference = JvmLog(release, progress, build), ReferenceLog(release)
        self._directories = {self._kafka: scratch / "kafka", self._reference: scratch / "kidx"}

    def _begin(self, who: Any, files: Mapping[str, bytes]) -> Path:
        """Write the files to the directory of Kafka's classes or kidx; return the directory of the log."""
        directory = self._directories[who]
        who.end()
        topic = directory / TOPIC_DIRECTORY
        shutil.rmtree(directory, ignore_errors=True)
        topic.mkdir(parents=True)
        for name, content in files.items():
            (topic / name).write_bytes(content)
        who.begin(directory)
        return topic

    def open_with_kafka(self, files: Mapping[str, bytes], opening: Operation, cleaned_to: int = -1) -> OpenedLog:
        """Open files with Kafka's classes, look up everything, and clean the log if it is compacted.

        Args:
            opening: operation that opens the log.
            cleaned_to: checkpoint of the cleaner.
        """
        topic = self._begin(self._kafka, files)
        observation = self._kafka.perform(opening)
        found = _read(topic)
        state = observation.state
        if state is None:
            return OpenedLog(observation, found, [], {}, (None, ()), "")
        batches = batches_of_log(found)
        by_offset = {offset: self._fetch(offset) for offset in _offsets(batches, state)}
        by_time = self._kafka.perform(Operation("list_offsets", (_targets(batches, state),))).outcome[:2]
        cleaned, cleaning = None, OK
        if is_compacted(opening.args[0]):
            cleaning = _clean(self._kafka, state, cleaned_to)
            cleaned = _read(topic)
        appends = self._append(state.end_offset)
        return OpenedLog(observation, found, batches, by_offset, by_time, appends, cleaned, cleaning)

    def _fetch(self, offset: int) -> bytes | None:
        found = self._kafka.driver.read(offset)
        return None if found is None else bytes(found)

    def _append(self, end: int) -> str:
        """Append a record; return an error if the log rejects it, or does not find it afterwards."""
        appended = self._kafka.perform(Operation("append_as_leader", ([{"records": [[0, _NEXT, 1, 1]]}], 1 << 20)))
        if appended.outcome.error is not None:
            return f"{appended.outcome.error}: {appended.outcome.text}"
        found = self._fetch(end)
        if not found or int.from_bytes(found[:8], signed=True) != end:
            return f"the record that was appended at {end} is not found"
        return ""

    def difference(  # noqa: PLR0911 -- one return for each thing that may differ
        self, opened: OpenedLog, files: Mapping[str, bytes], opening: Operation, cleaned_to: int = -1
    ) -> str:
        """Return the difference between kidx and Kafka's classes for the files; may be empty.

        Args:
            opened: result of Kafka's classes.
            files: the remaining files.
            opening: operation that opens the log.
            cleaned_to: checkpoint of the cleaner.
        """
        topic = self._begin(self._reference, files)
        one, other = opened.observation, self._reference.perform(opening)
        if one.outcome[:2] != other.outcome[:2]:
            return f"outcome: Kafka {one.outcome}, kidx {other.outcome}"
        if one.state != other.state:
            return f"state: Kafka {one.state}, kidx {other.state}"
        if names := _unequal(_read(topic), opened.files):
            return f"files: {names}"
        if other.state is None:
            return ""
        targets = _targets(opened.batches, other.state)
        by_time = self._reference.perform(Operation("list_offsets", (targets,))).outcome[:2]
        if by_time != opened.by_time:
            return f"lookups of {targets}: Kafka {opened.by_time}, kidx {by_time}"
        for offset, found in opened.by_offset.items():
            seen = self._reference.perform(Operation("read_log", (offset,))).outcome
            if seen.value != (None if not found else first_batch(found)):
                return f"offset {offset}: Kafka {found and first_batch(found)}, kidx {seen.value or seen.error}"
        return self._cleaning_difference(opened, topic, other.state, cleaned_to)

    def _cleaning_difference(self, opened: OpenedLog, topic: Path, state: LogState, cleaned_to: int) -> str:
        if opened.cleaned is not None:
            cleaning = _clean(self._reference, state, cleaned_to)
            if cleaning[:2] != opened.cleaning[:2]:
                return f"cleaning: Kafka {opened.cleaning}, kidx {cleaning}"
            if names := _unequal(_read(topic), opened.cleaned):
                return f"files after cleaning: {names}"
        return ""

    def end(self) -> None:
        """Close all files."""
        self._kafka.end()
        self._reference.end()


def _offsets(batches: list[Batch], state: LogState) -> list[int]:
    """Return the offsets to look up: the first and the last one of each batch."""
    held = inside(batches, state)
    return sorted({each for batch in held for each in (max(batch.base, state.start_offset), batch.last)})


def _targets(batches: list[Batch], state: LogState) -> list[int]:
    """Return the timestamps to look up: of every record, between them, one later than all, and special ones."""
    return [*targets_of(inside(batches, state)), _LATER, *_SPECIAL]


def _clean(who: Any, state: LogState, cleaned_to: int) -> Outcome:
    """Replicate all records, and run a cleaning round; return its outcome."""
    who.perform(Operation("update_high_watermark", (state.end_offset,)))
    cleaning: Outcome = who.perform(Operation("clean_log", (cleaned_to, 4096, 50, 0))).outcome
    return cleaning


def _unequal(one: Mapping[str, bytes], other: Mapping[str, bytes]) -> str:
    """Return the names of the compared files that differ."""
    actual, expected = _compared(one), _compared(other)
    return ", ".join(sorted(name for name in {*actual, *expected} if actual.get(name) != expected.get(name)))


def _compared(files: Mapping[str, bytes]) -> dict[str, bytes]:
    return {name: content for name, content in files.items() if name.endswith(COMPARED)}


def _read(topic: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in sorted(topic.iterdir()) if path.is_file()}
