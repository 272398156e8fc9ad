"""History of an index: the clauses by which parts of its state came about, if an implementation chose another way.

After a difference that a clause below MUST permits, an implementation takes part in the rest of the example if only the
length of its file differs (AI-3a, AI-10, AI-14a, AI-42b, AI-42c). The length has consequences: an index with more space
accepts an entry more, and zeros at the end of a file count as entries when it is opened. A history therefore says by
which clauses the length came about. A later difference that depends on it is attributed to them as well, and counts
only at their level. The history ends with the first step after which state and files are equal again.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Literal

from conformance.attribution.verdict_levels import OF_THE_FILE

if TYPE_CHECKING:
    from collections.abc import Collection

    from conformance.attribution.tracked_state import TrackedIndex
    from conformance.operations import Observation, Operation

History = dict[Literal["length", "file", "last"], frozenset[str]]
"""The clauses below MUST by which length of the file and capacity, an empty file, or the last offset came about.

A transaction index has the last offset in memory. No other part of a state can differ unnoticed: an
implementation whose entries differ takes no part in the rest.
"""

_SETS_LENGTH: Final = {
    "open": {"AI-3a"},
    "resize": {"AI-10"},
    "truncate": {"AI-14a"},
    "truncate_to": {"AI-14a"},
    "delete": {"AI-18"},
    "close": {"AI-42b", "AI-42c"},
}
"""The operations that determine the length of the file by clauses below MUST, with these clauses."""
MAY_BE_EMPTY: Final = frozenset({"TX-2"})
"""The clauses by which an index without entries may have an empty file, or none."""
OF_MEMORY: Final = "TX-4a"
"""The clause by which an opened transaction index may remember the last offset of its file."""
_USES_FILE: Final = frozenset({"open", "rename", "delete"})
_APPENDS: Final = frozenset({"append", "bulk_append", "maybe_append", "bulk_maybe_append"})
_NO_SPACE: Final = frozenset({"invalid_argument", "buffer_overflow", "read_only"})
"""The errors of an append to a file without space, or to one that is mapped for reading."""
_FIELDS: Final = frozenset(OF_THE_FILE)


_CUTS: Final = frozenset({"trim", "resize", "close"})
_SEARCHES: Final = frozenset({"lookup", "entry", "fetch_upper_bound", "truncate_to"})
_NEEDS_NAME: Final = frozenset({"rename", "delete", "reset", *_CUTS})
"""The operations that use the name of the file, or open it again."""
_NEEDS_NO_MAPPING: Final = frozenset({"open", "rename", "delete"})


def hidden(tracked: TrackedIndex, operation: Operation) -> tuple[str, ...]:
    """Return the clauses below MUST by which parts of the state came about that no state reports, and that are used.

    Args:
        tracked: The tracked state before the step.
        operation: The operation of the step. A lookup does not use the write position, nor the name of the file.
    """
    name = operation.name
    marks = (
        (tracked.drift == "rewound" and name in _APPENDS | _CUTS, "AI-40"),
        (_is_cut_off(tracked) and name in _SEARCHES, "AI-11b"),
        (tracked.misnamed and name in _NEEDS_NAME, "AI-21b"),
        (tracked.lost_mapping and name not in _NEEDS_NO_MAPPING, "AI-44b"),
        (tracked.kept_mapping and name not in _NEEDS_NO_MAPPING, "AI-44c"),
    )
    return tuple(clause for holds, clause in marks if holds)


def _is_cut_off(tracked: TrackedIndex) -> bool:
    """Return True if the index counts entries that its file no longer has, after a failed shrink."""
    state = tracked.state
    return state is not None and state.max_entries is not None and state.entries > state.max_entries


def follow(history: History, operation: Operation, observation: Observation, tracked: TrackedIndex) -> None:
    """Update a history with a step of the reference; ``tracked`` is the state after the step."""
    name = operation.name
    if name == "open":
        is_set_again = not tracked.preexisting
    else:
        trims = name == "close" and tracked.dialect.close_trims and tracked.writable  # a reader need not trim (AI-42c)
        sets = trims or name in ("trim", "resize", "reset")
        is_set_again = sets and observation.outcome.error is None
    if is_set_again:
        for part in set(history) - (set() if name == "open" else {"file"}):  # nothing else makes an empty file
            del history[part]


def remember(
    history: History, operation: Operation, clauses: Collection[str], fields: Collection[str], *, of_bytes: bool
) -> None:
    """Add a difference that does not count, after which the implementation continues.

    Args:
        fields: The fields of the state that differ.
        of_bytes: True if the file differs.
    """
    if set(fields) == {"last"} and OF_MEMORY in clauses:
        history["last"] = frozenset({OF_MEMORY})
    if not (of_bytes or _FIELDS & set(fields)):
        return
    if operation.name == "open" and of_bytes and (clauses_of_file := MAY_BE_EMPTY.intersection(clauses)):
        history["file"] = clauses_of_file
    if found := frozenset(_SETS_LENGTH.get(operation.name, ()) if of_bytes else {"AI-7"}).intersection(clauses):
        history["length"] = found


def rests_on(
    history: History,
    operation: Operation,
    expected: Observation,
    actual: Observation,
    *,
    of_length: bool,
    of_last: bool = False,
) -> Collection[str]:
    """Return the clauses by which the parts came about on which a difference depends.

    Args:
        expected: The reference's observation.
        actual: The implementation's observation.
        of_length: True if only the length of the file and its consequences differ.
        of_last: True if only the last offset in memory differs.
    """
    refused = any(each.outcome.error for each in (expected, actual))
    lacks_space = operation.name in _APPENDS and any(map(_lacks_space, (expected, actual)))
    # Zeros at the end of a file count as entries when it is opened.
    uses_length = of_length or operation.name == "open" or lacks_space
    uses_file = of_length or operation.name in _USES_FILE
    uses_last = of_last or (operation.name == "append_aborted" and refused)
    used = {"length": uses_length, "file": uses_file, "last": uses_last}
    return sorted({clause for part, clauses in history.items() if used[part] for clause in clauses})


def _lacks_space(observation: Observation) -> bool:
    """Return True if an append is rejected because the index is full, whatever kind of error says so."""
    error, state = observation.outcome.error, observation.state
    return error in _NO_SPACE or (bool(error) and state is not None and state.full is True)
