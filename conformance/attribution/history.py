"""History of an index: the clauses by which parts of its state came about, if an implementation chose another way.

After a difference that a clause below MUST permits, an implementation takes part in the rest of the example if only the
length of its file differs (AI-3a, AI-10, AI-14a, AI-42b). The length has consequences: an index with more space accepts
an entry more, and zeros at the end of a file count as entries when it is opened. A history therefore says by which
clauses a part of the state came about. A later difference that depends on the part is attributed to them as well, and
counts only at their level.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Literal

from conformance.attribution.verdict_levels import OF_THE_FILE

if TYPE_CHECKING:
    from collections.abc import Collection

    from conformance.attribution.tracked_state import TrackedIndex
    from conformance.operations import Observation, Operation

Part = Literal["length", "entries"]
"""A part of the state: the length of the file with its capacity, or the entries."""
History = dict[Part, frozenset[str]]
"""The clauses below MUST by which a part came about; a part that came about as promised is missing."""

_SETS_LENGTH: Final = {
    "open": "AI-3a",
    "resize": "AI-10",
    "truncate": "AI-14a",
    "truncate_to": "AI-14a",
    "delete": "AI-18",
    "close": "AI-42b",
}
"""The operations that determine the length of the file by a clause below MUST, with the clause."""
_APPENDS: Final = frozenset({"append", "bulk_append", "maybe_append", "bulk_maybe_append"})
_NO_SPACE: Final = frozenset({"invalid_argument", "buffer_overflow", "read_only"})
"""The errors of an append to a file without space, or to one that is mapped for reading."""
_FIELDS: Final = frozenset(OF_THE_FILE)


def hidden(tracked: TrackedIndex) -> tuple[str, ...]:
    """Return the clauses below MUST by which a part of the state came about that no state reports."""
    marks = (
        (tracked.drift == "rewound", "AI-40"),
        (tracked.misnamed, "AI-21b"),
        (tracked.lost_mapping, "AI-44b"),
        (tracked.kept_mapping, "AI-44c"),
    )
    return tuple(clause for holds, clause in marks if holds)


def follow(history: History, operation: Operation, observation: Observation, tracked: TrackedIndex) -> None:
    """Update a history with a step of the reference; ``tracked`` is the state after the step."""
    name, error = operation.name, observation.outcome.error
    if name == "open":
        if not tracked.preexisting:
            history.clear()
        elif by := history.get("length"):
            history["entries"] = history.get("entries", frozenset()) | by  # the length determines the entries
    elif error is None and (name in ("trim", "resize", "reset") or (name == "close" and tracked.dialect.close_trims)):
        history.pop("length", None)
    if name in ("truncate", "reset") and error is None:
        history.pop("entries", None)


def remember(
    history: History, operation: Operation, clauses: Collection[str], fields: Collection[str], *, of_bytes: bool
) -> None:
    """Add a difference that does not count, after which the implementation continues.

    Args:
        history: The history of the implementation.
        operation: The operation of the step.
        clauses: The clauses of the step.
        fields: The fields of the state that differ.
        of_bytes: True if the file differs.
    """
    if not (of_bytes or _FIELDS & set(fields)):
        return
    clause = _SETS_LENGTH.get(operation.name, "") if of_bytes else "AI-7"
    if clause in clauses:
        history["length"] = frozenset({clause})


def rests_on(
    history: History, operation: Operation, expected: Observation, actual: Observation, *, of_length: bool
) -> Collection[str]:
    """Return the clauses by which the parts came about on which a difference depends.

    Args:
        history: The history of the implementation.
        operation: The operation of the step.
        expected: The reference's observation.
        actual: The implementation's observation.
        of_length: True if only the length of the file and its consequences differ.
    """
    parts: set[Part] = {"length" if of_length else "entries"}
    errors = {each.outcome.error for each in (expected, actual)} - {None, ""}
    if operation.name in _APPENDS and errors and errors <= _NO_SPACE:
        parts.add("length")  # an append is rejected if no space is left
    return sorted(frozenset[str]().union(*(history.get(part, frozenset()) for part in parts)))
