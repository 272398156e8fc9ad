"""Verification of one segment: its files are read once, and each gets a verdict."""

from __future__ import annotations

import dataclasses
import os
from pathlib import Path
from typing import TYPE_CHECKING, Final

from kidx.dialect import DIALECTS, Dialect, dialect_of
from kidx.discovery import INDEX_SUFFIXES, LOG, Segment, discover
from kidx.errors import InvalidArgumentError
from kidx.files import signature_of
from kidx.findings import HARMLESS, Fault
from kidx.layout import LOG_OVERHEAD, MESSAGE_OVERHEAD_V0, RECORD_BATCH_OVERHEAD, TIME_INDEX
from kidx.printable import counted
from kidx.scan.blocks import LogBlocks, LogTail
from kidx.scan.entries import Array, IndexContent, parse_index, read_index
from kidx.verify.facts import Gatherer
from kidx.verify.index_rules import (
    check_offset_index,
    check_time_index,
    interval_of,
    is_exact_offset_index,
    writers_of_time_index,
)
from kidx.verify.log_rules import check_batches, check_records, check_tail
from kidx.verify.reporter import Reporter
from kidx.verify.verdicts import FileVerdict, Interval, SegmentVerdict

if TYPE_CHECKING:
    from kidx.findings import Verdict

_TRIES: Final = 3
"""Maximum number of reads of a segment that a broker writes to, until two agree.

A write to a memory-mapped file does not change its modification time, so that only another read shows it.
"""

_LEAST_BYTES: Final = {
    ".index": LOG_OVERHEAD + MESSAGE_OVERHEAD_V0,
    ".timeindex": LOG_OVERHEAD + MESSAGE_OVERHEAD_V0,
    ".txnindex": RECORD_BATCH_OVERHEAD,
}
"""Bytes of the smallest batch that can have an entry, by suffix."""

_MORE_THAN_CAN_BE: Final = 1 << 14
"""Number of entries that are checked in addition to the maximum that a log of this size can have."""

_EMPTY: Final = {suffix: parse_index(b"", 0, suffix) for suffix in INDEX_SUFFIXES}
_RECORD_RELEASES: Final = tuple(name for name, dialect in DIALECTS.items() if dialect.leader_timestamp == "record")
"""Releases whose leaders write the offset of the record into the ``.timeindex``, not the last one of its batch."""


def verify_segment(
    segment: Segment | str | os.PathLike[str],
    *,
    release: str | Dialect | None = None,
    index_interval_bytes: int | None = None,
    records: bool = False,
) -> SegmentVerdict:
    """Return the verdicts on the files of one segment, which are opened read-only.

    Rules that need other segments (the ``.txnindex``, gaps, checkpoints) are in :func:`kidx.verify.verify_partition`.

    Args:
        segment: segment, as :func:`kidx.discovery.discover` returns it, or the path of a ``.log`` file.
        release: release for the verdict *exact*; any release if None.
        index_interval_bytes: the topic's setting; inferred from the entries if None.
        records: True to read every record, and not only the headers and checksums of batches.

    Raises:
        InvalidArgumentError: the path does not belong to a segment.
    """
    found = segment if isinstance(segment, Segment) else _segment_at(Path(segment))
    dialect = None if release is None else dialect_of(release)
    may_grow = found.is_last and not found.clean
    earlier = None
    for _ in range(_TRIES):
        before = signature_of(found.paths)
        verdict = _look(found, dialect, index_interval_bytes, records=records)
        if may_grow and not _is_harmless(verdict):
            finished = _look(found, dialect, index_interval_bytes, records=records, without_half=True)
            verdict = finished if _is_harmless(finished) else verdict
        if not may_grow or _is_harmless(verdict) or verdict == earlier:
            break
        earlier = verdict
    return dataclasses.replace(verdict, signature=before)


def _is_harmless(verdict: SegmentVerdict) -> bool:
    return all(file.verdict in HARMLESS for file in verdict.files)


