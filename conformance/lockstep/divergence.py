"""Results of a lockstep: a divergence with its files that differ, the decision about it, its error, and statistics.

Two index files may differ only in the unused bytes after their entries, or have different entries that are both correct
for the log. In both cases, lookups find the same records.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import IntEnum
from pathlib import PurePath
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeGuard

from conformance.attribution import DivergentParts, counts_at_level, noticed_facets
from conformance.attribution.history import MAY_BE_EMPTY, OF_MEMORY
from conformance.attribution.verdict_levels import OF_THE_FILE, suffix_of
from conformance.clauses import load_clauses
from conformance.clauses.editions import counted_clauses
from conformance.implementations.process.line_process import STDERR_SAYS
from conformance.lockstep.file_reader import UnreadableFile
from conformance.operations import Json, Operation, Outcome
from conformance.operations.operation import OPS
from conformance.operations.outcomes import FAILURE, OUT_OF_MEMORY
from kidx.discovery import LOG
from kidx.errors import KidxError
from kidx.layout import OFFSET_INDEX, TIME_INDEX
from kidx.records import iter_memory_batches

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from conformance.lockstep.generator_coverage import Kind
    from kidx.layout import Layout

_RUN_SPECIFIC: Final = re.compile(r"0x[0-9a-fA-F]+|\(\d+\)|(?<=goroutine )\d+")
"""Parts of a crash message that differ from run to run: addresses, and ids of processes, threads and goroutines."""


_OF_AN_ENTRY: Final = frozenset({"invalid_argument", "invalid_offset"})
"""The errors of an append whose index entry is rejected: the index is full, or the offset does not ascend."""
CRASH_ASPECT: Final = "failure"
"""The aspect of an implementation that has crashed, timed out or sent a malformed reply."""


@dataclass(frozen=True, slots=True)
class Divergence:
    """Divergence of one participant at one step, in one or more aspects.

    Attributes:
        step: The 0-based index into the trace.
        operation: The operation of that step.
        participant: The name of the implementation that diverges, e.g. ``"jvm 3.9.2"``.
        release: The release whose dialect the implementation is compared with.
        against: ``"kidx"``, or ``"model"`` if the reference diverges from the model.
        aspects: The differing aspects: ``"outcome"``, ``"text"``, ``"state"`` and ``"bytes"``, in this order.
        expected: The expected value of the first aspect, as it is shown; ``actual``: the implementation's value.
        clauses: The ids of the clauses that the step exercises.
        fields: The names of the differing fields of the state, even if the first aspect is another.
        files: The differing files, even if the first aspect is another.
        promised: True if a broker can execute such a step; otherwise no guarantee is broken.
        rests_on: The ids of clauses below MUST by which the state came about that the difference depends on.
        unread: The names of those fields that one side has read from the files and the other has not read yet.
        reports_state: False if the implementation reported no state, so that a change of its state does not show.
        carried: The ids of clauses below MUST by which the other length came about, if the outcomes differ and what
            differs in state and files is the length that differed before the step.
    """

    step: int
    operation: Operation
    participant: str
    release: str
    against: str
    aspects: tuple[str, ...]
    expected: object
    actual: object
    clauses: tuple[str, ...]
    fields: tuple[str, ...] = ()
    files: tuple[FileDifference, ...] = ()
    promised: bool = True
    rests_on: tuple[str, ...] = ()
    unread: tuple[str, ...] = ()
    reports_state: bool = True
    carried: tuple[str, ...] = ()

    @property
    def is_failure(self) -> bool:
        """True if the implementation crashed, timed out or sent a malformed reply; no expectation can match this."""
        return self.failure is not None

    @property
    def failure(self) -> Outcome | None:
        """The outcome of an implementation that crashed, timed out or sent a malformed reply; else None."""
        return self.actual if isinstance(self.actual, Outcome) and self.actual.error == FAILURE else None

    @property
    def outcomes(self) -> tuple[Outcome, Outcome] | None:
        """The expected and the actual outcome, as far as they are compared; None if the outcomes are equal.

        Also None where a broker shows something that is no outcome of an operation, such as offsets or a text.
        """
        expected, actual = self.expected, self.actual
        if self.aspects[0] != "outcome" or not (_is_outcome(expected) and _is_outcome(actual)):
            return None
        return Outcome(*expected), Outcome(*actual)

    @property
    def are_errors(self) -> tuple[bool, bool]:
        """True for the expected and for the actual outcome if it is an error; False twice if the outcomes are equal."""
        expected, actual = self.outcomes or (Outcome(), Outcome())
        return bool(expected.error), bool(actual.error)

    @property
    def aspect(self) -> str:
        """The first aspect, or :data:`CRASH_ASPECT`."""
        return CRASH_ASPECT if self.is_failure else self.aspects[0]

    @property
    def is_unnoticed(self) -> bool:
        """True if only callers of Kafka's classes can notice the divergence, and it has no consequences."""
        return not self.is_failure and not noticed_facets(self._difference_at("must"))

    @property
    def is_of_length(self) -> bool:
        """True if only the length of files, and the fields of the state that depend on it, differ."""
        return not self.is_failure and {"state", "bytes"} >= set(self.aspects) - {"text"} and self.has_other_length

    @property
    def has_other_length(self) -> bool:
        """True if state and files differ only in the length of files."""
        return set(self.fields) <= OF_THE_FILE and all(not how.isdisjoint(("room", "empty")) for _, how in self.files)

    @property
    def is_of_memory(self) -> bool:
        """True if only the last offset differs that an opened transaction index may remember."""
        differs = set(self.aspects) <= {"state", "text"} and set(self.fields) == {"last"}
        return differs and OF_MEMORY in (*self.clauses, *self.rests_on)

    @property
    def is_of_parts(self) -> bool:
        """True if the state of a part differs, such as the capacity of an index of a segment."""
        return any("." in name for name in self.fields)

    @property
    def creates_other_files(self) -> bool:
        """True if a file exists on one side only, except for an empty one that need not exist."""
        if not MAY_BE_EMPTY.isdisjoint((*self.clauses, *self.rests_on)) and all(
            "empty" in how for _, how in self.files
        ):
            return False
        return any(word.startswith("absent") for _, how in self.files for word in how)

    def _difference_at(self, level: str) -> DivergentParts:
        both_refused = all(self.are_errors)
        parts = DivergentParts(
            self.clauses, self.aspects, self.fields, self.files, both_refused, self._results, self.unread
        )
        if level != "must" or not self.carried:
            return parts
        return parts._replace(facets=tuple({"outcome", "text"}.intersection(self.aspects)), fields=(), files=())

    @property
    def _how_refused(self) -> str:
        """``entry`` if both sides appended the records to a segment, and one side rejected an index entry of them."""
        errors = {each.error for each in self.outcomes or ()} - {None}
        is_appended = self.operation.name == "append_records" and errors <= _OF_AN_ENTRY and "size" not in self.fields
        return "entry" if is_appended and all(suffix_of(name) != ".log" for name, _ in self.files) else "error"

    @property
    def _results(self) -> tuple[str, ...]:
        if any(self.are_errors) or self.outcomes is None:
            return (self._how_refused,) if sum(self.are_errors) == 1 else ()
        names, values = OPS[self.operation.name].fields, [each.value for each in self.outcomes]
        if any(not isinstance(each, tuple) or len(each) != len(names) for each in values):
            return ()
        return tuple(name for name, one, other in zip(names, *values, strict=True) if one != other)

    def counts(self, level: str) -> bool:
        """Return True if the divergence counts at a level; failures and errors of the reference always count."""
        if self.is_failure or self.against != "kidx":
            return True
        clauses = counted_clauses(self.clauses, level)
        if level == "observed" or clauses is None:
            return clauses is not None
        if not all(load_clauses()[clause].counts(level) for clause in self.rests_on):
            return False
        return (self.promised or level != "must") and counts_at_level(
            self._difference_at(level)._replace(clauses=clauses), level
        )


