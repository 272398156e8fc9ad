"""Queries about the files of a test vector: lookups of keys in the files, and of their neighbours."""

from __future__ import annotations

import contextlib
import struct
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from conformance.operations import Operation
from conformance.operations.op import Effect
from conformance.oracle import records_of
from kidx.errors import KidxError
from kidx.java_values import INT_MAX, LONG_MAX
from kidx.layout import ABORTED_TXN, OFFSET_INDEX, TIME_INDEX
from kidx.records import iter_batches

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

_LONG_MIN: Final = -LONG_MAX - 1
_BODY: Final = INT_MAX - 8
"""Maximum size of a record's body, in a search by timestamp."""
LAYOUTS: Final = {"offset": OFFSET_INDEX.struct, "time": TIME_INDEX.struct, "transaction": ABORTED_TXN.struct}
"""Layout of an entry in each kind of index file."""
SPECIAL: Final = (-1, -2, -3, -4, -5, -6, -7)
"""Special targets of ListOffsets: all that some release knows, and -7, which none knows."""


class Queries(NamedTuple):
    """Steps that query files.

    Attributes:
        base_offset: the base offset of the index file or the segment; 0 for a log.
        opening: the steps that open the files.
    """

    base_offset: int
    opening: tuple[Operation, ...]
    queries: tuple[Operation, ...]


def queries_of(machine: str, history: Sequence[Operation], files: Mapping[str, bytes]) -> Queries:
    """Return the queries about the files that a history has written; without queries if no file can be opened."""
    opened = next((step for step in reversed(history) if step.effect is Effect.OPENS), None)
    if opened is None or machine in ("cache", "tiered"):  # whose histories contain the lookups
        return Queries(0, (), ())
    if machine in ("log", "cleaned"):
        logs = [files[name] for name in sorted(files) if name.endswith(".log")]
        reopening = Operation("open_log", (opened.args[0], 0, 0, True, opened.args[4]))
        opening = (reopening, Operation("update_high_watermark", (LONG_MAX,)))
        return Queries(0, opening, tuple(_of_log(logs))) if logs else Queries(0, (), ())
    if machine == "segment":
        base, *settings = opened.args[:4]
        name = f"{base:020d}.log"
        if name not in files:
            return Queries(base, (), ())
        reopening = Operation("open_segment", (base, *settings, True, 0, False, "", opened.args[8]))
        return Queries(base, (reopening,), tuple(_of_segment(base, files[name])))
    kind, _, base, size, _ = opened.args
    if len(files) != 1:
        return Queries(base, (), ())
    ((path, content),) = files.items()
    of_kind = {"offset": _of_offset_index, "time": _of_time_index, "transaction": _of_transaction_index}[kind]
    reopening = Operation("open", (kind, path, base, size, True))
    return Queries(base, (reopening,), (Operation("sanity_check"), *of_kind(base, content)))


def _of_log(logs: Sequence[bytes]) -> Iterator[Operation]:
    targets = [*SPECIAL, *_around(_sample(sorted({t for log in logs for t in _timestamps(log)}), 40)), LONG_MAX]
    for target in dict.fromkeys(targets):
        yield Operation("list_offsets", ([target],))
    every = [batch for log in logs for batch in _batches(log)]
    batches = _sample(every, 5)
    ends = {offset for each in batches for offset in (each.base_offset, each.last_offset, each.last_offset + 1)}
    for offset in sorted(ends):
        yield Operation("read_log", (offset,))
    yield Operation("offset_snapshot")
    for epoch in _around(_sample(sorted({batch.leader_epoch for batch in every}), 5)):
        if abs(epoch) <= INT_MAX:
            yield Operation("end_offset_for_epoch", (epoch,))


def _of_offset_index(base: int, content: bytes) -> Iterator[Operation]:
    entries = entries_of(LAYOUTS["offset"], content)
    for target in _around([base, *(base + relative for relative, _ in _chosen(entries, 1024))]):
        yield Operation("lookup", (target,))
    yield from _slots(entries)
    for relative, position in _sample(entries, 10):
        for offset, start, size in ((0, 0, 0), (0, 0, 1), (-1, -1, 0), (1, 5, 120), (0, 0, INT_MAX)):
            at = min(max(0, position + start), INT_MAX)
            yield Operation("fetch_upper_bound", (_long(base + relative + offset), at, size))


