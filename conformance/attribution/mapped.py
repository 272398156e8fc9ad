"""Rows about offset and time indexes alike (clauses AI).

A row names a clause, the operations and results (``ok`` or an error kind) that exercise it, and what a violation would
have changed, perhaps with a condition: :class:`~conformance.attribution.rules.Row` explains the columns.

In a condition, ``s.was`` and ``s.now`` are the states before and after the step. ``s.before`` has what no state reports
(:class:`~conformance.attribution.tracked_state.TrackedIndex`):

- ``drift``: why the write position is not at the end of the entries. ``"rewound"``: a resize to less than the entries
  has failed and set it to 0.
- ``written``: the number of slots, from the start, that may contain anything other than zeros.
- ``misnamed``: a rename has failed, and changed the name of the index nevertheless.
- ``lost_mapping``, ``kept_mapping``: a resize has failed, and has or has not unmapped the file.
- ``unsorted``: the keys may be out of order.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from conformance.attribution.rules import Row
from kidx.java_values import INT_MAX

if TYPE_CHECKING:
    from conformance.attribution.tracked_state import Step, TrackedIndex
    from conformance.operations import State


AFTER_A_FAILED_SHRINK: Final = "it takes a shrink that fails, and an append after it"
"""The reason why some steps are rare."""


def grew(step: Step) -> bool:
    """Return True if entries have been added."""
    return step.now.entries > step.was.entries


def shrank(step: Step) -> bool:
    """Return True if entries have been removed."""
    return step.now.entries < step.was.entries


def at_the_limit(state: State) -> bool:
    """Return True if one more or one fewer entry decides whether an index of this size is full."""
    return -1 <= (state.max_entries or 0) - state.entries <= 2


def uses_the_last_slot(step: Step) -> bool:
    """Return True if the caller allowed an append to a time index to use the slot that other appends leave free."""
    return len(step.args) == 3 and bool(step.args[2])


def fills_up(step: Step) -> bool:
    """Return True if the index has become full, or if only the slot that a time index reserves is free."""
    return bool(step.now.full) and (grew(step) or step.now.entries < (step.now.max_entries or 0))


def is_trimmed(before: TrackedIndex, was: State) -> bool:
    """Return True if the file is exactly as long as its entries."""
    return was.length == was.entries * before.entry_size


def ends_with_zeros(step: Step) -> bool:
    """Return True if the last entry may consist of zeros that were never appended.

    No broker appends an entry of zeros to an offset index: its position is at least the size of the first batch.
    """
    base_offset, entries = step.args[2], step.now.entries
    is_padding = entries > 1 or (entries == 1 and (len(step.now.last) == 1 or not step.before.written))
    return is_padding and step.now.last in ((base_offset,), (0, base_offset))


def is_full_below_maximum(step: Step) -> bool:
    """Return True if the index is full, and its file is smaller than its maximum size."""
    size = step.before.entry_size
    return bool(step.was.full) and (step.was.length or 0) < step.before.max_index_size // size * size


def has_cold_section(step: Step) -> bool:
    """Return True if the index is longer than its warm section, so that a search first chooses a section."""
    return step.was.entries > step.before.warm_entries + 1


def is_below_base(offset: int, base_offset: int) -> bool:
    """Return True if a stored relative offset was negative."""
    return offset < base_offset


def missing_directory(step: Step) -> bool:
    """Return True if the path is in a subdirectory, which does not exist."""
    return "/" in step.args[1]


def is_still_mapped(step: Step) -> bool:
    """Return True if an earlier resize failed, and the index is still mapped."""
    return step.before.kept_mapping and not step.before.closed


def rounds_below_zero(step: Step) -> bool:
    """Return True if the requested size is still negative after it is rounded towards zero to whole entries."""
    return bool(step.args[0] <= -step.before.entry_size)


def lookups(operations: str) -> tuple[Row, ...]:
    """Return the rows about a search through keys in order.

    Args:
        operations: The operations that execute such a search, separated by blanks.
    """
    return (
        Row(
            "AI-30",
            operations,
            "ok",
            "another warm section compares other slots, which unsorted content tells apart",
            lambda s: s.before.unsorted and has_cold_section(s),
        ),
        Row("AI-31", operations, "ok", "there is no key to compare with", lambda s: s.was.entries == 0),
        Row(
            "AI-32",
            operations,
            "ok",
            "two halves to choose from, and slots on both sides of the choice",
            has_cold_section,
        ),
        Row(
            "AI-33",
            operations,
            "ok",
            "at least two keys, so the loop runs or its end decides",
            lambda s: s.was.entries > 1,
        ),
        Row(
            "AI-35",
            operations,
            "ok",
            "any other path through keys out of order may end in another slot",
            lambda s: s.before.unsorted and s.was.entries > 1,
        ),
    )


_WHILE_WRITING: Final = {
    "offset": ("buffer_overflow", "read_only"),
    "time": ("buffer_overflow", "read_only", "offset_overflow"),
}
"""Errors of an append that are raised by the buffer, or after writing to it."""
_REFUSALS: Final = "ok buffer_overflow read_only offset_overflow invalid_argument invalid_offset illegal_state"
"""The possible results of an append while the file is mapped."""


# fmt: off
_COMMON = (
    Row("AI-2", "open", "io invalid_argument", "the file would not exist",
        lambda s: not s.before.preexisting and not s.args[4] and not missing_directory(s)),
    Row("AI-3a", "open", "ok", "length and content of the new file",
        lambda s: not s.before.preexisting),
    Row("AI-3b", "open", "invalid_argument", "the index would have been opened"),
    Row("AI-3c", "open", "invalid_argument", "the empty file would not be there"),
    Row("AI-4a", "open", "io", "the index would have been opened",
        lambda s: not s.before.preexisting and not s.args[4] and not missing_directory(s)),
    Row("AI-4b", "open", "io", "the empty file would not be there",
        lambda s: not s.before.preexisting and not s.args[4] and not missing_directory(s)),
    Row("AI-4c", "open", "io", "the directory would have been made, or another error raised",
        lambda s: not s.before.preexisting and missing_directory(s)),
    Row("AI-5", "open", "ok", "length, entries and capacity come from the file",
        lambda s: s.before.preexisting),
    Row("AI-46", "open", "ok", "entries of zeros would not be counted",
        lambda s: s.before.preexisting and ends_with_zeros(s)),
    Row("AI-6", "open resize reset trim", "ok", "`full` is part of the state, and near its limit",
        lambda s: at_the_limit(s.now)),
    Row("AI-7", "open resize reset trim", "ok", "length, entries and capacity are part of the state"),
    Row("AI-9", "open", "ok", "the last offset is below the base",
        lambda s: is_below_base(s.now.last[-1], s.args[2])),

    Row("AI-10", "resize", "ok", "answer, length and capacity"),
    Row("AI-11a", "resize", "invalid_argument", "the outcome, the length cut all the same, the entry count kept"),
    Row("AI-11b", "lookup entry truncate_to", "out_of_bounds", "the entries that were cut off are still counted",
        lambda s: s.was.entries > (s.was.max_entries or 0)),
    Row("AI-13a", "resize reset", "ok", "the bytes at the new end of the file",
        lambda s: (s.now.length or 0) > (s.was.length or 0)),
    Row("AI-13b", "resize", "ok", "the bytes of entries removed earlier",
        lambda s: (s.now.length or 0) > (s.was.length or 0) and s.before.written > s.was.entries),
    Row("AI-13b", "reset", "ok", "the bytes of the removed entries, in a file that gets another length",
        lambda s: s.was.length != s.now.length and s.before.written > 0),
    Row("AI-14a", "truncate truncate_to", "ok", "length and capacity are part of the state"),
    Row("AI-14b", "truncate truncate_to", "ok", "the bytes of the removed entries",
        shrank),
    Row("AI-15a", "reset", "ok", "entries, length and capacity are part of the state"),
    Row("AI-15b", "reset", "ok", "the bytes of the removed entries",
        lambda s: s.was.length == s.now.length and s.before.written > 0),
    Row("AI-15c", "reset", "ok", "length and capacity have become 0",
        lambda s: s.before.max_index_size < s.before.entry_size and s.now.length == 0 and s.was.length != 0),

    Row("AI-16a", "trim", "ok", "the length of the file",
        lambda s: not s.before.closed),
    Row("AI-16b", "trim close", "closed", "the error, and an empty file where one was deleted"),
    Row("AI-16b", "trim close", "io", "there would be no error", lambda s: s.before.closed),
    Row("AI-16c", "trim", "ok", "a trim that was carried out would fail or change the length",
        lambda s: s.before.closed and not is_trimmed(s.before, s.was)),
    Row("AI-16c", "close", "ok", "the trim in it would fail or change the length",
        lambda s: s.before.closed and not is_trimmed(s.before, s.was) and s.before.dialect.close_trims,
        rare="the newest release does not trim a file that it closes"),
    Row("AI-18", "delete", "ok", "the length would be the size of the entries",
        lambda s: s.before.closed or not is_trimmed(s.before, s.was)),
    Row("AI-19a", "lookup entry truncate truncate_to reset resize sanity_check fetch_upper_bound", "closed",
        "the error and its kind"),
    Row("AI-19b", "flush", "closed", "the error and its kind"),
    Row("AI-19c", "flush", "ok", "there would be an error",
        lambda s: s.before.closed),
    Row("AI-19e", "close resize", "ok", "the counters are part of the state, and a resize to the same length succeeds",
        lambda s: s.before.closed or s.now.entries > 0),
    Row("AI-20a", "close", "ok", "there would be an error, or another length",
        lambda s: s.before.closed),
    Row("AI-20b", "delete", "ok", "the answer, and whether the file exists"),
    Row("AI-21a", "rename", "ok io", "the file under its new name, or the error"),
    Row("AI-21b", "resize reset trim close delete", "ok io", "the file would be found under its old name",
        lambda s: s.before.misnamed),
    Row("AI-40", "trim close", "ok", "the file would not grow, or the bytes would not be zeros",
        lambda s: s.before.drift == "rewound" and (s.was.length or 0) < s.was.entries * s.before.entry_size
        and not s.before.closed and s.now.length != s.was.length,
        rare="another operation has usually ended the state that a failed shrink leaves"),
    Row("AI-41", "entry", "ok", "there would be an error",
        lambda s: s.args[0] < 0),
    Row("AI-42a AI-42b", "close", "ok", "the length of the file",
        lambda s: not s.before.closed and not is_trimmed(s.before, s.was)),
    Row("AI-42c", "close", "ok", "the file would keep its length",
        lambda s: not s.before.closed and not s.before.writable and not is_trimmed(s.before, s.was),
        rare="it takes a file with a partial entry that is only read, and the newest release does not trim it"),
    Row("AI-44a", "resize", "io", "the error, and the index that is still in use afterwards",
        rounds_below_zero),
    Row("AI-44a", "reset", "io", "the error, and the index that is still in use afterwards",
        lambda s: s.before.max_index_size <= -s.before.entry_size),
    Row("AI-44c", "lookup entry truncate truncate_to reset flush fetch_upper_bound", "ok io out_of_bounds",
        "there would be no buffer to look into", is_still_mapped),
    Row("AI-44c", "resize trim close", "ok io", "there would be no buffer to keep",
        lambda s: is_still_mapped(s) and (s.outcome.error is not None or s.was.length != s.now.length)),
    Row("AI-44b", "lookup entry truncate truncate_to reset resize flush sanity_check fetch_upper_bound", "closed",
        "the index would still be in use", lambda s: s.before.lost_mapping),
    Row("AI-44b", "trim close", "ok", "the file would be trimmed",
        lambda s: s.before.lost_mapping and not is_trimmed(s.before, s.was)),

    *lookups("lookup truncate_to"),
    Row("AI-9", "lookup entry", "ok", "the answer is below the base, or so is the last entry",
        lambda s: is_below_base(min(s.was.last[-1], _offset_of(s)), s.before.base_offset)),
)


def _offset_of(step: Step) -> int:
    """Return the offset of a result: the first field for an offset index, the second for a time index."""
    answer: int = step.outcome.value[0 if step.before.kind == "offset" else 1]
    return answer


def rows(appends: str) -> tuple[Row, ...]:
    """Return the rows about one kind of index.

    Args:
        appends: The operations of the kind that append, separated by blanks.
    """
    return (
        *_COMMON,
        Row("AI-1", appends, "ok", "the bytes of the file", grew),
        Row("AI-6", appends, "ok", "`full` is part of the state, and near its limit",
            lambda s: at_the_limit(s.now) and not uses_the_last_slot(s)),
        Row("AI-6", appends, "invalid_argument", "one more entry, or one fewer, would be accepted", fills_up),
        Row("AI-46", appends, "invalid_argument buffer_overflow", "there would be no error", is_full_below_maximum),
        Row("AI-7", appends, "ok", "the entry count is part of the state", grew),
        Row("AI-8", appends, "offset_overflow", "the offset would be accepted"),
        Row("AI-8", appends, "ok", "the largest offset that fits would be rejected",
            lambda s: grew(s) and s.now.last[-1] - s.before.base_offset == INT_MAX),
        Row("AI-10", appends, "ok", "the mapping would still be read-only",
            lambda s: not s.before.writable and grew(s),
            rare="it takes a file opened for reading, a resize, and an append that is right"),
        Row("AI-19d", appends, "invalid_argument closed", "a different error, or none",
            lambda s: s.before.closed),
        Row("AI-40", appends, "invalid_argument illegal_state", "the first entries would remain",
            lambda s: s.before.drift == "rewound" and grew(s), rare=AFTER_A_FAILED_SHRINK),
        Row("AI-44b", appends, "closed", "the index would still be in use",
            lambda s: s.before.lost_mapping),
        Row("AI-44c", appends, _REFUSALS, "there would be no buffer to write into",
            lambda s: is_still_mapped(s) and (grew(s) or s.outcome.error in _WHILE_WRITING[s.before.kind])),
    )
# fmt: on
