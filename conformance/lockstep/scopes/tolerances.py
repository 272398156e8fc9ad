"""Tolerances and permitted variants for a third-party log that lacks a capability (does not declare a feature).

A tolerance removes the same part from the expected and the actual result, or normalizes this part; any other difference
counts. A variant is another correct way of executing a step. A reference executes the variant, and the log is compared
with this reference from then on. Reports show how often each was needed.
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

ObservedFiles = tuple[LogObservation, Files]
"""An observation, and the files after it."""
Lengths = Mapping[str, int]
"""The number of bytes that are entries, by file name, for each index that the reference has loaded."""

Normalizer = Callable[[Operation, ObservedFiles, ObservedFiles, Lengths], tuple[ObservedFiles, ObservedFiles]]
"""A function that returns the expected and the actual result of an operation without the tolerated part."""


class Tolerance(NamedTuple):
    """Part of the result that is not compared for a log that lacks a capability.

    Attributes:
        description: The description for a report.
        normalize: A function that returns the expected and the actual result of an operation without this part.
    """

    description: str
    normalize: Normalizer


def _both(plain: Callable[[Operation, ObservedFiles], ObservedFiles]) -> Normalizer:
    """Return a function that removes the same part from both sides."""
    return lambda operation, expected, actual, _: (plain(operation, expected), plain(operation, actual))


Answer = tuple[int, int] | None
"""Timestamp and offset."""
_ENTRY_SIZES: Final = {".index": 8, ".timeindex": 12, ".txnindex": 34}


def _entries_only(
    _: Operation, expected: ObservedFiles, actual: ObservedFiles, lengths: Lengths
) -> tuple[ObservedFiles, ObservedFiles]:
    """Return both sides with indexes reduced to their entries; entries beyond the log's end may be missing."""
    files, actual_files = _used(expected[1]), _used(actual[1])
    for name, data in list(files.items()):
        if actual_files.get(name) != data:
            kept = data[: lengths[name]] if name in lengths else _before_log_end(name, data, expected[1])
            # An entry of zeros is indistinguishable from a preallocated tail.
            files[name] = _entries(name, kept) or b""
            if files[name] and name not in actual_files and actual[1].get(name):
                actual_files[name] = actual[1][name]
    needed = {name: data for name, data in files.items() if data or _is_no_index(name)}
    return (expected[0], needed), (actual[0], actual_files)


def _is_no_index(name: str) -> bool:
    return PurePath(name).suffix not in _ENTRY_SIZES


def _used(files: Files) -> dict[str, bytes]:
    """Return the files, with indexes reduced to their entries and without indexes that have none."""
    return {name: kept for name, data in files.items() if (kept := _entries(name, data)) is not None}


def _before_log_end(name: str, data: bytes, files: Files) -> bytes:
    """Return the entries of an offset or time index up to the end of its log; other indexes unchanged."""
    path = PurePath(name)
    log = files.get(f"{path.stem}.log")
    if path.suffix not in (".index", ".timeindex") or log is None:
        return data
    base = int(path.stem)
    try:
        last = max((batch.last_offset for batch in iter_memory_batches(log)), default=base - 1)
    except KidxError:  # the end of a corrupt log is unknown
        return data
    layout = OFFSET_INDEX if path.suffix == ".index" else TIME_INDEX
    for at in range(0, len(data) - layout.size + 1, layout.size):
        first, second = layout.struct.unpack_from(data, at)
        if base + (first if path.suffix == ".index" else second) > last:
            return data[:at]
    return data


def _entries(name: str, data: bytes) -> bytes | None:
    """Return the content of an index without its preallocated tail, or None without entries; other files unchanged."""
    size = next((size for suffix, size in _ENTRY_SIZES.items() if name.endswith(suffix)), 0)
    if not size:
        return data
    end = len(data)
    while end and not any(data[max(0, end - size) : end]):
        end = max(0, end - size)
    return data[:end] or None


def _without_epochs(operation: Operation, seen: ObservedFiles) -> ObservedFiles:
    observation, files = _without(FILE_NAME)(operation, seen)
    outcome = observation.outcome
    if operation.name == "list_offsets" and outcome.error is None and outcome.value is not None:
        results = tuple((*answer[:2], -1) if isinstance(answer, tuple) else answer for answer in outcome.value)
        observation = observation._replace(outcome=outcome._replace(value=results))
    return observation, files


def _without_append_result(operation: Operation, seen: ObservedFiles) -> ObservedFiles:
    observation, files = seen
    if operation.name.startswith("append_"):
        observation = observation._replace(outcome=observation.outcome._replace(value=None))
    return observation, files


