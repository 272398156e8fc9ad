"""Functions that workers run: verify segments, and combine the verdicts on a partition's segments."""

from __future__ import annotations

import importlib
import json
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import ExitStack
from dataclasses import asdict, fields
from datetime import UTC, datetime
from itertools import groupby
from operator import itemgetter
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from kidx.discovery import EPOCHS, SEGMENT_SUFFIXES, Segment
from kidx.findings import Finding
from kidx.scan.jit import worth_compiling
from kidx.spark.fleet.listing import SEGMENT_COST, Request, Row, partition_of, place_of, segments_of
from kidx.spark.fleet.places import reason_of
from kidx.spark.fleet.replicas import compare_listed
from kidx.spark.fleet.summary import count
from kidx.spark.fleet.tables import SETTLED, VERDICTS, to_table
from kidx.verify import FileVerdict, Interval, PartitionVerdict, SegmentVerdict
from kidx.verify.facts import TransactionEvent
from kidx.verify.guarded import guarded_partition, guarded_segment, unreadable_segment

if TYPE_CHECKING:
    import pyarrow as pa

    from kidx.spark.fleet.places import Place

_ROWS_AT_ONCE: Final = 64
"""Number of verdicts in one Arrow batch of a task's output."""
_WRITTEN_FIELDS: Final = tuple(each.name for each in fields(SegmentVerdict) if each.name != "segment")


_seen: Final = Counter({"bytes": 0})
"""Number of bytes of logs that this process has verified, in all its tasks."""


def verify_rows(
    request: Request, done: Callable[[int], None], batches: Iterator[pa.RecordBatch]
) -> Iterator[pa.RecordBatch]:
    """Map rows of the listing with one segment each to their verdicts, for ``mapInArrow``.

    Args:
        request: options of the verification.
        done: function that receives the number of segments verified since its last call.
        batches: rows of the listing.
    """
    for batch in batches:
        for start in range(0, len(batch), _ROWS_AT_ONCE):
            listed = batch.slice(start, _ROWS_AT_ONCE).to_pylist()
            # Each worker process loads the compiled kernels when it has verified enough bytes for them to pay off.
            # What the listing calls the bytes of a segment is its cost: the size of its log, and a constant.
            _seen["bytes"] += sum(each["bytes"] - SEGMENT_COST for row in listed for each in row["segments"])
            if worth_compiling(_seen["bytes"]):
                importlib.import_module("kidx.scan.batch_kernels")
            rows = [_verdict_row(row, request) for row in listed]
            done(len(rows))
            yield from to_table(rows, VERDICTS).to_batches()


def _verdict_row(row: Row, request: Request) -> Row:
    place = place_of(row, request)
    (listed_segment,) = row["segments"]
    try:
        with place.holding(Path(listed_segment["log"]).stem + suffix for suffix in SEGMENT_SUFFIXES) as directory:
            (segment,) = segments_of(row, directory)
            verdict = guarded_segment(segment, release=request.dialect, index_interval_bytes=request.interval)
    except Exception as error:  # noqa: BLE001 -- each store has different errors
        directory = Path(place.path)
        (segment,) = segments_of(row, directory)
        verdict = unreadable_segment(segment, f"cannot be fetched: {reason_of(error)}")
    return {"together": row["together"], "key": listed_segment["key"], "verdict": _written(verdict, place, directory)}


def _written(verdict: SegmentVerdict, place: Place, directory: Path) -> str:
    """Return a verdict as JSON. Files are named without their directories."""

    def fields_of(one: Any) -> Any:
        values = {name: getattr(one, name) for name in one.__dataclass_fields__}
        if "path" in values:
            values["path"] = values["path"].rpartition("/")[2]
        return place.with_store_names(values, directory)

    return json.dumps({name: getattr(verdict, name) for name in _WRITTEN_FIELDS}, default=fields_of)


