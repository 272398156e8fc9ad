"""The cases of logs, written from what is known of their batches."""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING, Final

from conformance.experiments.fuzz.expected import ASKING, SETUP
from conformance.experiments.fuzz.logs.known_batches import KnownBatches, LeftToReferenceError
from conformance.experiments.fuzz.logs.questions import ReadableLog
from conformance.experiments.fuzz.logs.recovery import Offsets, Recovered, Times
from conformance.experiments.fuzz.scripts import LOG_INDEX_SIZE, keys_of_batches, log_questions, log_script
from conformance.experiments.fuzz.seeds import BASE_OFFSET, TIME
from conformance.implementations.jvm.cases import CaseWriter, step_of
from conformance.implementations.jvm.segment import JvmSegment
from conformance.implementations.kidx.segment import ReferenceSegment
from conformance.operations import Operation
from conformance.operations.segment import SUFFIXES, IndexState, SegmentState
from kidx.errors import KidxError
from kidx.segment import file_name

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from conformance.experiments.fuzz.scripts import Question
    from kidx.dialect import Dialect

_NAMES: Final = tuple(file_name(BASE_OFFSET, suffix) for suffix in SUFFIXES)
_LOG: Final = _NAMES[0]
_WITHOUT_TEXT: Final = -1
_FIXED: Final = {
    operation.name: step_of(JvmSegment.step_of(operation))
    for operation in log_script(b"")[SETUP:]
    if operation.name not in ASKING
}
"""The beginnings of the steps that every case has."""


def _code(name: str, *arguments: int) -> int:
    return int(struct.unpack_from("=q", step_of(JvmSegment.step_of(Operation(name, arguments)), asked=True))[0])


_CODES: Final = {
    "translate_offset": _code("translate_offset", 0, 0),
    "find_offset": _code("find_offset", 0, 0, 0),
    "read_segment": _code("read_segment", 0, 0, 0, 0),
}
"""The numbers of questions."""


def _empty(index: Offsets | Times) -> IndexState:
    """The state of a new index."""
    return IndexState(0, LOG_INDEX_SIZE // index.kind.size, LOG_INDEX_SIZE, index.last)


def _trimmed(index: Offsets | Times) -> IndexState:
    return IndexState(len(index), len(index), len(index) * index.kind.size, index.last)


def _opened(offset_index: IndexState | None = None, time_index: IndexState | None = None) -> Sequence[int]:
    """The numbers of the state of a log that has been opened, but for its size."""
    state = SegmentState(0, 0, TIME, None, None, offset_index, time_index, None)
    return JvmSegment.numbers_of_state(state)[1:]


_UNREAD, _READ = _opened(), _opened(_empty(Offsets()))
_ASKED_FOR_TIME: Final = _opened(_empty(Offsets()), _empty(Times()))


class KnownLogs:
    """Writes cases of logs as the readable reference does (:mod:`conformance.experiments.fuzz.expected`).

    Args:
        dialect: of a release.
        directory: that errors name; nothing is done in it.
    """

    def __init__(self, dialect: Dialect, directory: Path) -> None:
        self._dialect = dialect
        self._batches = KnownBatches(dialect, f"{directory}/{_LOG}")
        self._reference = ReferenceSegment(dialect.release)
        self._reference.begin(directory)

    def case(self, content: bytes) -> bytes | None:
        """The case of a content; None if only the readable reference knows it."""
        try:
            return self._case(content)
        except LeftToReferenceError:
            return None

    def _case(self, content: bytes) -> bytes:
        batches, end = self._batches.of(content)
        recovered = Recovered(batches, self._dialect)
        before, behind = log_questions(content, *keys_of_batches(batches))
        writer = CaseWriter()
        writer.write(_LOG, content)
        for name in _NAMES[1:]:
            writer.write(name, None)
        size = len(content)
        damaged = ReadableLog(batches, end, size, Offsets(), Times(), self._dialect)
        self._perform(writer, "open_segment", None, (size, *_UNREAD))
        self._perform(writer, "read_next_offset", damaged.read_next_offset, (size, *_READ))
        self._ask(writer, damaged, before)
        asked_for_time = any(name == "find_offset" for name, _ in before)
        self._perform(
            writer, "has_overflow", damaged.has_overflow, (size, *(_ASKED_FOR_TIME if asked_for_time else _READ))
        )
        self._recover(writer, content, recovered, behind)
        return bytes(writer)

    def _recover(self, writer: CaseWriter, content: bytes, recovered: Recovered, questions: Sequence[Question]) -> None:
        """The recovery of a log, and what comes behind it: then its state and its files stay the same."""
        offset_index, time_index, latest = recovered.offset_index, recovered.time_index, recovered.largest_timestamp
        indexes = _trimmed(offset_index), _trimmed(time_index)
        maximum, last = recovered.maximum, recovered.last_transaction
        state = JvmSegment.numbers_of_state(SegmentState(recovered.size, 0, TIME, None, maximum, *indexes, last))
        files = _files(content, recovered)
        sound = ReadableLog(recovered.batches, None, recovered.size, offset_index, time_index, self._dialect)
        self._perform(writer, "recover_segment", lambda: len(content) - recovered.size, state)
        writer.extend(files)
        self._perform(writer, "read_next_offset", sound.read_next_offset, state)
        self._ask(writer, sound, questions)
        self._perform(writer, "largest_timestamp", lambda: latest if latest >= 0 else TIME, state)
        for name in ("become_inactive", "close_segment"):
            self._perform(writer, name, None, state)
            writer.extend(files)

    def _ask(self, writer: CaseWriter, log: ReadableLog, questions: Sequence[Question]) -> None:
        for name, arguments in questions:
            step = struct.pack(f"={3 + len(arguments)}q", _CODES[name], len(arguments), *arguments, 0)
            try:
                reply = _reply(getattr(log, name)(*arguments), ())
            except KidxError as error:
                reply = self._refusal(error, ())
            writer.perform(step, reply)

    def _perform(self, writer: CaseWriter, name: str, answer: Callable[[], int] | None, state: Sequence[int]) -> None:
        """An operation that every case has."""
        try:
            reply = _reply(None if answer is None else (answer(),), state)
        except KidxError as error:
            reply = self._refusal(error, state)
        writer.perform(_FIXED[name], reply)

    def _refusal(self, error: KidxError, state: Sequence[int]) -> bytes:
        kind, _, text = self._reference.refusal(error)
        words = None if text is None else text.encode()
        length = _WITHOUT_TEXT if words is None else len(words)
        number = JvmSegment.error_kinds.index(str(kind)) + 1
        return struct.pack(f"={4 + len(state)}q", number, -1, len(state), *state, length) + (words or b"")


def _files(content: bytes, recovered: Recovered) -> CaseWriter:
    """The comparison of all files."""
    files = CaseWriter()
    if recovered.size == len(content):
        files.compare_as_written(_LOG)
    else:
        files.compare(_LOG, content[: recovered.size])
    contents = bytes(recovered.offset_index), bytes(recovered.time_index), recovered.transactions or None
    for name, written in zip(_NAMES[1:], contents, strict=True):
        files.compare(name, written)
    return files


def _reply(values: Sequence[int] | None, state: Sequence[int]) -> bytes:
    """A reply without refusal."""
    numbers = values or ()
    count = -1 if values is None else len(values)
    return struct.pack(f"={4 + len(numbers) + len(state)}q", 0, count, len(state), *numbers, *state, _WITHOUT_TEXT)