def _segment_at(path: Path) -> Segment:
    found = list(discover([path]).segments)
    if len(found) != 1:
        raise InvalidArgumentError(f"{path} is not the .log file of a segment")
    return found[0]


def _log_size(segment: Segment) -> int:
    try:
        return segment.log.stat().st_size
    except OSError:
        return 0


class _Files:
    """Index files of a segment, read before its log, so that the log is at least as new.

    Args:
        without_half: True to omit a last entry whose second field is 0: the broker writes the two fields one after the
            other, and may not have written the second.
    """

    def __init__(self, segment: Segment, *, without_half: bool = False) -> None:
        self.contents: dict[str, IndexContent] = {}
        self.errors: dict[str, OSError] = {}
        for suffix in INDEX_SUFFIXES:
            try:
                most = _log_size(segment) // _LEAST_BYTES[suffix] + _MORE_THAN_CAN_BE
                content = read_index(segment.path(suffix), segment.base_offset, max_entries=most)
                self.contents[suffix] = content.without_half(segment.base_offset) if without_half else content
            except FileNotFoundError:
                continue
            except OSError as error:
                self.errors[suffix] = error

    def entries(self, suffix: str) -> Array:
        return self.contents.get(suffix, _EMPTY[suffix]).entries

    @property
    def size(self) -> int:
        return sum(content.size for content in self.contents.values())


def _look(
    segment: Segment, dialect: Dialect | None, given: int | None, *, records: bool, without_half: bool = False
) -> SegmentVerdict:
    """Read all files of a segment once, and return the verdicts on them; see :func:`verify_segment`."""
    reporter = Reporter(segment, dialect)
    files = _Files(segment, without_half=without_half)
    entries = files.entries(".index"), files.entries(".timeindex")
    facts = Gatherer(segment.base_offset, *entries)
    error: OSError | None = None
    tail, bytes_read = LogTail(), files.size
    try:
        with LogBlocks(segment.log) as blocks:
            facts.read(blocks)
            tail, bytes_read = blocks.tail, bytes_read + blocks.bytes_read
    except FileNotFoundError:
        return SegmentVerdict(segment, gone=True, readable=False)
    except OSError as raised:
        error, facts = raised, Gatherer(segment.base_offset, *entries)
    if records and error is None:
        try:
            check_records(segment.log, reporter)
        except OSError as raised:
            error = raised
    verdicts = [_judge_log(facts, tail, reporter, error, segment)]
    if error is None:
        for suffix, content in files.contents.items():
            _check_number(suffix, content, tail, reporter)
        verdicts += _judge_indexes(files, facts, reporter, dialect, given)
    verdicts += [_unreadable(suffix, failure, reporter) for suffix, failure in files.errors.items()]
    log = facts.log
    transactions = files.contents.get(".txnindex")
    if transactions is not None and transactions.trailing_bytes:
        reporter.add(
            segment.path(".txnindex"),
            Fault.PARTIAL_ENTRY,
            "broken",
            f"the file ends with {counted(transactions.trailing_bytes, 'byte')}, no whole entry: "
            "entries appended after them are misread",
            expected="a multiple of 34",
            actual=transactions.size,
        )
    return SegmentVerdict(
        segment,
        tuple(verdicts),
        tuple(reporter.findings()),
        log.batches,
        log.records,
        bytes_read,
        log.first_offset,
        log.last_offset if log.batches else -1,
        log.max_timestamp,
        tuple(log.epochs),
        tuple(log.transactions),
        None if transactions is None else tuple(map(tuple, transactions.entries.tolist())),
        log.counts,
        compacted=bool(log.sparse_batches or log.counts["gap"]),
        readable=error is None,
        hidden_end=log.end_offset if log.hidden else -1,
    )


