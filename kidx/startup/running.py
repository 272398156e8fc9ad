"""Simulation of a broker that runs: the harm that it does to a log in the first minutes after it has loaded it.

A view of the log is loaded as by the start. A producer appends the first records, and a consumer reads them; retention
is applied once; index files that the start has made are verified. Nothing of this is written to the files of the
partition. Each remedy was simulated.
"""

from __future__ import annotations

import contextlib
import dataclasses
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final, NamedTuple, cast

from kidx.discovery import (
    CLEANED_OFFSETS,
    INDEX_SUFFIXES,
    LOG,
    SEGMENT_SUFFIXES,
    SWAP,
    Segment,
    parse_partition,
    parse_segment_file,
)
from kidx.errors import KidxError
from kidx.findings import HARMLESS
from kidx.index.time import TimestampOffset
from kidx.log.errors import InvalidTimestampError
from kidx.printable import counted, shell_word
from kidx.records import build_batch
from kidx.repair import FROM_A_REPLICA
from kidx.repair.plan import TRANSACTIONS
from kidx.scan.blocks import LogBlocks, hidden_batches
from kidx.segment import file_name
from kidx.startup.answers import Later
from kidx.startup.changes import Change, cut, forget_clean_stop, make_directory_view, move_out, rename, tried_in_vain
from kidx.startup.checkpoints import UnreadableError, offsets_of
from kidx.startup.readable import LoggedRecords, Piece, largest_timestamp_in, records_in
from kidx.startup.simulation import CheckpointedOffsets, Checkpoints, open_view, regular_files, scratch_directory
from kidx.startup.views import source_of
from kidx.verify import verify_segment

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator, Mapping
    from pathlib import Path

    from kidx.dialect import Dialect
    from kidx.log import LogConfig
    from kidx.log.retention import Rule
    from kidx.segment import Clock
    from kidx.startup.settings import TopicSettings
    from kidx.startup.views import ViewedLog, ViewedSegment

LARGEST_COMPACTED: Final = 64 << 20
"""Maximum size in bytes of a log whose compaction is simulated, because each record is read and written."""
_BATCHES: Final = 3
"""Number of batches that are appended: the second and the third add index entries."""


@dataclass(frozen=True, slots=True)
class LogFiles:
    """Files of a log, and how a broker loads them.

    Attributes:
        files: files by the names that they have when the broker starts.
        dialect: rules of the release.
        checkpoints: checkpointed offsets of the log.
        config: settings of the topic.
        clock: the wall clock.
    """

    directory: Path
    files: Mapping[str, Path]
    dialect: Dialect
    checkpoints: Checkpoints
    config: LogConfig
    clock: Clock

    def path_of(self, source: Path) -> Path:
        """Return the path of a file as it was given."""
        return self.directory / source.name

    @contextlib.contextmanager
    def loaded(self) -> Iterator[ViewedLog]:
        """Load the log from a view, which is removed at the end.

        Raises:
            KidxError, OSError: the release cannot load the log.
        """
        with scratch_directory() as scratch:
            view = scratch / self.directory.name
            log = open_view(self.files, view, self.dialect, self.checkpoints, self.config, self.clock)
            try:
                yield log
            finally:
                log.release_handles()


class Expired(NamedTuple):
    """Segment that retention deletes only because its age is read from a wrong place, or the log seems too large.

    Attributes:
        log: path of the ``.log``.
        records: number of its readable records.
        largest: largest timestamp as the started log has it.
        actual: largest timestamp of its batches.
        rule: rule of retention that deletes it.
    """

    log: Path
    records: int
    largest: int
    actual: int
    rule: Rule


class Surplus(NamedTuple):
    """Bytes at the end of a log file in which there is no batch, and that count for retention by size."""

    log: Path
    end: int  # position of the first of them
    size: int  # number of bytes of the file