def _is_outcome(shown: object) -> TypeGuard[tuple[Any, ...]]:
    return isinstance(shown, tuple) and 0 < len(shown) <= len(Outcome._fields) and isinstance(shown[0], str | None)


class DivergenceError(AssertionError):
    """First divergence that counts, with the operations up to it.

    Attributes:
        shrinking: The result of shrinking, such as ``"minimal"``; empty if the trace was not shrunk.
    """

    def __init__(self, divergence: Divergence, operations: Sequence[Operation]) -> None:
        super().__init__(f"{divergence.participant} diverges at step {divergence.step + 1}, {divergence.operation}")
        self.divergence = divergence
        self.operations = tuple(operations)
        self.shrinking = ""


@dataclass(slots=True)
class Statistics:
    """Statistics of a lockstep since it was created.

    Attributes:
        key: A function from a release to a name that it shares with releases that behave alike. Exercised clauses are
            counted under that name.
    """

    key: Callable[[str], str]
    examples: int = 0
    steps: int = 0
    clauses: dict[str, Counter[str]] = field(default_factory=dict)
    """For each name that ``key`` returns: the number of steps that exercised a clause."""
    dropped: Counter[tuple[str, str]] = field(default_factory=Counter)
    """(participant, clause): the number of divergences that were expected or do not count for the verdict."""
    unsupported: Counter[tuple[str, str]] = field(default_factory=Counter)
    """(participant, operation): the number of steps with an operation that an implementation does not have."""
    out_of_memory: Counter[tuple[str, str]] = field(default_factory=Counter)
    """(participant, operation): the number of steps that failed because an implementation ran out of memory."""
    kinds: Counter[Kind] = field(default_factory=Counter)
    """The number of steps of the newest dialect's reference, by operation, error kind and exercised clauses."""

    def record_dropout(self, name: str, operation: str, error: str | None) -> bool:
        """Count a step after which an implementation drops out of the example; return False if it does not drop out."""
        if error == "unsupported":
            self.unsupported[name, operation] += 1
        elif error == OUT_OF_MEMORY:
            self.out_of_memory[name, operation] += 1
        else:
            return False
        return True

    def exercised(self, release: str) -> Counter[str]:
        """Return the number of steps that exercised each clause, in the dialect of a release."""
        return self.clauses.get(self.key(release), Counter())


