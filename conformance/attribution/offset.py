"""Rows about offset indexes (clauses OI).

A row names a clause, the operations and results (``ok`` or an error kind) that exercise it, and what a violation would
have changed, perhaps with a condition: :class:`~conformance.attribution.rules.Row` explains the columns.

In a condition, ``s.was`` and ``s.now`` are the states before and after the step. ``s.before`` has what no state reports
(:class:`~conformance.attribution.tracked_state.TrackedIndex`); its ``drift`` is the reason why the write position is
not at the end of the entries: ``"rewound"`` after a resize to less than the entries, which has failed and set it to 0.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from conformance.attribution.mapped import AFTER_A_FAILED_SHRINK, grew, has_cold_section, lookups, rows
from conformance.attribution.rules import Row
from kidx.java_values import INT_MAX, to_int

if TYPE_CHECKING:
    from conformance.attribution.tracked_state import Step

_APPENDS = "append bulk_append"


def end_of_fetch(step: Step) -> int:
    """Return the position after the fetch, as a Java int."""
    return to_int(step.args[1] + step.args[2])


def off_the_entries(step: Step) -> bool:
    """Return True if the write position was not at the end of the entries, and an entry was written."""
    return step.before.drift is not None and grew(step)


def says_full(step: Step) -> bool:
    """Return True if the error has a message; of illegal arguments, only a full index has one."""
    return bool(step.outcome.text) and not off_the_entries(step)


# fmt: off
ROWS = (
    *rows(_APPENDS),
    Row("OI-1", _APPENDS, "ok", "the bytes of the file", grew),
    Row("OI-1", "open", "ok", "the last offset is read from the file", lambda s: s.now.entries > 0),
    Row("OI-1", "entry", "ok", "offset and position of the answer"),
    Row("OI-2", "open truncate truncate_to reset", "ok", "the last offset is part of the state"),
    Row("OI-2", _APPENDS, "ok", "the last offset is part of the state", grew),
    Row("OI-2", "resize", "ok", "the last entry has been cut off, and the last offset is still known",
        lambda s: s.before.drift == "rewound"),
    Row("OI-3", _APPENDS, "ok", "there would be an error"),
    Row("OI-3", _APPENDS, "invalid_offset offset_overflow", "a different error, or none; or something written"),
    Row("OI-3", _APPENDS, "invalid_argument", "a different error, or none",
        lambda s: s.before.drift is None and not s.before.closed),
    Row("OI-23", _APPENDS, "invalid_argument", "the text", says_full),
    Row("OI-4", _APPENDS, "invalid_offset", "the text", lambda s: bool(s.outcome.text)),
    Row("OI-5", _APPENDS, "ok", "a limit would be rejected",
        lambda s: s.was.entries == 0 and s.args[0] - s.before.base_offset in (0, INT_MAX)),
    Row("OI-5", _APPENDS, "offset_overflow", "an offset outside the limits would be accepted",
        lambda s: s.was.entries == 0),
    Row("OI-6a", _APPENDS, "invalid_argument", "a different error, or none", off_the_entries),
    Row("OI-6b", _APPENDS, "illegal_state", "a different error, or none", off_the_entries,
        AFTER_A_FAILED_SHRINK),
    Row("OI-7", "lookup", "ok", "the answer"),
    Row("OI-8a", "entry", "ok", "the answer", lambda s: s.args[0] >= 0),
    Row("OI-8a", "entry", "invalid_argument", "there would be an answer"),
    Row("OI-8b OI-8c", "entry", "invalid_argument", "the text", lambda s: bool(s.outcome.text)),
    Row("OI-8d", "entry", "out_of_bounds", "the kind of the error", lambda s: s.args[0] < 0),
    Row("OI-10", "truncate_to", "ok", "the remaining entries"),
    Row("OI-11", "sanity_check", "ok", "there would be an error"),
    Row("OI-11", "sanity_check", "corrupt", "there would be none"),
    Row("OI-12", "sanity_check", "corrupt", "the text", lambda s: bool(s.outcome.text)),
    Row("OI-13", _APPENDS, "read_only", "the entry would be written"),
    Row("OI-13", _APPENDS, "invalid_argument", "the error would be a different one",
        lambda s: not s.before.writable and bool(s.was.full)),
    Row("OI-21", "fetch_upper_bound", "ok", "the answer"),
    Row("OI-22", "fetch_upper_bound", "ok", "without wrapping around there would be no answer",
        lambda s: end_of_fetch(s) != s.args[1] + s.args[2] and s.was.entries > 0),

    # The upper bound is a search as well, through positions that may be out of order without any corruption.
    *lookups("fetch_upper_bound"),
    Row("AI-30", "fetch_upper_bound", "ok", "another warm section compares other slots",
        lambda s: s.before.unsorted_positions and has_cold_section(s)),
    Row("AI-35", "fetch_upper_bound", "ok", "any other path through positions out of order may end in another slot",
        lambda s: s.before.unsorted_positions and s.was.entries > 1),
    Row("AI-36", "fetch_upper_bound", "ok", "another of the equal positions would answer",
        lambda s: end_of_fetch(s) in s.before.duplicates and s.outcome.value is not None),
    Row("AI-43", "fetch_upper_bound", "ok", "the first entry would answer",
        lambda s: s.was.entries > 0 and end_of_fetch(s) == s.before.first_position),
    Row("AI-11b", "fetch_upper_bound", "out_of_bounds", "the entries that were cut off are still counted",
        lambda s: s.was.entries > (s.was.max_entries or 0)),
)
# fmt: on
