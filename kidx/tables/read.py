"""Segments as a stream of Arrow batches, without Spark: :func:`kidx.read`."""

from __future__ import annotations

import ctypes
import json
import logging
import os
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from functools import partial
from itertools import chain, repeat, starmap
from typing import TYPE_CHECKING, Any, Final, Literal

import pyarrow as pa

from kidx.errors import KidxError, ToolError
from kidx.tables.choosing import chosen_partitions
from kidx.tables.columns import LARGEST_MILLISECONDS, RowBuffer, arrow_schema, columns_in
from kidx.tables.contents import columns_of
from kidx.tables.following import query_partition
from kidx.tables.identity import difference, identity_of
from kidx.tables.indexes import Counter
from kidx.tables.non_record_tables import rows
from kidx.tables.offsets import LogOffsets
from kidx.tables.options import ReadOptions, read_options
from kidx.tables.predicates import Predicates
from kidx.tables.split_reader import reader_of
from kidx.tables.splits import Split, plan_segments, plan_splits

if TYPE_CHECKING:
    from kidx.tables.segments import PartitionLog

Time = datetime | int
"""A moment, or milliseconds since the epoch."""

_logger: Final = logging.getLogger("kidx")
_raise: Final = ctypes.pythonapi.PyErr_SetObject
_raise.argtypes, _raise.restype = (ctypes.py_object, ctypes.py_object), None
_MILLISECOND: Final = timedelta(milliseconds=1)
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)


def read(
    path: str | os.PathLike[str] | Iterable[str | os.PathLike[str]],
    content: str = "records",
    *,
    columns: Iterable[str] | None = None,
    topics: str | Iterable[str] | None = None,
    partitions: int | Iterable[int] | None = None,
    offsets: tuple[int | None, int | None] = (None, None),
    times: tuple[Time | None, Time | None] = (None, None),
    topic_id: str | None = None,
    isolation: Literal["read_uncommitted", "read_committed"] = "read_uncommitted",
    headers: bool = False,
    fail_on_data_loss: bool = True,
    check_crcs: bool = True,
    storage_options: Mapping[str, Any] | None = None,
    remote: str | os.PathLike[str] | None = None,
) -> pa.RecordBatchReader:
    """Read segments as a stream of Arrow batches, in order of topic, partition and offset, and only as far as needed.

    The index files locate the requested offsets and times. Every consumer of an Arrow stream accepts the result::

        duckdb.from_arrow(kidx.read("/data", topics="orders")).aggregate("count(*)")
        polars.from_arrow(kidx.read("/data", columns=["offset", "timestamp"]))

    Args:
        path: log directories, partition directories, ``.log`` files, or URLs that fsspec opens.
        content: ``records``, ``batches``, ``offset_index``, ``time_index``, ``txn_index`` or ``segments``; the columns
            of each are in :mod:`kidx.tables.contents`.
        columns: the columns to return, in this order; other columns are not decoded.
        topics: the topics to read; all by default.
        partitions: the partition numbers to read; all by default.
        offsets: the first offset, and the offset after the last record; None for an open end.
        times: the earliest time, and the first time that is excluded: datetimes with a zone, or milliseconds. None for
            an open end.
        topic_id: the id of the topic (column ``topic_id`` of ``segments``) whose records up to the first offset were
            read before, if this call continues there. If ``topics`` names another topic now, or one of its partitions
            ends before that offset, that is data loss; with ``fail_on_data_loss`` false, another topic is read from its
            start.
        isolation: the isolation level: ``read_committed`` hides records of aborted transactions and all
            records from the last stable offset on.
        headers: True to add the column ``headers``, as naming it in ``columns`` does.
        fail_on_data_loss: True to raise an error at a corrupt batch, or if a broker has deleted requested records;
            False to skip what cannot be read.
        check_crcs: True if an invalid checksum is corruption.
        storage_options: options of fsspec, such as ``{"anon": True}``.
        remote: remote storage of the topics, as ``LocalTieredStorage`` or Aiven's plugin stores it: a path or a URL of
            fsspec. Its records come before the records of the local log, and each offset once.

    Raises:
        ToolError: Raised by the call and while batches are read: an unknown column, content, topic, partition or
            path, a range that ends before it begins, corruption with ``fail_on_data_loss``, or a file that cannot
            be read.
    """
    wanted_headers = headers or (columns is not None and "headers" in (columns := list(columns)))
    given = {
        "content": content,
        "paths": json.dumps([os.fspath(each) for each in _several(path, (str, os.PathLike))]),
        "failOnDataLoss": _flag(fail_on_data_loss),
        "storageOptions": json.dumps(dict(storage_options or {})),
    }
    if remote is not None:
        given["remote"] = os.fspath(remote)
    if content == "records":
        given |= {"includeHeaders": _flag(wanted_headers), "isolationLevel": isolation, "checkCrcs": _flag(check_crcs)}
    options = read_options(given)
    if topics is not None:
        options = replace(options, topics=frozenset(_several(topics, str)))
    predicates = _predicates(options, partitions, offsets, times)
    schema = arrow_schema(columns_in(columns_of(content, columns, headers=options.include_headers)))
    if topic_id is not None:
        predicates = _continued(options, predicates, topic_id)
    return pa.RecordBatchReader.from_batches(schema, _without_traceback(_batches(options, predicates, schema)))


