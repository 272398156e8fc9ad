"""Clauses that a step of the broker machine exercises: by target, by operation, and by the time of reading files."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from conformance.clauses import load_clauses
from kidx.log.lookup import supports_target

if TYPE_CHECKING:
    from conformance.kafka.client import OffsetResult
    from kidx.dialect import Dialect

_SPECIAL: Final = {-1: "LO-2b", -2: "LO-1", -4: "LO-3a", -5: "LO-4", -6: "LO-5"}
"""The clause about each special timestamp of ListOffsets."""
_LARGEST: Final = {"unknown": "LO-20", "remembered": "LO-9", "read": "LO-10"}
"""The clauses about the special timestamp -3 (the largest timestamp), by the way in which a release finds it."""
_FILES: Final = {
    "running": ("SEG-25", "SEG-3", "SEG-4", "SEG-20", "SEG-22"),
    "clean stop": ("SEG-24a", "SEG-24b", "SEG-25", "SEG-22"),
    "kill": ("SEG-25",),
    "start": ("SEG-30", "SEG-34", "SEG-35", "SEG-25"),
}
"""The clauses about the files on disk, by the moment at which they are read."""
_APPEND: Final = ("LG-1", "LG-5")
_OPERATIONS: Final = {
    "append_batch": _APPEND,
    "append_corrupt": _APPEND,
    "send_records": _APPEND,
    "end_transaction": ("TX-15",),
    "delete_before": ("LG-12",),
}
"""The clauses about the response to an operation."""

RECORDS_STAY: Final = "LG-16"
"""The clause that loading a log after a crash recovers it; reading the files after a restart exercises it."""
BEYOND_RECOVERY: Final = "LG-19"
"""The clause that a segment may be impossible to recover; each restart exercises it."""
CLAUSES: Final = frozenset(
    (*_SPECIAL.values(), *_LARGEST.values(), "LO-6", "LO-12", "LO-13", "LO-14", "LO-15b", "LO-15c")
).union((RECORDS_STAY, BEYOND_RECOVERY), *_FILES.values(), *_OPERATIONS.values())
"""All clauses that the broker machine can exercise."""


def clause_of_answer(target: int, answer: OffsetResult, dialect: Dialect) -> tuple[str, ...]:
    """Return the clauses about a broker's response to a target (timestamp or special timestamp) of ListOffsets."""
    if target == -3:
        return (_LARGEST[dialect.max_lookup],)
    if target < 0 and not supports_target(dialect, target):
        return ("LO-15c",) if dialect.rejects_unknown_targets else ("LO-15b",)
    if target < 0:
        return (_SPECIAL[target], "LO-13")
    return ("LO-6", "LO-12") if answer.offset is not None else ("LO-6", "LO-12", "LO-14")


def clauses_of_files(moment: str, release: str) -> tuple[str, ...]:
    """Return the clauses about the files on disk.

    Args:
        moment: The time at which the files are read: ``running``, or after a ``clean stop``, ``kill`` or ``start``.
        release: The release; clauses that do not apply to it are omitted.
    """
    return _applicable(_FILES[moment], release)


def clauses_of_operation(operation: str, release: str) -> tuple[str, ...]:
    """Return the clauses about a broker's response to an operation, and about the batches that it appends."""
    return _applicable(_OPERATIONS.get(operation, ()), release)


def _applicable(clauses: tuple[str, ...], release: str) -> tuple[str, ...]:
    catalogue = load_clauses()
    return tuple(clause for clause in clauses if catalogue[clause].applies_to(release))