def failure_json(divergence: Divergence) -> Json:
    """Return a divergence as in a trace or a report; bytes are hexadecimal."""
    return {
        "step": divergence.step,
        "participant": divergence.participant,
        "release": divergence.release,
        "against": divergence.against,
        "aspects": list(divergence.aspects),
        "expected": plain(divergence.expected),
        "actual": plain(divergence.actual),
        "clauses": list(divergence.clauses),
    }


def plain(value: Any) -> Any:
    """Return a value of an observation as JSON."""
    if isinstance(value, UnreadableFile):
        return value.decode()
    if isinstance(value, bytes | bytearray):
        return bytes(value).hex()
    if isinstance(value, tuple | list):
        return [plain(item) for item in value]
    return value


def last_words(divergence: Divergence) -> str:
    """Return the stderr output of a crashed program, without addresses and ids; empty if no program crashed."""
    if divergence.failure is None:
        return ""
    how, _, words = (divergence.failure.text or "").partition(STDERR_SAYS)
    return _RUN_SPECIFIC.sub("", words) if how.startswith("ended") else ""


Files = Mapping[str, bytes | None]


class FileDifference(NamedTuple):
    """File that differs.

    Attributes:
        how: The keywords for the difference.
            ``room``: only zeros or a partial entry at the end differ; a missing file counts as empty.
            ``tail``: only bytes after the last expected entry that is not zeros differ.
            ``longer``: the actual file has more of these bytes.
            ``sound``: the actual file's entries are correct for its log. If segments follow, a time index ends with
            the largest timestamp.
            ``sparse`` and the suffix: the actual file has no entry, and needs none.
            ``empty``: one side has an empty file, the other none.
            ``blank``: the file is a log, and has only zeros on both sides.
            ``absent`` and the suffix: one side has no such file.
    """

    name: str
    how: frozenset[str] = frozenset()


Entries = Mapping[str, int]
"""The number of entries in the index files of a segment, by suffix."""


def file_differences(
    expected: Files, actual: Files, of_expected: Entries | None = None, of_actual: Entries | None = None
) -> tuple[FileDifference, ...]:
    """Return the files that differ, by name.

    Args:
        of_expected: The number of entries that the expected state has, if the files are of one segment: a truncated
            index keeps the bytes after its entries.
        of_actual: The number of entries that the actual state has.
    """
    names = sorted(name for name in {*expected, *actual} if expected.get(name) != actual.get(name))
    known = of_expected or {}, of_actual or {}
    return tuple(FileDifference(name, frozenset(_how(name, expected.get(name), actual, *known))) for name in names)