class Unread(NamedTuple):
    """Place at which the first records are appended, and where nobody can read them.

    Attributes:
        log: path of the active segment's ``.log``.
        end: position after the last batch that a reader reaches.
        size: size of the log in bytes when the broker has loaded it.
        reason: error of a consumer, or of the producer.
        is_refused: True if the append itself fails.
        rolls: True if records of this moment can be read, because the broker rolls a new segment for them.
    """

    log: Path
    end: int
    size: int
    reason: str
    is_refused: bool
    rolls: bool = False


class WrongIndex(NamedTuple):
    """Index file that the start makes, and the first thing that is wrong with it."""

    path: Path
    message: str


@dataclass(frozen=True, slots=True)
class Ran:
    """Harm that a running broker does to a log after it has loaded it.

    Attributes:
        end: log end offset after loading; None if the log cannot be loaded.
        pieces: segments after loading.
        expired: segments that retention deletes without a right reason.
        unread: first appends that nobody can read; None if they are readable.
        indexes: index files that the start makes wrong.
    """

    end: int | None = None
    pieces: tuple[Piece, ...] = ()
    expired: tuple[Expired, ...] = ()
    unread: Unread | None = None
    indexes: tuple[WrongIndex, ...] = ()

    @property
    def is_harmless(self) -> bool:
        """True if the log is loaded, and nothing of this happens."""
        return self.end is not None and not (self.expired or self.unread or self.indexes)

    @property
    def records(self) -> int:
        """Number of readable records after loading."""
        return sum(records_in(piece.path, piece.size) for piece in self.pieces)


def run(log_files: LogFiles) -> Ran:
    """Return what a running broker does to a log after loading it."""
    try:
        with log_files.loaded() as log:
            wrong = tuple(_wrong_indexes(log, log_files))
            end = log.end_offset
            pieces = tuple(
                Piece(segment.base_offset, segment.log.source, segment.size)
                for segment in _segments(log)
                if segment.log.source is not None
            )
            expired = _expire(log)
        if expired:
            expired = [each._replace(log=log_files.path_of(each.log)) for each in _without_reason(expired, log_files)]
        unread = None
        for is_new in (True, False):
            if unread is None:
                with log_files.loaded() as log:
                    unread = _append_and_read(log, is_new=is_new)
                if unread is not None:
                    unread = unread._replace(rolls=not is_new)
    except (KidxError, OSError):
        return Ran()
    if unread is not None:
        unread = unread._replace(log=log_files.path_of(unread.log))
    return Ran(end, pieces, tuple(expired), unread, wrong)


def _segments(log: ViewedLog) -> Iterator[ViewedSegment]:
    return cast("Iterator[ViewedSegment]", iter(log.segments))


# -- retention -----------------------------------------------------------------------------------------------------


def _expire(log: ViewedLog) -> list[Expired]:
    """Apply retention, and return the segments with records that it deletes by their age, or by the size of the log."""
    deleted: dict[Rule, list[ViewedSegment]] = {}
    with contextlib.suppress(KidxError, OSError):  # the broker logs such an error, and tries again minutes later
        deleted = log.expire()
    return [
        Expired(segment.log.source, records, segment.largest_timestamp, _actual(segment), rule)
        for rule, segments in deleted.items()
        for segment in segments
        if rule != "start"
        and segment.log.source is not None
        and (records := records_in(segment.log.source, segment.size))
    ]


def _whole_size(log: Path, size: int) -> int:
    """Return the size of a log without bytes at its end in which there is no batch."""
    end = _end_of(log, size)
    return size if end < size and hidden_batches(log, end) else end


def _surplus(log_files: LogFiles, ran: Ran) -> Iterator[Surplus]:
    """Yield the bytes at the ends of the loaded segments in which there is no batch."""
    for piece in ran.pieces:
        end = _whole_size(piece.path, piece.size)
        if end < piece.size:
            yield Surplus(log_files.path_of(piece.path), end, piece.size)


def _actual(segment: ViewedSegment) -> int:
    """Return the largest timestamp of a segment's batches."""
    assert segment.log.source is not None
    return largest_timestamp_in(segment.log.source, segment.size)


