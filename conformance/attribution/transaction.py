"""Rows about transaction indexes (clauses TX).

A row names a clause, the operations and results (``ok`` or an error kind) that exercise it, and what a violation would
have changed, perhaps with a condition: :class:`~conformance.attribution.rules.Row` explains the columns.

In a condition, ``s.was`` and ``s.now`` are the states before and after the step. ``s.before`` has what no state reports
(:class:`~conformance.attribution.tracked_state.TrackedIndex`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from conformance.attribution.rules import Row

if TYPE_CHECKING:
    from conformance.attribution.tracked_state import Step

_READS = "collect_aborted all_aborted truncate_to sanity_check"


def remembers(step: Step) -> bool:
    """Return True if the index had a last offset in memory before the step."""
    return step.was.last != ()


def was_reopened(step: Step) -> bool:
    """Return True if there are records, but no last offset is in memory."""
    return not remembers(step) and step.was.entries > 0


def is_open_with_records(step: Step) -> bool:
    """Return True if the records can be read."""
    return not step.before.closed and step.was.entries > 0


# fmt: off
ROWS = (
    Row("TX-1", "append_aborted", "ok", "the bytes of the file"),
    Row("TX-1", "all_aborted", "ok", "the answer", is_open_with_records),
    Row("TX-2", "open", "ok", "whether the file exists, and how many records it has"),
    Row("TX-2", "append_aborted", "ok", "the file would not exist", lambda s: s.was.entries == 0),
    Row("TX-3", "append_aborted", "invalid_argument", "the record would be accepted"),
    Row("TX-3", "append_aborted", "ok", "the record would be rejected", remembers),
    Row("TX-4a", "open", "ok", "a remembered offset is part of the state",
        lambda s: s.before.preexisting and s.now.entries > 0),
    Row("TX-4a", "append_aborted", "ok", "the record may be rejected", was_reopened),
    Row("TX-4b", "append_aborted", "ok invalid_argument", "a forgotten offset would reject nothing",
        lambda s: s.before.closed and remembers(s)),
    Row("TX-4b", "close rename delete reset", "ok", "the remembered offset is part of the state", remembers),
    Row("TX-4b", "truncate_to", "ok", "the remembered offset is part of the state",
        lambda s: s.now.entries < s.was.entries),
    Row("TX-7a TX-7b", _READS, "unsupported_version", "the record would be read, or the text would be another"),
    Row("TX-7c", _READS, "ok corrupt", "the record would be rejected",
        lambda s: s.before.low_version and is_open_with_records(s)),
    Row("TX-8", _READS, "unsupported_version", "the kind of the error would differ between the operations"),
    Row("TX-9", "collect_aborted", "ok", "the answer", is_open_with_records),
    Row("TX-10", "truncate_to", "ok", "the length of the file, or whether it exists"),
    Row("TX-11", "reset", "ok", "the length of the file, or whether it exists"),
    Row("TX-12a", "sanity_check", "ok", "there would be an error", is_open_with_records),
    Row("TX-12a", "sanity_check", "corrupt", "there would be none"),
    Row("TX-12b TX-12c", "sanity_check", "corrupt", "the text", lambda s: bool(s.outcome.text)),
    Row("TX-13a", "rename", "ok", "the file under its new name"),
    Row("TX-13b", "delete", "ok", "the answer, and whether the file exists"),
    Row("TX-21", "close", "ok", "the records would still be read", lambda s: s.was.entries > 0),
    Row("TX-21", "append_aborted", "ok", "there would be an error", lambda s: s.before.closed),
    Row("TX-21", _READS, "ok", "there would be an answer or an error", lambda s: s.before.closed),
    Row("TX-23", "append_aborted", "ok", "where the record lies in the file", lambda s: s.before.tail > 0),
    Row("TX-23", _READS, "ok", "the partial record would be read, rejected or cut off",
        lambda s: s.before.tail > 0 and not s.before.closed),
)
# fmt: on
