"""What the lockstep knows before a step, and how each step changes it.

Most of it is what the operations were given. The rest is bookkeeping that no state shows but that decides which clause
a step exercises: whether the write position has come off the entries, where equal keys were appended, whether the
content may be out of order. It is kept from the operations and the reference's observations alone.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from conformance.attribution.following import CHANGES, RECORD_SIZE, WITHOUT_STATE
from conformance.attribution.rules import rules_for
from conformance.clauses import load_clauses
from kidx.dialect import dialect_of

if TYPE_CHECKING:
    from conformance.attribution.rules import Rules
    from conformance.operations import Observation, Operation, State
    from kidx.dialect import Dialect

Drift = Literal["stray", "rewound"]


class Situation:
    """What is known before a step.

    Attributes:
        release, dialect: what the reference is held to.
        preexisting: whether the file existed at the ``open`` that comes next or came last; the lockstep says so.
        kind, path, base_offset, max_index_size, writable: as the last ``open`` was told.
        state: the state before the step; None as long as nothing has been opened.
        closed: nothing is open, or the index is unmapped.
        damaged: the file has been tampered with since it was last made or emptied.
        unsorted: its keys may be out of order: damage, or zeros counted as entries.
        unsorted_positions: positions have been appended that go back.
        duplicates: keys that were appended more than once: positions of an offset index, offsets of a time index.
        first_position: position of the first entry, if it was seen to be appended; last_position: of the last one.
        written: slots, from the start, that may hold something else than zeros.
        drift: why the write position is not behind the last entry, if it is not (TI-20a, AI-40).
        misnamed: a rename has failed and changed the name all the same (AI-21b).
        lost_mapping: a refused length has unmapped the index (AI-44b).
        low_version: a record's version may have been changed without its high byte becoming positive (TX-7c).
        file_length: bytes of a transaction index; tail: those of a partial record at its end.
        unmaps_first: the release is one of those of AI-44b.
    """

    __slots__ = (
        "base_offset",
        "closed",
        "damaged",
        "dialect",
        "drift",
        "duplicates",
        "entry_size",
        "file_length",
        "first_position",
        "kind",
        "last_position",
        "lost_mapping",
        "low_version",
        "max_index_size",
        "misnamed",
        "path",
        "preexisting",
        "release",
        "rules",
        "state",
        "unmaps_first",
        "unsorted",
        "unsorted_positions",
        "warm_entries",
        "writable",
        "written",
    )

    kind: str
    path: str
    base_offset: int
    max_index_size: int
    writable: bool
    preexisting: bool
    entry_size: int
    warm_entries: int
    state: State | None
    closed: bool
    damaged: bool
    unsorted: bool
    unsorted_positions: bool
    duplicates: set[int]
    first_position: int | None
    last_position: int | None
    written: int
    drift: Drift | None
    misnamed: bool
    lost_mapping: bool
    low_version: bool
    file_length: int

    def __init__(self, release: str) -> None:
        self.release = release
        self.dialect: Dialect = dialect_of(release)
        self.rules: Rules = rules_for(release)
        self.unmaps_first = load_clauses()["AI-44b"].applies_to(release)
        self.begin()

    def begin(self) -> None:
        """Starts an example in an empty directory."""
        self.kind, self.path, self.base_offset = "", "", 0
        self.max_index_size, self.writable, self.preexisting = -1, True, False
        self.entry_size, self.warm_entries = 0, 0
        self.state = None
        self.closed = True
        self.duplicates = set()
        self.settle(0)
        self.forget_content()

    def settle(self, written: int) -> None:
        """The object is in order: it has just been opened."""
        self.drift = None
        self.misnamed = self.lost_mapping = False
        self.written = written

    def forget_content(self) -> None:
        """There are no entries, or nothing is known of them."""
        self.damaged = self.unsorted = self.unsorted_positions = self.low_version = False
        self.duplicates.clear()
        self.first_position = self.last_position = None
        self.file_length = 0

    @property
    def tail(self) -> int:
        """Bytes of a partial record at the end of a transaction index."""
        return self.file_length % RECORD_SIZE

    def follow(self, operation: Operation, observation: Observation) -> None:
        """Takes a step into account; :func:`clauses_of` has to be asked before."""
        name, args = operation
        outcome, state = observation
        change = CHANGES.get(name)
        if change is not None and (state is not None or name in WITHOUT_STATE):
            change(self, args, outcome, state)
        if state is not None:
            self.state = state
