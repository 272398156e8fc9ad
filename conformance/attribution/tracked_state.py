"""Tracked state of an index before a step, as plain data.

Most of it repeats arguments of operations. The rest is not in any reported state, but decides which clauses a step
exercises: for example, whether the write position is at the end of the entries, which keys were appended twice, and
whether the content may be out of order. It is updated only from operations and the reference's observations: one
function per operation, and a table of all functions at the end. A function receives the tracked state before the step,
the arguments, the outcome, and the state of the index after the step.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, Literal, NamedTuple

from conformance.clauses import load_clauses
from kidx.dialect import Dialect, dialect_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from conformance.operations import Observation, Operation, Outcome, State

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
        now: The state after the step; None after a failed ``open``, whose rows do not use it.
    """

    args: tuple[Any, ...]
    before: TrackedIndex
    was: State
    outcome: Outcome
    now: State


WARM_SECTION: Final = 8192
"""Bytes at the end of an index that a lookup searches first."""

Args = tuple[Any, ...]


def track_step(tracked: TrackedIndex, operation: Operation, observation: Observation) -> None:
    """Update the tracked state with a step; call :func:`conformance.attribution.clauses_of` before."""
    name, args = operation
    outcome, state = observation
    change = CHANGES.get(name)
    if change is not None and (state is not None or name in WITHOUT_STATE):
        change(tracked, args, outcome, state)
    if state is not None:
        tracked.state = state


def forget_content(now: TrackedIndex) -> None:
    """Reset the tracked content, because the index has no entries or unknown entries."""
    now.corrupted = now.broken = now.beyond = now.unsorted = now.unsorted_positions = now.low_version = False
    now.duplicates.clear()
    now.first_position = now.last_position = None
    now.file_length = 0


def opened(now: TrackedIndex, args: Args, outcome: Outcome, state: State | None) -> None:
    """Start to track a new index; the known content is retained if it is the same file."""
    kind, path, base_offset, max_index_size, writable = args
    if outcome.error is not None and path != now.path:
        now.closed = True  # the content of the other file does not change
        return
    expected = now.state.entries if now.state is not None else None
    if not now.preexisting or path != now.path:
        expected, first_position = None, now.first_position  # which :func:`track_opening` has read
        forget_content(now)
        now.first_position = first_position
    now.kind, now.path, now.base_offset = kind, path, base_offset
    now.max_index_size, now.writable = max_index_size, writable
    now.entry_size = ENTRY_SIZES[kind]
    now.warm_entries = WARM_SECTION // now.entry_size
    now.closed = outcome.error is not None or state is None
    if state is None or now.closed:
        now.state = None
        return
    now.drift = None
    now.misnamed = now.lost_mapping = now.kept_mapping = False
    now.written = _slots(now, state.length or 0) if now.preexisting else state.entries
    if kind == "transaction":
        now.file_length = max(now.file_length, state.entries * RECORD_SIZE)
    elif expected is not None and state.entries != expected:
        # Zeros are counted as entries, or entries have disappeared.
        now.unsorted = True


def appended(now: TrackedIndex, args: Args, _outcome: Outcome, state: State) -> None:
    """Track the append of at most one entry to an offset index."""
    _note_positions(now, state, args[1], 0)


def bulk_appended(now: TrackedIndex, args: Args, _outcome: Outcome, state: State) -> None:
    """Track the append of several entries to an offset index."""
    _note_positions(now, state, args[1], args[3])


def _note_positions(now: TrackedIndex, state: State, position: int, step: int) -> None:
    """Track the positions of appended entries, which start at ``position`` and increase by ``step``."""
    was = now.state.entries if now.state is not None else 0
    added = state.entries - was
    if added <= 0:
        return
    now.written = max(now.written, state.entries)
    now.beyond |= position < 0 or position + step * (added - 1) < 0
    if was == 0:
        now.first_position = position
    elif position == now.last_position:
        now.duplicates.add(position)
    elif now.last_position is not None and position < now.last_position:
        now.unsorted_positions = True
    if added > 1 and step == 0:
        now.duplicates.add(position)
    if added > 1 and step < 0:
        now.unsorted_positions = True
    now.last_position = position + step * (added - 1)


