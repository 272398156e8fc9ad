"""Rows for section 8 of the catalogue and the parts of section 6 that only a whole log shows.

What a row is: :mod:`conformance.attribution.rules`; a step on a log is evidence in the same sense. In which releases a
clause holds is the catalogue's business.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import TYPE_CHECKING, Any, NamedTuple

from conformance.clauses import load_clauses

if TYPE_CHECKING:
    from conformance.log_operations import LogObservation, LogState
    from conformance.operations import Operation
    from kidx.dialect import Dialect

_ANY = "*"


class LogStep(NamedTuple):
    """What a row's condition looks at: arguments, the state before (None: closed), and what came of it."""

    args: tuple[Any, ...]
    was: LogState | None
    value: Any
    now: LogState | None


Condition = Callable[[LogStep], bool]


class Row(NamedTuple):
    """A clause, the operations and results that exercise it, why a violation would have shown, and a condition."""

    clause: str
    operations: str
    results: str
    why: str
    holds: Condition | None = None


def rolled(step: LogStep) -> bool:
    """The active segment is another one than before."""
    return step.was is not None and step.now is not None and step.was.segments[-1][0] != step.now.segments[-1][0]


def cuts(step: LogStep) -> bool:
    """The truncation's offset is inside the log."""
    return bool(step.value)


def asks(target: int) -> Condition:
    """The target is among those asked for."""
    return lambda step: target in step.args[0]


def asks_for_time(step: LogStep) -> bool:
    """One of the targets is an ordinary timestamp."""
    return any(target >= 0 for target in step.args[0])


def reopens(step: LogStep) -> bool:
    """There is something to load."""
    return step.now is not None and any(size for _, size in step.now.segments)


def is_last_stable_before_start(step: LogStep) -> bool:
    """The state has such an offset."""
    return step.now is not None and step.now.last_stable_offset < step.now.start_offset


def is_several(step: LogStep) -> bool:
    """The call has more than one batch."""
    return len(step.args[0]) > 1


# fmt: off
ROWS = (
    Row("LO-1", "list_offsets", "ok", "the answer", asks(-2)),
    Row("LO-2a", "list_offsets", "ok", "the answer", asks(-1)),
    Row("LO-3a", "list_offsets", "ok", "the answer", asks(-4)),
    Row("LO-3b", "list_offsets", "ok", "the answer", asks(-4)),
    Row("LO-4", "list_offsets", "ok", "the answer", asks(-5)),
    Row("LO-5", "list_offsets", "ok", "the answer", asks(-6)),
    Row("LO-6", "list_offsets", "ok", "the answer", asks_for_time),
    Row("LO-9", "list_offsets", "ok", "the answer", asks(-3)),
    Row("LO-10", "list_offsets", "ok", "the answer", asks(-3)),
    Row("LO-15a", "list_offsets", "ok", "the answer", asks(-7)),
    Row("LO-20", "list_offsets", "ok", "the answer", asks(-3)),
    Row("LG-1", "append_as_leader", "ok", "the bytes of the log and of the indexes"),
    Row("LG-2", "append_as_follower", "ok out_of_order unexpected_offset", "the bytes, or another refusal"),
    Row("LG-3", "append_as_follower", "ok", "the bytes",
        lambda s: any(batch.get("epoch", -1) > s.args[1] for batch in s.args[0])),
    Row("LG-4", "append_as_follower append_as_leader", _ANY, "the bytes of the epoch file"),
    Row("LG-5", "append_as_follower append_as_leader", "ok", "the names and lengths of the files", rolled),
    Row("LG-6", "roll_log", "ok", "the files, or a refusal",
        lambda s: s.was is not None and s.was.segments[-1][1] == 0 and not rolled(s)),
    Row("SEG-22", "roll_log append_as_follower append_as_leader", "ok", "the bytes of the old indexes", rolled),
    Row("SEG-3", "append_as_follower", "ok", "the bytes of the indexes", is_several),
    Row("SEG-4", "append_as_follower", "ok", "the bytes of the indexes", is_several),
    Row("LG-7", "truncate_log", "ok invalid_argument", "the files", cuts),
    Row("LG-8a", "truncate_log", "ok", "the epoch file", lambda s: not cuts(s)),
    Row("LG-8b", "truncate_log", "ok", "the epoch file", lambda s: not cuts(s)),
    Row("LG-9", "truncate_fully", "ok", "the files"),
    Row("LG-10", "truncate_fully open_log", "ok", "the state"),
    Row("LG-11", "truncate_fully truncate_log", "out_of_range", "another outcome"),
    Row("LG-12", "delete_records", "ok out_of_range", "the state and the epoch file"),
    Row("LG-13a", "apply_retention", "ok", "the number of segments, the state", lambda s: bool(s.value)),
    Row("LG-13b", "apply_retention", "ok", "the number of segments, the state", lambda s: bool(s.value)),
    Row("LG-14", "apply_retention", "ok", "the number of segments, the state"),
    Row("LG-15", "open_log", "ok", "the files and the state", lambda s: bool(s.args[3]) and reopens(s)),
    Row("LG-16", "open_log", "ok", "the files and the state", lambda s: not s.args[3] and reopens(s)),
    Row("LG-17", "open_log", "ok", "the files and the state",
        lambda s: s.args[1] > 0 and s.now is not None and s.now.segments == ((s.args[1], 0),)),
    Row("LG-18a", "open_log", "ok", "the epoch file",
        lambda s: s.args[1] > 0 and s.now is not None and s.now.segments == ((s.args[1], 0),)),
    Row("LG-18b", "open_log", "ok", "the epoch file",
        lambda s: s.args[1] > 0 and s.now is not None and s.now.segments == ((s.args[1], 0),)),
    Row("LG-19", "open_log", "invalid_argument", "the log would open"),
    Row("LG-20", _ANY, "ok", "the state", is_last_stable_before_start),
    Row("LG-27", "append_as_follower", "invalid_argument", "another outcome, or other bytes", is_several),
    Row("LG-26", "close_log", "ok", "the length of the index files", lambda s: not s.args[0]),
    Row("SEG-24a", "close_log", "ok", "the bytes of the indexes"),
    Row("SEG-24b", "close_log", "ok", "which index files there are"),
    Row("SEG-35", "open_log", "ok", "the bytes of the indexes", reopens),
)
# fmt: on


@cache
def _rows_for(release: str) -> tuple[Row, ...]:
    catalogue = load_clauses()
    rows = [row for row in ROWS if catalogue[row.clause].applies_to(release)]
    return tuple(sorted(rows, key=lambda row: catalogue[row.clause].level == "MUST"))


@cache
def _candidates(release: str, name: str, result: str) -> tuple[Row, ...]:
    def fits(words: str, word: str) -> bool:
        return words == _ANY or word in words.split()

    return tuple(row for row in _rows_for(release) if fits(row.operations, name) and fits(row.results, result))


def clauses_of_log_step(
    operation: Operation, dialect: Dialect, before: LogState | None, observation: LogObservation
) -> tuple[str, ...]:
    """The clauses that a step on a log exercises; those that are only observed, being more particular, first.

    Args:
        operation: what was done.
        dialect: whose catalogue counts.
        before: the state before it.
        observation: what the reference made of it.
    """
    name, args = operation
    outcome, now = observation
    rows = _candidates(dialect.release, name, outcome.error or "ok")
    step = LogStep(args, before, outcome.value, now)
    return tuple(dict.fromkeys(row.clause for row in rows if row.holds is None or row.holds(step)))
