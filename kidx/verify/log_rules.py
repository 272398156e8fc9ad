"""Rules for a ``.log``: checksums, offsets, gaps, and the end of the file."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from kidx.findings import Fault
from kidx.printable import counted

if TYPE_CHECKING:
    from kidx.discovery import Segment
    from kidx.findings import Verdict
    from kidx.scan.blocks import LogTail
    from kidx.verify.facts import LogFacts
    from kidx.verify.reporter import Reporter


def check_batches(facts: LogFacts, reporter: Reporter[Segment]) -> None:
    """Report corrupt batches and offsets out of order; gaps are a remark, because compaction leaves them."""
    log = reporter.where.log
    for kind, troubles in facts.troubles.items():
        fault, words = _KINDS[kind]
        verdict: Verdict = "sound" if fault == Fault.GAP else "broken"
        left = facts.counts[kind] - len(troubles)
        for trouble in troubles:
            is_foreign = kind == "overlap" and trouble.base_offset < facts.base_offset
            numbers = {"next": trouble.last_offset + 1, "expected": trouble.before + 1, "segment": facts.base_offset}
            reporter.add(
                log,
                fault,
                verdict,
                (_FOREIGN if is_foreign else words).format(**trouble._asdict(), **numbers),
                position=trouble.position,
                offset=trouble.base_offset,
            )
        if left:
            reporter.add(log, fault, verdict, f"{left} more batches like these")


_FOREIGN: Final = (
    "the batch at {position} begins with offset {base_offset}, below the segment's base offset {segment}: the file is "
    "of another segment or partition, or was renamed"
)
# For each kind of trouble: the fault, and the message about a batch.
_KINDS: Final = {
    "crc": (
        Fault.CHECKSUM,
        (
            "the batch of {size} bytes at {position} fails its checksum: a consumer gets an error at offset "
            "{base_offset}, and cannot read offsets {base_offset} to {last_offset}"
        ),
    ),
    "overlap": (
        Fault.BATCH_ORDER,
        (
            "the batch at {position} begins with offset {base_offset}, though {before} is before it: lookups by "
            "offset find one of the two, and a recovery of this segment keeps both, or empties it and deletes all "
            "later ones where an index entry falls on it"
        ),
    ),
    "reversed": (
        Fault.BATCH_OFFSETS,
        "the batch at {position} ends with offset {last_offset}, before it begins, with {base_offset}",
    ),
    "magic": (
        Fault.FORMAT,
        (
            "the batch at {position} has format {magic}, which no release knows: a consumer at offset {base_offset} "
            "gets an error"
        ),
    ),
    "count": (
        Fault.BATCH_OFFSETS,
        (
            "the batch at {position} counts more records than there are offsets from {base_offset} to {last_offset}: a "
            "consumer gets an error at offset {base_offset}, or an offset twice"
        ),
    ),
    "range": (
        Fault.OFFSET_RANGE,
        "offset {last_offset} is more than 2147483647 above the base offset: no index entry can hold it",
    ),
    "gap": (
        Fault.GAP,
        "offsets {expected} to {base_offset} (exclusive) are not in the log: compaction leaves such gaps",
    ),
}


def check_tail(facts: LogFacts, tail: LogTail, reporter: Reporter[Segment], *, may_grow: bool) -> None:
    """Report bytes after the last whole batch.

    Args:
        facts: facts about the log.
        tail: end of the log.
        reporter: receives the findings.
        may_grow: True if a broker may be writing to the segment, or was killed. Then incomplete batches are no fault.
    """
    left, log = tail.file_size - tail.valid_bytes, reporter.where.log
    if tail.shrank_while_reading:
        reporter.add(
            log,
            Fault.SHRANK,
            "sound",
            f"the file became shorter while it was read, from {counted(tail.file_size, 'byte')}",
            position=tail.file_size,
        )
    if not left:
        return
    next_offset = facts.last_offset + 1 if facts.batches else facts.base_offset
    place = {"position": tail.valid_bytes, "offset": next_offset}
    if tail.kind == "corrupt":
        message = (
            f"the length of the batch at {tail.valid_bytes} is impossible, so {counted(left, 'byte')} from there on "
            "cannot be read"
        )
    elif tail.kind == "zeros":
        message = f"the file ends with {counted(left, 'byte')} of zeros"
    else:
        message = f"the file ends with {counted(left, 'byte')}, no whole batch"
    hidden = facts.hidden
    if hidden:
        first, last = hidden[0], hidden[-1]
        message += (
            f", though {counted(len(hidden), 'whole batch')} with offsets {first.base_offset} to {last.last_offset} "
            f"{'follows' if len(hidden) == 1 else 'follow'}, from byte {first.position} on"
        )
    if may_grow and tail.kind != "corrupt" and not hidden:
        reporter.add(
            log, Fault.TAIL, "sound", f"{message}: reserved space, or a batch that is not written completely", **place
        )
    elif may_grow:
        reporter.add(log, Fault.TAIL, "broken", f"{message}: a recovery would remove them", **place)
    else:
        effect = "a consumer gets an error" if tail.kind == "corrupt" else "the log ends too early"
        reporter.add(
            log,
            Fault.TAIL,
            "broken",
            f"{message}, in a segment that is finished: {effect} at offset {next_offset}",
            **place,
        )
