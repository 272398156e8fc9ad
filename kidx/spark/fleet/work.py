"""What the workers do: verify segments, and settle partitions from the verdicts on their segments."""

from __future__ import annotations

import dataclasses
import importlib
import os
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import asdict
from datetime import UTC, datetime
from itertools import groupby
from operator import itemgetter
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from kidx.discovery import EPOCHS, SEGMENT_SUFFIXES, Segment
from kidx.findings import Finding
from kidx.scan.compiled import worth_compiling
from kidx.spark.fleet.counting import count
from kidx.spark.fleet.listing import SEGMENT_COST, Asked, Row, partition_of, place_of, segments_of
from kidx.spark.fleet.places import reason_of
from kidx.spark.fleet.replicas import compare_listed
from kidx.spark.fleet.tables import SETTLED, VERDICTS, to_table
from kidx.verify import FileVerdict, Interval, PartitionVerdict, SegmentVerdict
from kidx.verify.facts import TransactionEvent
from kidx.verify.guarded import guarded_partition, guarded_segment, unreadable_segment

if TYPE_CHECKING:
    import pyarrow as pa

    from kidx.spark.fleet.places import Place

_ROWS_AT_ONCE: Final = 64
"""Verdicts in one piece of a task's answer."""
_PLAIN: Final = tuple(
    name
    for name in VERDICTS.names
    if name not in {"place", "together", "key", "files", "findings", "epochs", "transactions", "aborted", "counts"}
)


_seen: Final = Counter({"bytes": 0})
"""What this process has been given of logs, in all its tasks."""


def verify_rows(
    asked: Asked, done: Callable[[int], None], batches: Iterator[pa.RecordBatch]
) -> Iterator[pa.RecordBatch]:
    """For ``mapInArrow``: a row of the listing with one segment each to its verdict.

    Args:
        asked: what is asked.
        done: told how many segments have been looked at.
        batches: of the listing.
    """
    for batch in batches:
        for start in range(0, len(batch), _ROWS_AT_ONCE):
            listed = batch.slice(start, _ROWS_AT_ONCE).to_pylist()
            # Each worker loads compiled kernels for itself, as soon as it has enough to do with them.
            _seen["bytes"] += sum(each["bytes"] - SEGMENT_COST for row in listed for each in row["segments"])
            if worth_compiling(_seen["bytes"]):
                importlib.import_module("kidx.scan.batch_kernels")
            rows = [_verdict_row(row, asked) for row in listed]
            done(len(rows))
            yield from to_table(rows, VERDICTS).to_batches()


def _verdict_row(row: Row, asked: Asked) -> Row:
    place = place_of(row, asked)
    (found,) = row["segments"]
    try:
        with place.holding(Path(found["log"]).stem + suffix for suffix in SEGMENT_SUFFIXES) as directory:
            (segment,) = segments_of(row, directory)
            verdict = guarded_segment(segment, release=asked.dialect, index_interval_bytes=asked.interval)
    except Exception as error:  # noqa: BLE001 -- each store has errors of its own
        directory = Path(place.path)
        (segment,) = segments_of(row, directory)
        verdict = unreadable_segment(segment, f"cannot be fetched: {reason_of(error)}")
    return _encoded(verdict, place, directory) | {"key": found["key"], "together": row["together"]}


def _encoded(verdict: SegmentVerdict, place: Place, directory: Path) -> Row:
    """A verdict as a row; files are told by their names alone."""
    rows = [_fields(each) for each in (*verdict.files, *verdict.findings)]
    for row in rows:
        row["path"] = os.path.basename(row["path"])  # noqa: PTH119 -- thousands of them
    return {name: getattr(verdict, name) for name in _PLAIN} | {
        "place": place.name,
        "files": place.told(rows[: len(verdict.files)], directory),
        "findings": place.told(rows[len(verdict.files) :], directory),
        "epochs": [list(each) for each in verdict.epochs],
        "transactions": [event._asdict() for event in verdict.transactions],
        "aborted": verdict.aborted and [list(each) for each in verdict.aborted],
        "counts": list(verdict.counts.items()),
    }


def _fields(one: Any) -> Row:
    """As ``dataclasses.asdict`` has them, which copies each value."""
    fields = {name: getattr(one, name) for name in one.__dataclass_fields__}
    return {name: _fields(value) if dataclasses.is_dataclass(value) else value for name, value in fields.items()}


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


def settle_rows(asked: Asked, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """For ``mapInArrow``: partitions and the verdicts on their segments to what they say together, replicas compared.

    Args:
        asked: what is asked.
        batches: ``together``, by which they are sorted, and a row of the listing in ``listed`` or a verdict in
            ``found``. Verdicts of earlier attempts that nothing asks for any more are passed over.
    """
    rows: list[Row] = []
    every = (row for batch in batches for row in batch.to_pylist())
    for _, group in groupby(every, itemgetter("together")):
        known, listed = {}, []
        for row in group:
            if row["listed"] is None:
                known[row["found"]["key"]] = row["found"]
            else:
                listed.append(row["listed"])
        rows += settle(asked, listed, known)
        if len(rows) >= _ROWS_AT_ONCE:
            yield from to_table(rows, SETTLED).to_batches()
            rows = []
    yield from to_table(rows, SETTLED).to_batches()


def settle(asked: Asked, listed: Iterable[Row], known: Mapping[str, Row]) -> list[Row]:
    """The rows that :func:`settle_rows` gives for replicas of a partition.

    Args:
        asked: what is asked.
        listed: their rows of the listing.
        known: verdicts by their keys.
    """
    replicas = sorted(listed, key=itemgetter("place"))
    differences = [asdict(each) for each in compare_listed(asked, replicas)] if len(replicas) > 1 else []
    return [_settled(asked, row, known, [] if number else differences) for number, row in enumerate(replicas)]


def _settled(asked: Asked, row: Row, known: Mapping[str, Row], differences: list[Row]) -> Row:
    place = place_of(row, asked)
    with place.holding([EPOCHS] if row["epochs"] else []) as directory:
        partition = partition_of(row, directory)
        found = [
            _decoded(known[each["key"]], segment, directory)
            for each, segment in zip(row["segments"], partition.segments, strict=True)
        ]
        verdict = guarded_partition(partition, found, release=asked.dialect, index_interval_bytes=asked.interval)
        settled = _settled_row(row, place, directory, verdict) | {"differences": differences}
    return settled | {"counts": count(settled)}


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
