"""Common part of offset index and time index: entries of one size, in a file with a fixed number of slots."""

from __future__ import annotations

from abc import ABC, abstractmethod
from bisect import bisect_left, bisect_right
from typing import TYPE_CHECKING, ClassVar, Final, NamedTuple

from conformance.implementations.model.prediction import (
    CLOSED,
    INT,
    INVALID_ARGUMENT,
    IO,
    LONG,
    NO,
    OUT_OF_BOUNDS,
    UNKNOWN,
    YES,
    UndefinedError,
    as_int,
    as_long,
    need_ints,
    need_longs,
    ordered_prefix,
)
from conformance.operations import OK, Outcome, State

if TYPE_CHECKING:
    from conformance.implementations.model.dialect import Dialect
    from conformance.implementations.model.prediction import Directory

LARGEST: Final = 64 << 20
"""Size in bytes above which the model abstains, because it keeps whole files in memory."""


class Opening(NamedTuple):
    """Arguments of ``open``, in order; a transaction index ignores the last two."""

    path: str
    base_offset: int
    max_index_size: int
    writable: bool


class SlotIndex(ABC):
    """List of entries, its capacity, and the position in the file at which the next entry will be written.

    The write position is normally at the end of the entries. An operation that fails halfway may leave it elsewhere,
    until a truncation moves it back. The entries are always the contents of the slots of the file.

    The methods with the names of operations return the expected outcome. They return None if the model cannot predict
    the outcome, but can still predict later operations. They raise UndefinedError if the model cannot predict anything
    until the next ``open``.

    Attributes:
        size: The size of an entry in bytes.
        data: The bytes of the file while the index is open.
        keys: The keys of the entries in the file. There are ``count`` of them, unless the file was truncated to less
            than its entries (AI-11).
        values: The values of these entries.
        count: The number of entries, according to the index.
        length: The length of the file, as the index last set or read it.
        write_position: The position of the next entry in the file.
        mapped: True if the index is open.
        lost: True if the number of entries is unknown, because unordered content was truncated at a key.
    """

    size: ClassVar[int]

    def __init__(self, dialect: Dialect, directory: Directory, opening: Opening) -> None:
        self.dialect = dialect
        self.directory = directory
        self.path, self.base_offset, self.max_index_size, self.writable = opening
        self.mapped = True
        self.lost = False
        content = directory.read(self.path)
        if isinstance(content, bytearray):
            # An existing file is full of entries, whatever its content is (AI-5).
            self.data = content
            self.count = len(content) // self.size
        else:
            self.data = bytearray(self.whole(self.max_index_size))
            directory.put(self.path, self.data)
            self.count = 0
        self.length = len(self.data)
        self.write_position = self.count * self.size
        self.reread()
        self.refresh_last()

    @classmethod
    def opening_error(cls, opening: Opening) -> Outcome | None:
        """Return the error of opening a new file: too small for an entry (AI-3), or read-only (AI-4); else None."""
        if opening.max_index_size < cls.size:
            return INVALID_ARGUMENT
        return None if opening.writable else IO

    @classmethod
    def whole(cls, size: int) -> int:
        """Return a size rounded to whole entries, towards zero, as Java divides."""
        return (abs(size) // cls.size) * cls.size * (1 if size >= 0 else -1)

    # Defined by the two kinds:

    @abstractmethod
    def parse(self, data: bytes | bytearray) -> tuple[list[int], list[int]]:
        """Return the keys and values of the entries in the given bytes."""

    @abstractmethod
    def refresh_last(self) -> None:
        """Read the cached last entry from the last slot. The caller ensures that the slot exists."""

    @property
    @abstractmethod
    def last_entry(self) -> tuple[int, ...]:
        """Cached last entry, in the format of a state."""

    @property
    @abstractmethod
    def empty_answer(self) -> tuple[int, int]:
        """Result of a lookup if every key is above the target."""

    @property
    @abstractmethod
    def full(self) -> bool:
        """True if an append fails because no slot is free."""

    @property
    @abstractmethod
    def offsets(self) -> tuple[list[int], int]:
        """Offsets of the entries, and the length of their ordered prefix."""

    @abstractmethod
    def resized(self) -> Outcome:
        """Return the outcome of a resize that has changed the size."""

    @abstractmethod
    def sanity_check(self) -> Outcome:
        """Return the outcome of the sanity check."""

    # State.

    @property
    def capacity(self) -> int:
        """Number of entries that fit in the file."""
        return self.length // self.size

    def state(self) -> State:
        """Return the state of the index."""
        return State(self.count, self.capacity, self.full, self.length, self.last_entry)

    def reread(self) -> None:
        """Read the entries from the slots of the file again."""
        self.keys, self.values = self.parse(self.data[: min(self.count, len(self.data) // self.size) * self.size])
        self.ordered_keys = ordered_prefix(self.keys)
        self.ordered_values = ordered_prefix(self.values)

    def keep_first(self, count: int) -> None:
        """Remove all entries but the first ``count``; the bytes of the file do not change (AI-14)."""
        del self.keys[count:], self.values[count:]
        self.ordered_keys = min(self.ordered_keys, count)
        self.ordered_values = min(self.ordered_values, count)
        self.count = count
        self.write_position = count * self.size
        self.refresh_last()

    def record_entry(self, key: int, value: int) -> None:
        """Add an entry to the lists, after the caller has written its bytes at the end of the entries."""
        count = self.count
        if self.ordered_keys == count and (count == 0 or key >= self.keys[-1]):
            self.ordered_keys = count + 1
        if self.ordered_values == count and (count == 0 or value >= self.values[-1]):
            self.ordered_values = count + 1
        self.keys.append(key)
        self.values.append(value)
        self.count = count + 1
        self.write_position += self.size

    def write_bytes(self, data: bytes) -> bool:
        """Write bytes at the write position, but add no entry to the lists.

        Return False, and write nothing, if the bytes exceed the end of the file.
        """
        end = self.write_position + len(data)
        if end > len(self.data):
            return False
        self.data[self.write_position : end] = data
        self.write_position = end
        return True

    def relative(self, offset: int) -> int | None:
        """Return an offset relative to the base, modulo 2**64 (AI-8), or None if an entry cannot store it."""
        relative = offset - self.base_offset
        if not 0 <= relative < INT:
            relative = as_long(relative)
            if not 0 <= relative < INT:
                return None
        return relative

    # Reading.

    def lookup(self, target: int) -> Outcome | None:
        """Return the entry with the largest key that is not above the target."""
        if not -LONG <= target < LONG:
            raise UndefinedError
        if not self.mapped:
            return CLOSED
        if self.count == 0:
            return Outcome(None, self.empty_answer)
        if self.ordered_keys < self.count:
            return None
        keys, values = self.keys, self.values
        at = bisect_right(keys, target) - 1
        if at < 0:
            return Outcome(None, self.empty_answer)
        if at and keys[at] == target == keys[at - 1] and len(set(values[bisect_left(keys, target) : at + 1])) > 1:
            return None  # any of them may be the result (AI-36)
        return Outcome(None, (keys[at], values[at]))

    def entry(self, n: int) -> Outcome:
        """Return the entry in a slot. Below 0, the byte position is computed as a Java ``int`` (OI-8)."""
        if not -INT <= n < INT:
            raise UndefinedError
        if n >= self.count:
            return INVALID_ARGUMENT
        if not self.mapped:
            return CLOSED
        if 0 <= n < len(self.keys):
            return Outcome(None, (self.keys[n], self.values[n]))
        at = as_int(n * self.size)
        if at < 0 or at + self.size > len(self.data):
            return OUT_OF_BOUNDS
        keys, values = self.parse(self.data[at : at + self.size])
        return Outcome(None, (keys[0], values[0]))

    # Truncating and resizing.

    def truncate(self) -> Outcome:
        """Remove all entries. A closed index sets its count to 0 before it fails."""
        if self.mapped:
            self.keep_first(0)
            self.lost = False
            return OK
        self.keys, self.values, self.count = [], [], 0
        return CLOSED

    def truncate_to(self, offset: int) -> Outcome | None:
        """Keep the entries below an offset (OI-10, TI-9)."""
        need_longs(offset)
        if not self.mapped:
            return CLOSED
        offsets, ordered = self.offsets
        at = bisect_left(offsets, offset) if ordered == self.count else -1
        if at < 0 or offsets[at : at + 2] == [offset, offset]:
            self.lost = True
            return None
        self.keep_first(at)
        return OK

    def reset(self) -> Outcome:
        """Remove all entries, and resize the file to the size with which the index was opened (AI-15)."""
        outcome = self.truncate()
        if outcome.error is None:
            outcome = self.resize(self.max_index_size)
        return OK if outcome.error is None else outcome

    def resize(self, size: int) -> Outcome:
        """Resize the file to a size, rounded down, by cutting or zeros; the outcome is True if it changed (AI-10)."""
        need_ints(size)
        length = self.whole(size)
        if length == self.length:
            return NO
        if not self.mapped:
            if self.directory.read(self.path) is None:
                self.directory.put(self.path, bytearray())  # opening the file for writing creates it
            return CLOSED
        if length < 0:
            self.mapped = not self.dialect.unmaps_to_resize
            return IO
        if length > LARGEST:
            raise UndefinedError
        used, before = self.count * self.size, len(self.data)
        del self.data[length:]
        self.data.extend(bytes(length - len(self.data)))
        if min(length, before) < used:
            # Entries are truncated (AI-11), or were truncated and are zeros now (AI-13).
            self.reread()
        self.length = length
        self.writable = True  # the new mapping is writable, whatever the old one was
        if self.write_position > length:
            self.write_position = 0
            return INVALID_ARGUMENT
        return self.resized()

    def trim(self) -> Outcome:
        """Truncate the file to the size of the entries (AI-16)."""
        if not self.mapped and not self.dialect.trims_when_closed:
            return OK
        outcome = self.resize(self.count * self.size)
        return OK if outcome.error is None else outcome

    # The file.

    def flush(self) -> Outcome:
        """Do nothing, or fail if the index is closed; the bytes are in the file without a flush."""
        return OK if self.mapped or self.dialect.flushes_when_closed else CLOSED

    def close(self) -> Outcome:
        """Trim the file, in most releases, and then close the index unless trimming failed."""
        if self.dialect.close_trims:
            outcome = self.trim()
            if outcome.error is not None:
                return outcome
        self.mapped = False
        return OK

    def delete(self) -> Outcome | None:
        """Close without trimming and delete the file; the outcome is True if it existed."""
        self.mapped = False
        content = self.directory.read(self.path)
        self.directory.put(self.path, None)
        if content is UNKNOWN:
            return None
        return NO if content is None else YES

    def rename(self, path: str) -> Outcome | None:
        """Rename the file. The index has the new name even if the file was missing (AI-21)."""
        content = self.directory.read(self.path)
        if content is UNKNOWN:
            self.directory.put(path, UNKNOWN)
        elif content is not None:
            self.directory.move(self.path, path)
        self.path = path
        if content is UNKNOWN:
            return None
        return IO if content is None else OK