def _without(suffix: str, *fields: str) -> Callable[[Operation, ObservedFiles], ObservedFiles]:
    """Return a function that removes the files with a suffix and some fields of the state."""

    def plain(_: Operation, seen: ObservedFiles) -> ObservedFiles:
        observation, files = seen
        state = observation.state
        if state is not None and fields:
            observation = observation._replace(state=state.without(fields))
        return observation, {name: data for name, data in files.items() if not (suffix and name.endswith(suffix))}

    return plain


def _as_one_segment(
    operation: Operation, expected: ObservedFiles, actual: ObservedFiles, _: Lengths
) -> tuple[ObservedFiles, ObservedFiles]:
    """Return both sides without files and segments; results that are right for a single segment are accepted, too."""
    expected_observation, actual_observation = expected[0], actual[0]
    if (
        operation.name == "list_offsets"
        and expected_observation.outcome.value
        and actual_observation.outcome.value
        and expected_observation.state is not None
    ):
        rights = results_from_records(operation, expected)
        pairs = zip(rights, expected_observation.outcome.value, actual_observation.outcome.value, strict=False)
        results = tuple(other if (other and other[:2]) in right else answer for right, answer, other in pairs)
        expected_observation = expected_observation._replace(
            outcome=expected_observation.outcome._replace(value=results)
        )
    plain = _without("", "segments")
    return plain(operation, (expected_observation, {})), plain(operation, (actual_observation, {}))


def results_from_records(operation: Operation, seen: ObservedFiles) -> list[Collection[Answer]]:
    """Return, for each target, the results that are right according to the records, without segments and indexes.

    If records are unreadable, there are no such results.

    Args:
        seen: The reference's observation and files.
    """
    try:
        records, state = _records(seen[1]), seen[0].state
    except (KidxError, OSError):
        return [() for _ in operation.args[0]]
    start = 0 if state is None else state.start_offset
    return [_without_segments(records, target, start) for target in operation.args[0]]


def _records(files: Files) -> list[tuple[int, int]]:
    """Return offset and timestamp of every record in the ``.log`` files."""
    logs = (files[name] for name in sorted(files) if name.endswith(".log"))
    return [
        (record.offset, record.timestamp) for data in logs for batch in iter_memory_batches(data) for record in batch
    ]


def _without_segments(records: list[tuple[int, int]], target: int, start: int) -> Collection[Answer]:
    """Return the right results for a target that do not depend on segments; empty for targets without records."""
    visible = [record for record in records if record[0] >= start]
    if target == MAX_TIMESTAMP:
        return _largest(records), _largest(visible)
    if target in TARGETS.values():
        return ()
    return (next(((timestamp, offset) for offset, timestamp in visible if timestamp >= target), None),)


def _largest(records: list[tuple[int, int]]) -> Answer:
    """Return the first record with the largest timestamp."""
    latest = max((timestamp for _, timestamp in records), default=None)
    return next(((timestamp, offset) for offset, timestamp in records if timestamp == latest), None)


def _mask_unrequested_results(
    operation: Operation, expected: ObservedFiles, actual: ObservedFiles, _: Lengths
) -> tuple[ObservedFiles, ObservedFiles]:
    """Return both sides without results that were not requested, and without the empty indexes of such lookups."""
    expected_outcome, actual_outcome = expected[0].outcome, actual[0].outcome
    if operation.name == "list_offsets" and expected_outcome.value and actual_outcome.value:
        pairs = zip(expected_outcome.value, actual_outcome.value, strict=True)
        results = tuple(other if other == NOT_REQUESTED else answer for answer, other in pairs)
        expected = expected[0]._replace(outcome=expected_outcome._replace(value=results)), expected[1]
    files = {name: data for name, data in expected[1].items() if name in actual[1] or _is_no_index(name) or any(data)}
    return (expected[0], files), actual


TOLERANCES: Final = {
    "time_lookups": Tolerance("lookups by time are not requested", _mask_unrequested_results),
    # Leader epochs come first: the following tolerances compare results without them.
    "epochs": Tolerance("leader epochs of answers and of their checkpoint are not compared", _both(_without_epochs)),
    "segments": Tolerance("segments and files are not compared, results may be as with one segment", _as_one_segment),
    "preallocation": Tolerance("indexes are compared by their entries, an empty one may be missing", _entries_only),
    "producers": Tolerance(
        "producers and their snapshots are not compared",
        _both(_without(SNAPSHOT_SUFFIX, "producers_end", "ongoing", "unreplicated", "producers")),
    ),
    "transactions": Tolerance(
        "the last stable offset and aborted transactions are not compared",
        _both(_without(".txnindex", "last_stable_offset", "ongoing", "unreplicated")),
    ),
    "append_results": Tolerance("results of appends are not compared", _both(_without_append_result)),
    "recovery_point": Tolerance("the recovery point is not compared", _both(_without("", "recovery_point"))),
}
"""The tolerances, by the capability that is missing."""


