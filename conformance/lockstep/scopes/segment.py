"""Scope of a segment: its ``.log``, ``.index``, ``.timeindex`` and ``.txnindex``, and its state in memory."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING, Any, Final

from conformance.attribution.segment import TrackedSegment, segment_clauses_of, track_segment_step
from conformance.implementations.kidx.segment import ReferenceSegment
from conformance.lockstep.divergence import Entries, may_be_largest
from conformance.lockstep.file_reader import StepFileReader, corrupt
from conformance.lockstep.lockstep import Lockstep
from conformance.lockstep.participant import Participant
from conformance.lockstep.scope import Group, Scope
from conformance.operations import OK, Operation
from conformance.operations.segment import SEGMENT_OPS, SUFFIXES, SegmentObservation
from kidx.errors import KidxError
from kidx.layout import OFFSET_INDEX, TIME_INDEX
from kidx.records import iter_memory_batches
from kidx.segment import file_name

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from conformance.operations.segment import IndexState, SegmentState
    from kidx.dialect import Dialect
    from kidx.layout import Layout

Files = tuple[bytes | None, ...]
"""The contents in the order of :data:`SUFFIXES`; None for a file that does not exist."""
Name = tuple[int, str]
"""The base offset, and the end of the names of the files, e.g. ``".deleted"``."""
_APPENDS: Final = frozenset({"append_records", "append_from_file"})
_SEARCHES_LOG: Final = frozenset({"translate_offset", "read_segment", "truncate_segment"})
_NOTICED: Final = frozenset({None, "invalid_offset"})
_REACHED: Final = frozenset({None, "corrupt_record"})
ObservedFiles = tuple[SegmentObservation, Files]


def _is_in_order(log: bytes) -> bool | None:
    """Return True if a log has only batches, each after the previous one; None if a corrupt batch ends them."""
    end, last = 0, -1
    try:
        for batch in iter_memory_batches(log):
            if batch.base_offset <= last:
                return False
            last, end = batch.last_offset, end + batch.size_in_bytes
    except KidxError:
        return None
    return True if not log[end:].strip(b"\0") else None


def _names_its_end(operation: Operation) -> bool:
    """Return True if the batches of an append are in order, and the named offset, if any, is their last one."""
    records, named, *_ = operation.args
    batches = bytes.fromhex(records)
    if operation.name != "append_records" or not batches:
        return True
    return bool(_is_in_order(batches)) and named in (None, [*iter_memory_batches(batches)][-1].last_offset)


def _has_own_indexes(state: SegmentState | None, log: bytes, offsets: bytes | None, times: bytes | None) -> bool:
    """Return True if the entries of both indexes are of batches of the log, and not what another segment left."""
    if state is None:
        return True
    positions, timestamps, end = set[int](), set[int](), 0
    with contextlib.suppress(KidxError):
        for batch in iter_memory_batches(log):
            positions.add(end)
            timestamps.add(batch.max_timestamp)
            end += batch.size_in_bytes
    of_offsets = _unpacked(OFFSET_INDEX, offsets, state.offset_index)
    of_times = _unpacked(TIME_INDEX, times, state.time_index)
    # The first batch has no entry in the offset index (SEG-5).
    return {position for _, position in of_offsets} <= positions - {0} and {time for time, _ in of_times} <= timestamps


def _unpacked(layout: Layout, data: bytes | None, index: IndexState | None) -> list[tuple[int, int]]:
    count = min(0 if index is None else index.entries, len(data or b"") // layout.size)
    return [layout.struct.unpack_from(data or b"", number * layout.size) for number in range(count)]


class SegmentParticipant(Participant):
    """Implementation of a segment, with its directory and its four files."""

    def __init__(self, implementation: Any, directory: Path) -> None:
        super().__init__(implementation, directory)
        self.files = tuple(StepFileReader() for _ in SUFFIXES)

    def clear(self) -> None:
        """See the base class."""
        for file in self.files:
            file.release()
        super().clear()

    def watch(self, name: Name) -> None:
        """Read the files of a segment from now on."""
        base_offset, suffix = name
        for file, kind in zip(self.files, SUFFIXES, strict=True):
            file.watch(self.prefix + file_name(base_offset, kind) + suffix)

    def read(self) -> Files:
        """Return the current contents of the four files."""
        return tuple(file.read() for file in self.files)


class SegmentScope(Scope[SegmentObservation, Files]):
    """Scope of the four files of a segment."""

    participant = SegmentParticipant
    reference = ReferenceSegment
    operations = SEGMENT_OPS
    empty_observation = SegmentObservation(OK, None)
    no_files = (None,) * len(SUFFIXES)
    no_file_name = (0, "")
    file_selecting_operations = frozenset({"open_segment", "rename_segment"})
    close_operation = Operation("close_segment")
    sections = ("index", "segment")  # of kidx.dialect.table

    def named(self, operation: Operation, before: Name) -> Name:
        """Return base offset and suffix after an opening or a renaming."""
        if operation.name == "open_segment":
            return operation.args[0], operation.args[7]  # its arguments base_offset and suffix
        old, new = operation.args
        return before[0], before[1].removesuffix(old) + new

    def by_name(self, files: Files, name: Name) -> Mapping[str, bytes | None]:
        """See the base class."""
        base_offset, suffix = name
        return {file_name(base_offset, kind) + suffix: file for kind, file in zip(SUFFIXES, files, strict=True)}

    def corrupted_path(self, operation: Operation, name: Name) -> str:
        """See the base class."""
        base_offset, suffix = name
        return f"{file_name(base_offset, operation.args[0])}{suffix}"

    def corrupt(self, group: Group[SegmentObservation, Files], operation: Operation, name: Name) -> None:
        """Corrupt one of the four files of the active participants."""
        for participant in (group.reference, *group.unbatched):
            if participant.active:
                self.corrupt_one(participant, operation, name)
        group.files = group.reference.read()

    def corrupt_one(self, participant: Participant, operation: Operation, name: Name) -> None:
        """See the base class."""
        _, how, numbers = operation.args
        corrupt(participant.directory / self.corrupted_path(operation, name), how, tuple(numbers))

    def tracked(self, release: str) -> TrackedSegment:
        """See the base class."""
        return TrackedSegment(release)

    def is_of_a_broker(
        self,
        operation: Operation,
        clauses: tuple[str, ...],
        seen: tuple[ObservedFiles, ObservedFiles],
        actual: ObservedFiles,
    ) -> bool:
        """See the base class: batches are in order, an append is honest, and the indexes are of this log."""
        (_, (log, *_)), (expected, (log_after, *indexes)) = seen
        errors = {expected.outcome.error, actual[0].outcome.error}
        if operation.name == "recover_segment":
            # A recovery notices batches out of order only where an entry is due, which is open.
            return errors != _NOTICED or _is_in_order(log or b"") is not False
        if operation.name in _SEARCHES_LOG:
            is_whole = _is_in_order(log or b"")
            # Which headers a search reads, and so whether it reaches a corrupt one, is open.
            return is_whole is not False and not (is_whole is None and "SEG-51" in clauses and errors == _REACHED)
        if operation.name in _APPENDS:
            maximum = None if expected.state is None else expected.state.maximum
            return (
                bool(_is_in_order(log or b""))
                and _names_its_end(operation)
                and _has_own_indexes(expected.state, log_after or b"", *indexes[:2])
                and (maximum is None or maximum[0] < 0 or may_be_largest(log_after or b"", *maximum))
            )
        return True

    def entries_of(self, observation: SegmentObservation) -> Entries | None:
        """See the base class."""
        state = observation.state
        if state is None:
            return None
        indexes = {".index": state.offset_index, ".timeindex": state.time_index}
        return {suffix: index.entries for suffix, index in indexes.items() if index is not None}

    def clauses_of(
        self,
        operation: Operation,
        dialect: Dialect,
        tracked: TrackedSegment,
        before: ObservedFiles,
        after: ObservedFiles,
        known: dict[Any, Any],
    ) -> tuple[str, ...]:
        """See the base class."""
        del dialect, known
        return segment_clauses_of(operation, tracked, after[0], before[1], after[1])

    def track(self, tracked: TrackedSegment, operation: Operation, observation: SegmentObservation) -> None:
        """See the base class."""
        if operation.name in self.corrupting_operations:
            tracked.corrupted.add(operation.args[0])
        else:
            track_segment_step(tracked, operation, observation)


class SegmentLockstep(Lockstep[SegmentObservation, Files]):
    """Lockstep of segments, with the arguments of the base class."""

    scope = SegmentScope()
