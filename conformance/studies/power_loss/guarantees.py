"""Guarantees that Kafka gives for a log after a power failure; they are checked without a reference.

* The log opens.
* Synced data exists: every batch below the recovery point from which the broker starts, and all batches after a
  clean shutdown. The log start is not past its checkpoint.
* There is no gap: each batch begins where the preceding batch ended.
* Every lookup by offset and by time finds what a scan of the log finds.
* The leader epochs and the aborted transactions match the batches.
* The log accepts another record, which can then be read.
* In a compacted log, each key has its latest value, also after the next cleaning round; offsets may be missing.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from enum import StrEnum
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from conformance.operations import OK
from conformance.studies.power_loss.batches import (
    Batch,
    aborted_in,
    batches_of_log,
    epochs_in,
    inside,
    targets_of,
    timestamps_of,
)
from conformance.studies.power_loss.compaction import wrong_keys

if TYPE_CHECKING:
    from conformance.operations import Outcome
    from conformance.operations.log import LogObservation, LogState
    from conformance.studies.power_loss.compaction import Expected


class Guarantee(StrEnum):
    """Guarantee; the value describes its violation."""

    OPENS = "the log does not open"
    START = "the log starts past its checkpoint"
    DURABLE = "a synced batch is gone"
    CONTIGUOUS = "there is a hole in the log"
    BY_OFFSET = "a lookup by offset does not find what a scan finds"
    BY_TIME = "a lookup by time does not find what a scan finds"
    EPOCHS = "a leader epoch does not match the batches"
    ABORTED = "an aborted transaction is not in the transaction index"
    APPENDS = "the log accepts no more records"
    KEYS = "a key does not have its latest value"
    CLEANS = "the log cannot be cleaned"
    CACHE_OPENS = "the cache does not open"
    CACHE_LOOKUP = "a lookup in the cache passes records"
    CACHE_ABORTED = "a cached transaction index lacks an aborted transaction"


class Violation(NamedTuple):
    """Violation of a guarantee; ``text`` is the evidence."""

    guarantee: Guarantee
    text: str


class OpenedLog(NamedTuple):
    """Log that was opened after a power failure.

    Attributes:
        observation: result of the opening.
        files: files after the opening.
        batches: batches that a scan of them finds.
        by_offset: bytes that a fetch from each offset returns first; None if it fails.
        by_time: an error, or the results of lookups by time: each a timestamp, an offset and an epoch, or None.
        appends: error of appending another record, or empty.
        cleaned: files after another cleaning round; None if the log is not compacted.
        cleaning: outcome of that round.
    """

    observation: LogObservation
    files: dict[str, bytes]
    batches: list[Batch]
    by_offset: dict[int, bytes | None]
    by_time: tuple[str | None, Any]
    appends: str
    cleaned: dict[str, bytes] | None = None
    cleaning: Outcome = OK


_MOST: Final = 80
"""Maximum number of characters of an error that are shown."""


def violations(
    opened: OpenedLog, durable: Sequence[Batch], start: int, expected: Sequence[Expected] = ()
) -> Iterator[Violation]:
    """Yield the violated guarantees, the most serious first.

    Args:
        opened: the log after the failure.
        durable: the batches that must exist.
        start: the last log start offset before the failure.
        expected: the latest records of a compacted log's keys.
    """
    outcome, state = opened.observation
    if state is None:
        yield Violation(Guarantee.OPENS, f"{outcome.error}: {(outcome.text or '')[:_MOST]}")
        return
    if state.start_offset > start:
        yield Violation(Guarantee.START, f"at {state.start_offset}, and not at {start} at most")
    held = inside(opened.batches, state)
    if opened.cleaned is None:
        yield from _gone(opened, durable, state)
        if held and held[0].base > state.start_offset:
            yield Violation(
                Guarantee.CONTIGUOUS, f"the log starts at {state.start_offset}, and its first offset is {held[0].base}"
            )
            return
    else:
        yield from _compacted(opened, held, state, expected)
    for one, other in pairwise(held):
        if other.base <= one.last or (opened.cleaned is None and other.base > one.last + 1):
            yield Violation(Guarantee.CONTIGUOUS, f"offset {other.base} follows offset {one.last}")
            return
    yield from _lookups(opened, held, state)
    yield from _metadata(opened, [batch for batch in held if batch.base >= start])
    if opened.appends:
        yield Violation(Guarantee.APPENDS, opened.appends[:_MOST])


def _compacted(
    opened: OpenedLog, held: list[Batch], state: LogState, expected: Sequence[Expected]
) -> Iterator[Violation]:
    """Yield the keys of a compacted log without their latest value, now and after another cleaning round."""
    if opened.cleaning.error is not None:
        yield Violation(Guarantee.CLEANS, f"{opened.cleaning.error}: {(opened.cleaning.text or '')[:_MOST]}")
    for batches in held, inside(batches_of_log(opened.cleaned or {}), state):
        for text in wrong_keys(batches, expected):
            yield Violation(Guarantee.KEYS, text)


def _gone(opened: OpenedLog, durable: Sequence[Batch], state: LogState) -> Iterator[Violation]:
    """Yield the first batch that must exist and does not."""
    there = {batch.base: batch for batch in opened.batches}
    for batch in durable:
        found = there.get(batch.base)
        if batch.last < state.start_offset:
            continue
        if found is None or batch.last >= state.end_offset:
            yield Violation(
                Guarantee.DURABLE, f"offsets {batch.base} to {batch.last}; the log ends at {state.end_offset}"
            )
            return
        if found.data != batch.data:
            yield Violation(Guarantee.DURABLE, f"offsets {batch.base} to {batch.last} are other bytes")
            return


def _is_hidden(offset: int, state: LogState) -> bool:
    """Return True if an empty segment, which has its file's time, hides an offset from lookups by time (LG-22)."""
    return any(size == 0 and base <= offset for base, size in state.segments)