def _check_number(suffix: str, content: IndexContent, tail: LogTail, reporter: Reporter[Segment]) -> None:
    kept, most = len(content.entries), tail.file_size // _LEAST_BYTES[suffix]
    if content.omitted and kept > most:
        reporter.add(
            reporter.where.path(suffix),
            Fault.TOO_MANY_ENTRIES,
            "broken",
            f"{counted(kept + content.omitted, 'entry')} for a log of {counted(tail.file_size, 'byte')}, more than it "
            f"can have batches: entries from slot {kept} on were not checked",
            slot=kept,
            expected=f"at most {counted(most, 'entry')}",
            actual=counted(kept + content.omitted, "entry"),
        )


def _unreadable(suffix: str, error: OSError, reporter: Reporter[Segment]) -> FileVerdict:
    path = reporter.where.path(suffix)
    reason = error.strerror or str(error)
    reporter.add(path, Fault.UNREADABLE, "unreadable", f"cannot be read: {reason}")
    return FileVerdict(str(path), "unreadable", why=reason)


def _judge_log(
    facts: Gatherer, tail: LogTail, reporter: Reporter[Segment], error: OSError | None, segment: Segment
) -> FileVerdict:
    if error is not None:
        return _unreadable(LOG, error, reporter)
    check_batches(facts.log, reporter)
    check_tail(facts.log, tail, reporter, may_grow=segment.is_last and not segment.clean)
    return FileVerdict(str(segment.log), reporter.verdict(segment.log), size=tail.file_size)


def _judge_indexes(
    files: _Files, facts: Gatherer, reporter: Reporter[Segment], dialect: Dialect | None, given: int | None
) -> list[FileVerdict]:
    verdicts = []
    offsets, times = files.contents.get(".index"), files.contents.get(".timeindex")
    if offsets is not None:
        verdicts.append(_judge_offsets(offsets, facts, reporter, given))
    elif ".index" not in files.errors:
        verdicts += _missing(".index", facts, reporter)
    if times is not None:
        follows_exact = offsets is not None and verdicts[0].verdict == "exact"
        verdicts.append(_judge_times(times, facts, reporter, dialect, follows_exact=follows_exact))
    elif ".timeindex" not in files.errors:
        verdicts += _missing(".timeindex", facts, reporter)
    if offsets is not None and not len(offsets.entries) and verdicts[0].verdict == "exact" and facts.log.batches:
        verdicts[0] = _judge_empty(verdicts[0], times, facts, reporter)
    return verdicts


def _judge_empty(
    file: FileVerdict, times: IndexContent | None, facts: Gatherer, reporter: Reporter[Segment]
) -> FileVerdict:
    """Return the verdict on an ``.index`` without entries: any large interval explains it, so the times decide.

    A broker writes an entry into the ``.index`` and then into the ``.timeindex``, so that both lack it or none.
    """
    if times is not None:
        finished = not times.padding_entries
        if (
            _is_epoch_start(times, facts)
            or writers_of_time_index(reporter.where.log, times, facts, finished=finished)[0]
        ):
            return file
    others = "there is no .timeindex" if times is None else f".timeindex has {counted(len(times.entries), 'entry')}"
    why = f"it has no entry, and {others}: its entries were lost, or the broker was restarted"
    return dataclasses.replace(file, verdict="sound", releases="", why=why)


def _judge_offsets(
    content: IndexContent, facts: Gatherer, reporter: Reporter[Segment], given: int | None
) -> FileVerdict:
    check_offset_index(content, facts, reporter)
    _check_zeros(".index", content, facts, reporter)
    verdict, why, interval = reporter.verdict(reporter.where.path(".index")), "", None
    if verdict == "exact":
        interval = interval_of(content.entries, facts)
        is_exact, why = is_exact_offset_index(content, facts, interval, given)
        verdict = "exact" if is_exact else "sound"
    return _file(".index", content, reporter, verdict, why, interval, _span(DIALECTS))