def time_appended(now: TrackedIndex, args: Args, outcome: Outcome, state: State) -> None:
    """Track the append of at most one entry to a time index."""
    was = now.state
    if was is not None and state.entries > was.entries > 0 and args[1] == was.last[-1]:
        now.duplicates.add(args[1])
    if now.drift == "stray" and was is not None and state.entries > was.entries:
        now.unsorted = True  # the entry was written after the stray timestamp, so its bytes are not where it is read
    now.written = max(now.written, state.entries)
    if outcome.error == "offset_overflow":  # the timestamp was written before the offset was rejected
        now.drift = now.drift or "stray"


def bulk_time_appended(now: TrackedIndex, args: Args, outcome: Outcome, state: State) -> None:
    """Track the append of several entries to a time index."""
    time_appended(now, args, outcome, state)
    was = now.state.entries if now.state is not None else 0
    if state.entries > was + 1 and args[3] == 0:
        now.duplicates.add(args[1])


def aborted_appended(now: TrackedIndex, _args: Args, outcome: Outcome, _state: State) -> None:
    """Track the append of a record to a transaction index, which opens the index if it was closed."""
    if outcome.error is None:
        now.closed = False
        now.low_version |= now.tail > 0  # the record is misaligned, and any byte may be read as its version
        now.file_length += RECORD_SIZE


def truncated(now: TrackedIndex, args: Args, outcome: Outcome, state: State) -> None:
    """Track a truncation. The write position is at the end of the entries again; removed keys are forgotten."""
    if outcome.error is None:
        _remove(now, state, args[0] if args else None)


def _remove(now: TrackedIndex, state: State, offset: int | None) -> None:
    was = now.state
    now.drift = None
    if was is None or (now.kind == "transaction" and state.entries == was.entries):
        return
    if state.entries == 0:
        forget_content(now)
    elif state.entries < was.entries:
        now.last_position = None
        now.file_length = state.entries * RECORD_SIZE
        if now.kind == "time" and offset is not None:
            now.duplicates = {duplicate for duplicate in now.duplicates if duplicate < offset}


def reset(now: TrackedIndex, _args: Args, outcome: Outcome, state: State) -> None:
    """Track a reset, which removes all entries and then resizes the file. The resize can fail on its own."""
    if outcome.error not in (None, "io"):
        return
    _remove(now, state, None)
    if now.kind == "transaction" and not now.closed:
        forget_content(now)
    _cut(now, state)
    if outcome.error == "io":
        _length_refused(now)


def resized(now: TrackedIndex, args: Args, outcome: Outcome, state: State) -> None:
    """Track a resize: the file is truncated, grows, or the call fails in one of three ways."""
    if outcome.error == "invalid_argument":  # the write position is 0 now
        now.drift = "rewound"
    elif outcome.error == "io" and args[0] < 0:
        _length_refused(now)
    elif outcome.value is True and now.drift == "rewound":
        # The bytes of the entries that were cut off are zeros now.
        now.unsorted = True
    _cut(now, state)


def _length_refused(now: TrackedIndex) -> None:
    """Track that the operating system has rejected a negative length: releases unmap the index before or after it."""
    if now.misnamed or now.kind == "transaction":
        return
    if now.unmaps_first:
        now.closed = now.lost_mapping = True
    else:
        now.kept_mapping = not now.closed


def _cut(now: TrackedIndex, state: State) -> None:
    """Track that the file may have become shorter."""
    if state.length is not None:
        now.written = min(now.written, _slots(now, state.length))


