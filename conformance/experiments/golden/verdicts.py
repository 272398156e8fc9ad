"""Verdict on each index file of a golden corpus, the recorded files of a real broker.

*exact*: the bytes that recovery of the log writes. *sound*: other bytes, but every lookup is right. *broken*: neither.

An index file must be exact if the log alone determines its bytes:

* ``.index``: if each append of the segment was one batch, or the release indexes batches, not appends (SEG-3, SEG-4);
  and if the broker was not restarted within the segment, as the first batch after a restart gets no entry (SEG-7).
* ``.timeindex``: under the same conditions, because its entries are written together with the ``.index`` entries; and
  if for every batch with a new largest timestamp, the leader stores the same offset as recovery: the last one. The
  leaders of 2.4 to 3.6 store the record's offset if a batch was appended unchanged and uncompressed (SEG-8, SEG-9).
* ``.txnindex``: always (TX-15).

Any other index file may be exact by chance. If it is not, it must be sound
(:mod:`conformance.experiments.golden.soundness`).
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final, Literal

from conformance.experiments.golden.soundness import (
    Aborted,
    Finding,
    aborted,
    offset_index_findings,
    time_index_findings,
    txn_index_findings,
)
from kidx.dialect import dialect_of
from kidx.rebuild import rebuild
from kidx.records import RecordBatch, TimestampType, iter_batches
from kidx.segment import ProducerState

if TYPE_CHECKING:
    from conformance.experiments.golden.corpus import Corpus, Partition, RecordedAppend
    from kidx.dialect import Dialect

_INDEXES: Final = (".index", ".timeindex", ".txnindex")


@dataclass(frozen=True, slots=True)
class FileVerdict:
    """Verdict on an index file, with the violated clauses.

    ``why_not_exact`` is the reason why the file need not be exact; empty if it must be.
    """

    file: str
    verdict: Literal["exact", "sound", "broken"]
    why_not_exact: str
    findings: tuple[Finding, ...] = ()


@dataclass(frozen=True, slots=True)
class Segment:
    """``.log`` file of a corpus with its batches, its appends, and the transactions whose abort marker it contains."""

    partition: Partition
    log: Path
    base_offset: int
    batches: list[RecordBatch]
    appends: list[RecordedAppend]
    aborted: list[Aborted]

    def name(self, suffix: str) -> str:
        """Return the name of a file of the segment, relative to the corpus."""
        return f"{self.partition.name}/{self.log.with_suffix(suffix).name}"

    def bytes_of(self, suffix: str) -> bytes:
        """Return the content of a file of the segment; empty if the file does not exist."""
        path = self.log.with_suffix(suffix)
        return path.read_bytes() if path.exists() else b""

    def batches_of(self, append: RecordedAppend) -> list[RecordBatch]:
        """Return the batches of an append."""
        return [batch for batch in self.batches if append.first_offset <= batch.base_offset <= append.last_offset]


def read_segments(corpus: Corpus, partition: Partition) -> list[Segment]:
    """Return the segments of a partition, in order.

    Raises:
        KidxError: a log cannot be read.
    """
    logs = partition.logs(corpus.directory)
    contents = [list(iter_batches(log.read_bytes(), source=str(log))) for log in logs]
    transactions = list(aborted(batch for batches in contents for batch in batches))
    segments = []
    for log, batches in zip(logs, contents, strict=True):
        base = int(log.stem)
        own = range(base, batches[-1].next_offset if batches else base)
        appends = [append for append in partition.appends if append.first_offset in own]
        ended = [transaction for transaction in transactions if transaction.last_offset in own]
        segments.append(Segment(partition, log, base, batches, appends, ended))
    return segments


def judge(corpus: Corpus) -> Iterator[FileVerdict]:
    """Yield the verdict on every index file of a corpus.

    Raises:
        KidxError: a log cannot be read.
    """
    dialect = dialect_of(corpus.release)
    for partition in corpus.partitions:
        producers = ProducerState(partition.name, dialect)
        for segment in read_segments(corpus, partition):
            rebuilt = _rebuilt(segment, dialect, producers)
            for suffix in _INDEXES:
                if suffix in rebuilt or segment.log.with_suffix(suffix).exists():
                    yield _verdict(segment, suffix, rebuilt.get(suffix), dialect)


def _rebuilt(segment: Segment, dialect: Dialect, producers: ProducerState) -> dict[str, bytes]:
    """Return the files that recovery writes; ``producers`` keeps its state from segment to segment."""
    with tempfile.TemporaryDirectory(prefix="kidx-rebuild-") as scratch:
        interval = int(segment.partition.config["index.interval.bytes"])
        rebuild(segment.log, scratch, dialect=dialect, index_interval_bytes=interval, producer_state=producers)
        return {path.suffix: path.read_bytes() for path in Path(scratch).iterdir()}


def _verdict(segment: Segment, suffix: str, rebuilt: bytes | None, dialect: Dialect) -> FileVerdict:
    name, why = segment.name(suffix), _why_not_exact(segment, suffix, dialect)
    if rebuilt is not None and rebuilt == segment.bytes_of(suffix):
        return FileVerdict(name, "exact", why)
    findings = [finding for finding in segment_findings(segment) if finding.subject == name]
    if not why:
        findings.insert(0, Finding("SEG-30", name, "is not what recovery writes, and no rule allows the difference"))
    return FileVerdict(name, "broken" if findings else "sound", why, tuple(findings))


def segment_findings(segment: Segment) -> Iterator[Finding]:
    """Yield the faults of a segment's indexes with which a lookup may be wrong."""
    base, batches = segment.base_offset, segment.batches
    offsets, times, transactions = _INDEXES
    yield from offset_index_findings(segment.bytes_of(offsets), base, batches, segment.name(offsets))
    yield from time_index_findings(segment.bytes_of(times), base, batches, segment.name(times))
    yield from txn_index_findings(segment.bytes_of(transactions), segment.aborted, segment.name(transactions))


def _why_not_exact(segment: Segment, suffix: str, dialect: Dialect) -> str:
    """Return the reason why the log does not determine the bytes of an index; empty if it does."""
    if suffix == ".txnindex":
        return ""
    for offset in segment.partition.restarts:
        if segment.batches and segment.base_offset < offset < segment.batches[-1].next_offset:
            return f"SEG-7: the broker was restarted at offset {offset}, and the batch after that has no entry"
    largest = -1
    for append in segment.appends:
        first, last, _ = append
        batches = segment.batches_of(append)
        if len(batches) > 1 and not dialect.append_per_batch:
            return f"SEG-3: offsets {first} to {last} were one append of {len(batches)} batches, with one entry at most"
        reached = batches[-1].max_timestamp
        if suffix == ".timeindex" and reached > largest and _stores_another_offset(batches[0], append, dialect):
            return (
                f"SEG-9: of offsets {first} to {last} the leader named the latest record, recovery names the last one"
            )
        largest = max(largest, reached)
    return ""


def _stores_another_offset(batch: RecordBatch, append: RecordedAppend, dialect: Dialect) -> bool:
    """Return True if the leader's time index entry for a batch has another offset than its last."""
    if dialect.leader_timestamp != "record" or append.kind != "in_place" or batch.is_compressed:
        return False
    if batch.timestamp_type is TimestampType.LOG_APPEND_TIME:
        return False
    largest = batch.max_timestamp
    return next((record.offset for record in batch if record.timestamp == largest), -1) != batch.last_offset
