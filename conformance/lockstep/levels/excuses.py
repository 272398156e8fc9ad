"""What a foreign log may do otherwise for lack of a capability, and how it is judged then.

An excuse takes the same part out of what is expected and of what there is, or brings it into the same form; whatever
else differs counts. A variant is another way of performing a step that is right as well: the reference performs it, and
is what the log is held to from then on. Both are counted under their words, so that a report can show them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from pathlib import PurePath
from typing import TYPE_CHECKING, Final, NamedTuple

from conformance.attribution.log_step import Files
from conformance.operations import Operation
from conformance.operations.log import LogObservation
from conformance.operations.log_capabilities import NOT_REQUESTED
from kidx.errors import KidxError
from kidx.layout import OFFSET_INDEX, TIME_INDEX
from kidx.log.epochs import FILE_NAME
from kidx.log.lookup import MAX_TIMESTAMP, TARGETS
from kidx.producers import SNAPSHOT_SUFFIX
from kidx.records import iter_memory_batches

if TYPE_CHECKING:
    from collections.abc import Collection

Seen = tuple[LogObservation, Files]
"""An observation, and the files after it."""
Lengths = Mapping[str, int]
"""Bytes that are entries, of each index that the reference has loaded, by the file's name."""

Fair = Callable[[Operation, Seen, Seen, Lengths], tuple[Seen, Seen]]


class Excuse(NamedTuple):
    """What is not compared of a log that lacks a capability.

    Attributes:
        words: for a report.
        fair: what is expected of an operation, and what there is, without it; also told how long indexes are.
    """

    words: str
    fair: Fair


def _both(plain: Callable[[Operation, Seen], Seen]) -> Fair:
    """The same taken out of both sides."""
    return lambda operation, expected, actual, _: (plain(operation, expected), plain(operation, actual))


Answer = tuple[int, int] | None
"""Timestamp and offset."""
_ENTRY_SIZES: Final = {".index": 8, ".timeindex": 12, ".txnindex": 34}


def _entries_only(_: Operation, expected: Seen, actual: Seen, lengths: Lengths) -> tuple[Seen, Seen]:
    """Indexes by their entries. What the reference has cut off stands behind its entries, and may be gone as well."""
    mine, theirs = _kept(expected[1]), _kept(actual[1])
    for name, data in list(mine.items()):
        if theirs.get(name) != data:
            told = data[: lengths[name]] if name in lengths else _before_the_end(name, data, expected[1])
            mine[name] = _entries(name, told) or b""  # an entry of zeros cannot be told from room
            if mine[name] and name not in theirs and actual[1].get(name):
                theirs[name] = actual[1][name]
    return (expected[0], {name: data for name, data in mine.items() if data or _is_no_index(name)}), (actual[0], theirs)


def _is_no_index(name: str) -> bool:
    return PurePath(name).suffix not in _ENTRY_SIZES


def _kept(files: Files) -> dict[str, bytes]:
    return {name: kept for name, data in files.items() if (kept := _entries(name, data)) is not None}


def _before_the_end(name: str, data: bytes, files: Files) -> bytes:
    """The entries before the first one that is about nothing in the log beside it; other indexes as they are."""
    path = PurePath(name)
    log = files.get(f"{path.stem}.log")
    if path.suffix not in (".index", ".timeindex") or log is None:
        return data
    base = int(path.stem)
    try:
        last = max((batch.last_offset for batch in iter_memory_batches(log)), default=base - 1)
    except KidxError:  # a log that is damaged tells no end
        return data
    layout = OFFSET_INDEX if path.suffix == ".index" else TIME_INDEX
    for at in range(0, len(data) - layout.size + 1, layout.size):
        first, second = layout.struct.unpack_from(data, at)
        if base + (first if path.suffix == ".index" else second) > last:
            return data[:at]
    return data


def _entries(name: str, data: bytes) -> bytes | None:
    """An index without the room behind its entries, None if it has no entry; any other file as it is."""
    size = next((size for suffix, size in _ENTRY_SIZES.items() if name.endswith(suffix)), 0)
    if not size:
        return data
    end = len(data)
    while end and not any(data[max(0, end - size) : end]):
        end = max(0, end - size)
    return data[:end] or None


