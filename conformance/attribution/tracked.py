"""What is known of an index before a step: a plain record.

Most of it is what the operations were given. The rest is bookkeeping that no state shows but that decides which clause
a step exercises: whether the write position has come off the entries, where equal keys were appended, whether the
content may be out of order. :mod:`conformance.attribution.changes` keeps it from the operations and the reference's
observations alone.
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


@dataclass(slots=True)
class TrackedIndex:
    """What is known before a step.

    Attributes:
        release, dialect: what the reference follows.
        preexisting: whether the file existed at the ``open`` that comes next or came last; the lockstep says so.
        kind, path, base_offset, max_index_size, writable: the arguments of the last ``open``.
        state: the state before the step; None as long as nothing has been opened.
        closed: nothing is open, or the index is unmapped.
        damaged: the file has been tampered with since it was last made or emptied.
        broken: the file has been opened with content that no append leaves: a part of an entry, or entries that do not
            ascend; nothing that such an index answers is promised.
        beyond: an entry has been appended that no broker appends.
        unsorted: its keys may be out of order: damage, or zeros counted as entries.
        unsorted_positions: positions have been appended that go back.
        duplicates: keys that were appended more than once: positions of an offset index, offsets of a time index.
        first_position: position of the first entry, if it was seen to be appended; last_position: of the last one.
        written: slots, from the start, that may hold something else than zeros.
        drift: why the write position is not behind the last entry, if it is not (TI-20a, AI-40).
        misnamed: a rename has failed and changed the name all the same (AI-21b).
        lost_mapping: a refused length has unmapped the index (AI-44b).
        kept_mapping: a length was refused, and the index goes on (AI-44c).
        low_version: a record's version may have been changed without its high byte becoming positive (TX-7c).
        file_length: bytes of a transaction index; tail: those of a partial record at its end.
        unmaps_first: the release is one of those of AI-44b.
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
    damaged: bool = False
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
        """Bytes of a partial record at the end of a transaction index."""
        return self.file_length % RECORD_SIZE


class Step(NamedTuple):
    """What the condition of a row about an index looks at.

    Attributes:
        args: the operation's arguments.
        before: the tracked state before it.
        was: the state before it; None before an ``open``, whose rows do not ask.
        outcome: its outcome.
        now: the state after it; None after a failed ``open``, whose rows do not ask.
    """

    args: tuple[Any, ...]
    before: TrackedIndex
    was: State
    outcome: Outcome
    now: State
