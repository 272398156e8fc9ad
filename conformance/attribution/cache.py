"""Rows about the cache of remote index files (clauses RC): the steps on a cache that exercise each clause.

A row names a clause, the operations and results (``ok`` or an error kind) that exercise it, and what a violation would
have changed, perhaps with a condition: :class:`~conformance.attribution.rules.Row` explains the columns.

A condition receives a :class:`~conformance.attribution.rules.DirectoryStep`: ``was`` and ``now`` are the states,
``before`` and ``files`` the files, each before and after the step.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from conformance.attribution.rules import DirectoryStep, Row
from conformance.operations.cache import CacheState

if TYPE_CHECKING:
    from conformance.operations import Operation
    from conformance.operations.cache import CachedEntry, CacheObservation


@dataclass(slots=True)
class TrackedCache:
    """State of a cache before a step.

    Attributes:
        max_size: The size limit of the cache in bytes.
        failed: True if remote storage has failed or returned a corrupt file since the cache was opened.
    """

    max_size: int = 0
    failed: bool = False

    def track(self, operation: Operation, observation: CacheObservation) -> None:
        """Update the state with a step."""
        if operation.name in ("open_cache", "resize_cache") and observation.outcome.error is None:
            self.max_size = operation.args[0]
        self.failed = operation.name != "open_cache" and (
            self.failed or (operation.name in _ASKING.split() and observation.outcome.error is not None)
        )


CacheStep = DirectoryStep[CacheState, TrackedCache]

_ASKING: Final = "fetch_entry look_up_offset look_up_timestamp aborted_in"
"""The operations that need the entry of a segment, and create it if it is not in the cache."""
_HALF: Final = (".tmp", ".deleted")
"""The suffixes of files whose download or removal is not complete."""


def _new_files(step: CacheStep) -> set[str]:
    return {*step.files} - {*step.before}


def _removed_files(step: CacheStep) -> set[str]:
    return {*step.before} - {*step.files}


def _entries(state: CacheState | None) -> dict[str, CachedEntry]:
    return {} if state is None else {entry.segment: entry for entry in state.entries}


def _removed(step: CacheStep) -> list[CachedEntry]:
    """Return the entries that the step removed."""
    now = _entries(step.now)
    return [entry for segment, entry in _entries(step.was).items() if segment not in now]


def _created(step: CacheStep) -> bool:
    """Return True if the step created an entry for the requested segment."""
    return step.args[0] in _entries(step.now) and step.args[0] not in _entries(step.was)


def _is_half(names: set[str]) -> bool:
    return any(name.endswith(_HALF) for name in names)


def _odd_start(step: CacheStep) -> bool:
    """Return True if the step requests an entry with another start offset than the entry in the cache."""
    segment, start_offset, *_ = step.args
    entry = _entries(step.was).get(segment)
    return entry is not None and entry.start_offset != start_offset


def _is_closed(step: CacheStep) -> bool:
    return step.was is not None and step.was.closed


def _is_open(step: CacheStep) -> bool:
    return step.was is not None and not step.was.closed


def _half_removed(step: CacheStep) -> bool:
    """Return True if the removal of an entry has begun and failed."""
    return any(entry.marked for entry in [*_entries(step.was).values(), *_entries(step.now).values()])


# fmt: off
ROWS: tuple[Row, ...] = (
    Row("RC-1", _ASKING, "ok", "the names of the files", lambda s: bool(_new_files(s))),
    Row("RC-1", "open_cache", "ok", "there would be no entry", lambda s: bool(_entries(s.now))),
    Row("RC-2", "open_cache", "out_of_bounds invalid_argument invalid_number", "the cache would open"),
    Row("RC-3", "open_cache", "ok", "there would be other entries or files", lambda s: bool(s.before)),
    Row("RC-4a", "open_cache", "ok", "the leftovers would be gone", lambda s: _is_half({*s.before})),
    Row("RC-4b", "open_cache", "ok", "the leftovers would remain", lambda s: _is_half({*s.before})),
    Row("RC-5", "open_cache", "corrupt unsupported_version", "the cache would open"),
    Row("RC-5", "open_cache", "ok", "the start would end", lambda s: bool(_entries(s.now)) and s.tracked.failed),
    Row("RC-6", _ASKING, "ok", "entries and files", _created),
    Row("RC-7", _ASKING, "corrupt kafka unsupported_version", "the remaining files", _is_open),
    Row("RC-8", "look_up_offset look_up_timestamp aborted_in", "ok", "the answer"),
    Row("RC-8", "ask_held", "ok", "the answer", lambda s: s.outcome.value is not None),
    Row("RC-9a", "ask_held look_up_offset look_up_timestamp", "illegal_state", "there would be an answer", _is_open),
    Row("RC-9b", "ask_held", "ok", "there would be no answer", lambda s: _is_half({*s.before})),
    Row("RC-9b", "ask_held", "illegal_state", "there would be an answer", _is_open),
    Row("RC-10a", "remove_entries resize_cache", "ok", "the files would exist", lambda s: bool(_removed(s))),
    Row("RC-10b", "remove_entries resize_cache delete_removed", "ok", "the files would be others",
        lambda s: bool(_removed(s)) or bool(_removed_files(s))),
    Row("RC-11", "remove_entries", "kafka", "entries and files"),
    Row("RC-11", "remove_entries", "ok", "entries and files", _half_removed),
    Row("RC-12b", f"resize_cache {_ASKING}", "ok", "entries would be there, or gone",
        lambda s: s.tracked.max_size < 1 << 20 or bool(_removed(s))),
    Row("RC-12c", "resize_cache", "ok", "the entry would be gone",
        lambda s: s.args[0] == 0 and any(entry.size == 0 for entry in _entries(s.now).values())),
    Row("RC-13", f"{_ASKING} ask_held", "illegal_state closed", "there would be an answer", _is_closed),
    Row("RC-13", "close_cache remove_entries", "ok", "files and text", lambda s: s.now is not None and s.now.closed),
    Row("RC-14", f"pass_time {_ASKING}", "ok", "entries would be there",
        lambda s: bool(_removed(s)) or _is_half(_new_files(s))),
    Row("RC-15", _ASKING, "ok", "the entry would have another start offset", _odd_start),
)
# fmt: on