def _how(name: str, expected: bytes | None, files: Files, of_expected: Entries, of_actual: Entries) -> list[str]:
    content, path = files.get(name), PurePath(name)
    if path.suffix != (suffix := suffix_of(name)):
        path = PurePath(path.stem.removesuffix(suffix) + suffix)
    is_index = path.suffix in _SOUND
    log = files.get(f"{path.stem}.log{name.removeprefix(path.name)}")  # renamed like the index
    found = []
    if is_index and _used(path, expected) == _used(path, content):
        found += ["room", "tail"]
        if len(content or b"") > len(expected or b""):
            found.append("longer")
    elif is_index and (content or b"").startswith(_used(path, expected)):
        found.append("tail")
    mine, theirs = _entries_of(path, expected, of_expected), _entries_of(path, content, of_actual)
    if is_index and content and path.stem.isdecimal():
        is_sound = log is not None and _SOUND[path.suffix](theirs, log, int(path.stem))
        if is_sound and _is_finished(path, content, files, log):
            found.append("sound")
    if is_index and _used(path, mine) and not _used(path, theirs) and _is_finished(path, b"", files, log):
        found.append(f"sparse{path.suffix}")
    found += _without_content(path.suffix, expected, content)
    return found


def _without_content(suffix: str, expected: bytes | None, content: bytes | None) -> list[str]:
    found = []
    if not expected and not content:
        found.append("empty")
    if suffix == LOG and not any(expected or b"") and not any(content or b""):
        found.append("blank")
    if expected is None or content is None:
        found.append(f"absent{suffix}")
    return found


def _entries_of(path: PurePath, data: bytes | None, entries: Entries) -> bytes:
    """Return an index file with zeros for the bytes after its entries, if their number is known."""
    if data is None or path.suffix not in entries:
        return data or b""
    size = entries[path.suffix] * (OFFSET_INDEX if path.suffix == ".index" else TIME_INDEX).size
    return data[:size].ljust(len(data), b"\0")


class _Place(NamedTuple):
    """Position, first and last offset, and largest timestamp of a batch."""

    position: int
    first: int
    last: int
    largest: int


def _places(log: bytes) -> list[_Place]:
    """Return the batches of a log, up to the first unreadable batch."""
    found, position = [], 0
    try:
        for batch in iter_memory_batches(log):
            found.append(_Place(position, batch.base_offset, batch.last_offset, batch.max_timestamp))
            position += batch.size_in_bytes
    except KidxError:
        pass
    return found


def _is_sound_offset_index(data: bytes, log: bytes, base: int) -> bool:
    """Return True if each entry is the last offset of a batch and the position of this batch or an earlier one."""
    places = _places(log)
    starts, ends = {place.position: place for place in places}, {place.last: place for place in places}
    before = -1
    for relative, position in _entries(data, OFFSET_INDEX):
        start, end = starts.get(position), ends.get(base + relative)
        if start is None or end is None or start.position > end.position or relative <= before:
            return False
        before = relative
    return True


def _is_sound_time_index(data: bytes, log: bytes, base: int) -> bool:
    """Return True if each entry has the timestamp of a batch that no earlier batch exceeds, and both fields ascend."""
    places = _places(log)
    before = (-1, -1)
    for timestamp, relative in _entries(data, TIME_INDEX):
        may_be = _may_be_largest(places, timestamp, base + relative)
        if not may_be or timestamp <= before[0] or relative < before[1]:
            return False
        before = timestamp, relative
    return True


def may_be_largest(log: bytes, timestamp: int, offset: int) -> bool:
    """Return True if a batch of a log has a timestamp that no batch exceeds that ends before an offset."""
    return _may_be_largest(_places(log), timestamp, offset)


def _may_be_largest(places: Sequence[_Place], timestamp: int, offset: int) -> bool:
    return any(place.largest == timestamp for place in places) and not any(
        place.largest > timestamp for place in places if place.last < offset
    )


