"""Every point at which a process can be killed while a segment appends, truncates, resizes or becomes inactive.

An operation changes its files in an order, the log first. At a crash point, the files before one file in this order are
complete, and the files after it are unchanged. The file itself has none of its new bytes, the first ones, or only the
last ones, because pages reach a disk in any order. The segment is opened with exactly these files, queried, recovered
and queried again, in lockstep.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from conformance.operations import Operation
from conformance.operations.segment import SUFFIXES
from kidx.records import build_batch
from kidx.segment import follower_append_info

if TYPE_CHECKING:
    from collections.abc import Iterator

_BASE: Final = 100
"""Base offset of the segment."""
_SIZE: Final = 96
"""Maximum size in bytes of its index files."""
_INTERVAL: Final = 100
"""``index.interval.bytes``: the size of two batches. The last batch then has no entries, so that both an append and a
roll have entries to write."""
_OPENING: Final = (_BASE, _INTERVAL, _SIZE, 0)

Files = tuple[bytes | None, ...]
"""Contents of a segment's files, in the order of their suffixes; None for a file that does not exist."""


def _append(offset: int, timestamp: int) -> Operation:
    records = build_batch([(timestamp, None, b"abc"), (timestamp + 1, None, b"")], base_offset=offset)
    return Operation("append_records", (records.hex(), *follower_append_info(records)))


def _open(exists: bool) -> Operation:
    return Operation("open_segment", (*_OPENING, exists, 0, False, "", 1000))


SETUP: Final = (
    _open(exists=False),
    *(_append(_BASE + 2 * number, 1000 + 10 * number) for number in range(4)),
    Operation("flush_segment"),
)
CRASHING: Final = {
    "append": _append(_BASE + 8, 2000),
    "truncate": Operation("truncate_segment", (_BASE + 4, 2000)),
    "resize": Operation("resize_indexes", (48,)),
    "roll": Operation("become_inactive"),
}
"""Interrupted operations. ``roll`` is the part of a roll that changes the old segment."""
AFTERWARDS: Final = (
    Operation("check_segment", (False,)),
    Operation("read_next_offset"),
    Operation("find_offset", (1015, _BASE, 1 << 20)),
    Operation("recover_segment"),
    Operation("resize_indexes", (_SIZE,)),
    Operation("read_next_offset"),
    Operation("find_offset", (1015, _BASE, 1 << 20)),
    Operation("translate_offset", (_BASE + 5, 0)),
    _append(_BASE + 20, 5000),
    Operation("close_segment"),
)
"""Queries on the files that the crash has left, then a recovery and queries on its result."""


@dataclass(frozen=True)
class CrashPoint:
    """State of the files after a crash.

    Attributes:
        operation: the interrupted operation, a key of :data:`CRASHING`.
        file: suffix of the file that the operation was writing.
        how: new content of that file: ``nothing``, ``prefix`` or ``torn`` (only the end); ``all`` if all files are
            complete and the process was killed before it closed them.
        at: number of bytes from the start of the file that had been written.
        files: contents of the files, in the order of their suffixes.
    """

    operation: str
    file: str
    how: str
    at: int
    files: Files

    def operations(self) -> tuple[Operation, ...]:
        """Return the operations of the whole example."""
        written = tuple(
            Operation("damage_segment_file", (suffix, "write_file", [content.hex()]))
            for suffix, content in zip(SUFFIXES, self.files, strict=True)
            if content is not None
        )
        return (*SETUP, Operation("crash_segment"), *written, _open(exists=True), *AFTERWARDS)


def crash_points(operation: str, before: Files, after: Files) -> Iterator[CrashPoint]:
    """Yield every state of the files between ``before`` and ``after``."""
    for number, suffix in enumerate(SUFFIXES):
        for how, at, content in _between(before[number], after[number]):
            yield CrashPoint(operation, suffix, how, at, (*after[:number], content, *before[number + 1 :]))
    yield CrashPoint(operation, SUFFIXES[-1], "all", 0, after)


def _between(before: bytes | None, after: bytes | None) -> Iterator[tuple[str, int, bytes]]:
    """Yield each kind of partial content of a file that was being changed, its number of new bytes, and the content."""
    if before is None or after is None or before == after:
        return
    longest = max(len(before), len(after))
    old, new = before.ljust(longest, b"\0"), after.ljust(longest, b"\0")
    changed = [at for at in range(longest) if old[at] != new[at]] or [min(len(before), len(after))]
    first, end = changed[0], changed[-1] + 1
    yield "nothing", first, before
    # The length of a file changes atomically: before its new bytes are written, or after bytes are cut off.
    length = len(after)
    for at in range(first + 1, end):
        yield "prefix", at, (new[:at] + old[at:])[: max(at, length if length <= len(before) else at)]
    if end - first > 1:
        middle = (first + end) // 2
        yield "torn", middle, (old[:middle] + new[middle:])[: max(length, middle)]


def crash_examples(lockstep: Any, operation: str) -> Iterator[tuple[Operation, ...]]:
    """Yield an example for each crash point of an operation, which the lockstep first executes without a crash."""
    for point in crash_points(operation, *_before_and_after(lockstep, CRASHING[operation])):
        yield point.operations()


def _before_and_after(lockstep: Any, operation: Operation) -> tuple[Files, Files]:
    """Return the files before and after an operation that is not interrupted."""
    with lockstep.example():
        for earlier in SETUP:
            lockstep.perform(earlier)
        before = lockstep.primary.files
        lockstep.perform(operation)
        return before, lockstep.primary.files
