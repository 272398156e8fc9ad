"""Rows about compaction (clauses CL): the result of a round, and the opening of a log after an interrupted round.

A row names a clause, the operations and results (``ok`` or an error kind) that exercise it, and what a violation would
have changed, perhaps with a condition: :class:`~conformance.attribution.rules.Row` explains the columns.

A condition receives a :class:`~conformance.attribution.log_step.LogStep`: ``was`` and ``now`` are the states before and
after the step, and ``before`` has what no state reports, such as the topic's settings. The arguments of ``clean_log``
begin with the offset at which the previous round ended, and the size of the read buffer.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Final

from conformance.attribution.rules import Row
from kidx.discovery import INDEX_SUFFIXES, LOG, SWAP
from kidx.errors import KidxError
from kidx.log.segments import CLEANED
from kidx.records import RecordBatch, iter_memory_batches

if TYPE_CHECKING:
    from conformance.attribution.log_step import Files, LogStep

_MARKER_KEYS: Final = (b"\0\0\0\0", b"\0\0\0\1")
"""The keys of abort and commit markers."""
_NEXT, _KEYLESS = 0, 7
"""Indexes into the value of a round: the next dirty offset, and the number of records without a key."""
_V2: Final = 2


def cleans(step: LogStep) -> bool:
    """Return True if the round cleaned something."""
    return step.value is not None


def all_of(*conditions: Callable[[LogStep], bool]) -> Callable[[LogStep], bool]:
    """Return a condition that is true if all of these conditions are true."""
    return lambda step: all(holds(step) for holds in conditions)


def batches(files: Files) -> Iterator[RecordBatch]:
    """Yield the batches of the logs as far as they can be read, in order."""
    for name, content in sorted(files.items()):
        if name.endswith(".log"):
            try:
                yield from iter_memory_batches(content)
            except KidxError:
                continue


def before(*conditions: Callable[[RecordBatch], bool]) -> Callable[[LogStep], bool]:
    """Return a condition that is true if, before the step, one batch had all of these properties."""
    return lambda step: any(all(holds(batch) for holds in conditions) for batch in batches(step.files_before))


def after(*conditions: Callable[[RecordBatch], bool]) -> Callable[[LogStep], bool]:
    """Return a condition that is true if, after the step, one batch has all of these properties."""
    return lambda step: any(all(holds(batch) for holds in conditions) for batch in batches(step.files))


def has(holds: Callable[[bytes | None, bytes | None], bool]) -> Callable[[RecordBatch], bool]:
    """Return a property of a batch that is true if one of its records has such a key and value."""

    def some(batch: RecordBatch) -> bool:
        try:
            return any(holds(record.key, record.value) for record in batch)
        except KidxError:
            return False

    return some


def is_control(batch: RecordBatch) -> bool:
    """Return True if the batch is a marker."""
    return batch.is_control


def is_data(batch: RecordBatch) -> bool:
    """Return True if the batch is not a marker."""
    return not batch.is_control


def is_old(batch: RecordBatch) -> bool:
    """Return True if the batch has magic 0 or 1."""
    return batch.magic < _V2


def is_new(batch: RecordBatch) -> bool:
    """Return True if the batch has magic 2."""
    return batch.magic >= _V2


def is_compressed(batch: RecordBatch) -> bool:
    """Return True if the batch has a codec."""
    return bool(batch.codec)


def is_empty(batch: RecordBatch) -> bool:
    """Return True if the batch has no records."""
    return batch.count == 0


def of_producer(batch: RecordBatch) -> bool:
    """Return True if the batch has a producer id."""
    return batch.producer_id >= 0


def of_none(batch: RecordBatch) -> bool:
    """Return True if the batch has no producer id."""
    return batch.producer_id < 0


is_tombstone = has(lambda key, value: key is not None and value is None)
has_marker_key = has(lambda key, _: key in _MARKER_KEYS)


def ends_early(step: LogStep) -> bool:
    """Return True if transactions are open, or records are not replicated, before the active segment."""
    return step.was is not None and step.was.last_stable_offset < step.was.segments[-1][0]


def waits(step: LogStep) -> bool:
    """Return True if the topic excludes recent records from compaction."""
    return bool(step.before.settings.get("min.compaction.lag.ms", 0) > 0)


def starts_over(step: LogStep) -> bool:
    """Return True if the previous round ended outside the log."""
    return step.was is not None and not step.was.start_offset <= step.args[0] <= step.was.end_offset


def runs_out_of_room(step: LogStep) -> bool:
    """Return True if the round ends inside a segment because the offset map is full."""
    return step.was is not None and step.value[_NEXT] not in {base for base, _ in step.was.segments}


def merges(step: LogStep) -> bool:
    """Return True if the number of segments has decreased."""
    return step.was is not None and step.now is not None and len(step.now.segments) < len(step.was.segments)


def reaches_gap(step: LogStep) -> bool:
    """Return True if there is a gap of offsets between two consecutive segments."""
    if step.was is None:
        return False
    ends = {batch.next_offset for batch in batches(step.files_before)}
    return any(base not in ends for base, _ in step.was.segments[1:])


def indexes_some(step: LogStep) -> bool:
    """Return True if a compacted segment has index entries."""
    return any(
        content and name.endswith(".index") and int(name.partition(".")[0]) < step.value[_NEXT]
        for name, content in step.files.items()
        if name[:1].isdecimal()
    )


def outgrows_buffer(step: LogStep) -> bool:
    """Return True if a batch is larger than the cleaner's read buffer."""
    return any(batch.size_in_bytes > step.args[1] for batch in batches(step.files_before))


