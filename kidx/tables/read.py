"""Segments for whatever reads Arrow, in this process: :func:`kidx.read`."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Iterator, Mapping
from datetime import UTC, datetime, timedelta
from typing import Any, Final, Literal

import pyarrow as pa

from kidx.errors import KidxError, ToolError
from kidx.tables.columns import RowBuffer, arrow_schema, columns_in
from kidx.tables.conditions import Conditions
from kidx.tables.contents import columns_of
from kidx.tables.indexes import Counter
from kidx.tables.options import ReadOptions, read_options
from kidx.tables.others import rows
from kidx.tables.reading import Reading
from kidx.tables.splits import Piece, plan_pieces, plan_segments

Time = datetime | int
"""A moment, or milliseconds since the epoch."""

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
    isolation: Literal["read_uncommitted", "read_committed"] = "read_uncommitted",
    headers: bool = False,
    fail_on_data_loss: bool = True,
    check_crcs: bool = True,
    storage_options: Mapping[str, Any] | None = None,
) -> pa.RecordBatchReader:
    """Reads segments as a stream of Arrow batches, in order of topic, partition and offset, and only as far as needed.

    The index files lead to the offsets and times that are wanted. Everything that takes an Arrow stream takes it::

        duckdb.from_arrow(kidx.read("/data", topics="orders")).aggregate("count(*)")
        polars.from_arrow(kidx.read("/data", columns=["offset", "timestamp"]))

    Args:
        path: log directories, partition directories, ``.log`` files, or URLs that fsspec opens.
        content: ``records``, ``batches``, ``offset_index``, ``time_index``, ``txn_index`` or ``segments``; what each
            has is in :mod:`kidx.tables.contents`.
        columns: the only ones wanted, in this order: what is not asked for is not decoded.
        topics: the only ones wanted.
        partitions: likewise.
        offsets: of records, the first and the one behind the last; None for an open end.
        times: of records, the earliest and the one behind the latest: datetimes with a zone, or milliseconds.
        isolation: which records are hidden.
        headers: add the column ``headers``; or name it in ``columns``.
        fail_on_data_loss: fail at a damaged batch, or read on with the next segment.
        check_crcs: whether a wrong checksum is damage.
        storage_options: of fsspec, such as ``{"anon": True}``.

    Raises:
        ToolError: here, and while batches are read: a column, content, topic or path that there is not, damage that is
            to fail, or a file that cannot be read.
    """
    wanted_headers = headers or (columns is not None and "headers" in (columns := list(columns)))
    given = {
        "content": content,
        "paths": json.dumps([os.fspath(each) for each in _several(path, (str, os.PathLike))]),
        "failOnDataLoss": _flag(fail_on_data_loss),
        "storageOptions": json.dumps(dict(storage_options or {})),
    }
    if content == "records":
        given |= {"includeHeaders": _flag(wanted_headers), "isolationLevel": isolation, "checkCrcs": _flag(check_crcs)}
    options = read_options(given)
    conditions = _conditions(options, topics, partitions, offsets, times)
    schema = _schema(columns_of(content, headers=options.include_headers), columns, content)
    return pa.RecordBatchReader.from_batches(schema, _batches(options, conditions, schema))


def _batches(options: ReadOptions, conditions: Conditions, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
    counter, buffer = Counter(), RowBuffer(schema)
    reading = Reading(conditions, options.fail_on_data_loss, options.check_crcs, options.isolation)
    try:
        for piece in _pieces(options, conditions, counter):
            if options.content == "records":
                yield from reading.records(piece, buffer, counter)
            else:
                yield from rows(options.content, piece, conditions, buffer, counter)
    except (KidxError, OSError) as error:
        raise ToolError(f"{options.content} cannot be read: {error}") from error
    yield from buffer.flush()


def _pieces(options: ReadOptions, conditions: Conditions, counter: Counter) -> list[Piece]:
    if options.content in ("records", "batches"):
        tasks = plan_pieces(options, conditions, counter)
    else:
        tasks = plan_segments(options, conditions)

    def place(piece: Piece) -> tuple[Any, ...]:
        segment = piece.segment
        return segment.topic, segment.partition, segment.directory, segment.base_offset, piece.start

    return sorted((piece for task in tasks for piece in task), key=place)


def _conditions(
    options: ReadOptions,
    topics: str | Iterable[str] | None,
    partitions: int | Iterable[int] | None,
    offsets: tuple[int | None, int | None],
    times: tuple[Time | None, Time | None],
) -> Conditions:
    bounds = (*offsets, *map(_milliseconds, times))
    if options.content != "records" and any(bound is not None for bound in bounds):
        raise ToolError(f"offsets and times choose records, not {options.content}")
    first, end, since, until = bounds
    return Conditions(
        None if topics is None else frozenset(_several(topics, str)),
        None if partitions is None else frozenset(_several(partitions, int)),
        first,
        None if end is None else end - 1,
        since,
        None if until is None else until - 1,
    )


def _milliseconds(time: Time | None) -> int | None:
    if not isinstance(time, datetime):
        return time
    if time.tzinfo is None:
        raise ToolError(f"{time} has no time zone: give it one, such as datetime.UTC")
    return -((_EPOCH - time) // _MILLISECOND)


def _schema(there: str, wanted: Iterable[str] | None, content: str) -> pa.Schema:
    known = {column.name: column for column in columns_in(there)}
    names = list(known) if wanted is None else list(wanted)
    for name in names:
        if name not in known:
            raise ToolError(f"{content} has no column {name!r}; it has {', '.join(known)}")
    return arrow_schema(known[name] for name in names)


def _several(value: Any, one: type | tuple[type, ...]) -> list[Any]:
    return [value] if isinstance(value, one) else list(value)


def _flag(value: bool) -> str:
    return str(value).lower()