def _used(path: PurePath, data: bytes | None) -> bytes:
    """Return an index without the zeros after its entries and without a partial entry at its end."""
    size = (OFFSET_INDEX if path.suffix == ".index" else TIME_INDEX).size
    whole = (data or b"")[: len(data or b"") // size * size]
    return whole.rstrip(b"\0")


def _is_finished(path: PurePath, data: bytes, files: Files, log: bytes | None) -> bool:
    """Return True if the last entry of a time index has the largest timestamp, or if no segment follows."""
    if path.suffix != ".timeindex" or not any(name.endswith(".log") and name > f"{path.stem}.log" for name in files):
        return True
    entries = _entries(data, TIME_INDEX)
    largest = max((place.largest for place in _places(log or b"")), default=-1)
    of_zeros = 0 if len(data or b"") >= TIME_INDEX.size else -1  # the entry of the first record, with timestamp 0
    return (entries[-1][0] if entries else of_zeros) == largest


def _entries(data: bytes, layout: Layout) -> list[tuple[int, int]]:
    """Return the entries of an index, without the preallocated tail."""
    whole = len(data) - len(data) % layout.size
    found = [layout.struct.unpack_from(data, at) for at in range(0, whole, layout.size)]
    while found and not any(found[-1]):
        found.pop()
    return found


_SOUND = {".index": _is_sound_offset_index, ".timeindex": _is_sound_time_index}
"""The check of whether the entries of an index are correct for its log, by suffix."""


_RENAMING: Final = frozenset({"rename", "rename_segment"})
"""The operations after which the files have other names."""
_APPENDING: Final = frozenset({"append", "bulk_append", "maybe_append", "bulk_maybe_append", "append_aborted"})
"""The operations after which an index has more entries, which its file need not show yet."""
_UNREPORTED: Final = frozenset({"verify_transaction", "assign_topic_id", "raise_high_watermark"})
"""The operations of a log that change what its state does not include: guards, the topic id, the place of an offset."""


class Decision(IntEnum):
    """Decision about a divergence; a callback may return False for ``RAISE`` and True for ``SKIP_EXAMPLE``.

    ``RAISE`` raises DivergenceError. With ``SKIP_EXAMPLE``, the participant takes no part in the rest of the example.
    With ``CONTINUE``, it does.
    """

    RAISE = False
    SKIP_EXAMPLE = True
    CONTINUE = 2


def decide(divergence: Divergence, level: str = "observed", *, tolerated: bool) -> Decision:
    """Return the decision about a divergence: after a tolerated divergence, a participant continues if it can.

    Args:
        tolerated: True if the divergence does not end the example.
    """
    if not tolerated:
        return Decision.RAISE
    return Decision.CONTINUE if can_continue(divergence, level) else Decision.SKIP_EXAMPLE


def can_continue(divergence: Divergence, level: str = "observed") -> bool:
    """Return True if a participant can continue with an example after a divergence, since state and files are right.

    At level must, differences that only callers of Kafka's classes can notice do not matter, and the length of an index
    file matters to steps that depend on it (:mod:`conformance.attribution.history`). A segment has no history: it does
    not continue after a difference in the capacity of its indexes.

    If only one of participant and reference failed to open, release or rename files, their states differ. A comparison
    of the states does not always show this, because a closed index need not report its state. An index that never
    reports it may also have an entry in memory that only one side accepted. A log has more in memory than its state
    includes.
    """
    if level == "must" and (divergence.is_unnoticed or divergence.is_of_length or divergence.is_of_memory):
        return not (divergence.creates_other_files or divergence.is_of_parts)
    if divergence.is_failure or {"state", "bytes"} & set(divergence.aspects):
        return False
    operation = divergence.operation
    is_refused, was_refused = divergence.are_errors
    if is_refused != was_refused and operation.name in _APPENDING and not divergence.reports_state:
        return False
    if operation.name in _UNREPORTED and not (is_refused and was_refused):
        return False
    return is_refused == was_refused or (operation.effect is None and operation.name not in _RENAMING)


@dataclass(slots=True)
class ServerStatistics:
    """Statistics of all topics of a server: executed operations and compared results."""

    topics: int = 0
    steps: int = 0
    answers: int = 0
    """The number of compared responses to lookups."""
    restarts: int = 0
    kills: int = 0
    acknowledged: int = 0
    """The number of batches that the server has acknowledged, and so must not lose."""
    expected: int = 0
    """The number of divergences that are known and do not count."""
    clauses: Counter[str] = field(default_factory=Counter)
    """The number of correct results that are evidence for each clause."""

    @property
    def stops(self) -> int:
        """The number of stops of the server, clean or not."""
        return self.restarts + self.kills
