"""What a foreign log may do otherwise for lack of a capability, and how it is judged then.

An excuse takes the same part out of what is expected and of what there is, or brings it into the same form; whatever
else differs counts. A variant is another way of performing a step that is right as well: the reference performs it, and
is what the log is held to from then on. Both are counted under their words, so that a report can show them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Final, NamedTuple

from conformance.attribution.log_step import Files
from conformance.operations import Operation
from conformance.operations.log import LogObservation
from kidx.log.epochs import FILE_NAME
from kidx.producers import SNAPSHOT_SUFFIX

if TYPE_CHECKING:
    from collections.abc import Collection

Seen = tuple[LogObservation, Files]
"""An observation, and the files after it."""


class Excuse(NamedTuple):
    """What is not compared of a log that lacks a capability.

    Attributes:
        words: for a report.
        plain: an observation of an operation, and files, without it.
    """

    words: str
    plain: Callable[[Operation, Seen], Seen]


_ENTRY_SIZES: Final = {".index": 8, ".timeindex": 12, ".txnindex": 34}


def _entries_only(_: Operation, seen: Seen) -> Seen:
    observation, files = seen
    return observation, {name: kept for name, data in files.items() if (kept := _entries(name, data)) is not None}


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
        answers = tuple(None if answer is None else (*answer[:2], -1) for answer in outcome.value)
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


EXCUSES: Final = {
    "preallocation": Excuse("indexes are compared by their entries, one without any may be missing", _entries_only),
    "epochs": Excuse("leader epochs are not compared", _without_epochs),
    "producers": Excuse(
        "producers and their snapshots are not compared",
        _without(SNAPSHOT_SUFFIX, "producers_end", "ongoing", "unreplicated", "producers"),
    ),
    "transactions": Excuse(
        "the last stable offset and aborted transactions are not compared",
        _without(".txnindex", "last_stable_offset", "ongoing", "unreplicated"),
    ),
    "recovery_point": Excuse("the recovery point is not compared", _without("", "recovery_point")),
}
"""By the capability that is lacking."""


class Variant(NamedTuple):
    """Another way of performing a step.

    Attributes:
        words: for a report.
        operation: what the reference performs.
        deletes: the segments before the log start are deleted with it.
    """

    words: str
    operation: Operation
    deletes: bool = False


_DELETES: Final = "segments before the log start were deleted before retention ran"
_RECOVERS: Final = "segments were recovered, or not, as the log decided by itself"


def variants(operation: Operation, lacking: Collection[str]) -> Iterator[Variant]:
    """How a log that lacks these capabilities may perform an operation besides the one way."""
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


class _Hashable:
    """An operation whose arguments may be dictionaries."""

    def __init__(self, operation: Operation) -> None:
        self.operation = operation

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Hashable) and self.operation == other.operation

    def __hash__(self) -> int:
        return hash(repr(self.operation))
