"""Rows about time indexes (clauses TI).

A row names a clause, the operations and results (``ok`` or an error kind) that exercise it, and what a violation would
have changed, perhaps with a condition: :class:`~conformance.attribution.rules.Row` explains the columns.

In a condition, ``s.was`` and ``s.now`` are the states before and after the step. ``s.before`` has what no state reports
(:class:`~conformance.attribution.tracked_state.TrackedIndex`); its ``drift`` is the reason why the write position is
not at the end of the entries: ``"stray"`` after the timestamp of a rejected entry, ``"rewound"`` after a failed resize.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from conformance.attribution.mapped import grew, rows
from conformance.attribution.rules import Row
from kidx.java_values import INT_MAX

if TYPE_CHECKING:
    from conformance.attribution.tracked_state import Step

_APPENDS = "maybe_append bulk_maybe_append"


def skips_full_check(step: Step) -> bool:
    """Return True if the caller allowed the append to use the last slot, which other appends leave free."""
    return len(step.args) == 3 and bool(step.args[2])


def is_ignored(step: Step) -> bool:
    """Return True if the timestamp was not larger than the last one, and nothing was written."""
    return step.now.entries == step.was.entries


def does_not_fit(step: Step) -> bool:
    """Return True if the distance of an offset from the base offset cannot be stored: of the first, or of the last."""
    offsets = [step.args[1]]
    if len(step.args) > 3:  # several appends
        *_, between, count = step.args
        offsets.append(step.args[1] + between * (count - 1))
    return any(not 0 <= offset - step.before.base_offset <= INT_MAX for offset in offsets)


def off_the_entries(step: Step) -> bool:
    """Return True if the write position was not at the end of the entries, and an entry was written."""
    return step.before.drift is not None and grew(step)


def is_out_of_order(step: Step) -> bool:
    """Return True if the error is about the timestamp, not about the write position."""
    return not off_the_entries(step)


# fmt: off
ROWS = (
    *rows(_APPENDS),
    Row("TI-1", _APPENDS, "ok", "the bytes of the file", grew),
    Row("TI-1", "open", "ok", "the last entry is read from the file", lambda s: s.now.entries > 0),
    Row("TI-1", "entry", "ok", "timestamp and offset of the answer"),
    Row("TI-2", "open truncate truncate_to reset", "ok", "the last entry is part of the state"),
    Row("TI-2", _APPENDS, "ok", "the last entry is part of the state", grew),
    Row("TI-3a", _APPENDS, "invalid_argument", "a different error, or none",
        lambda s: not off_the_entries(s) and not s.before.closed),
    Row("TI-3b", _APPENDS, "invalid_offset", "a different error, or none"),
    Row("TI-3b", _APPENDS, "ok", "the offset of the last entry would be rejected",
        lambda s: s.was.entries > 0 and s.args[1] == s.was.last[-1]),
    Row("TI-3c", _APPENDS, "illegal_state", "a different error, or none", is_out_of_order),
    Row("TI-3d", _APPENDS, "ok", "an entry more or less"),
    Row("TI-3e", _APPENDS, "ok", "the offset would be rejected", does_not_fit),
    Row("TI-24", _APPENDS, "invalid_argument invalid_offset illegal_state", "there would be no error",
        lambda s: s.args[0] <= s.was.last[0]),
    Row("TI-24", _APPENDS, "ok", "there would be an error",
        lambda s: is_ignored(s) and s.was.entries >= (s.was.max_entries or 0)),
    Row("TI-23", _APPENDS, "invalid_argument", "the text", lambda s: bool(s.outcome.text) and not off_the_entries(s)),
    Row("TI-4", _APPENDS, "invalid_offset", "the text", lambda s: bool(s.outcome.text)),
    Row("TI-4", _APPENDS, "illegal_state", "the text", lambda s: bool(s.outcome.text) and is_out_of_order(s)),
    Row("TI-5", _APPENDS, "buffer_overflow", "a different error, or none"),
    Row("TI-5", _APPENDS, "ok", "the slot kept free would be rejected",
        lambda s: skips_full_check(s) and bool(s.was.full) and grew(s)),
    Row("TI-7", "lookup", "ok", "the answer"),
    Row("TI-8a", "entry", "ok", "the answer", lambda s: s.args[0] >= 0),
    Row("TI-8a", "entry", "invalid_argument", "there would be an answer"),
    Row("TI-8b TI-8c", "entry", "invalid_argument", "the text", lambda s: bool(s.outcome.text)),
    Row("TI-8d", "entry", "out_of_bounds", "the kind of the error", lambda s: s.args[0] < 0),
    Row("TI-9", "truncate_to", "ok", "the remaining entries"),
    Row("TI-10", "resize", "ok", "the last entry is part of the state"),
    Row("TI-10", "resize", "invalid_argument", "the last entry is part of the state, and still known"),
    Row("TI-11a", "sanity_check", "ok", "there would be an error"),
    Row("TI-11a", "sanity_check", "corrupt", "there would be none"),
    Row("TI-11b TI-11c", "sanity_check", "corrupt", "the text", lambda s: bool(s.outcome.text)),
    Row("TI-20a", _APPENDS, "offset_overflow", "the bytes after the last entry"),
    Row("TI-20b", _APPENDS, "invalid_argument illegal_state buffer_overflow", "the entry would land in its slot",
        lambda s: s.before.drift == "stray" and (s.outcome.error == "buffer_overflow" or grew(s))),
    Row("TI-21a", _APPENDS, "invalid_argument", "a different error, or none", off_the_entries),
    Row("TI-21b", _APPENDS, "illegal_state", "a different error, or none", off_the_entries),
    Row("TI-22", _APPENDS, "read_only", "the entry would be written, or the offset rejected"),
    Row("AI-36", "truncate_to", "ok", "another of the equal offsets would decide which entries remain",
        lambda s: s.args[0] in s.before.duplicates),
)
# fmt: on
