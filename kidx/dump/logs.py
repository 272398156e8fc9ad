"""Dumps of ``.log`` files, and of the snapshots that have the same format (DL-9)."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from kidx.dump.entry import Entry, java_optional, java_value, named
from kidx.dump.wording import Wording, wording_of
from kidx.java_numbers import INT_MAX
from kidx.java_text import java_text
from kidx.rebuild import base_offset_of
from kidx.records import ControlRecordType, EndTransactionMarker, LegacyRecord, Record, RecordBatch
from kidx.segment import FileRecords
from kidx.segment.files import LOG_SUFFIX

if TYPE_CHECKING:
    from kidx.dialect import Dialect
    from kidx.dump.decoders import Decoder
    from kidx.dump.mismatches import Mismatches

CHECKPOINT_SUFFIX: Final = ".checkpoint"
_BOOTSTRAP: Final = "bootstrap.checkpoint"
_CHECKPOINT_NAME: Final = re.compile(r"(\d+)-(\d+)")


@dataclass(frozen=True, slots=True)
class LogOptions:
    """What is asked of a log.

    Attributes:
        deep: a line for every record (``--deep-iteration``).
        print_data: with key and value (``--print-data-log``); implies ``deep``.
        skip_metadata: without what else there is to a record (``--skip-record-metadata``).
        key_decoder, value_decoder: how to show them.
        max_bytes: bytes of the log to look at.
    """

    deep: bool = False
    print_data: bool = False
    skip_metadata: bool = False
    key_decoder: Decoder = java_text
    value_decoder: Decoder = java_text
    max_bytes: int = INT_MAX


def dump_log(path: Path, options: LogOptions, mismatches: Mismatches, dialect: Dialect) -> Iterator[Entry]:
    """The batches of a log, and their records if asked for.

    Args:
        path: the file.
        options: what is asked.
        mismatches: receives every gap between the offsets of two records.
        dialect: of the release.

    Raises:
        KidxError: a batch or a record cannot be read.
        OSError: the file cannot be read.
    """
    words = wording_of(dialect)
    yield from _heading(path, words)
    records = FileRecords(path, writable=False, dialect=dialect)
    try:
        limit = min(records.size_in_bytes, options.max_bytes)
        valid, last_offset = 0, -1
        for batch in records.batches(0, limit):
            batch_fields = _batch_fields(batch, valid, words)
            yield Entry("batch", batch_fields, _batch_line(batch_fields, words))
            if options.deep or options.print_data:
                again = {name: java_value(value) for name, value in batch_fields.items()}
                for record in batch:
                    if last_offset != record.offset - 1 and (last_offset != -1 or words.first_offset_alarms):
                        mismatches.add("non_consecutive_offsets", str(path.absolute()), last_offset, record.offset)
                    last_offset = record.offset
                    yield _record_entry(batch, record, again, options, words)
            valid += batch.size_in_bytes
        if limit > valid and options.max_bytes == INT_MAX:
            text = f"Found {limit - valid} invalid bytes at the end of {path.name}"
            yield Entry("verdict", {"verdict": "invalid tail", "bytes": limit - valid}, text)
    finally:
        records.close_handlers()


def _heading(path: Path, words: Wording) -> Iterator[Entry]:
    if path.name.endswith(LOG_SUFFIX):
        base_offset = base_offset_of(path)
        yield Entry("heading", {"base_offset": base_offset}, f"{words.heading}{base_offset}")
    elif path.name == _BOOTSTRAP:
        yield Entry("heading", {}, "KRaft bootstrap snapshot")
    elif (name := _CHECKPOINT_NAME.match(path.name)) is not None:
        offset, epoch = int(name[1]), int(name[2])
        text = f"Snapshot end offset: {offset}, epoch: {epoch}"
        yield Entry("heading", {"end_offset": offset, "epoch": epoch}, text)


def _batch_fields(batch: RecordBatch, position: int, words: Wording) -> dict[str, Any]:
    codec = batch.codec.name.lower() if words.lower_case_codec else batch.codec.name
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


def _batch_line(fields: dict[str, Any], words: Wording) -> str:
    shown = dict(fields)
    if fields["magic"] < 2:
        where = list(fields).index("position")
        return named({"offset": fields["lastOffset"]} | dict(list(fields.items())[where:]))
    horizon = shown.pop("deleteHorizonMs")
    if not words.delete_horizon:
        return named(shown)
    return named(fields | {"deleteHorizonMs": java_optional(horizon)})


def record_fields(batch: RecordBatch, record: Record) -> dict[str, Any]:
    """What there is to a record beside key and value, under the names of the newest release."""
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
    batch: RecordBatch, record: Record, again: dict[str, str], options: LogOptions, words: Wording
) -> Entry:
    fields = record_fields(batch, record)
    data = _data(record, options) if options.print_data and not batch.is_control else {}
    if options.skip_metadata:
        bar = "| " if "key" in data or words.keyless_bar else " "
        return Entry("record", data, f"{bar}{named(data)}" if data else "")
    template = words.record if batch.magic >= 2 else words.legacy_record
    shown = {name: java_value(value) for name, value in fields.items()}
    control = _control(record) if batch.is_control else {}
    parts = [template.format(**shown, time=batch.timestamp_type.label, batch=again)]
    parts += [named(more) for more in (control, data) if more]
    return Entry("record", fields | control | data, "| " + " ".join(parts))


def _data(record: Record, options: LogOptions) -> dict[str, Any]:
    shown = (("key", record.key, options.key_decoder), ("payload", record.value, options.value_decoder))
    return {name: decode(content) for name, content, decode in shown if content is not None}


def _control(record: Record) -> dict[str, Any]:
    control_type = ControlRecordType.parse(record.key)
    if control_type in (ControlRecordType.ABORT, ControlRecordType.COMMIT):
        marker = EndTransactionMarker.parse(record)
        return {"endTxnMarker": control_type.name, "coordinatorEpoch": marker.coordinator_epoch}
    number = int.from_bytes((record.key or b"")[2:4], "big", signed=True)
    return {"controlType": f"{control_type.name}({number})"}