def _of_time_index(_base: int, content: bytes) -> Iterator[Operation]:
    entries = entries_of(LAYOUTS["time"], content)
    for target in _around([-1, *(timestamp for timestamp, _ in _chosen(entries, 682))]):
        yield Operation("lookup", (target,))
    yield from _slots(entries)


def _of_transaction_index(base: int, content: bytes) -> Iterator[Operation]:
    yield Operation("all_aborted")
    entries = entries_of(LAYOUTS["transaction"], content)
    ends = sorted({base, *(n for _, _, *ends in _sample(entries, 6) for offset in ends for n in (offset, offset + 1))})
    for number, start in enumerate(ends):
        for end in _sample(ends[number:], 6):
            yield Operation("collect_aborted", (_long(start), _long(end)))


def _of_segment(base: int, content: bytes) -> Iterator[Operation]:
    batches = list(_batches(content))
    for offset in _around(
        [base, *(n for batch in _sample(batches, 10) for n in (batch.base_offset, batch.last_offset))]
    ):
        yield Operation("translate_offset", (offset, 0))
    for target in _around(_sample(sorted(set(_timestamps(content))), 16)):
        yield Operation("find_offset", (target, base, _BODY))
    for batch in _sample(batches, 4):
        yield Operation("find_offset", (batch.max_timestamp, batch.last_offset, _BODY))
        yield Operation("collect_from_segment", (batch.base_offset, batch.last_offset + 1))
        yield Operation("upper_bound_in_segment", (batch.base_offset, batch.position, 100))
    yield Operation("collect_from_segment", (base, base + INT_MAX))
    yield from map(Operation, ("read_next_offset", "first_batch_timestamp"))


def _chosen(entries: Sequence[Any], warm: int) -> list[Any]:
    """Return some entries, and those at the edge of the warm section, which has ``warm`` + 1 entries."""
    edge = len(entries) - 1 - warm
    return _sample(entries, 14) + [entries[slot] for slot in range(edge - 2, edge + 3) if edge > 0 and slot >= 0]


def _slots(entries: Sequence[Any]) -> Iterator[Operation]:
    for slot in _sample(range(len(entries) + 2), 10):
        yield Operation("entry", (slot,))


def _timestamps(log: bytes) -> Iterator[int]:
    """Yield the timestamps of all records, and the largest timestamp of every batch, also of old formats."""
    yield from (record.timestamp for record in records_of(log))
    yield from (batch.max_timestamp for batch in _batches(log))


class _Batch(NamedTuple):
    """Fields of a batch from which queries are derived."""

    base_offset: int
    last_offset: int
    max_timestamp: int
    position: int
    leader_epoch: int


def _batches(log: bytes) -> Iterator[_Batch]:
    """Yield the batches up to the first with an invalid header."""
    with contextlib.suppress(KidxError):
        for batch in iter_batches(log):
            found = batch.base_offset, batch.last_offset, batch.max_timestamp, batch.position
            yield _Batch(*found, batch.partition_leader_epoch)


def entries_of(layout: struct.Struct, content: bytes) -> list[Any]:
    """Return the whole entries of an index file."""
    return list(layout.iter_unpack(content[: len(content) // layout.size * layout.size]))


def _around(keys: Iterable[int]) -> list[int]:
    """Return keys and their neighbours, sorted."""
    return sorted({_long(key + delta) for key in keys for delta in (-1, 0, 1)})


def _sample(items: Sequence[Any], most: int) -> list[Any]:
    """Return at most ``most`` items at equal distances, including the first and the last."""
    if len(items) <= most:
        return list(items)
    return [items[number * (len(items) - 1) // (most - 1)] for number in range(most)]


def _long(number: int) -> int:
    """Return the number, or the nearest long."""
    return max(_LONG_MIN, min(LONG_MAX, number))
