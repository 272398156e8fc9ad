"""Dumps of files, each by its suffix (``DumpLogSegments.main``): logs, and snapshots of the same format (DL-9)."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from kidx.dialect import dialect_of
from kidx.dump.entry import Entry, Mismatches, Wording, java_optional, java_value, named, wording_of
from kidx.dump.indexes import (
    IndexOptions,
    dump_offset_index,
    dump_producer_snapshot,
    dump_time_index,
    dump_transaction_index,
)
from kidx.dump.internal import control_content
from kidx.java_values import INT_MAX, LONG_MAX, LONG_MIN, java_text
from kidx.messages.reading import jackson_text
from kidx.rebuild import base_offset_of
from kidx.records import ControlRecordType, EndTransactionMarker, LegacyRecord, Record, RecordBatch
from kidx.segment import FileRecords
from kidx.segment.files import (
    LOG_SUFFIX,
    OFFSET_INDEX_SUFFIX,
    TIME_INDEX_SUFFIX,
    TRANSACTION_INDEX_SUFFIX,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterator

    from kidx.dialect import Dialect
    from kidx.dump.internal import Decoder, Parser

CHECKPOINT_SUFFIX: Final = ".checkpoint"
_BOOTSTRAP: Final = "bootstrap.checkpoint"
_CHECKPOINT_NAME: Final = re.compile(r"(\d+)-(\d+)")


_BEGINNING: Final = frozenset({"file", "heading"})
"""Kinds of the entries that say which log follows."""


@dataclass(slots=True)
class Part:
    """Part of a log that is dumped.

    Attributes:
        offsets: first offset, and the first one after the part.
        times: first timestamp in milliseconds, and the first one after the part.
        name: group or transactional id, which is the first string in the keys of ``__consumer_offsets`` and
            ``__transaction_state``; None for any record.
        remaining: number of records, or of batches if no records are printed, that may still be printed.
    """

    offsets: tuple[int, int] = (LONG_MIN, LONG_MAX)
    times: tuple[int, int] = (LONG_MIN, LONG_MAX)
    name: str | None = None
    remaining: int = LONG_MAX

    def of(self, batch: RecordBatch) -> set[int]:
        """Return the offsets of the records of a batch that are in the part.

        The largest timestamp and the last offset in a header may be too small for its records.
        """
        last = max(batch.last_offset, batch.base_offset + (batch.count or 0) - 1)
        if batch.base_offset >= self.offsets[1] or last < self.offsets[0]:
            return set()
        return {record.offset for record in batch if self._has(record)}

    def _has(self, record: Record) -> bool:
        key = record.key or b""
        return (
            self.offsets[0] <= record.offset < self.offsets[1]
            and self.times[0] <= record.timestamp < self.times[1]
            and (self.name is None or key[4 : 4 + int.from_bytes(key[2:4], "big")] == self.name.encode())
        )


@dataclass(frozen=True, slots=True)
class LogOptions:
    """Options for a log.

    Attributes:
        deep: True for a line per record (``--deep-iteration``).
        print_data: True for key and value in each line (``--print-data-log``); implies ``deep``.
        skip_metadata: True to omit all except key and value (``--skip-record-metadata``).
        key_decoder, value_decoder: decoders of key and value.
        internal: parser of the records of an internal topic, used instead of the decoders; or None.
        max_bytes: maximum number of bytes of the log to read.
        part: part of the log that is dumped; None for the whole log.
    """

    deep: bool = False
    print_data: bool = False
    skip_metadata: bool = False
    key_decoder: Decoder = java_text
    value_decoder: Decoder = java_text
    internal: Parser | None = None
    max_bytes: int = INT_MAX
    part: Part | None = None


def dump_log(path: Path, options: LogOptions, mismatches: Mismatches, dialect: Dialect) -> Iterator[Entry]:
    """Yield the batches of a log, and their records if the options include them.

    Args:
        options: options of the dump.
        mismatches: collection that gets every gap between the offsets of two records.
        dialect: rules of a release.

    Raises:
        KidxError: a batch or a record cannot be read.
        OSError: the file cannot be read.
    """
    wording = wording_of(dialect)
    yield from _heading(path, wording)
    records = FileRecords(path, writable=False, dialect=dialect)
    try:
        limit = min(records.size_in_bytes, options.max_bytes)
        valid = 0
        part, is_deep = options.part, options.deep or options.print_data
        last_offset = -1 if part is None else None  # the first record of a part may follow one that was not read
        for batch in records.batches(0, limit):
            position, valid = valid, valid + batch.size_in_bytes
            if part is not None and not part.remaining:
                return
            chosen = None if part is None else part.of(batch)
            if part is not None and not chosen:
                last_offset = None
                continue
            fields = _batch_fields(batch, position, wording)
            yield Entry("batch", fields, _batch_line(fields, wording))
            if is_deep:
                gaps = partial(mismatches.add, "non_consecutive_offsets", str(path.absolute()))
                release = dialect.release
                last_offset = yield from _record_entries(
                    batch, fields, chosen, last_offset, gaps, options, wording, release
                )
            elif part is not None:
                part.remaining -= 1
        if limit > valid and options.max_bytes == INT_MAX:
            text = f"Found {limit - valid} invalid bytes at the end of {path.name}"
            yield Entry("verdict", {"verdict": "invalid tail", "bytes": limit - valid}, text)
    finally:
        records.close_handlers()


def _record_entries(
    batch: RecordBatch,
    batch_fields: dict[str, Any],
    chosen: set[int] | None,
    last_offset: int | None,
    add_gap: Callable[[int, int], None],
    options: LogOptions,
    wording: Wording,
    release: str,
) -> Generator[Entry, None, int | None]:
    """Yield the records of a batch, or those with the chosen offsets; return the last offset.

    ``last_offset`` is the offset of the record before the batch: -1 for the first record, None if it was not read.
    """
    batch_values = {name: java_value(value) for name, value in batch_fields.items()}
    part = options.part
    for record in batch:
        is_gap = last_offset is not None and last_offset != record.offset - 1
        if last_offset is not None and is_gap and (last_offset != -1 or wording.first_offset_alarms):
            add_gap(last_offset, record.offset)
        last_offset = record.offset
        if chosen is not None and part is not None:
            if record.offset not in chosen or not part.remaining:
                continue
            part.remaining -= 1
        yield _record_entry(batch, record, batch_values, options, wording, release)
    return last_offset


def _heading(path: Path, wording: Wording) -> Iterator[Entry]:
    if path.name.endswith(LOG_SUFFIX):
        base_offset = base_offset_of(path)
        yield Entry("heading", {"base_offset": base_offset}, f"{wording.heading}{base_offset}")
    elif path.name == _BOOTSTRAP:
        yield Entry("heading", {}, "KRaft bootstrap snapshot")
    elif (name := _CHECKPOINT_NAME.match(path.name)) is not None:
        offset, epoch = int(name[1]), int(name[2])
        text = f"Snapshot end offset: {offset}, epoch: {epoch}"
        yield Entry("heading", {"end_offset": offset, "epoch": epoch}, text)


def _batch_fields(batch: RecordBatch, position: int, wording: Wording) -> dict[str, Any]:
    codec = batch.codec.name.lower() if wording.lower_case_codec else batch.codec.name
    return {
        "baseOffset": batch.base_offset,
        "lastOffset": batch.last_offset,
        "count": batch.count,
        "baseSequence": batch.base_sequence,
        "lastSequence": batch.last_sequence,
        "producerId": batch.producer_id,
        "producerEpoch": batch.producer_epoch,
        "partitionLeaderEpoch": batch.partition_leader_epoch,
        "isTransactional": batch.is_transactional,
        "isControl": batch.is_control,
        "deleteHorizonMs": batch.delete_horizon_ms,
        "position": position,
        batch.timestamp_type.label: batch.max_timestamp,
        "size": batch.size_in_bytes,
        "magic": batch.magic,
        "compresscodec": codec,
        "crc": batch.crc,
        "isvalid": batch.is_valid,
    }


def _batch_line(fields: dict[str, Any], wording: Wording) -> str:
    shown = dict(fields)
    if fields["magic"] < 2:
        where = list(fields).index("position")
        return named({"offset": fields["lastOffset"]} | dict(list(fields.items())[where:]))
    horizon = shown.pop("deleteHorizonMs")
    if not wording.delete_horizon:
        return named(shown)
    return named(fields | {"deleteHorizonMs": java_optional(horizon)})


def record_fields(batch: RecordBatch, record: Record) -> dict[str, Any]:
    """Return the fields of a record other than key and value, under the names of the newest release."""
    key, value = record.key, record.value
    fields: dict[str, Any] = {
        "offset": record.offset,
        "timestamp": record.timestamp,
        "keySize": -1 if key is None else len(key),
        "valueSize": -1 if value is None else len(value),
        "isValid": True,
        "crc": None,
    }
    if batch.magic >= 2:
        return fields | {"sequence": record.sequence, "headerKeys": [name for name, _ in record.headers]}
    if isinstance(record, LegacyRecord):
        fields |= {"isValid": record.message.is_valid, "crc": record.message.crc}
    return fields


def _record_entry(
    batch: RecordBatch,
    record: Record,
    batch_values: dict[str, str],
    options: LogOptions,
    wording: Wording,
    release: str,
) -> Entry:
    fields = record_fields(batch, record)
    data = _data(record, options) if options.print_data and not batch.is_control else {}
    if options.skip_metadata:
        bar = "| " if "key" in data or wording.keyless_bar else " "
        return Entry("record", data, f"{bar}{named(data)}" if data else "")
    template = wording.record if batch.magic >= 2 else wording.legacy_record
    shown = {name: java_value(value) for name, value in fields.items()}
    control, control_text = _control(record, release) if batch.is_control else ({}, "")
    parts = [template.format(**shown, time=batch.timestamp_type.label, batch=batch_values), control_text, named(data)]
    return Entry("record", fields | control | data, "| " + " ".join(filter(None, parts)))


def _data(record: Record, options: LogOptions) -> dict[str, Any]:
    if options.internal is not None:
        key, value = options.internal(record)
        return {name: content for name, content in (("key", key), ("payload", value)) if content is not None}
    shown = (("key", record.key, options.key_decoder), ("payload", record.value, options.value_decoder))
    return {name: decode(content) for name, content, decode in shown if content is not None}


def _control(record: Record, release: str) -> tuple[dict[str, Any], str]:
    """Return the fields of a control record, and their text."""
    control_type = ControlRecordType.parse(record.key)
    if control_type in (ControlRecordType.ABORT, ControlRecordType.COMMIT):
        marker = EndTransactionMarker.parse(record)
        fields = {"endTxnMarker": control_type.name, "coordinatorEpoch": marker.coordinator_epoch}
        return fields, named(fields)
    number = int.from_bytes((record.key or b"")[2:4], "big", signed=True)
    fields = {"controlType": f"{control_type.name_in(dialect_of(release))}({number})"}
    content = control_content(control_type, record, release)
    if content is None:
        return fields, named(fields)
    label, values = content
    return fields | {"control": values}, f"{label} {jackson_text(values)}"


SNAPSHOT_SUFFIX: Final = ".snapshot"


@dataclass(frozen=True, slots=True)
class Options:
    """Options that apply to every file."""

    index: IndexOptions = field(default_factory=IndexOptions)
    log: LogOptions = field(default_factory=LogOptions)


class Dump:
    """Dump of several files in one run.

    Args:
        dialect: rules of the release whose texts and checks are used.
        options: options of the dump.

    Attributes:
        mismatches: the errors found so far.
    """

    def __init__(self, dialect: Dialect, options: Options | None = None) -> None:
        self.dialect = dialect
        self.options = options or Options()
        self.mismatches = Mismatches()

    def file(self, name: str) -> Iterator[Entry]:
        """Yield the lines of one file, beginning with its name; a file with an unknown suffix has no other line.

        A log without a record of the part that is dumped has no line.

        Raises:
            KidxError: a part cannot be read; Kafka ends there with a stack trace.
            OSError: the file, or another file of the segment that it needs, cannot be read.
        """
        begin: list[Entry] = []
        for entry in self._lines(name):
            if self.options.log.part is not None and entry.kind in _BEGINNING:
                begin.append(entry)
                continue
            yield from begin
            begin.clear()
            yield entry

    def _lines(self, name: str) -> Iterator[Entry]:
        path, shown = Path(name), as_java_shows(name)
        yield Entry("file", {"file": shown}, f"Dumping {shown}")
        suffix = path.suffix
        if suffix == LOG_SUFFIX or (suffix == CHECKPOINT_SUFFIX and self.dialect.dumps_checkpoints):
            yield from dump_log(path, self.options.log, self.mismatches, self.dialect)
        elif suffix == OFFSET_INDEX_SUFFIX:
            yield from dump_offset_index(path, shown, self.options.index, self.mismatches, self.dialect)
        elif suffix == TIME_INDEX_SUFFIX:
            yield from dump_time_index(path, shown, self.options.index, self.mismatches, self.dialect)
        elif suffix == TRANSACTION_INDEX_SUFFIX:
            yield from dump_transaction_index(path, self.dialect)
        elif suffix == SNAPSHOT_SUFFIX:
            yield from dump_producer_snapshot(path, wording_of(self.dialect))
        else:
            yield Entry("unknown", {"file": shown}, f"Ignoring unknown file {shown}")

    def mismatch_lines(self) -> Iterator[str]:
        """Yield the lines that Kafka prints on stderr at the end."""
        return self.mismatches.lines(wording_of(self.dialect))


def as_java_shows(name: str) -> str:
    """Return a path as ``java.io.File`` shows it: without repeated slashes and without one at the end."""
    return re.sub("/+", "/", name).rstrip("/") or "/"
