"""Tracked state of an index before a step, as plain data.

Most of it repeats arguments of operations. The rest is not in any reported state, but decides which clauses a step
exercises: for example, whether the write position is at the end of the entries, which keys were appended twice, and
whether the content may be out of order. :mod:`conformance.attribution.state_updates` updates the tracked state, only
from operations and the reference's observations.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, Literal, NamedTuple

from conformance.clauses import load_clauses
from kidx.dialect import Dialect, dialect_of

if TYPE_CHECKING:
    from conformance.operations import Outcome, State

ENTRY_SIZES: Final = {"offset": 8, "time": 12, "transaction": 34}
RECORD_SIZE: Final = ENTRY_SIZES["transaction"]

Drift = Literal["stray", "rewound"]
"""Why the write position is not at the end of the entries.

``"stray"``: the timestamp of an entry was written before its offset was rejected. ``"rewound"``: a resize to less than
the entries failed, and set the position to 0.
"""


@dataclass(slots=True)
class TrackedIndex:
    """State of an index before a step that the index itself does not report.

    Attributes:
        release: The release that the reference implements.
        dialect: The dialect of the release.
        preexisting: True if the file existed at the last ``open``, or exists for the next one; set by the lockstep.
        kind, path, base_offset, max_index_size, writable: The arguments of the last ``open``.
        state: The state before the step, or None until an index has been opened.
        closed: True if no index is open, or the index is unmapped.
        corrupted: True if the file has been corrupted since it was last created or emptied.
        broken: True if the file was opened with content that no append produces: a partial entry, or entries that do
            not ascend. No result of such an index is guaranteed.
        beyond: True if an entry has been appended that no broker appends.
        unsorted: True if the keys may be out of order, because of corruption or of zeros that count as entries.
        unsorted_positions: True if a position has been appended that is smaller than an earlier one.
        duplicates: The keys that were appended more than once: positions of an offset index, offsets of a time index.
        first_position: The position in the first entry, or None without entries.
        last_position: The position in the last entry, or None if its append was not tracked.
        written: The number of slots, from the start, that may contain anything other than zeros.
        drift: The reason why the write position is not at the end of the entries, or None if it is (TI-20a, AI-40).
        misnamed: True if a rename failed and changed the name nevertheless (AI-21b).
        lost_mapping: True if a failed resize has unmapped the index (AI-44b).
        kept_mapping: True if a resize has failed, and the index is still mapped (AI-44c).
        low_version: True if the version of a record may have changed without its high byte becoming positive (TX-7c).
        file_length: The length of a transaction index in bytes.
        unmaps_first: True if AI-44b applies to the release.
    """

    release: str
    dialect: Dialect = field(init=False)
    unmaps_first: bool = field(init=False)
    kind: str = ""
    path: str = ""
    base_offset: int = 0
    max_index_size: int = -1
    writable: bool = True
    preexisting: bool = False
    entry_size: int = 0
    warm_entries: int = 0
    state: State | None = None
    closed: bool = True
    corrupted: bool = False
    broken: bool = False
    beyond: bool = False
    unsorted: bool = False
    unsorted_positions: bool = False
    duplicates: set[int] = field(default_factory=set)
    first_position: int | None = None
    last_position: int | None = None
    written: int = 0
    drift: Drift | None = None
    misnamed: bool = False
    lost_mapping: bool = False
    kept_mapping: bool = False
    low_version: bool = False
    file_length: int = 0

    def __post_init__(self) -> None:
        self.dialect = dialect_of(self.release)
        self.unmaps_first = load_clauses()["AI-44b"].applies_to(self.release)

    @property
    def tail(self) -> int:
        """Return the length, in bytes, of a partial record at the end of a transaction index."""
        return self.file_length % RECORD_SIZE


class Step(NamedTuple):
    """Input of the condition of a row about an index.

    Attributes:
        args: The operation's arguments.
        before: The tracked state before the step.
        was: The state before the step; None before an ``open``, whose rows do not use it.
        outcome: The outcome of the operation.
        now: The state after the step; None after a failed ``open``, whose rows do not use it.
    """

    args: tuple[Any, ...]
    before: TrackedIndex
    was: State
    outcome: Outcome
    now: State
