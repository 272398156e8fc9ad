"""Verification of a partition: the verdicts on its segments, and the rules for all of them together."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from kidx.dialect import Dialect, dialect_of
from kidx.discovery import LOG, METADATA_TOPIC, SWAP
from kidx.findings import Finding, Verdict, in_order, worst
from kidx.verify.epoch_rules import check_epochs
from kidx.verify.partition_rules import (
    check_answers,
    check_lost_logs,
    check_neighbours,
    check_start,
    check_strays,
    check_unfinished_compaction,
    swaps_of,
)
from kidx.verify.reporter import Reporter
from kidx.verify.segment import verify_segment
from kidx.verify.transactions import OpenTransactions, check_transactions, cleaned_to
from kidx.verify.verdicts import FileVerdict, Interval, PartitionVerdict, SegmentVerdict, agree

if TYPE_CHECKING:
    from kidx.discovery import Partition


def verify_partition(
    partition: Partition,
    verdicts: Iterable[SegmentVerdict],
    *,
    release: str | Dialect | None = None,
    index_interval_bytes: int | None = None,
    epochs_not_fetched: str = "",
) -> PartitionVerdict:
    """Return the verdict on a partition, from the verdicts on all its segments and from the checkpoints.

    No files are opened except segments that a start swaps in.

    Args:
        partition: partition, as :func:`kidx.discovery.discover` returns it.
        verdicts: verdicts of :func:`kidx.verify.verify_segment` on all its segments, in any order.
        release: release for the verdict *exact*; any release if None.
        index_interval_bytes: the topic's setting; inferred if None.
        epochs_not_fetched: why the checkpoint of leader epochs is not on this machine; empty if it is.
    """
    dialect = None if release is None else dialect_of(release)
    ordered = sorted((v for v in verdicts if not v.gone), key=lambda verdict: verdict.segment.base_offset)
    reporter = Reporter(partition, dialect)
    completed = swaps_of(partition)
    swaps = [verdict for swap in completed if not (verdict := verify_segment(swap, release=release)).gone]
    loaded = _swapped(ordered, swaps)
    is_trusted = dialect is None or dialect.trusts_swap_files

    swapped_in = {str(leftover.path).removesuffix(SWAP) for leftover in partition.leftovers if leftover.mark == SWAP}

    def kept(each: FileVerdict | Finding) -> bool:
        """Return False for an index file that a start swaps in, or that it recovers when it swaps in the log."""
        if each.verdict == "missing" and each.path in swapped_in:
            return False
        return is_trusted or not each.path.endswith(SWAP) or each.path.endswith(f"{LOG}{SWAP}")

    changed = check_neighbours(loaded, reporter) if partition.complete else {}
    check_strays(partition, reporter)
    if partition.complete:
        check_unfinished_compaction(partition, loaded, reporter)
        check_lost_logs(partition, loaded, reporter)
    # A broker that was killed while it renamed files has left some under other names, so a missing file is no fault.
    reporter.files += [file for swap in swaps for file in swap.files if file.verdict != "missing" and kept(file)]
    if partition.complete:
        check_start(partition, loaded, reporter)
        changed |= check_epochs(partition, loaded, reporter, not_fetched=epochs_not_fetched)
    interval = agree(file.interval for verdict in ordered for file in verdict.files if file.interval is not None)
    files = [
        _settled(file, changed, interval, index_interval_bytes) for each in ordered for file in filter(kept, each.files)
    ]
    findings = [finding for verdict in ordered for finding in filter(kept, verdict.findings)]
    findings += [each for swap in swaps for each in swap.findings if each.verdict != "missing" and kept(each)]
    first = loaded[0].segment.base_offset if loaded else 0
    transactions = OpenTransactions(
        partition.complete and first == 0,
        max(first, partition.start_offset or 0),
        cleaned_to(loaded, partition.cleaned_to or 0),
    )
    for verdict in loaded:
        own = Reporter(verdict.segment, dialect)
        files += filter(kept, check_transactions(verdict, transactions, own))
        findings += filter(kept, own.findings())
    if partition.complete and partition.topic != METADATA_TOPIC:
        check_answers(loaded, transactions, reporter)
    findings += reporter.findings()
    return PartitionVerdict(
        partition.directory,
        partition.name,
        tuple(sorted([*files, *reporter.files], key=lambda file: file.path)),
        tuple(in_order(findings)),
        len(ordered),
        sum(verdict.batches for verdict in ordered),
        sum(verdict.bytes_read for verdict in ordered),
        interval,
    )


def _swapped(verdicts: Sequence[SegmentVerdict], swaps: Sequence[SegmentVerdict]) -> list[SegmentVerdict]:
    """Return the segments after the next start: a segment to be swapped in replaces those with the same offsets."""
    bases = [swap.segment.base_offset for swap in swaps]
    ranges = [(base, max(base, swap.last_offset)) for base, swap in zip(bases, swaps, strict=True)]
    kept = [v for v in verdicts if not any(first <= v.segment.base_offset <= last for first, last in ranges)]
    return sorted([*kept, *swaps], key=lambda verdict: verdict.segment.base_offset)


def _settled(
    file: FileVerdict, changed: dict[str, Verdict], interval: Interval | None, given: int | None
) -> FileVerdict:
    """Return the verdict on a file after the comparison with the other segments.

    Args:
        file: verdict without the other segments.
        changed: verdicts on logs with gaps, overlaps or corrupt epochs, by path.
        interval: ``index.interval.bytes`` that explains most files of the partition.
        given: the topic's ``index.interval.bytes``, if known.
    """
    if file.path in changed:
        return dataclasses.replace(file, verdict=worst([file.verdict, changed[file.path]]), releases="")
    own = file.interval
    if file.verdict != "exact" or own is None or interval is None or interval.most is None or given is not None:
        return file
    if own.least > interval.most:
        why = f"index.interval.bytes is {own.least} at least here and {interval} elsewhere: a restart, or lost entries"
        return dataclasses.replace(file, verdict="sound", releases="", why=why)
    return file


def verdict_of(partitions: Sequence[PartitionVerdict]) -> Verdict:
    """Return the worst verdict of all files and findings."""
    return worst(
        verdict
        for each in partitions
        for verdict in [*(f.verdict for f in each.files), *(f.verdict for f in each.findings)]
    )