def _without_traceback(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Yield batches, and raise a ToolError without a traceback, which Arrow would add to the messages of DuckDB.

    A traceback names each Python function that an exception leaves, so no such function raises it.
    """
    failed: list[ToolError] = []

    def until_failed() -> Iterator[pa.RecordBatch]:
        try:
            yield from batches
        except ToolError as error:
            failed.append(type(error)(str(error)))

    return chain(until_failed(), starmap(_raise, zip(repeat(ToolError), failed, strict=False)))


def _batches(options: ReadOptions, predicates: Predicates, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
    counter, buffer = Counter(), RowBuffer(schema)
    reader = reader_of(options, predicates)
    try:
        for split in _splits(options, predicates, counter):
            if options.content == "records":
                yield from reader.records(split, buffer, counter)
            else:
                yield from rows(options.content, split, buffer, counter)
    except (KidxError, OSError) as error:
        raise ToolError(f"cannot read {options.content}: {error}") from error
    yield from buffer.flush()


def _continued(options: ReadOptions, predicates: Predicates, topic_id: str) -> Predicates:
    """Return the predicates of a read that continues in a topic: without a first offset if it is another topic now.

    Raises:
        ToolError: data was lost, and ``fail_on_data_loss`` is true; or no single topic is named.
    """
    if options.content != "records" or len(options.topics or ()) != 1:
        raise ToolError("topic_id requires the records of one topic; name it with topics")
    first = predicates.min_offset or 0
    for log in chosen_partitions(options, predicates):
        other, end = query_partition(log, partial(_difference_and_end, topic_id), ("", first))
        if not other and end >= first:
            continue
        what = f"is another topic now: {other}" if other else f"ends at {end}: it was truncated"
        said = f"{log.key} was read up to offset {first}, and {what}"
        if options.fail_on_data_loss:
            raise ToolError(f"{said} (fail_on_data_loss=False continues)")
        _logger.warning("data loss: %s", said)
        if other:
            return replace(predicates, min_offset=None)
    return predicates


def _difference_and_end(topic_id: str, log: PartitionLog) -> tuple[str, int]:
    return difference(topic_id, identity_of(log), log), LogOffsets(log, Counter()).end()


def _splits(options: ReadOptions, predicates: Predicates, counter: Counter) -> list[Split]:
    if predicates.partitions is not None:
        _check_partitions(options, predicates.partitions)
    if options.content in ("records", "batches"):
        tasks = plan_splits(options, predicates, counter)
    else:
        tasks = plan_segments(options, predicates)

    def place(split: Split) -> tuple[Any, ...]:
        segment = split.segment
        return segment.topic, segment.partition, segment.home, segment.base_offset, split.start

    return sorted((split for task in tasks for split in task), key=place)


def _check_partitions(options: ReadOptions, wanted: frozenset[int]) -> None:
    """Reject partition numbers that no topic of the query has.

    Raises:
        ToolError: there is such a number.
    """
    keys = {log.key for log in chosen_partitions(options, Predicates())}
    if missing := sorted(wanted - {key.partition for key in keys}):
        topics = ", ".join(sorted({key.topic for key in keys}))
        there_are = ", ".join(map(str, sorted({key.partition for key in keys})))
        raise ToolError(f"unknown partition {', '.join(map(str, missing))} of {topics}; choose from {there_are}")


def _predicates(
    options: ReadOptions,
    partitions: int | Iterable[int] | None,
    offsets: tuple[int | None, int | None],
    times: tuple[Time | None, Time | None],
) -> Predicates:
    first, end = _range("offsets", offsets, (int,), "integers")
    since, until = map(_milliseconds, _range("times", times, (int, datetime), "datetimes with a zone, milliseconds"))
    if options.content != "records" and any(bound is not None for bound in (first, end, since, until)):
        raise ToolError(f"offsets and times apply to records, not to {options.content}")
    for name, start, stop in (("offset", first, end), ("time", since, until)):
        if start is not None and stop is not None and start > stop:
            raise ToolError(f"the start {name} {start} is past the end {stop}")
    found = Predicates(
        partitions=None if partitions is None else frozenset(_several(partitions, int)),
        min_offset=first,
        max_offset=None if end is None else end - 1,
        min_time=since,
        max_time=None if until is None else until - 1,
    )
    if since is None and until is None:
        return found
    # A record whose time the column cannot have is null there, which no range contains.
    return found & Predicates(min_time=-LARGEST_MILLISECONDS, max_time=LARGEST_MILLISECONDS)


def _range(name: str, bounds: Any, kinds: tuple[type, ...], are: str) -> tuple[Any, Any]:
    """Return two bounds, each None or of one of the kinds.

    Raises:
        ToolError: ``bounds`` is anything else.
    """
    given = tuple(bounds) if isinstance(bounds, (tuple, list)) else (bounds,)
    fit = all(each is None or (isinstance(each, kinds) and not isinstance(each, bool)) for each in given)
    if len(given) != len(("first", "end")) or not fit:
        raise ToolError(f"{name} must be a pair (first, end) of {are} or None, not {bounds!r}")
    return given[0], given[1]


def _milliseconds(time: Time | None) -> int | None:
    if not isinstance(time, datetime):
        return time
    if time.tzinfo is None:
        raise ToolError(f"{time} has no time zone; use one such as datetime.UTC")
    return -((_EPOCH - time) // _MILLISECOND)


def _several(value: Any, one: type | tuple[type, ...]) -> list[Any]:
    return [value] if isinstance(value, one) else list(value)


def _flag(value: bool) -> str:
    return str(value).lower()
