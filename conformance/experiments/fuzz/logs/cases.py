"""Cases of logs, written from cached results of their batches."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from conformance.experiments.fuzz.expected import QUERYING, SETUP
from conformance.experiments.fuzz.logs.known_batches import KnownBatches, NeedsReferenceError
from conformance.experiments.fuzz.logs.queries import ReadableLog
from conformance.experiments.fuzz.logs.recovery import Offsets, Recovered, Times
from conformance.experiments.fuzz.probes import LOG_INDEX_SIZE, keys_of_batches, log_probe, log_queries
from conformance.experiments.fuzz.seed_files import BASE_OFFSET, TIME
from conformance.implementations.jvm.cases import ASKED, CaseWriter
from conformance.implementations.jvm.requests import numbered
from conformance.implementations.jvm.segment import JvmSegment
from conformance.implementations.jvm.step_batch import step
from conformance.implementations.kidx.segment import ReferenceSegment
from conformance.operations.segment import SUFFIXES, IndexState, SegmentState
from kidx.errors import KidxError
from kidx.segment import file_name

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from conformance.experiments.fuzz.probes import Query
    from kidx.dialect import Dialect

_NAMES: Final = tuple(file_name(BASE_OFFSET, suffix) for suffix in SUFFIXES)
_LOG: Final = _NAMES[0]
_FIXED: Final = {
    operation.name: JvmSegment.step_of(operation)
    for operation in log_probe(b"")[SETUP:]
    if operation.name not in QUERYING
}
"""Encoded form of the steps that every case has."""


_NUMBERS: Final = numbered(JvmSegment.operations)
_CODES: Final = {name: ASKED + _NUMBERS[name] for name in ("translate_offset", "find_offset", "read_segment")}
"""Numbers by which queries are encoded."""


def _empty(index: Offsets | Times) -> IndexState:
    """Return the state of a new index."""
    return IndexState(0, LOG_INDEX_SIZE // index.kind.size, LOG_INDEX_SIZE, index.last)


def _trimmed(index: Offsets | Times) -> IndexState:
    return IndexState(len(index), len(index), len(index) * index.kind.size, index.last)


def _opened(offset_index: IndexState | None = None, time_index: IndexState | None = None) -> Sequence[int]:
    """Return the encoded state of a newly opened log, without its size."""
    state = SegmentState(0, 0, TIME, None, None, offset_index, time_index, None)
    return JvmSegment.row.numbers(state)[1:]


_UNREAD, _READ = _opened(), _opened(_empty(Offsets()))
_ASKED_FOR_TIME: Final = _opened(_empty(Offsets()), _empty(Times()))


class KnownLogs:
    """Writer of the same cases as the readable reference (:mod:`conformance.experiments.fuzz.expected`), for logs.

    Args:
        dialect: The dialect of a release.
        directory: The directory in error texts; no file is written there.
    """

    def __init__(self, dialect: Dialect, directory: Path) -> None:
        self._dialect = dialect
        self._batches = KnownBatches(dialect, f"{directory}/{_LOG}")
        self._reference = ReferenceSegment(dialect.release)
        self._reference.begin(directory)

    def case(self, content: bytes) -> bytes | None:
        """Return the case of a content, or None if it needs the readable reference."""
        try:
            return self._case(content)
        except NeedsReferenceError:
            return None

    def _case(self, content: bytes) -> bytes:
        batches, end = self._batches.of(content)
        recovered = Recovered(batches, self._dialect)
        before, after = log_queries(content, *keys_of_batches(batches))
        writer = CaseWriter()
        writer.write(_LOG, content)
        for name in _NAMES[1:]:
            writer.write(name, None)
        size = len(content)
        damaged = ReadableLog(batches, end, size, Offsets(), Times(), self._dialect)
        self._execute(writer, "open_segment", None, (size, *_UNREAD))
        self._execute(writer, "read_next_offset", damaged.read_next_offset, (size, *_READ))
        self._query(writer, damaged, before)
        asked_for_time = any(name == "find_offset" for name, _ in before)
        self._execute(
            writer, "has_overflow", damaged.has_overflow, (size, *(_ASKED_FOR_TIME if asked_for_time else _READ))
        )
        self._recover(writer, content, recovered, after)
        return bytes(writer)

    def _recover(self, writer: CaseWriter, content: bytes, recovered: Recovered, queries: Sequence[Query]) -> None:
        """Write the recovery of a log and the steps after it, which do not change state and files."""
        offset_index, time_index, latest = recovered.offset_index, recovered.time_index, recovered.largest_timestamp
        indexes = _trimmed(offset_index), _trimmed(time_index)
        maximum, last = recovered.maximum, recovered.last_transaction
        state = JvmSegment.row.numbers(SegmentState(recovered.size, 0, TIME, None, maximum, *indexes, last))
        files = _files(content, recovered)
        sound = ReadableLog(recovered.batches, None, recovered.size, offset_index, time_index, self._dialect)
        self._execute(writer, "recover_segment", lambda: len(content) - recovered.size, state)
        writer.extend(files)
        self._execute(writer, "read_next_offset", sound.read_next_offset, state)
        self._query(writer, sound, queries)
        self._execute(writer, "largest_timestamp", lambda: latest if latest >= 0 else TIME, state)
        for name in ("become_inactive", "close_segment"):
            self._execute(writer, name, None, state)
            writer.extend(files)

    def _query(self, writer: CaseWriter, log: ReadableLog, queries: Sequence[Query]) -> None:
        for name, arguments in queries:
            try:
                reply = JvmSegment.reply_of(None, getattr(log, name)(*arguments))
            except KidxError as error:
                reply = self._error(error, ())
            writer.perform(step(_CODES[name], arguments), reply)

    def _execute(self, writer: CaseWriter, name: str, answer: Callable[[], int] | None, state: Sequence[int]) -> None:
        """Write an operation that every case has."""
        try:
            reply = JvmSegment.reply_of(None, None if answer is None else (answer(),), state)
        except KidxError as error:
            reply = self._error(error, state)
        writer.perform(_FIXED[name], reply)

    def _error(self, error: KidxError, state: Sequence[int]) -> bytes:
        kind, _, text = self._reference.refusal(error)
        return JvmSegment.reply_of(str(kind), None, state, text)


def _files(content: bytes, recovered: Recovered) -> CaseWriter:
    """Return the encoded comparison of all files."""
    files = CaseWriter()
    if recovered.size == len(content):
        files.compare_as_written(_LOG)
    else:
        files.compare(_LOG, content[: recovered.size])
    contents = bytes(recovered.offset_index), bytes(recovered.time_index), recovered.transactions or None
    for name, written in zip(_NAMES[1:], contents, strict=True):
        files.compare(name, written)
    return files