def _without_epochs(operation: Operation, seen: Seen) -> Seen:
    observation, files = _without(FILE_NAME)(operation, seen)
    outcome = observation.outcome
    if operation.name == "list_offsets" and outcome.error is None and outcome.value is not None:
        answers = tuple((*answer[:2], -1) if isinstance(answer, tuple) else answer for answer in outcome.value)
        observation = observation._replace(outcome=outcome._replace(value=answers))
    return observation, files


def _without(suffix: str, *fields: str) -> Callable[[Operation, Seen], Seen]:
    """Without the files that end so, and without some fields of the state."""

    def plain(_: Operation, seen: Seen) -> Seen:
        observation, files = seen
        state = observation.state
        if state is not None and fields:
            observation = observation._replace(state=state.without(fields))
        return observation, {name: data for name, data in files.items() if not (suffix and name.endswith(suffix))}

    return plain


def _as_one_segment(operation: Operation, expected: Seen, actual: Seen, _: Lengths) -> tuple[Seen, Seen]:
    """Without files and segments; an answer is right, too, where all records were in one segment."""
    mine, theirs = expected[0], actual[0]
    if operation.name == "list_offsets" and mine.outcome.value and theirs.outcome.value and mine.state is not None:
        rights = answers_of_records(operation, expected)
        pairs = zip(rights, mine.outcome.value, theirs.outcome.value, strict=False)
        answers = tuple(other if (other and other[:2]) in right else answer for right, answer, other in pairs)
        mine = mine._replace(outcome=mine.outcome._replace(value=answers))
    plain = _without("", "segments")
    return plain(operation, (mine, {})), plain(operation, (theirs, {}))


def answers_of_records(operation: Operation, seen: Seen) -> list[Collection[Answer]]:
    """For each target that is asked for, the answers that records alone lead to, without segments and indexes.

    Records that cannot be read lead to none.

    Args:
        operation: the question.
        seen: what the reference answers, and its files.
    """
    try:
        records, state = _records(seen[1]), seen[0].state
    except (KidxError, OSError):
        return [() for _ in operation.args[0]]
    start = 0 if state is None else state.start_offset
    return [_without_segments(records, target, start) for target in operation.args[0]]


def _records(files: Files) -> list[tuple[int, int]]:
    """Offset and timestamp of every record in the ``.log`` files."""
    logs = (files[name] for name in sorted(files) if name.endswith(".log"))
    return [
        (record.offset, record.timestamp) for data in logs for batch in iter_memory_batches(data) for record in batch
    ]


def _without_segments(records: list[tuple[int, int]], target: int, start: int) -> Collection[Answer]:
    """The answers to a target that need no segments; none where there is but the one."""
    visible = [record for record in records if record[0] >= start]
    if target == MAX_TIMESTAMP:
        return _largest(records), _largest(visible)
    if target in TARGETS.values():
        return ()
    return (next(((timestamp, offset) for offset, timestamp in visible if timestamp >= target), None),)


def _largest(records: list[tuple[int, int]]) -> Answer:
    """The first record with the largest timestamp."""
    latest = max((timestamp for _, timestamp in records), default=None)
    return next(((timestamp, offset) for offset, timestamp in records if timestamp == latest), None)


def _as_far_as_asked(operation: Operation, expected: Seen, actual: Seen, _: Lengths) -> tuple[Seen, Seen]:
    """Without the answers that the log was not asked for, and the empty indexes that a search for them makes."""
    mine, theirs = expected[0].outcome, actual[0].outcome
    if operation.name == "list_offsets" and mine.value and theirs.value:
        pairs = zip(mine.value, theirs.value, strict=True)
        answers = tuple(other if other == NOT_REQUESTED else answer for answer, other in pairs)
        expected = expected[0]._replace(outcome=mine._replace(value=answers)), expected[1]
    files = {name: data for name, data in expected[1].items() if name in actual[1] or _is_no_index(name) or any(data)}
    return (expected[0], files), actual


EXCUSES: Final = {
    "time_lookups": Excuse("look-ups by time are not asked for", _as_far_as_asked),
    # Leader epochs come first: answers are compared without them from there on.
    "epochs": Excuse("leader epochs are not compared", _both(_without_epochs)),
    "segments": Excuse("segments and files are not compared, answers may be those of one segment", _as_one_segment),
    "preallocation": Excuse("indexes are compared by their entries, one without any may be missing", _entries_only),
    "producers": Excuse(
        "producers and their snapshots are not compared",
        _both(_without(SNAPSHOT_SUFFIX, "producers_end", "ongoing", "unreplicated", "producers")),
    ),
    "transactions": Excuse(
        "the last stable offset and aborted transactions are not compared",
        _both(_without(".txnindex", "last_stable_offset", "ongoing", "unreplicated")),
    ),
    "recovery_point": Excuse("the recovery point is not compared", _both(_without("", "recovery_point"))),
}
"""By the capability that is lacking."""