def _read(text: str, segment: Segment, directory: Path) -> SegmentVerdict:
    values = json.loads(text)
    for each in (*values["files"], *values["findings"]):
        each["path"] = f"{directory}/{each['path']}"
    for file in values["files"]:
        file["interval"] = file["interval"] and Interval(**file["interval"])
    values["files"] = tuple(FileVerdict(**file) for file in values["files"])
    values["findings"] = tuple(Finding(**each) for each in values["findings"])
    values["transactions"] = tuple(TransactionEvent(*event) for event in values["transactions"])
    values["epochs"] = tuple(map(tuple, values["epochs"]))
    values["signature"] = tuple(each and tuple(each) for each in values["signature"])
    values["aborted"] = values["aborted"] and tuple(map(tuple, values["aborted"]))
    return SegmentVerdict(segment, **values | {"counts": Counter(values["counts"])})


def settle_rows(request: Request, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Combine the verdicts on the segments of each partition and compare its replicas, for ``mapInArrow``.

    Args:
        request: options of the verification.
        batches: rows sorted by ``together``, which replicas of one partition have in common, each with a row of the
            listing in ``listed`` or a verdict in ``found``. Earlier attempts may have left verdicts on files that have
            changed since: no row of the listing has their keys.
    """
    rows: list[Row] = []
    every = (row for batch in batches for row in batch.to_pylist())
    for _, group in groupby(every, itemgetter("together")):
        known, listed = {}, []
        for row in group:
            if row["listed"] is None:
                known[row["found"]["key"]] = row["found"]["verdict"]
            else:
                listed.append(row["listed"])
        rows += settle_partition(request, listed, known)
        if len(rows) >= _ROWS_AT_ONCE:
            yield from to_table(rows, SETTLED).to_batches()
            rows = []
    yield from to_table(rows, SETTLED).to_batches()


def settle_partition(request: Request, listed: Iterable[Row], known: Mapping[str, str]) -> list[Row]:
    """Return the rows of :func:`settle_rows` for the replicas of one partition.

    Args:
        request: options of the verification.
        listed: rows of the listing, one per replica.
        known: verdicts by their keys.
    """
    replicas = sorted(listed, key=itemgetter("place"))
    differences = [asdict(each) for each in compare_listed(request, replicas)] if len(replicas) > 1 else []
    return [_settle_replica(request, row, known, [] if number else differences) for number, row in enumerate(replicas)]


def _settle_replica(request: Request, row: Row, known: Mapping[str, str], differences: list[Row]) -> Row:
    place, not_fetched = place_of(row, request), ""
    with ExitStack() as stack:
        try:
            directory = stack.enter_context(place.holding([EPOCHS] if row["epochs"] else []))
        except Exception as error:  # noqa: BLE001 -- each store has different errors
            directory, not_fetched = stack.enter_context(place.holding([])), reason_of(error)
        partition = partition_of(row, directory)
        verdicts = [
            _read(known[each["key"]], segment, directory)
            for each, segment in zip(row["segments"], partition.segments, strict=True)
        ]
        verdict = guarded_partition(
            partition,
            verdicts,
            release=request.dialect,
            index_interval_bytes=request.interval,
            living=place.store is None,  # files of a store were copied, and do not change
            epochs_not_fetched=not_fetched,
        )
        settled = _replica_row(row, place, directory, verdict) | {"differences": differences}
    return settled | {"counts": count(settled)}


def _replica_row(row: Row, place: Place, directory: Path, verdict: PartitionVerdict) -> Row:
    where = {name: row[name] for name in ("topic", "partition", "broker")}
    modified = dict(row["modified"])
    files = []
    for file in verdict.files:
        name = file.path.rpartition("/")[2]
        digits, stamp = name.partition(".")[0], modified.get(name)
        about = file.to_json() | where | {"file": name}
        about["interval_least"], about["interval_most"] = about.pop("index_interval_bytes") or (None, None)
        about["base_offset"] = int(digits) if digits.isdecimal() else None
        about["modified"] = None if stamp is None else datetime.fromtimestamp(stamp / 1e6, UTC)
        files.append(about)
    counts = {name: getattr(verdict, name) for name in ("segments", "batches", "bytes_read")}
    values: Row = {"files": files, "findings": [finding.to_json() for finding in verdict.findings]}
    values = place.with_store_names(values, directory)
    return where | counts | {"path": place.name, "topic_id": row["topic_id"]} | values
