"""Descriptions of the harm that a broker does to a log after it has loaded it, with remedies that were simulated."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from kidx.discovery import CLEANED_OFFSETS, LOG, SWAP, parse_partition
from kidx.printable import counted, shell_word
from kidx.repair import FROM_A_REPLICA
from kidx.repair.plan import TRANSACTIONS
from kidx.startup.answers import Later
from kidx.startup.changes import Change, cut, forget_clean_stop, make_directory_view, move_out
from kidx.startup.checkpointed import CheckpointedOffsets
from kidx.startup.checkpoints import UnreadableError, offsets_of
from kidx.startup.running import LARGEST_COMPACTED, LogFiles, Ran, compacted_away, run
from kidx.startup.simulation import regular_files, scratch_directory

if TYPE_CHECKING:
    from pathlib import Path

    from kidx.startup.settings import TopicSettings

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
        log_files: the log.
        settings: settings of the topic.
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
        yield from _compacted(log_files, wrong, repairable, repair, omit)
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
    limit = f"retention.ms={settings.config.retention_ms} ({settings.source_of('retention.ms')})"
    reason = (
        f"minutes after the start, retention deletes {counted(len(logs), 'segment')} with "
        f"{counted(records, 'readable record')}, {names}: the broker takes {first.largest} for the largest timestamp "
        f"of {first.log.name}, which is {first.actual}, and so {limit} seems to be over"
    )
    if all(_TIMES in repairable.get(log, ()) for log in logs):
        remedy = f"{repair} before the start rebuilds the time indexes: with them, retention keeps these records"
    else:
        copies = ", ".join(map(shell_word, logs))
        remedy = f"do not start the broker before these are copied out of the log directories: {copies}"
    return Later(log_files.directory, "retention", reason, counted(records, "readable record"), remedy, logs, records)


def _compacted(
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

    def helps(change: Change) -> bool:
        after, has_all = _after(log_files, ran, change)
        return after.unread is None and has_all

    shortened = cut(unread.log, unread.end)
    forgotten = forget_clean_stop(log_files.directory)
    index = unread.log.with_suffix(".index").name
    rebuilt = Change(repair, lambda view: (view / index).unlink(missing_ok=True))
    if left and helps(shortened):
        remedy = f"before the start, cut the file as a recovery does: {shortened.command}"
    elif repairable.get(unread.log) and helps(rebuilt):
        remedy = f"{repair} before the start rebuilds the index files: with them, new records can be read"
    elif log_files.checkpoints.clean and recovers() and helps(forgotten):
        remedy = f"before the start, let the broker recover its logs: {forgotten.command}"
    else:
        remedy = FROM_A_REPLICA
    return Later(log_files.directory, "appends", reason, unread.log.name, remedy)


def _of_swaps(log_files: LogFiles, ran: Ran) -> str:
    """Return the remedy for files of an interrupted compaction that a start takes over without right indexes."""
    swaps = [move_out(log_files.directory / name) for name in sorted(log_files.files) if name.endswith(SWAP)]
    after, has_all = _after(log_files, ran, *swaps)
    if after.is_harmless and has_all:
        commands = " && ".join(change.command for change in swaps)
        return f"before the start, move the copy out, without which the log has as many records: {commands}"
    return (
        "before the start, move the segments away that the .log.swap replaces, and take .swap off the name of the .log "
        "alone: a start rebuilds the index files that are missing"
    )


def _after(log_files: LogFiles, before: Ran, *changes: Change) -> tuple[Ran, bool]:
    """Return what a broker does to a log that it loads after some changes, and True if no record is lost by them."""
    with scratch_directory() as scratch:
        view = make_directory_view(log_files.directory, scratch)
        for change in changes:
            change.apply(view)
        files = {name: view / name for name in regular_files(view)}
        checkpoints = CheckpointedOffsets(scratch).of(view)
        after = run(replace(log_files, files=files, checkpoints=checkpoints))
        has_all = after.end is not None and after.end >= (before.end or 0) and after.records >= before.records
        return after, has_all