def _slots(now: TrackedIndex, length: int) -> int:
    """Return the number of slots in a file; the last may end in the middle."""
    return -(-length // now.entry_size)


def trimmed(now: TrackedIndex, _args: Args, outcome: Outcome, state: State) -> None:
    """Track a trim of the file to its entries. After a failed shrink, a trim makes the file longer."""
    if outcome.error is None:
        now.unsorted = now.unsorted or now.drift == "rewound"
        _cut(now, state)


def closed(now: TrackedIndex, args: Args, outcome: Outcome, state: State) -> None:
    """Track a close, which trims the file in most releases, and unmaps it."""
    trimmed(now, args, outcome, state)
    now.closed = now.closed or outcome.error is None


def released_by_crash(now: TrackedIndex, _args: Args, _outcome: Outcome, _state: State | None) -> None:
    """Track a crash, which unmaps the index without flushing or trimming it."""
    now.closed = True


def deleted(now: TrackedIndex, _args: Args, _outcome: Outcome, _state: State | None) -> None:
    """Track a deletion, which unmaps the index before anything can fail."""
    now.closed = True
    now.file_length = 0


def renamed(now: TrackedIndex, args: Args, outcome: Outcome, _state: State | None) -> None:
    """Track a rename, which changes the name even if it fails."""
    now.path = args[0]
    now.misnamed = outcome.error is not None


def corrupted(now: TrackedIndex, _args: Args, _outcome: Outcome, _state: State | None) -> None:
    """Track a corruption of the file, after which the order of the keys is unknown."""
    now.corrupted = now.unsorted = True


def swapped(now: TrackedIndex, args: Args, outcome: Outcome, state: State | None) -> None:
    """Track bytes that changed places; any byte of a transaction index may then be read as a version."""
    corrupted(now, args, outcome, state)
    now.low_version |= now.kind == "transaction"


def bit_flipped(now: TrackedIndex, args: Args, outcome: Outcome, state: State | None) -> None:
    """Track a flipped bit; in a transaction index it may be in the low byte of a version.

    Positions are modulo the length of the file.
    """
    corrupted(now, args, outcome, state)
    if now.kind == "transaction" and now.file_length:
        now.low_version = now.low_version or args[0] % now.file_length % RECORD_SIZE == 1


def file_cut(now: TrackedIndex, args: Args, outcome: Outcome, state: State | None) -> None:
    """Track a truncation of the file by the harness."""
    corrupted(now, args, outcome, state)
    now.file_length = min(now.file_length, args[0])


def file_padded(now: TrackedIndex, args: Args, outcome: Outcome, state: State | None) -> None:
    """Track bytes that the harness added to the end of the file."""
    corrupted(now, args, outcome, state)
    now.file_length += args[0]


def file_written(now: TrackedIndex, args: Args, outcome: Outcome, state: State | None) -> None:
    """Track a replacement of the file's content, which may have any length.

    In a transaction index, the low byte of a version may then be set.
    """
    corrupted(now, args, outcome, state)
    now.file_length = len(args[0]) // 2
    now.low_version = now.kind == "transaction"


def file_removed(now: TrackedIndex, _args: Args, _outcome: Outcome, _state: State | None) -> None:
    """Track the removal of the file."""
    forget_content(now)


CHANGES: Final[dict[str, Callable[[TrackedIndex, Args, Outcome, Any], None]]] = {
    "open": opened,
    "append": appended,
    "bulk_append": bulk_appended,
    "maybe_append": time_appended,
    "bulk_maybe_append": bulk_time_appended,
    "append_aborted": aborted_appended,
    "truncate": truncated,
    "truncate_to": truncated,
    "reset": reset,
    "resize": resized,
    "trim": trimmed,
    "close": closed,
    "crash": released_by_crash,
    "delete": deleted,
    "rename": renamed,
    "flip_bit": bit_flipped,
    "cut_file": file_cut,
    "pad_file": file_padded,
    "zero_range": corrupted,
    "swap_ranges": swapped,
    "write_file": file_written,
    "remove_file": file_removed,
}
"""The update of each operation; an operation that is missing changes only the state."""
WITHOUT_STATE: Final = frozenset(
    {
        *("open", "crash", "delete", "rename"),
        *("flip_bit", "cut_file", "pad_file", "zero_range", "swap_ranges", "write_file", "remove_file"),
    }
)
"""Operations that have an effect even if there is no state after them."""