def _judge_times(
    content: IndexContent, facts: Gatherer, reporter: Reporter[Segment], dialect: Dialect | None, *, follows_exact: bool
) -> FileVerdict:
    path = reporter.where.path(".timeindex")
    finished = _check_zeros(".timeindex", content, facts, reporter)
    whose, why = "all", ""  # the releases that write these bytes: all, or those that name the record, or none ("")
    if not _is_epoch_start(content, facts):
        check_time_index(content, facts, reporter, finished=finished)
        if reporter.verdict(path) == "exact" and follows_exact:
            whose, why = writers_of_time_index(reporter.where.log, content, facts, finished=finished)
    verdict, releases = reporter.verdict(path), _span(DIALECTS if whose == "all" else _RECORD_RELEASES)
    if not follows_exact:
        whose, why = "", "the offset index that it goes with is not exact"
    elif whose == "record" and dialect is not None and dialect.leader_timestamp != "record":
        whose, why = "", f"exact for leaders of {releases} only: they name the record and not the batch (SEG-9)"
    if verdict == "exact" and not whose:
        verdict = "sound"
    return _file(".timeindex", content, reporter, verdict, why, None, releases)


def _file(
    suffix: str,
    content: IndexContent,
    reporter: Reporter[Segment],
    verdict: Verdict,
    why: str,
    interval: Interval | None,
    releases: str,
) -> FileVerdict:
    return FileVerdict(
        str(reporter.where.path(suffix)),
        verdict,
        releases if verdict == "exact" else "",
        why if verdict != "exact" else "",
        len(content.entries),
        content.size,
        interval,
    )


def _span(releases: object) -> str:
    names = list(releases)  # type: ignore[call-overload]
    return f"{names[0]} – {names[-1]}"


def _missing(suffix: str, facts: Gatherer, reporter: Reporter[Segment]) -> list[FileVerdict]:
    """Report a missing index, which is a fault as soon as the log has a batch (SEG-1, SEG-35, SEG-36)."""
    if not facts.log.batches:
        return []
    if suffix == ".index":
        effect = "a start rebuilds it, after any stop; until then the segment is read from its first byte"
    else:
        last = reporter.where.is_last and not reporter.where.clean
        effect = (
            f"a broker that loads the segment {'after a clean stop ' if last else ''}creates an empty one, and takes "
            "the modification time of the log for the segment's largest timestamp"
        )
    path, batches = reporter.where.path(suffix), counted(facts.log.batches, "batch")
    reporter.add(path, Fault.MISSING_INDEX, "missing", f"there is no {suffix} for {batches}: {effect}")
    return [FileVerdict(str(path), "missing")]


def _check_zeros(suffix: str, content: IndexContent, facts: Gatherer, reporter: Reporter[Segment]) -> bool:
    """Report zeros after the entries of an index that no broker writes to; return False if a broker may be writing."""
    segment = reporter.where
    if not content.padding_entries or (suffix == ".timeindex" and _is_epoch_start(content, facts)):
        return True
    if segment.is_last and not segment.clean:
        return False
    if segment.is_last:
        kind, when = Fault.UNTRIMMED, "after a clean shutdown: the broker takes them for entries when it starts"
    else:
        kind, when = (
            Fault.PADDED,
            "in a segment that no broker writes to: a broker that loads it takes them for entries",
        )
    effect = "the next append rolls" if suffix == ".index" else "and 0 for the largest timestamp"
    reporter.add(
        segment.path(suffix),
        kind,
        "broken",
        f"the index ends with {counted(content.padding_entries, 'entry')} of zeros, {when}, {effect}",
        slot=len(content.entries),
        expected=counted(len(content.entries), "entry"),
        actual=counted(len(content.entries) + content.padding_entries, "entry"),
    )
    return True


def _is_epoch_start(content: IndexContent, facts: Gatherer) -> bool:
    """Return True for a segment whose largest timestamp is 0, at its base offset: its only entry is all zeros."""
    log = facts.log
    return (
        not len(content.entries)
        and content.size == TIME_INDEX.size
        and log.max_timestamp == 0
        and log.max_timestamp_offset == log.base_offset
    )
