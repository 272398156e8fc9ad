"""Results of ListOffsets if one reference executes for several dialects: the log is shared, but results differ.

The special targets that a release has, and the meaning of the largest timestamp, affect results but no file. One log
therefore computes the results for all dialects, as long as a query opens no index that only some of them would open.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from conformance.operations import Outcome
from kidx.errors import KidxError
from kidx.log.lookup import MAX_TIMESTAMP

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from conformance.implementations.kidx.shared_dialect import SharedDialect
    from kidx.dialect import Dialect
    from kidx.log import UnifiedLog

Answers = dict[str, Outcome]
"""Outcomes of the releases that differ from the outcome of the newest release, by release."""


def results_per_dialect(
    log: UnifiedLog, dialect: SharedDialect, targets: Sequence[int], answer: Callable[[int], Any]
) -> tuple[tuple[Any, ...], Answers]:
    """Return the results of the newest dialect, and by release the outcomes that differ.

    Args:
        log: The log.
        dialect: The shared dialect of the log; members that need a separate log are split off.
        targets: The targets of the query.
        answer: A function that queries the log.

    Raises:
        KidxError, OSError: ``answer`` raises it for all remaining members.
    """
    own: list[Any] = []
    different: dict[str, dict[int, Any]] = {}
    for number, target in enumerate(targets):
        if target < 0 and not _opens(log):
            mine, theirs = _special(log, dialect, target, answer)
            own.append(mine)
            for release, value in theirs.items():
                different.setdefault(release, {})[number] = value
        else:
            own.append(answer(target))
    there = {member.release for member in dialect.members}
    outcomes: dict[tuple[Any, ...], Outcome] = {}
    answers: Answers = {}
    for release, changed in different.items():
        values = tuple([changed.get(number, mine) for number, mine in enumerate(own)])
        if release in there:
            answers[release] = outcomes.setdefault(values, Outcome(None, values))
    return tuple(own), answers


def _special(
    log: UnifiedLog, dialect: SharedDialect, target: int, answer: Callable[[int], Any]
) -> tuple[Any, dict[str, Any]]:
    """Return the newest dialect's result for a special target, and by release the other members' results.

    If the query fails for one group of members, these members are split off.
    """
    (_, fields_of_newest), *others = _parts(dialect, target)
    theirs: dict[str, Any] = {}
    for members, fields in others:
        opened = _opened(log)
        try:
            with dialect.overriding(fields):
                value = answer(target)
        except (KidxError, OSError):
            dialect.leave(members)
            continue
        if _opened(log) != opened:
            raise AssertionError(f"target {target} has opened an index of {log}, which must not happen")
        theirs.update(dict.fromkeys((member.release for member in members), value))
    try:
        with dialect.overriding(fields_of_newest):
            return answer(target), theirs
    except (KidxError, OSError):
        for members, _ in others:
            dialect.leave(members)
        raise


def _parts(dialect: SharedDialect, target: int) -> list[tuple[list[Dialect], dict[str, Any]]]:
    """Return the members, grouped by their meaning of a target, with the differing fields; the newest group first."""
    parts: dict[Any, list[Dialect]] = {}
    for member in reversed(dialect.members):
        special = member.lowest_target <= target
        parts.setdefault((special, member.max_lookup if special and target == MAX_TIMESTAMP else ""), []).append(member)
    return [
        (members, {name: getattr(members[0], name) for name in ("lowest_target", "max_lookup")})
        for members in parts.values()
    ]


def _opens(log: UnifiedLog) -> bool:
    """Return True if a special target may open an index, or read a segment's largest timestamp for the first time."""
    segments = list(log.segments)
    if not all(segment.maximum.is_known for segment in segments):
        return True
    latest = max(segments, key=lambda segment: segment.maximum.timestamp)
    return not all(s.lazy_offset_index.is_loaded and s.lazy_time_index.is_loaded for s in (segments[0], latest))


def _opened(log: UnifiedLog) -> list[tuple[bool, ...]]:
    """Return everything that a query may change in a log."""
    return [(s.lazy_offset_index.is_loaded, s.lazy_time_index.is_loaded, s.maximum.is_known) for s in log.segments]
