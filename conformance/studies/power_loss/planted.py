"""Planted defects: missing or misplaced syncs, and checkpoints that are too far ahead.

Each changes a *history*, the record of what Kafka's classes did in one process, as if their code were wrong in one
place. A sync does not change what the process sees, so the history of the defective code would differ only there.
A missing sync of only the offset index is not planted: lookups then begin at an earlier position, and hardly any state
of a disk shows it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from functools import partial
from typing import Final

from conformance.implementations.jvm.journal import (
    DirectorySynced,
    Event,
    Renamed,
    StepBegins,
    Synced,
    SyncKind,
    Written,
)
from conformance.studies.power_loss.disk import Disk
from conformance.studies.power_loss.histories import History
from conformance.studies.study import PlantedDefect

Change = Callable[[History], History]
"""Function that plants a defect in a history."""


def _of_events(change: Callable[[Sequence[Event]], Iterable[Event]]) -> Change:
    return lambda history: replace(history, events=tuple(change(history.events)))


def _without(site: str, ending: str = "") -> Change:
    """Omit the syncs of files with an ending that come from a call site, or from below it."""

    def change(events: Sequence[Event]) -> Iterable[Event]:
        for name, event in _named(events):
            if not (isinstance(event, Synced) and site in event.site and name.endswith(ending)):
                yield event

    return _of_events(change)


def _without_directory(site: str) -> Change:
    """Omit the syncs of the directory that come from a call site, or from below it."""
    return _of_events(
        lambda events: (each for each in events if not (isinstance(each, DirectorySynced) and site in each.site))
    )


def _as(kind: SyncKind, ending: str) -> Change:
    """Sync files with an ending by a weaker kind of sync."""

    def change(events: Sequence[Event]) -> Iterable[Event]:
        for name, event in _named(events):
            yield event._replace(kind=kind) if isinstance(event, Synced) and name.endswith(ending) else event

    return _of_events(change)


def _named(events: Sequence[Event]) -> Iterable[tuple[str, Event]]:
    """Yield each event with the name of the file that is synced, empty for other events."""
    disk = Disk()
    for event in events:
        yield (disk.name_of(event.file) if isinstance(event, Synced) else ""), event
        disk.apply(event)


def _early(ending: str) -> Change:
    """Sync a file before its last write instead of after it."""

    def change(events: Sequence[Event]) -> Iterable[Event]:
        found = list[Event]()
        for name, event in _named(events):
            if isinstance(event, Synced) and name.endswith(ending):
                last = max((n for n, each in enumerate(found) if _writes(each, event.file)), default=len(found))
                found.insert(last, event)
            else:
                found.append(event)
        return found

    return _of_events(change)


def _writes(event: Event, file: int) -> bool:
    return isinstance(event, Written) and event.file == file


def _directory_first(events: Sequence[Event]) -> Iterable[Event]:
    """Sync the directory before the last name is created instead of after it."""
    found = list[Event]()
    for event in events:
        if isinstance(event, DirectorySynced):
            last = max((n for n, each in enumerate(found) if isinstance(each, Renamed)), default=len(found))
            found.insert(last, event)
        else:
            found.append(event)
    return found


def _renamed_before_synced(events: Sequence[Event]) -> Iterable[Event]:
    """Sync a file of epochs only after it was renamed and the directory was synced."""
    held: Synced | None = None
    for name, event in _named(events):
        if isinstance(event, Synced) and name == "leader-epoch-checkpoint.tmp":
            held = event
            continue
        if held is not None and isinstance(event, StepBegins):
            yield held
            held = None
        yield event


def _only_active(events: Sequence[Event]) -> Iterable[Event]:
    """Sync only the last segment."""
    disk = Disk()
    for event in events:
        segments = sorted(name for name in disk.names if name.endswith(".log"))
        name = disk.name_of(event.file) if isinstance(event, Synced) else ""
        if not (name[:20].isdigit() and segments and name[:20] != segments[-1][:20]):
            yield event
        disk.apply(event)


def _once(events: Sequence[Event]) -> Iterable[Event]:
    """Sync each file only once."""
    seen = set[int]()
    for event in events:
        if isinstance(event, Synced):
            if event.file in seen:
                continue
            seen.add(event.file)
        yield event


def _shutdown_syncs_nothing(history: History) -> History:
    """Omit all syncs of the operations that close the log."""
    kept, name = list[Event](), ""
    for event in history.events:
        if isinstance(event, StepBegins):
            name = history.operations[event.number].name
        if not (name == "close_log" and isinstance(event, Synced | DirectorySynced)):
            kept.append(event)
    return replace(history, events=tuple(kept))


def _of_states(**fields: str) -> Change:
    """Replace fields of the checkpoints by other fields of the state."""

    def change(history: History) -> History:
        observations = tuple(
            seen
            if seen.state is None
            else seen._replace(state=seen.state._replace(**{k: getattr(seen.state, v) for k, v in fields.items()}))
            for seen in history.observations
        )
        return replace(history, checkpoints=tuple(seen.state for seen in observations))

    return change


_ROLL: Final = "UnifiedLog.roll"

_planted = partial(PlantedDefect, "log")

PLANTED: Final[dict[str, PlantedDefect]] = {
    "log-not-synced": _planted("a flush skips the log", _without("LogSegment.flush", ".log")),
    "nothing-synced": _planted("a flush of a segment does nothing", _without("LogSegment.flush")),
    "roll-syncs-nothing": _planted("a roll moves the recovery point and syncs nothing", _without(_ROLL)),
    "roll-does-not-sync-the-log": _planted("a roll does not sync the log", _without(_ROLL, ".log")),
    "time-index-not-synced": _planted("a flush skips the time index", _without("LogSegment.flush", ".timeindex")),
    "indexes-not-synced": _planted("a flush skips both indexes", _without("AbstractIndex.flush")),
    "transactions-not-synced": _planted("a flush skips the transaction index", _without("TransactionIndex.flush")),
    "epochs-not-synced": _planted("the checkpoint of epochs is not synced", _without("CheckpointFile.write")),
    "epochs-directory-not-synced": _planted(
        "the directory is not synced when the file of epochs is renamed", _without_directory("CheckpointFile.write")
    ),
    "epochs-renamed-before-synced": _planted(
        "the checkpoint of epochs is renamed before it is synced", _of_events(_renamed_before_synced)
    ),
    "epochs-synced-early": _planted(
        "the checkpoint of epochs is synced before it is written", _early("leader-epoch-checkpoint.tmp")
    ),
    "directory-not-synced": _planted("a flush skips the directory", _without_directory("LocalLog.flush")),
    "no-directory-synced": _planted("no directory is ever synced", _without_directory("")),
    "directory-synced-early": _planted(
        "the directory is synced before the last file is made", _of_events(_directory_first)
    ),
    "log-synced-early": _planted("the log is synced before the last append", _early(".log")),
    "time-index-synced-early": _planted("the time index is synced before its last entry", _early(".timeindex")),
    "log-syncs-data-only": _planted("a length of the log that shrank is not synced", _as(SyncKind.DATA, ".log")),
    "index-syncs-data-only": _planted(
        "a length of an index that shrank is not synced (KAFKA-20979)", _as(SyncKind.MAPPING, "index")
    ),
    "only-the-active-segment": _planted("only the active segment is synced", _of_events(_only_active)),
    "synced-once": _planted("each file is synced once", _of_events(_once)),
    "shutdown-does-not-flush": _planted("a shutdown does not flush the log", _shutdown_syncs_nothing),
    "recovery-point-too-early": _planted(
        "the checkpoint has the log's end as its recovery point", _of_states(recovery_point="end_offset")
    ),
    "start-too-late": _planted("the checkpoint has the log's end as its start", _of_states(start_offset="end_offset")),
}
"""The planted defects by name."""
