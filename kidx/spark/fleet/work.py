"""What the workers do: verify segments, and settle partitions from the verdicts on their segments."""

from __future__ import annotations

import dataclasses
import importlib
import traceback
from collections import Counter
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Final

from kidx.discovery import EPOCHS, SEGMENT_SUFFIXES, Segment
from kidx.scan.compiled import worth_compiling
from kidx.spark.fleet.listing import Asked, Row, partition_of, place_of, segments_of
from kidx.spark.fleet.tables import SETTLED, VERDICTS, to_table
from kidx.verify import FileVerdict, Interval, PartitionVerdict, SegmentVerdict, verify_partition, verify_segment
from kidx.verify.facts import TransactionEvent
from kidx.verify.findings import Finding

if TYPE_CHECKING:
    import pyarrow as pa

    from kidx.discovery import Partition
    from kidx.spark.fleet.places import Place

_ROWS_AT_ONCE: Final = 64
"""Verdicts in one piece of a task's answer."""
_PLAIN: Final = tuple(
    name
    for name in VERDICTS.names
    if name not in {"place", "key", "files", "findings", "epochs", "transactions", "aborted", "counts"}
)


def verify_rows(
    asked: Asked, total: int, done: Callable[[int], None], batches: Iterator[pa.RecordBatch]
) -> Iterator[pa.RecordBatch]:
    """For ``mapInArrow``: a row of the listing with one segment each to its verdict.

    Args:
        asked: what is asked.
        total: bytes of the whole run, which tells whether compiled kernels are worth their loading.
        done: told how many segments have been looked at.
        batches: of the listing.
    """
    if worth_compiling(total):
        importlib.import_module("kidx.scan.batch_kernels")
    for batch in batches:
        for start in range(0, len(batch), _ROWS_AT_ONCE):
            rows = [_verdict_row(row, asked) for row in batch.slice(start, _ROWS_AT_ONCE).to_pylist()]
            done(len(rows))
            yield from to_table(rows, VERDICTS).to_batches()


def _verdict_row(row: Row, asked: Asked) -> Row:
    place = place_of(row, asked)
    ((name, base, key),) = [(each["log"], each["base_offset"], each["key"]) for each in row["segments"]]
    stem = Path(name).stem
    try:
        with place.holding(stem + suffix for suffix in SEGMENT_SUFFIXES) as directory:
            (segment,) = segments_of(row, directory)
            verdict = verify_segment(segment, release=asked.release, index_interval_bytes=asked.interval)
            return _encoded(verdict, place, directory) | {"key": key}
    except Exception as error:  # noqa: BLE001 -- one file of a million must not stop the others
        directory = Path(place.path)
        (segment,) = segments_of(row, directory)
        assert segment.base_offset == base
        return _encoded(_failed(segment, error), place, directory) | {"key": key}


def _failed(segment: Segment, error: Exception) -> SegmentVerdict:
    path = segment.log
    why = _why(error)
    finding = Finding(
        str(path), segment.topic, segment.partition, segment.base_offset, path.name, "SEG-35", "unreadable", message=why
    )
    return SegmentVerdict(segment, (FileVerdict(str(path), "unreadable", why=why),), (finding,), readable=False)


def _why(error: Exception) -> str:
    where = traceback.extract_tb(error.__traceback__)[-1]
    return f"the verifier failed: {type(error).__name__}: {error} ({Path(where.filename).name}:{where.lineno})"


def _encoded(verdict: SegmentVerdict, place: Place, directory: Path) -> Row:
    """A verdict as a row; files are told by their names alone."""
    rows = [*map(dataclasses.asdict, verdict.files), *map(dataclasses.asdict, verdict.findings)]
    for row in rows:
        row["path"] = Path(row["path"]).name
    return {name: getattr(verdict, name) for name in _PLAIN} | {
        "place": place.name,
        "files": place.told(rows[: len(verdict.files)], directory),
        "findings": place.told(rows[len(verdict.files) :], directory),
        "epochs": [list(each) for each in verdict.epochs],
        "transactions": [event._asdict() for event in verdict.transactions],
        "aborted": verdict.aborted and [list(each) for each in verdict.aborted],
        "counts": list(verdict.counts.items()),
    }


def _decoded(row: Row, segment: Segment, directory: Path) -> SegmentVerdict:
    files, findings = row["files"], row["findings"]
    for each in (*files, *findings):
        each["path"] = str(directory / each["path"])
    return SegmentVerdict(
        segment,
        tuple(FileVerdict(**file | {"interval": file["interval"] and Interval(**file["interval"])}) for file in files),
        tuple(Finding(**finding) for finding in findings),
        epochs=tuple((epoch, offset) for epoch, offset in row["epochs"]),
        transactions=tuple(TransactionEvent(**event) for event in row["transactions"]),
        aborted=None if row["aborted"] is None else tuple(map(tuple, row["aborted"])),
        counts=Counter(dict(row["counts"])),
        **{name: row[name] for name in _PLAIN},
    )


def settle(asked: Asked, listed: pa.Table, verdicts: pa.Table) -> pa.Table:
    """For ``applyInArrow``: a partition in the listing and the verdicts on its segments to what they say together.

    Verdicts of earlier attempts that nothing asks for any more are passed over.
    """
    rows = []
    for row in listed.to_pylist():
        known = {each["key"]: each for each in verdicts.to_pylist()}
        place = place_of(row, asked)
        with place.holding([EPOCHS] if row["epochs"] else []) as directory:
            partition = partition_of(row, directory)
            found = [
                _decoded(known[each["key"]], segment, directory)
                for each, segment in zip(row["segments"], partition.segments, strict=True)
            ]
            rows.append(_settled_row(row, place, directory, _settle(partition, found, asked)))
    return to_table(rows, SETTLED)


def _settle(partition: Partition, verdicts: list[SegmentVerdict], asked: Asked) -> PartitionVerdict:
    try:
        return verify_partition(partition, verdicts, release=asked.release, index_interval_bytes=asked.interval)
    except Exception as error:  # noqa: BLE001 -- as above
        finding = Finding(
            str(partition.directory), partition.topic, partition.partition, None, partition.directory.name, "SEG-35",
            "unreadable", message=_why(error),
        )  # fmt: skip
        return PartitionVerdict(
            partition.directory,
            partition.name,
            tuple(file for verdict in verdicts for file in verdict.files),
            (*(finding for verdict in verdicts for finding in verdict.findings), finding),
            len(verdicts),
            sum(verdict.batches for verdict in verdicts),
            sum(verdict.bytes_read for verdict in verdicts),
        )


def _settled_row(row: Row, place: Place, directory: Path, verdict: PartitionVerdict) -> Row:
    where = {name: row[name] for name in ("topic", "partition", "broker")}
    modified = dict(row["modified"])
    files = []
    for file in verdict.files:
        name = Path(file.path).name
        digits, stamp = name.partition(".")[0], modified.get(name)
        found = file.to_json() | where | {"file": name}
        found["interval_least"], found["interval_most"] = found.pop("index_interval_bytes") or (None, None)
        found["base_offset"] = int(digits) if digits.isdecimal() else None
        found["modified"] = None if stamp is None else datetime.fromtimestamp(stamp / 1e6, UTC)
        files.append(found)
    counts = {name: getattr(verdict, name) for name in ("segments", "batches", "bytes_read")}
    told: Row = {"files": files, "findings": [finding.to_json() for finding in verdict.findings]}
    told = place.told(told, directory)
    return where | counts | {"path": place.name} | told
