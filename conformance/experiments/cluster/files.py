"""Comparison of the files of one log's replicas after clean stops: the logs must be equal, and the indexes right.

The logs of all replicas must be the same, batch for batch. The index files may differ. Each index file is:

* *exact*: byte-identical with the file that a recovery of the segment writes;
* *sound*: different, but every lookup has the right result (:mod:`conformance.experiments.golden.soundness`) and a rule
  of the release allows the difference:

  - SEG-3: a follower appends the batches of one fetch together, and up to 3.9.0 (and in 4.0.0) an append has at most
    one entry. The entries of such a file must fit some grouping of the batches into appends.
  - SEG-7: the first batch after a restart or a truncation has no entry.
  - SEG-9: up to 3.6, a leader indexes the offset of the record with the largest timestamp, other replicas the last
    offset of its batch.

* *broken*: anything else.
"""

from __future__ import annotations

import struct
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final, Literal

from conformance.experiments.golden.soundness import offset_index_findings, time_index_findings, txn_index_findings
from conformance.kafka.broker.mismatch import Mismatch
from kidx.rebuild import rebuild
from kidx.records import file_batches
from kidx.segment import ProducerState

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from conformance.experiments.cluster.scenario import Topic
    from kidx.dialect import Dialect
    from kidx.records import RecordBatch

Verdict = Literal["exact", "sound", "broken"]
_SUFFIXES: Final = (".index", ".timeindex", ".txnindex")
_ENTRY: Final = struct.Struct(">ii")


@dataclass(frozen=True, slots=True)
class IndexFile:
    """Index file of a replica.

    Attributes:
        replica: id of the broker.
        name: name of the file, with its partition's directory.
        verdict: result of the comparison.
        why: the rule that allows the file not to be exact, with details; otherwise empty.
        as_leader: True if the leader's file has the same bytes.
    """

    replica: int
    name: str
    verdict: Verdict
    why: str
    as_leader: bool


@dataclass(frozen=True, slots=True)
class Segment:
    """Segment of a replica."""

    log: Path
    batches: list[RecordBatch]

    @property
    def base_offset(self) -> int:
        """Base offset, which the names of the segment's files contain."""
        return int(self.log.stem)

    def surrounds(self, offset: int) -> bool:
        """Return True if the segment has records both before and after an offset."""
        return bool(self.batches) and self.base_offset < offset < self.batches[-1].next_offset

    def bytes_of(self, suffix: str) -> bytes:
        """Return the content of one of the segment's files; empty if it does not exist."""
        path = self.log.with_suffix(suffix)
        return path.read_bytes() if path.exists() else b""


def compare_replicas(
    topic: Topic, leader: int, directories: Mapping[int, Path], dialect: Dialect, interval: int
) -> tuple[list[IndexFile], list[Mismatch]]:
    """Compare the files of all replicas of a topic.

    Args:
        topic: expected state of the topic.
        leader: the broker that led the partition last.
        directories: directory of the partition, by broker.
        dialect: rules of the release.
        interval: ``index.interval.bytes`` of the topic.

    Returns:
        The verdict on each index file, and the violations.

    Raises:
        OSError, KidxError: a log cannot be read.
    """
    files: list[IndexFile] = []
    mismatches: list[Mismatch] = []
    of_leader = _segments(directories[leader])
    expected = _stored(of_leader)
    if [record.timestamp for segment in of_leader for batch in segment.batches for record in batch] != topic.timestamps:
        mismatches.append(Mismatch("RB-1", f"{topic.name} on broker {leader}", "the produced records", "other records"))
    for replica, directory in directories.items():
        segments = _segments(directory)
        found = _stored(segments)
        if found != expected:
            n = next(
                (n for n, (a, b) in enumerate(zip(expected, found, strict=False)) if a != b),
                min(map(len, (expected, found))),
            )
            mismatches.append(
                Mismatch(
                    "RB-1",
                    str(directory),
                    f"the {len(expected)} batches of its leader",
                    f"{len(found)}, other ones from {n} on",
                )
            )
        producers = ProducerState(directory.name, dialect)
        for segment in segments:
            rebuilt = _rebuilt(segment, dialect, interval, producers)
            for suffix in _SUFFIXES:
                if suffix not in rebuilt and not segment.log.with_suffix(suffix).exists():
                    continue
                verdict, why, wrong = _verdict(
                    topic, replica, segment, suffix, rebuilt.get(suffix, b""), dialect, interval
                )
                mismatches += wrong
                path = segment.log.with_suffix(suffix)
                same = directories[leader] / path.name
                as_leader = same.exists() and same.read_bytes() == path.read_bytes()
                files.append(IndexFile(replica, f"{directory.name}/{path.name}", verdict, why, as_leader))
    return files, mismatches