def _lookups(opened: OpenedLog, held: list[Batch], state: LogState) -> Iterator[Violation]:
    """Yield the first wrong lookup by offset and the first by time; ``held`` are the batches of the log."""
    start = state.start_offset
    for batch in held:
        for offset in {max(batch.base, start), batch.last}:
            found = opened.by_offset[offset]
            if found is None or found[: len(batch.data)] != batch.data:
                yield Violation(Guarantee.BY_OFFSET, f"offset {offset}: {_described(found)}")
                break
        else:
            continue
        break
    records = timestamps_of(held)
    error, answers = opened.by_time
    if error is not None:
        yield Violation(Guarantee.BY_TIME, f"rejected: {error}")
        return
    for timestamp, answer in zip(targets_of(held), answers, strict=False):
        wanted = next((offset for offset, other in records if other >= timestamp), None)
        if wanted is not None and wanted < start:
            continue  # a release may stop at the segment of a record before the log start
        actual = None if answer is None else answer[1]
        if actual is None and wanted is not None and _is_hidden(wanted, state):
            continue
        if actual != wanted:
            yield Violation(Guarantee.BY_TIME, f"timestamp {timestamp}: offset {actual}, and a scan finds {wanted}")
            break


def _metadata(opened: OpenedLog, held: list[Batch]) -> Iterator[Violation]:
    """Yield violated guarantees of epochs and aborts for batches that are not before the last log start.

    The metadata of earlier batches may have been removed.
    """
    epochs, aborted = epochs_in(opened.files), aborted_in(opened.files)
    for batch in held:
        known = [epoch for epoch, first in epochs if first <= batch.base]
        if batch.epoch >= 0 and (known or [-1])[-1] != batch.epoch:
            yield Violation(Guarantee.EPOCHS, f"offset {batch.base} is of epoch {batch.epoch}; known are {epochs}")
            break
    open_ones = set[int]()
    for batch in held:
        had_data = batch.producer in open_ones
        (open_ones.discard if batch.is_control else open_ones.add)(batch.producer)
        if batch.is_abort and had_data and batch.base not in aborted:
            yield Violation(Guarantee.ABORTED, f"the abort at offset {batch.base}; known are {sorted(aborted)}")
            break


def _described(found: bytes | None) -> str:
    if found is None:
        return "rejected"
    return f"the batch at {int.from_bytes(found[:8], signed=True)}" if found else "nothing"
