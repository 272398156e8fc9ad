"""Choices: kidx with another behaviour that a single API or OBSERVED clause leaves open.

A choice differs from Kafka in what its clause says, and in what follows from that; it keeps every promise to users. So
a machine must find it at the level of the clause, and it must conform at level must (``conformance mutate --choices``).
Like a defect, a choice is a row or a class. A choice of a text differs in the text of an error alone.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any, Final

from conformance.clauses import load_clauses
from conformance.implementations.kidx.index import ReferenceIndex
from conformance.implementations.mutants.mapped import (
    ClearsOnTruncation,
    ClearsTheTailWhenGrowing,
    CopiesInsteadOfMoving,
    KeepsItsNameAfterAFailure,
    RefusesToCutEntries,
    ResetClears,
    SkipsTheZeroTail,
)
from conformance.implementations.mutants.planting import FragmentError, planted
from conformance.implementations.mutants.registry import MUTANTS, NEWEST, REFERENCES, START, Mutant
from conformance.implementations.mutants.search import (
    GoesBackToTheFirstEqualKey,
    GoesOnToTheLastEqualKey,
    MendsTheFirstUpperBound,
    PlainBinarySearch,
    Searching,
    key_of,
)
from conformance.kafka.releases import RELEASES
from kidx import OffsetIndex, TimeIndex, TransactionIndex
from kidx.errors import CorruptIndexError
from kidx.index.abstract import AbstractIndex
from kidx.index.search import Keys, warm_search

if TYPE_CHECKING:
    from collections.abc import Callable

    from conformance.operations import Observation, Operation

CHOICES: Final[dict[str, Mutant]] = {}
"""All choices by name."""
WITHOUT_A_CHOICE: Final[dict[str, str]] = {}
"""The clauses below MUST of index machines that have no choice, with the reason."""


def choose(clause: str, name: str, title: str, machine: str, build: Callable[[], type], release: str = NEWEST) -> None:
    """Register a choice that a machine has to find, if the package knows a release that its clause applies to.

    Args:
        release: The newest release in which it can be found.

    Raises:
        ValueError: The name is taken, or the clause is a MUST.
    """
    about = load_clauses()[clause]
    if name in CHOICES or about.level == "MUST":
        raise ValueError(f"{name}: the name is taken, or {clause} is a MUST")
    known = list(RELEASES)
    found_in = known[: known.index(release) + 1] if release in known else known
    newest = next((each for each in reversed(found_in) if about.applies_to(each)), None)
    if newest is not None:
        CHOICES[name] = Mutant(name, title, machine, clause, newest, build)


def _row(clause: str, name: str, title: str, function: str, before: str, after: str, *kinds: str) -> None:
    """Register a choice of one fragment in the indexes of the given kinds; without one, in offset and time indexes."""
    for kind in kinds or ("offset", "time"):
        base = {"offset": OffsetIndex, "time": TimeIndex, "transaction": TransactionIndex}[kind]
        choose(clause, f"{kind}-{name}", title, kind, partial(_planted_in, base, function, before, after))


def _planted_in(base: type, function: str, before: str, after: str) -> type:
    """Return an index class with a changed fragment, which may be in the base class that the mapped indexes share."""
    try:
        return planted(base, [function], before, after)  # type: ignore[no-any-return]
    except FragmentError:
        if not issubclass(base, AbstractIndex):
            raise
        return type("Chosen", (base, planted(AbstractIndex, [function], before, after)), {})


def choose_class(clauses: str, kind: str, made: type, release: str = NEWEST) -> None:
    """Register a class as a choice about each of the clauses; its docstring is the title. See :func:`choose`."""
    first, *others = clauses.split()
    name, title = f"{kind}-{made.__name__.lower()}", (made.__doc__ or "").partition("\n")[0]
    choose(first, name, title, kind, lambda: made, release)
    for clause in others:
        choose(clause, f"{name}-{clause.lower()}", title, kind, lambda: made, release)


def choose_defect(clause: str, kind: str, name: str) -> None:
    """Register a defect that is a choice, too."""
    defect = MUTANTS[name]
    choose(clause, f"{kind}-{name}", defect.title, kind, defect.build)


_MISSING = "not os.path.exists(self._file)"

# fmt: off
_row("AI-2", "reader-creates-nothing", "Opening read-only does not create a missing file.",
    "_create_and_map", START, f"if not self.writable and {_MISSING}: raise OSError('no such file')")
_row("AI-3a", "preallocates-more", "A new file has space for one more entry.",
    "_preallocated_size", "round_down(self.max_index_size, self.entry_size)",
    "round_down(self.max_index_size, self.entry_size) + self.entry_size")
_row("AI-3a", "preallocates-less", "A new file has space for one entry less, and for at least one.",
    "_preallocated_size", "round_down(self.max_index_size, self.entry_size)",
    "max(round_down(self.max_index_size, self.entry_size) - self.entry_size, self.entry_size)")
_row("AI-3b", "takes-any-size", "A new file has space for an entry, whatever its maximum size is.",
    "_preallocated_size", START, "if self.max_index_size < self.entry_size and self.writable: return self.entry_size")
_row("AI-3c", "removes-a-rejected-file", "A new file that has no space for an entry is removed again.",
    "_preallocated_size", START, "if self.max_index_size < self.entry_size: os.unlink(self._file)")
_row("AI-4a", "opens-nothing-read-only", "A missing index that is opened read-only is an empty index.",
    "_preallocated_size", START, "if not self.writable: return 0")
_row("AI-4b", "reader-removes-its-file", "A file that could not be preallocated is removed again.",
    "_preallocated_size", START, "if not self.writable: os.unlink(self._file)")
_row("AI-4c", "makes-the-directory", "A missing directory is another error.",
    "_create_and_map", START,
    "if '/missing/' in self._file: raise InvalidArgumentError('no such directory', None)")
_row("AI-10", "stays-read-only", "A resize keeps an index read-only.",
    "resize", "return True", "buffer.writable = self.writable; return True")
_row("AI-10", "reader-does-not-resize", "A resize of an index that is opened read-only is rejected.",
    "resize", START, "if not self.writable: raise InvalidArgumentError('read-only', None)")
_row("AI-10", "always-resizes", "A resize to the current length returns True.",
    "resize", "return False", "return True")
_row("AI-11a", "forgets-what-it-cuts", "A resize below the entries removes the entries that are cut off.",
    "resize", "buffer.seek(position)",
    "self.entries = min(self.entries, self.max_entries); buffer.seek(min(position, self.entries * self.entry_size)); "
    "self._refresh_last()")
_row("AI-11b", "names-the-corruption", "A search among entries that were cut off is rejected as corruption.",
    "_bounds", "OutOfBoundsError", "InvalidArgumentError")
_row("AI-13a", "grows-with-ones", "Bytes that a resize adds are not zeros.",
    "resize", "self._mmap = buffer",
    "self._mmap = buffer\n"
    "if size > self.length: buffer.data[self.length : size] = b'\\x7f' * (size - self.length)")
_row("AI-14a", "truncation-cuts-the-file", "Removing all entries also makes the file one entry long.",
    "truncate", "self._truncate_to_entries(0)",
    "self._truncate_to_entries(0); self.length >= self.entry_size and self.resize(self.entry_size)")
_row("AI-15c", "reset-keeps-the-size", "A reset without a maximum size keeps the size.",
    "reset", "self.resize(self.max_index_size)",
    "self.max_index_size >= self.entry_size and self.resize(self.max_index_size)")
_row("AI-16b", "trims-in-silence", "Trimming a closed index has no effect.",
    "trim_to_valid_size", "self._mmap is None and self.dialect.unmapped_trim_is_noop", "self._mmap is None")
_row("AI-16c", "rejects-a-trim-when-closed", "Trimming a closed index is rejected.",
    "trim_to_valid_size", START, "self._mapped()")
_row("AI-18", "deletes-with-its-length", "Deleting an index sets its length to the length of its entries.",
    "delete_if_exists", START,
    "self.length = self.entries * self.entry_size; self.max_entries = self.entries")
_row("AI-19a", "closed-looks-up-nothing", "Reading a slot of a closed index is rejected as a missing slot.",
    "entry", START, "if self._mmap is None and n < self.entries: raise InvalidArgumentError('closed', None)")
_row("AI-19b", "flushes-in-silence", "Flushing a closed index has no effect.",
    "flush", "self._mmap is None and self.dialect.unmapped_flush_is_noop", "self._mmap is None")
_row("AI-19c", "rejects-a-flush-when-closed", "Flushing a closed index is rejected.",
    "flush", START, "self._mapped()")
_row("AI-19d", "knows-that-it-is-closed", "An append to a closed index says that it is closed.",
    "append", START, "self._mapped()", "offset")
_row("AI-19d", "knows-that-it-is-closed", "An append to a closed index says that it is closed.",
    "maybe_append", START, "self._mapped()", "time")
_row("AI-19e", "forgets-itself-when-closed", "A closed index reports no entries.",
    "close", "self.close_handler()", "self.close_handler(); self.entries = 0")
_row("AI-20a", "rejects-a-second-close", "A second close is rejected.",
    "close", START, "self._mapped()")
_row("AI-21a", "cannot-be-renamed", "An index in use cannot be renamed.",
    "rename_to", START, "raise OSError('in use')")
_row("AI-41", "checks-negative-slots", "A negative slot is rejected as a missing slot.",
    "entry", START, "if n < 0: raise InvalidArgumentError('negative', None)")
_row("AI-42b", "trims-when-closing", "Closing trims the file.",
    "close", "self.dialect.close_trims", "self._mmap is not None")
_row("AI-42c", "reader-trims-nothing", "Closing an index that was opened read-only does not change its file.",
    "close", "self.dialect.close_trims", "self.dialect.close_trims and self.writable")
_row("AI-44a", "rejected-length-closes", "A length that cannot be set closes the index.",
    "resize", "self.dialect.resize_unmaps_first", "True")
_row("AI-44b", "rejected-length-changes-nothing", "A length that cannot be set changes nothing.",
    "resize", "self.dialect.resize_unmaps_first", "False")
_row("AI-44c", "rejected-length-closes-later", "A length that cannot be set closes the index.",
    "resize", "self.dialect.resize_unmaps_first", "True")
_row("AI-9", "reads-offsets-unsigned", "A stored relative offset is read as an unsigned number.",
    "_absolute_offset", START, "relative &= 0xFFFFFFFF")
_row("AI-40", "failed-shrink-rejects-appends", "After a failed shrink, an append is rejected before it writes.",
    "append", START,
    "if self._mmap and not self._mmap.position and self.entries: raise InvalidArgumentError('rewound', None)", "offset")
_row("AI-40", "failed-shrink-rejects-appends", "After a failed shrink, an append is rejected before it writes.",
    "maybe_append", START,
    "if self._mmap and not self._mmap.position and self.entries: raise InvalidArgumentError('rewound', None)", "time")

# -- offset index --
_row("AI-6", "keeps-a-slot-free", "An offset index keeps its last slot free, as a time index does.",
    "is_full", "self.entries >= self.max_entries", "self.entries >= self.max_entries - 1", "offset")
_row("AI-6", "uses-every-slot", "A time index is full only if its last slot is used.",
    "is_full", "self.entries >= self.max_entries - 1", "self.entries >= self.max_entries", "time")
_row("OI-8a", "other-error-for-a-missing-slot", "Reading a missing slot raises another error.",
    "entry", START, "if n >= self.entries: raise OutOfBoundsError('no such slot', None)", "offset")
_row("OI-8d", "checks-negative-slots-too", "A negative slot is rejected as a missing slot.",
    "entry", START, "if n < 0: raise InvalidArgumentError('negative', None)", "offset")
_row("OI-11", "rejects-an-empty-file", "The sanity check rejects an empty file.",
    "sanity_check", START, "if self.length == 0: raise CorruptIndexError('empty', None)", "offset")
_row("OI-11", "checks-nothing", "The sanity check accepts every file.", "sanity_check", START, "return", "offset")
_row("OI-11", "checks-the-order", "The sanity check rejects entries out of order.",
    "sanity_check", START,
    "if self._mmap is not None and self.entries > 1 and self.entries * 8 <= self._mmap.limit and any("
    "self.entry(n).offset >= self.entry(n + 1).offset for n in range(self.entries - 1)): "
    "raise CorruptIndexError('out of order', None)", "offset")
_row("OI-13", "reader-says-that-it-is-read-only", "Every append to an index opened read-only is rejected as such.",
    "append", START, "if not self._mapped().writable: raise InvalidArgumentError('read-only', None)", "offset")
_row("OI-13", "writes-though-read-only", "An index opened read-only is mapped for writing.",
    "__init__", START, "writable = writable or os.path.exists(path)", "offset")
_row("OI-22", "does-not-wrap-around", "The end of a fetch is computed in 64 bits.",
    "fetch_upper_bound_offset", START, "if fetch_offset.position + fetch_size > INT_MAX: return None", "offset")

# -- time index --
_row("TI-3e", "checks-ignored-offsets", "An ignored entry is rejected if its offset does not fit.",
    "maybe_append", "timestamp > last.timestamp", "timestamp > last.timestamp or self.relative_offset(offset) < 0",
    "time")
_row("TI-8a", "other-error-for-a-missing-slot", "Reading a missing slot raises another error.",
    "entry", START, "if n >= self.entries: raise OutOfBoundsError('no such slot', None)", "time")
_row("TI-8d", "checks-negative-slots-too", "A negative slot is rejected as a missing slot.",
    "entry", START, "if n < 0: raise InvalidArgumentError('negative', None)", "time")
_row("TI-10", "keeps-the-entry-over-a-resize", "A resize does not read the last entry again.",
    "resize", "self._refresh_last()", "pass", "time")
_row("TI-11a", "checks-nothing", "The sanity check accepts every file.", "sanity_check", START, "return", "time")
_row("TI-20a", "leaves-no-stray-timestamp", "The offset is checked before the timestamp is written.",
    "_append", START, "self._mapped(); self.relative_offset(offset)", "time")
_row("TI-20b", "takes-the-timestamp-back", "After a rejected offset the write position moves back.",
    "_append", "self.relative_offset(offset)",
    "self.relative_offset(offset) if self.can_append_offset(offset) or buffer.seek(buffer.position - 8) else "
    "self.relative_offset(offset)", "time")
_row("TI-22", "writes-though-read-only", "An index opened read-only is mapped for writing.",
    "__init__", START, "writable = writable or os.path.exists(path)", "time")
_row("TI-24", "ignores-when-full", "A full index ignores an entry whose timestamp is not later.",
    "maybe_append", START,
    "if self._mmap is not None and self.entries and self.is_full and timestamp <= self._last_entry.timestamp: return",
    "time")

# -- transaction index --
_row("TX-2", "creates-its-file", "Opening an index creates its file.",
    "__init__", "os.path.exists(self._file)", "True", "transaction")
_row("TX-4a", "remembers-the-last-record", "An index that is opened reads the last offset from its file.",
    "__init__", "self._open()",
    "self._open(); self._last_offset = max([struct.unpack('>q', os.pread(self._descriptor, 8, at + 18))[0] "
    "for at in range(0, self._position - 33, 34)], default=None)", "transaction")
_row("TX-4b", "forgets-when-closed", "A close forgets the last offset.",
    "close", START, "self._last_offset = None", "transaction")
_row("TX-7c", "reads-the-whole-version", "Every version except 0 is rejected.",
    "stored_records", "version and not self.dialect.strict_txn_version", "False", "transaction")
_row("TX-8", "calls-it-corrupt", "A record of an unknown version is reported as corruption.",
    "_unsupported", START, "return CorruptIndexError('unknown version', None)", "transaction")
_row("TX-12a", "checks-no-offset", "The sanity check accepts every offset.",
    "sanity_check", "txn.last_offset < self.start_offset", "False", "transaction")
_row("TX-13a", "cannot-be-renamed", "An index in use cannot be renamed.",
    "rename_to", START, "raise OSError('in use')", "transaction")
_row("TX-21", "closed-reads-nothing", "Reading a closed index is rejected.",
    "stored_records", START,
    "if self._descriptor is None and os.path.exists(self._file): raise InvalidArgumentError('closed')", "transaction")
_row("TX-23", "cuts-a-torn-record", "A partial record at the end is removed when the file is opened.",
    "_open", START,
    "if self.writable and os.path.isfile(self._file) and os.path.getsize(self._file) % 34: "
    "os.truncate(self._file, os.path.getsize(self._file) // 34 * 34)", "transaction")
# fmt: on

for _clause, _kind, _append in (
    *(("OI-6a", "offset", "append"), ("OI-6b", "offset", "append")),
    *(("TI-21a", "time", "_append"), ("TI-21b", "time", "_append")),
):
    _title = "An append does not check the write position."
    _row(
        _clause,
        f"checks-no-position-{_clause[-1]}",
        _title,
        _append,
        "self.entries * _SIZE != buffer.position",
        "False",
        _kind,
    )


class _Bisecting(Searching):
    """Base of an index whose search has other steps, with the same result among sorted keys."""

    @staticmethod
    def look(keys: Keys, entries: int, target: int) -> tuple[int, int]:
        low, high = 0, entries
        while low < high:
            middle = (low + high) // 2
            low, high = (middle + 1, high) if key_of(keys, middle) <= target else (low, middle)
        if low and key_of(keys, low - 1) == target:
            return low - 1, low - 1
        # Kafka's search never compares the first key (AI-43).
        upper = -1 if low == entries else low
        return low - 1, upper


class BisectsOffsets(_Bisecting, OffsetIndex):
    """A search halves around the lower middle, and does not end early."""


class BisectsTimes(_Bisecting, TimeIndex):
    """A search halves around the lower middle, and does not end early."""


class _Checking(Searching):
    """Base of an index whose search notices corruption."""

    @staticmethod
    def look(keys: Keys, entries: int, target: int) -> tuple[int, int]:
        slots = range(1, min(entries, len(memoryview(keys.data)) // keys.stride))
        if any(key_of(keys, slot - 1) > key_of(keys, slot) for slot in slots):
            raise CorruptIndexError("entries out of order", None)
        return warm_search(keys, entries, target)


class ChecksTheOrderOfOffsets(_Checking, OffsetIndex):
    """A search among keys out of order is rejected."""


class ChecksTheOrderOfTimes(_Checking, TimeIndex):
    """A search among keys out of order is rejected."""


class _Reporting(ReferenceIndex):
    """Base of an index that reports another capacity than it has."""

    def perform(self, operation: Operation) -> Observation:
        observation = super().perform(operation)
        state = observation.state
        if state is None or state.max_entries is None:
            return observation
        return observation._replace(state=state._replace(max_entries=state.max_entries + 1))


class ReportsAnotherCapacity(_Reporting):
    """The reported capacity is too large by one."""


_TEXTS: Final = (
    ("OI-4a OI-4b", "offset", "append bulk_append", "invalid_offset"),
    ("OI-8b OI-8c", "offset", "entry", "invalid_argument"),
    ("OI-12a OI-12b", "offset", "sanity_check", "corrupt"),
    ("OI-23a OI-23b", "offset", "append bulk_append", "invalid_argument"),
    ("TI-4a TI-4b", "time", "maybe_append bulk_maybe_append", "invalid_offset illegal_state"),
    ("TI-8b TI-8c", "time", "entry", "invalid_argument"),
    ("TI-11b TI-11c", "time", "sanity_check", "corrupt"),
    ("TI-23a TI-23b", "time", "maybe_append bulk_maybe_append", "invalid_argument"),
    ("TX-12b TX-12c", "transaction", "sanity_check", "corrupt"),
    ("TX-12b TX-12c", "segment", "check_segment", "corrupt"),
)
"""Clauses about texts, and the machine, the operations and the errors that have them."""


def _with_other_words(machine: str, operations: str, errors: str) -> type:
    """Return a reference that has another text in some errors of some operations."""

    class OtherWords(REFERENCES[machine][0]):  # type: ignore[misc]
        def perform(self, operation: Operation) -> Any:
            observation = super().perform(operation)
            outcome = observation.outcome
            if not (outcome.text and operation.name in operations.split() and outcome.error in errors.split()):
                return observation
            return observation._replace(outcome=outcome._replace(text=f"{outcome.text}!"))

    return OtherWords


for _clauses, _machine, _operations, _errors in _TEXTS:
    for _clause in _clauses.split():
        choose(
            _clause,
            f"{_machine}-{_clause.lower()}-other-words",
            "The text of an error is different.",
            _machine,
            partial(_with_other_words, _machine, _operations, _errors),
        )

choose_class("AI-7", "offset", ReportsAnotherCapacity)
choose_class("AI-7", "time", ReportsAnotherCapacity)
choose_class("AI-33", "offset", BisectsOffsets)
choose_class("AI-33", "time", BisectsTimes)
choose_class("AI-35", "offset", ChecksTheOrderOfOffsets)
choose_class("AI-35", "time", ChecksTheOrderOfTimes)
choose_defect("AI-30", "time", "warm-section-of-another-index")
choose_class("AI-11a", "time", RefusesToCutEntries)
choose_class("AI-13b", "offset", ClearsTheTailWhenGrowing)
choose_class("AI-14b", "offset", ClearsOnTruncation)
choose_class("AI-15b", "time", ResetClears)
choose_class("AI-21a", "offset", CopiesInsteadOfMoving)
choose_class("AI-21b", "offset", KeepsItsNameAfterAFailure)
choose_class("AI-36", "offset", GoesBackToTheFirstEqualKey)
choose_class("AI-36", "time", GoesOnToTheLastEqualKey)
choose_class("AI-43", "offset", MendsTheFirstUpperBound)
choose_class("AI-32", "offset", PlainBinarySearch)
choose_class("AI-46", "offset", SkipsTheZeroTail)
