"""What ListOffsets says where one reference performs for several dialects: the log is the same, the answers are not.

Which special targets there are, and what the largest timestamp means, decides about an answer and about no file. So one
log answers for all of them, as long as answering opens no index, which only some of them would have opened.
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
"""By release, the outcomes that differ from that of the newest one."""


def answer_for_each(
    log: UnifiedLog, dialect: SharedDialect, targets: Sequence[int], answer: Callable[[int], Any]
) -> tuple[tuple[Any, ...], Answers]:
    """The answers of the newest dialect, and those of the others where they differ.

    Args:
        log: that is asked.
        dialect: of the log; members leave for which the log cannot answer.
        targets: of the question.
        answer: asks the log.

    Raises:
        KidxError, OSError: as ``answer``, for all that have not left.
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
    """The newest dialect's answer to a special target, and by release those of members that may answer otherwise.

    Where one is refused, the members that are not refused alike leave.
    """
    (_, fields_of_newest), *others = _parts(dialect, target)
    theirs: dict[str, Any] = {}
    for members, fields in others:
        opened = _opened(log)
        try:
            with dialect.speaking_as(fields):
                value = answer(target)
        except (KidxError, OSError):
            dialect.leave(members)
            continue
        if _opened(log) != opened:
            raise AssertionError(f"target {target} has opened an index of {log}, which was not foreseen")
        theirs.update(dict.fromkeys((member.release for member in members), value))
    try:
        with dialect.speaking_as(fields_of_newest):
            return answer(target), theirs
    except (KidxError, OSError):
        for members, _ in others:
            dialect.leave(members)
        raise


def _parts(dialect: SharedDialect, target: int) -> list[tuple[list[Dialect], dict[str, Any]]]:
    """The members by what they make of a target, with the fields that decide it; that of the newest one first."""
    parts: dict[Any, list[Dialect]] = {}
    for member in reversed(dialect.members):
        special = member.lowest_target <= target
        parts.setdefault((special, member.max_lookup if special and target == MAX_TIMESTAMP else ""), []).append(member)
    return [
        (members, {name: getattr(members[0], name) for name in ("lowest_target", "max_lookup")})
        for members in parts.values()
    ]


def _opens(log: UnifiedLog) -> bool:
    """Whether a special target may open an index, or read for the first time what a segment remembers."""
    segments = list(log.segments)
    if not all(segment.maximum.is_known for segment in segments):
        return True
    latest = max(segments, key=lambda segment: segment.maximum.timestamp)
    return not all(s.lazy_offset_index.is_loaded and s.lazy_time_index.is_loaded for s in (segments[0], latest))


def _opened(log: UnifiedLog) -> list[tuple[bool, ...]]:
    """What answering may have changed in a log."""
    return [(s.lazy_offset_index.is_loaded, s.lazy_time_index.is_loaded, s.maximum.is_known) for s in log.segments]