def _without_reason(expired: list[Expired], log_files: LogFiles) -> list[Expired]:
    """Return the segments that retention does not delete if the time indexes have the timestamps of the batches.

    Neither have the logs bytes after their last batches then.
    """
    actual = {each.log: each.actual for each in expired}
    with log_files.loaded() as log:
        for segment in _segments(log):
            if segment.log.source is not None:
                segment.log.truncate_to(_whole_size(segment.log.source, segment.size))
            if segment.log.source in actual:
                segment.time_index.reset()
                segment.maximum.set(TimestampOffset(actual[segment.log.source], segment.base_offset))
        with contextlib.suppress(KidxError, OSError):
            log.expire()
        kept = {segment.log.source for segment in _segments(log)}
    return [each for each in expired if each.log in kept]


# -- appends -------------------------------------------------------------------------------------------------------


def _append_and_read(log: ViewedLog, *, is_new: bool) -> Unread | None:
    """Append some batches as a producer does, and read them; return None if a consumer gets them all.

    Args:
        log: the loaded log.
        is_new: True if the records are of this moment, so that an old segment is rolled; False if they follow the
            last ones, like the records of a mirror, or of a leader that this broker follows.
    """
    active = cast("ViewedSegment", log.segments.active)
    first, size, source = log.end_offset, active.size, active.log.source
    if source is None:
        return None
    timestamp = log.clock()
    if not is_new:
        timestamp = min(max(active.largest_timestamp, _actual(active)) + 1, timestamp)
    config = log.config
    value = bytes(
        min(config.index_interval_bytes + 1, config.largest_message(log.dialect) // 2, config.segment_bytes // 2)
    )
    reason, is_refused = "", False
    try:
        for _ in range(_BATCHES):
            log.append_as_leader(build_batch([(timestamp, b"key", value)]), log.epochs.latest_epoch or 0)
    except InvalidTimestampError:
        return None  # by a setting of the topic, whatever the files are
    except (KidxError, OSError) as error:
        reason, is_refused = _said(error), True
    for offset in range(first, log.end_offset):
        reason = reason or _unreadable(log, offset, active, size)
    return Unread(source, _end_of(source, size), size, reason, is_refused) if reason else None


def _unreadable(log: ViewedLog, offset: int, active: ViewedSegment, size: int) -> str:
    """Return the reason why a consumer does not get a new record; empty if it does."""
    segment = log.segments.floor(offset)
    try:
        found = None if segment is None else segment.translate_offset(offset)
        if segment is None or found is None:
            return f"a consumer finds nothing at offset {offset}"
        if segment is active and found.position < size:
            next(segment.batches(found.position)).ensure_valid()
            return f"a consumer gets an older batch at offset {offset}"
        next(segment.batches(found.position)).ensure_valid()
    except (KidxError, OSError) as error:
        return f"a consumer gets an error at offset {offset}: {_said(error)}"
    return ""


def _end_of(log: Path, size: int) -> int:
    """Return the position after the last batch that a reader of a log reaches."""
    with LogBlocks(log, end=size, checked=False) as blocks:
        for _ in blocks:
            pass
        return blocks.tail.valid_bytes


def _said(error: Exception) -> str:
    return str(error.kafka_message) if isinstance(error, KidxError) else str(error)


# -- compaction ----------------------------------------------------------------------------------------------------


def compacted_away(log_files: LogFiles, cleaned_to: int | None, indexes: Collection[str]) -> list[int] | None:
    """Return the offsets of the records that compaction deletes only because aborted transactions are not known.

    None if the log is too large to be compacted here.

    Without its entry in ``.txnindex``, an aborted record replaces the record that was committed before with its key.

    Args:
        cleaned_to: offset at which the last round of compaction ended; None without one.
        indexes: names of the ``.index`` files without which a start rebuilds all wrong ``.txnindex`` files.
    """
    rebuilt = {name: path for name, path in log_files.files.items() if name not in indexes}
    try:
        if sum(path.stat().st_size for name, path in rebuilt.items() if name.endswith(LOG)) > LARGEST_COMPACTED:
            return None
        right = _compacted(dataclasses.replace(log_files, files=rebuilt), cleaned_to)
        return sorted(right - _compacted(log_files, cleaned_to))
    except (KidxError, OSError):
        return []  # the broker logs such an error, and does not compact the log


def _compacted(log_files: LogFiles, cleaned_to: int | None) -> set[int]:
    """Return the offsets of the records that a log has after one round of compaction."""
    with log_files.loaded() as log:
        log.update_high_watermark(log.end_offset)
        log.clean(cleaned_to)
        batches = (batch for segment in log.segments for batch in segment.batches() if not batch.is_control)
        return {record.offset for batch in batches for record in batch}


# -- index files ---------------------------------------------------------------------------------------------------


def _wrong_indexes(log: ViewedLog, log_files: LogFiles) -> Iterator[WrongIndex]:
    """Yield the index files that the start has made wrong; those that were wrong before are not its doing."""
    topic, partition, _ = parse_partition(log_files.directory.name) or (None, None, "")
    bases = [segment.base_offset for segment in _segments(log)]
    for segment, following in zip(_segments(log), [*bases[1:], None], strict=True):
        base = segment.base_offset
        if segment.log.is_changed or segment.log.source is None or segment.log.source.name == file_name(base, LOG):
            continue
        with scratch_directory() as scratch:
            for suffix in SEGMENT_SUFFIXES:
                in_view = log.directory / file_name(base, suffix)
                if in_view.exists():
                    (scratch / in_view.name).symlink_to(source_of(in_view) or in_view)
            verdict = verify_segment(
                Segment(
                    scratch / file_name(base, LOG),
                    base,
                    topic,
                    partition,
                    frozenset(path.suffix for path in scratch.iterdir()),
                    is_last=following is None,
                    next_base_offset=following,
                ),
                release=log_files.dialect,
            )
        said: dict[str, str] = {}
        for finding in verdict.findings:
            if finding.verdict not in HARMLESS and finding.file.endswith(INDEX_SUFFIXES):
                said.setdefault(finding.file, finding.message)
        for name, message in said.items():
            yield WrongIndex(log_files.directory / name, message)


_TIMES: Final = ".timeindex"
_NAMED: Final = 3
"""Maximum number of file names in a sentence."""


def harm_of(
    log_files: LogFiles,
    settings: TopicSettings,
    faulty: Collection[Path],
    repairable: Mapping[Path, Collection[str]],
    release: str | None,
    recovers: Callable[[], bool],
    omit: Callable[[str], None],
) -> Iterator[Later]:
    """Yield the harm that a running broker does to a log after it has loaded it.

    Args:
        faulty: files that are wrong before the start.
        repairable: suffixes of the index files that can be rebuilt, by log.
        release: release whose rules were requested; None for the default.
        recovers: function that returns True if the other logs of the log directory can be recovered without a loss.
        omit: function that receives the description of an effect that is not evaluated.
    """
    if settings.is_tiered:
        omit(f"what the broker deletes of {shell_word(log_files.directory)}, which has remote storage")
    ran = run(log_files)
    repair = f"kidx repair {shell_word(log_files.directory)}" + (f" --kafka {release}" if release else "")
    if ran.expired:
        yield _expired(log_files, ran, settings, repairable, repair)
    wrong = {path for path in faulty if path.parent == log_files.directory and path.suffix == TRANSACTIONS}
    if wrong and settings.config.compacts:
        yield from _harm_of_compaction(log_files, wrong, repairable, repair, omit)
    if ran.unread is not None:
        yield _unread(log_files, ran, repairable, repair, recovers)
    made = [each for each in ran.indexes if each.path not in faulty]
    if made:
        said = "; ".join(f"{shell_word(each.path.name)}: {each.message}" for each in made[:_NAMED])
        more = f"; and {counted(len(made) - _NAMED, 'index file')} more" if len(made) > _NAMED else ""
        reason = f"the start makes wrong index files: {said}{more}"
        brief = ", ".join(shell_word(each.path.name) for each in made[:_NAMED])
        yield Later(log_files.directory, "indexes", reason, brief, _of_swaps(log_files, ran))


def _expired(
    log_files: LogFiles,
    ran: Ran,
    settings: TopicSettings,
    repairable: Mapping[Path, Collection[str]],
    repair: str,
) -> Later:
    first = ran.expired[0]
    logs = tuple(each.log for each in ran.expired)
    records = sum(each.records for each in ran.expired)
    names = ", ".join(log.name for log in logs[:_NAMED]) + (
        f" and {len(logs) - _NAMED} more" if len(logs) > _NAMED else ""
    )
    what = (
        f"minutes after the start, retention deletes {counted(len(logs), 'segment')} with "
        f"{counted(records, 'readable record')}, {names}"
    )
    remedy = ""
    if first.rule == "time":
        limit = f"retention.ms={settings.config.retention_ms} ({settings.source_of('retention.ms')})"
        reason = (
            f"{what}: the broker takes {first.largest} for the largest timestamp of {first.log.name}, which is "
            f"{first.actual}, and so {limit} seems to be over"
        )
        if all(_TIMES in repairable.get(log, ()) for log in logs):
            remedy = f"{repair} before the start rebuilds the time indexes: with them, retention keeps these records"
    else:
        limit = f"retention.bytes={settings.config.retention_bytes} ({settings.source_of('retention.bytes')})"
        surplus = list(_surplus(log_files, ran))
        left = sum(each.size - each.end for each in surplus)
        reason = f"{what}: {counted(left, 'byte')} of the log are in no batch, and with them it exceeds {limit}"
        changes = [cut(each.log, each.end) for each in surplus]
        after, has_all = _after_changes(log_files, ran, *changes)
        if changes and has_all and not after.expired:
            remedy = f"before the start, cut these bytes: {' && '.join(change.command for change in changes)}"
    if not remedy:
        copies = ", ".join(map(shell_word, logs))
        remedy = f"do not start the broker before these are copied out of the log directories: {copies}"
    return Later(log_files.directory, "retention", reason, counted(records, "readable record"), remedy, logs, records)


def _harm_of_compaction(
    log_files: LogFiles,
    wrong: Collection[Path],
    repairable: Mapping[Path, Collection[str]],
    repair: str,
    omit: Callable[[str], None],
) -> Iterator[Later]:
    topic, partition, _ = parse_partition(log_files.directory.name) or ("", 0, "")
    cleaned_to = None
    with contextlib.suppress(UnreadableError):
        cleaned_to = offsets_of(log_files.directory.parent / CLEANED_OFFSETS).get((topic, partition))
    lost = compacted_away(log_files, cleaned_to, {path.with_suffix(".index").name for path in wrong})
    if lost is None:
        omit(f"compaction of {shell_word(log_files.directory)}, which has more than {LARGEST_COMPACTED >> 20} MiB")
    if not lost:
        return
    names = ", ".join(sorted(path.name for path in wrong)[:_NAMED])
    reason = (
        f"the next compaction deletes {counted(len(lost), 'committed record')} with offsets {lost[0]} to {lost[-1]}, "
        f"because aborted records replace them: the transactions are not in {names}"
    )
    logs = tuple(sorted(path.with_suffix(LOG) for path in wrong))
    if all(TRANSACTIONS in repairable.get(log, ()) for log in logs):
        remedy = f"{repair} before the start rebuilds these files: with them, compaction keeps the records"
    else:
        remedy = FROM_A_REPLICA
    brief = counted(len(lost), "committed record")
    yield Later(log_files.directory, "compaction", reason, brief, remedy, logs, len(lost))


def _unread(
    log_files: LogFiles,
    ran: Ran,
    repairable: Mapping[Path, Collection[str]],
    repair: str,
    recovers: Callable[[], bool],
) -> Later:
    unread = ran.unread
    assert unread is not None
    left = unread.size - unread.end
    if left:
        reason = (
            f"{counted(left, 'byte')} after byte {unread.end} of {unread.log.name} are no whole batch, and the broker "
            f"appends new records after them: they are acknowledged, but {unread.reason}"
        )
    elif unread.is_refused:
        reason = f"the broker rejects new records: {unread.reason}"
    else:
        reason = f"new records are acknowledged, but {unread.reason}"
    if unread.rolls:
        reason += "; records with timestamps of now can be read, because the broker rolls a new segment for them"

    def ways() -> Iterator[tuple[Change, str]]:
        if left:
            change = cut(unread.log, unread.end)
            yield change, f"before the start, cut the file as a recovery does: {change.command}"
        if repairable.get(unread.log):
            index = unread.log.with_suffix(".index").name
            change = Change("rebuild its indexes", repair, lambda view: (view / index).unlink(missing_ok=True))
            yield change, f"{repair} before the start rebuilds the index files: with them, new records can be read"
        if log_files.checkpoints.clean and recovers():
            change = forget_clean_stop(log_files.directory)
            yield change, f"before the start, let the broker recover its logs: {change.command}"
        change = move_out(unread.log)
        yield change, f"before the start, move it out, without which the log has as many records: {change.command}"

    remedy, rejected = "", []
    for change, words in ways():
        after, has_all = _after_changes(log_files, ran, change)
        if after.unread is None and has_all:
            remedy = words
            break
        rejected.append((change.what, "records would be lost" if after.unread is None else after.unread.reason))
    remedy = remedy or "; ".join(filter(None, (FROM_A_REPLICA, tried_in_vain(rejected, "lets new records be read"))))
    return Later(log_files.directory, "appends", reason, unread.log.name, remedy)


def _of_swaps(log_files: LogFiles, ran: Ran) -> str:
    """Return the remedy for files of an interrupted compaction that a start takes over without right indexes."""
    directory = log_files.directory
    swaps = [name for name in sorted(log_files.files) if name.endswith(SWAP)]
    logs = [name for name in swaps if name.endswith(f"{LOG}{SWAP}")]
    replaced = LoggedRecords(directory).replaced
    covered = [
        name
        for name in sorted(log_files.files)
        if (parsed := parse_segment_file(name)) and parsed[0] in replaced and parsed[1] in {LOG, *INDEX_SUFFIXES}
    ]
    ways = {
        "before the start, move the copy out, without which the log has as many records": [
            move_out(directory / name) for name in swaps
        ],
        "before the start, let the copy replace its segments; a start rebuilds its index files": [
            *(move_out(directory / name) for name in [*covered, *(name for name in swaps if name not in logs)]),
            *(rename(directory / name, name.removesuffix(SWAP)) for name in logs),
        ],
    }
    rejected = []
    for words, changes in ways.items():
        after, has_all = _after_changes(log_files, ran, *changes)
        if after.is_harmless and has_all:
            return f"{words}: {' && '.join(change.command for change in changes)}"
        result = "its index files are wrong then, too" if has_all else "records would be lost"
        rejected.append((", ".join(change.what for change in changes), result))
    return f"{FROM_A_REPLICA}; {tried_in_vain(rejected, 'makes a start write right index files')}"


def _after_changes(log_files: LogFiles, before: Ran, *changes: Change) -> tuple[Ran, bool]:
    """Return what a broker does to a log that it loads after some changes, and True if no record is lost by them."""
    with scratch_directory() as scratch:
        view = make_directory_view(log_files.directory, scratch)
        for change in changes:
            change.apply(view)
        files = {name: view / name for name in regular_files(view)}
        checkpoints = CheckpointedOffsets(scratch).of(view)
        after = run(replace(log_files, files=files, checkpoints=checkpoints))
        has_all = (
            after.end is not None
            and after.end >= (before.end or 0)
            and (after.records >= before.records or not _loses_more(log_files, after, before))
        )
        return after, has_all


def _loses_more(log_files: LogFiles, after: Ran, before: Ran) -> bool:
    """Return True if more records are not loaded than before; records outside of their segment are none."""
    logged, log_start = LoggedRecords(log_files.directory), log_files.checkpoints.start_offset
    now, then = (logged.lost(each.pieces, log_start, 0, each.end or 0).records for each in (after, before))
    return now > then
