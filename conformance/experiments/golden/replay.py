"""Replay of a golden corpus with kidx: the same appends and restarts that a real broker executed for the recording.

Only the broker's logs are read, not its indexes.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, Final

from conformance.operations.batches import as_sent
from kidx.java_values import LONG_MAX
from kidx.log import LogConfig, UnifiedLog, read_epochs
from kidx.records import RecordBatch, TimestampType, iter_batches

if TYPE_CHECKING:
    from conformance.experiments.golden.corpus import Corpus, Partition, RecordedAppend

EPOCHS: Final = "leader-epoch-checkpoint"


@dataclass(slots=True)
class Clock:
    """Clock of the replayed broker; each batch with LogAppendTime sets it to the time of its append."""

    now: int = 0

    def __call__(self) -> int:
        """Return milliseconds since the epoch."""
        return self.now


def opened(corpus: Corpus, partition: Partition, directory: Path, clock: Clock) -> UnifiedLog:
    """Return a log of this partition in a directory, opened as a leader does, with its leadership and epoch set.

    Raises:
        KidxError, OSError: the log cannot be loaded.
    """
    config = LogConfig.of_topic(partition.config)
    # The broker accepted the timestamps at unknown times, so kidx must accept any timestamp.
    config = replace(config, timestamp_difference_max_ms=LONG_MAX, timestamp_after_max_ms=LONG_MAX)
    log = UnifiedLog(directory, config, clock=clock, dialect=corpus.release)
    for epoch, start_offset in read_epochs(corpus.directory / partition.name / EPOCHS):
        if start_offset == log.end_offset:
            log.assign_epoch_start_offset(epoch, start_offset)
    log.update_high_watermark(log.end_offset)
    return log


@contextmanager
def replayed(corpus: Corpus, partition: Partition, directory: Path) -> Iterator[UnifiedLog]:
    """Replay a partition and yield its log; the end of the block closes the log, as a clean stop does.

    Raises:
        KidxError, OSError: kidx could not replay the broker's operations.
        ValueError: See :func:`appends`.
    """
    clock = Clock()
    log = opened(corpus, partition, directory, clock)
    restarts = list(partition.restarts)
    for append, batches in appends(corpus, partition):
        while restarts and restarts[0] <= append.first_offset:
            del restarts[0]
            log.close()
            log = opened(corpus, partition, directory, clock)
        _append(log, append, batches, clock)
    for _ in restarts:
        log.close()
        log = opened(corpus, partition, directory, clock)
    try:
        yield log
    finally:
        log.close()


def _append(log: UnifiedLog, append: RecordedAppend, batches: list[RecordBatch], clock: Clock) -> None:
    data = b"".join(batch.to_bytes() for batch in batches)
    first = batches[0]
    if first.timestamp_type is TimestampType.LOG_APPEND_TIME:
        clock.now = first.max_timestamp
    if first.magic == 2 and append.kind != "rebuilt":
        sent = as_sent(data)
        log.append_as_leader(sent, first.partition_leader_epoch, from_client=append.kind != "marker")
    else:
        # For batches that a leader rebuilt, and for messages of v1 with CreateTime, it indexes the same offset as a
        # follower: the last offset of the first batch with the largest timestamp (SEG-8).
        log.append_as_follower(data)
    log.update_high_watermark(log.end_offset)


def appends(corpus: Corpus, partition: Partition) -> Iterator[tuple[RecordedAppend, list[RecordBatch]]]:
    """Yield every append of a partition with the batches that it wrote to the log.

    Raises:
        ValueError: the batches do not match the appends.
    """
    by_first = {append.first_offset: append for append in partition.appends}
    batches = [b for log in partition.logs(corpus.directory) for b in iter_batches(log.read_bytes(), source=str(log))]
    current = -1

    def first_offset_of(batch: RecordBatch) -> int:
        nonlocal current
        current = batch.base_offset if batch.base_offset in by_first else current
        return current

    groups = [(first, list(group)) for first, group in groupby(batches, first_offset_of)]
    ends = [(first, group[-1].last_offset) for first, group in groups]
    if ends != [(append.first_offset, append.last_offset) for append in partition.appends]:
        raise ValueError(
            f"{partition.name} has batches from {len(ends)} appends, and the corpus records {len(partition.appends)};"
            " record the corpus again with: conformance record"
        )
    for first, group in groups:
        yield by_first[first], group