class AllowedVariant(NamedTuple):
    """Another permitted way of executing a step.

    Attributes:
        description: The description for a report; empty if the step is executed as given.
        operation: The operation that the reference executes.
        first: An operation that the reference executes before, or None.
        last: An operation that the reference executes afterwards if ``operation`` has changed something, or None.
        deletes_segments: True if the step also deletes the segments before the log start.
        cuts_indexes: True if the step kills the process, and the indexes then end after their entries.
    """

    description: str
    operation: Operation
    first: Operation | None = None
    last: Operation | None = None
    deletes_segments: bool = False
    cuts_indexes: bool = False


# Descriptions of variants, for reports.
_KILLED: Final = "a killed process has not created the files that releasing a log creates"
_DELETES: Final = "segments before the log start were deleted before retention ran"
AFTER_CORRUPTION: Final = "after the corruption of an index, a result may match the records"
_SHORTER: Final = "a truncation inside a batch moves the end to the begin of that batch"
_NAMED: Final = "a segment has another base offset between the end of the previous one and its first record"
_RECOVERS: Final = "the log decided itself whether to recover segments"


def variants(
    operation: Operation,
    lacking: Collection[str],
    before: ObservedFiles | None = None,
    after: ObservedFiles | None = None,
) -> Iterator[AllowedVariant]:
    """Yield other ways in which a log that lacks these capabilities may execute an operation.

    Args:
        lacking: The missing capabilities.
        before: The reference's observation and files before the operation, or None if unknown.
        after: The reference's observation and files after the operation, or None if unknown.
    """
    if operation.name == "crash_log":
        yield AllowedVariant(_KILLED, operation)
    if operation.name == "truncate_log" and before is not None:
        for end in _beginnings(before, operation.args[0]):
            yield AllowedVariant(_SHORTER, Operation("truncate_log", (end,)))
        yield AllowedVariant(_NAMED, operation, last=Operation("truncate_fully", operation.args))
    if operation.name == "append_as_follower" and _rolls_at_a_gap(before, after):
        yield AllowedVariant(_NAMED, operation, first=Operation("roll_log"))
    openings = [operation]
    if operation.name == "open_log" and {"clean_flag", "recovery_point"} & set(lacking):
        settings, start, point, clean, now = operation.args
        flags = (clean, not clean) if "clean_flag" in lacking else (clean,)
        points = dict.fromkeys((point, 0, (1 << 62))) if "recovery_point" in lacking else (point, 0)
        openings += [Operation("open_log", (settings, start, other, flag, now)) for flag in flags for other in points]
    for other in dict.fromkeys(map(_Hashable, openings)):
        if other.operation != operation:
            yield AllowedVariant(_RECOVERS, other.operation)
    if "deferred_deletion" in lacking and operation.name in ("delete_records", "open_log", "truncate_log"):
        for other in dict.fromkeys(map(_Hashable, openings)):
            yield AllowedVariant(_DELETES, other.operation, deletes_segments=True)


def _beginnings(before: ObservedFiles, offset: int) -> Iterator[int]:
    """Yield the beginning of the batch with an offset, and the end of the previous one, from the log start on."""
    observation, files = before
    start, end = 0 if observation.state is None else observation.state.start_offset, 0
    for name in sorted(name for name in files if name.endswith(".log")):
        try:
            for batch in iter_memory_batches(files[name]):
                if batch.base_offset < offset <= batch.last_offset:
                    yield from (each for each in dict.fromkeys((batch.base_offset, end)) if each >= start)
                end = batch.last_offset + 1
        except KidxError:  # a corrupt log
            return


def _rolls_at_a_gap(before: ObservedFiles | None, after: ObservedFiles | None) -> bool:
    """Return True if an append has rolled one segment, whose base offset is after a gap of offsets."""
    was, now = before and before[0].state, after and after[0].state
    if not (was and now):
        return False
    return len(now.segments) == len(was.segments) + 1 and now.segments[-1][0] > was.end_offset


class _Hashable:
    """Operation that can be a key of a dictionary, although its arguments may be dictionaries."""

    def __init__(self, operation: Operation) -> None:
        self.operation = operation

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Hashable) and self.operation == other.operation

    def __hash__(self) -> int:
        return hash(repr(self.operation))