class Variant(NamedTuple):
    """Another way of performing a step.

    Attributes:
        words: for a report.
        operation: what the reference performs.
        first: what it performs before that.
        last: what it performs after it, if that has changed something.
        deletes: the segments before the log start are deleted with it.
        cuts: the process is killed by it, and its indexes have no room behind their entries.
    """

    words: str
    operation: Operation
    first: Operation | None = None
    last: Operation | None = None
    deletes: bool = False
    cuts: bool = False


_KILLED: Final = "a killed process has made no files that letting go of a log makes"
_DELETES: Final = "segments before the log start were deleted before retention ran"
DAMAGED: Final = "behind a damaged index an answer may be the one that the records lead to"
_SHORTER: Final = "a cut inside a batch leaves the end where that batch began"
_NAMED: Final = "a segment is named by another offset from the end of the one before to its first record"
_RECOVERS: Final = "segments were recovered, or not, as the log decided by itself"


def variants(
    operation: Operation, lacking: Collection[str], before: Seen | None = None, after: Seen | None = None
) -> Iterator[Variant]:
    """How a log that lacks these capabilities may perform an operation besides the one way.

    Args:
        operation: the one way.
        lacking: the capabilities.
        before: what the reference showed before it, where that is known.
        after: what it shows behind it.
    """
    if operation.name == "crash_log":
        yield Variant(_KILLED, operation)
    if operation.name == "truncate_log" and before is not None:
        for end in _beginnings(before, operation.args[0]):
            yield Variant(_SHORTER, Operation("truncate_log", (end,)))
        yield Variant(_NAMED, operation, last=Operation("truncate_fully", operation.args))
    if operation.name == "append_as_follower" and _rolls_at_a_gap(before, after):
        yield Variant(_NAMED, operation, first=Operation("roll_log"))
    openings = [operation]
    if operation.name == "open_log" and {"clean_flag", "recovery_point"} & set(lacking):
        settings, start, point, clean, now = operation.args
        flags = (clean, not clean) if "clean_flag" in lacking else (clean,)
        points = dict.fromkeys((point, 0, (1 << 62))) if "recovery_point" in lacking else (point, 0)
        openings += [Operation("open_log", (settings, start, other, flag, now)) for flag in flags for other in points]
    for other in dict.fromkeys(map(_Hashable, openings)):
        if other.operation != operation:
            yield Variant(_RECOVERS, other.operation)
    if "deferred_deletion" in lacking and operation.name in ("delete_records", "open_log", "truncate_log"):
        for other in dict.fromkeys(map(_Hashable, openings)):
            yield Variant(_DELETES, other.operation, deletes=True)


def _beginnings(before: Seen, offset: int) -> Iterator[int]:
    """Where the batch begins that an offset is inside of, and where the one before it ends, not before the start."""
    observation, files = before
    start, end = 0 if observation.state is None else observation.state.start_offset, 0
    for name in sorted(name for name in files if name.endswith(".log")):
        try:
            for batch in iter_memory_batches(files[name]):
                if batch.base_offset < offset <= batch.last_offset:
                    yield from (each for each in dict.fromkeys((batch.base_offset, end)) if each >= start)
                end = batch.last_offset + 1
        except KidxError:  # a log that is damaged
            return


def _rolls_at_a_gap(before: Seen | None, after: Seen | None) -> bool:
    """Return whether an append begins one segment, behind offsets that no record has."""
    was, now = before and before[0].state, after and after[0].state
    if not (was and now):
        return False
    return len(now.segments) == len(was.segments) + 1 and now.segments[-1][0] > was.end_offset


class _Hashable:
    """An operation whose arguments may be dictionaries."""

    def __init__(self, operation: Operation) -> None:
        self.operation = operation

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Hashable) and self.operation == other.operation

    def __hash__(self) -> int:
        return hash(repr(self.operation))