def _segments(directory: Path) -> list[Segment]:
    return [Segment(log, list(file_batches(log))) for log in sorted(directory.glob("*.log"))]


def _stored(segments: Iterable[Segment]) -> list[tuple[int, int, int, int]]:
    """Return offsets, leader epoch and checksum of each batch, which must be equal in every replica."""
    return [
        (batch.base_offset, batch.last_offset, batch.partition_leader_epoch, batch.crc)
        for segment in segments
        for batch in segment.batches
    ]


def _rebuilt(segment: Segment, dialect: Dialect, interval: int, producers: ProducerState) -> dict[str, bytes]:
    with tempfile.TemporaryDirectory(prefix="kidx-rebuild-") as scratch:
        rebuild(segment.log, scratch, dialect=dialect, index_interval_bytes=interval, producer_state=producers)
        return {path.suffix: path.read_bytes() for path in Path(scratch).iterdir()}


def _verdict(
    topic: Topic, replica: int, segment: Segment, suffix: str, rebuilt: bytes, dialect: Dialect, interval: int
) -> tuple[Verdict, str, list[Mismatch]]:
    data, name = segment.bytes_of(suffix), str(segment.log.with_suffix(suffix))
    if data == rebuilt:
        return "exact", "", []
    if suffix == ".index":
        findings = offset_index_findings(data, segment.base_offset, segment.batches, name)
    elif suffix == ".timeindex":
        findings = time_index_findings(data, segment.base_offset, segment.batches, name)
    else:
        findings = txn_index_findings(data, [], name)
    wrong = [Mismatch(finding.clause, finding.subject, "a sound index", finding.message) for finding in findings]
    why = _why(topic, replica, segment, suffix, dialect, interval)
    if not why:
        wrong.append(Mismatch("SEG-30", name, "what recovery writes, or a rule that allows the difference", "neither"))
    return ("broken" if wrong else "sound"), why, wrong


def _why(topic: Topic, replica: int, segment: Segment, suffix: str, dialect: Dialect, interval: int) -> str:
    """Return the rule that allows an index to differ from the file that recovery writes; empty if none does."""
    for offset in topic.interrupted.get(replica, ()):
        if segment.surrounds(offset):
            return f"SEG-7: broker {replica} was interrupted at offset {offset}"
    if not dialect.append_per_batch and (groups := grouped(segment, interval)):
        return f"SEG-3: {groups}"
    led = any(
        offsets and segment.base_offset <= offsets[-1] and segment.batches[-1].last_offset >= offsets[0]
        for offsets in topic.led.get(replica, ())
    )
    if suffix == ".timeindex" and dialect.leader_timestamp == "record" and led:
        return f"SEG-9: broker {replica} was the leader and named the records themselves"
    return ""


def grouped(segment: Segment, interval: int) -> str:
    """Return how the batches must have been grouped into appends, if ``.index`` has one entry per append (SEG-3).

    An entry (offset, position) belongs to an append from that position up to the batch that ends with the offset. The
    entry was written because more than ``interval`` bytes had been appended since the previous entry. If the next
    append has no entry, at most that many bytes had been appended since this one. Batches between two entries may have
    been grouped in any way.

    Returns:
        A description; empty if no grouping explains the entries, or if each entry belongs to a single batch.
    """
    ends = {batch.last_offset: batch.position + batch.size_in_bytes for batch in segment.batches}
    starts = {batch.position: number for number, batch in enumerate(segment.batches)}
    data = segment.bytes_of(".index")
    several, start, end = 0, 0, 0
    for relative, position in _ENTRY.iter_unpack(data[: len(data) // _ENTRY.size * _ENTRY.size]):
        last = segment.base_offset + relative
        if position not in starts or last not in ends or not end <= position < ends[last]:
            return ""
        if position - start <= interval or (position > end and end - start > interval):
            return ""
        several += segment.batches[starts[position]].last_offset != last
        start, end = position, ends[last]
    size = segment.batches[-1].position + segment.batches[-1].size_in_bytes if segment.batches else 0
    if size > end and end - start > interval:
        return ""
    return f"{several} entries are appends of several batches" if several else "batches without an entry came together"