def rebuilds(holds: Callable[[RecordBatch], bool]) -> Callable[[LogStep], bool]:
    """Return a condition that is true if a batch with this property has fewer records than before."""

    def some(step: LogStep) -> bool:
        counts = {batch.base_offset: batch.count for batch in batches(step.files_before) if holds(batch)}
        rebuilt = (batch for batch in batches(step.files) if holds(batch))
        return any(0 < (batch.count or 0) < (counts.get(batch.base_offset) or 0) for batch in rebuilt)

    return some


def knows_aborted(step: LogStep) -> bool:
    """Return True if a transaction index had entries."""
    return any(content for name, content in step.files_before.items() if name.endswith(".txnindex"))


def finds(suffix: str) -> Callable[[LogStep], bool]:
    """Return a condition that is true if files of an interrupted round have this suffix."""
    return lambda step: any(name.endswith(suffix) for name in step.files_before)


def finds_half_renamed(step: LogStep) -> bool:
    """Return True if the log of a segment has been renamed, and an index of the segment has not."""
    waiting = (kind + suffix for kind in INDEX_SUFFIXES for suffix in (CLEANED, SWAP))
    return any(
        name.endswith(end) and name.removesuffix(end) + LOG + end[end.rindex(".") :] not in step.files_before
        for end in waiting
        for name in step.files_before
    )


# fmt: off
_FEW_OLD: Final = "few logs hold batches of the older formats"
_FEW_KILLED: Final = "few rounds are killed while they replace a segment"

ROWS = (
    Row("CL-1", "clean_log", "ok", "the segments, or none cleaned", ends_early),
    Row("CL-2", "clean_log", "ok", "the range that was read, and the bytes", all_of(cleans, starts_over)),
    Row("CL-3", "clean_log", "ok", "the next dirty offset", all_of(cleans, runs_out_of_room)),
    Row("CL-4", "clean_log", "ok", "the segments", all_of(cleans, merges)),
    Row("CL-5", "clean_log", "ok", "the bytes of the indexes", all_of(cleans, indexes_some)),
    Row("CL-6", "clean_log", "ok", "an error, or the bytes of the indexes", all_of(cleans, outgrows_buffer)),
    Row("CL-7", "clean_log", "ok", "the bytes of the log", all_of(cleans, rebuilds(is_new))),
    Row("CL-8", "clean_log", "ok", "the bytes of the log, or of the transaction index", all_of(cleans, knows_aborted)),
    Row("CL-9a", "clean_log", "ok", "the bytes of the log", all_of(cleans, before(is_control))),
    Row("CL-9b", "clean_log", "ok", "the bytes of the log",
        all_of(cleans, before(is_control), before(is_data, has_marker_key))),
    Row("CL-10a", "clean_log", "ok", "the bytes of the log", all_of(cleans, before(is_tombstone))),
    Row("CL-10b", "clean_log", "ok", "the bytes of the log",
        all_of(cleans, before(lambda batch: not is_old(batch), is_tombstone))),
    Row("CL-11", "clean_log", "ok", "the bytes of the log", all_of(cleans, before(is_old, is_tombstone)), _FEW_OLD),
    Row("CL-12", "clean_log", "ok", "the bytes of the log", all_of(cleans, lambda s: s.value[_KEYLESS] > 0)),
    Row("CL-13", "clean_log", "ok", "the bytes of the log", all_of(cleans, after(is_empty, of_producer))),
    Row("CL-14", "clean_log", "ok", "the bytes of the log", all_of(cleans, after(is_empty, of_none))),
    Row("CL-15", "clean_log", "illegal_state", "another outcome", before(is_old), _FEW_OLD),
    Row("CL-16", "clean_log", "ok", "the names of the files", all_of(cleans, merges)),
    Row("CL-17", "open_log", "ok", "the files", finds(".cleaned"), _FEW_KILLED),
    Row("CL-18a", "open_log", "ok", "the files", finds(".log.swap")),
    Row("CL-18b", "open_log", "ok", "the files", finds(".log.swap"), _FEW_KILLED),
    Row("CL-19", "clean_log", "ok", "the next dirty offset", all_of(cleans, reaches_gap)),
    Row("CL-20", "clean_log", "ok", "the bytes of the log", all_of(cleans, rebuilds(is_compressed))),
    Row("CL-21", "open_log", "ok", "the files", finds_half_renamed, _FEW_KILLED),
    Row("CL-22", "clean_log", "ok", "the segments, or none cleaned", waits),
    Row("CL-25", "clean_log", "invalid_argument", "a round", before(),
        "few logs hold records before the base of their segment"),
    Row("CL-24", "clean_log", "ok", "the bytes of the log", all_of(cleans, before(is_old)), _FEW_OLD),
)
# fmt: on
"""The rows; the catalogue states the releases of each clause."""
