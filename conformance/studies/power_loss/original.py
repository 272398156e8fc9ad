"""Power failures that are possible without a planted defect: only other failures are due to the defect."""

from __future__ import annotations

from typing import TYPE_CHECKING

from conformance.implementations.jvm.journal import DirectorySynced, Event, Renamed, Synced
from conformance.studies.power_loss.disk import PAGE, SECTOR, Disk, Item, Length, Name, disks
from conformance.studies.power_loss.failures import Failure, restarts

if TYPE_CHECKING:
    from collections.abc import Sequence

    from conformance.studies.power_loss.histories import History


class Original:
    """History of an example as Kafka's classes executed it, before a defect was planted in it.

    Args:
        history: the history.
    """

    def __init__(self, history: History) -> None:
        self._history = history
        self._disks: dict[int, Disk] = {}  # after each number of events that are not syncs
        writes = 0
        for event, disk in zip(history.events, disks(history.events), strict=True):
            writes += not _syncs(event)
            if writes not in self._disks:
                self._disks[writes] = disk.copy()

    def nearest(self, failure: Failure, events: Sequence[Event]) -> Failure:
        """Return the failure, reduced to losses and checkpoints that are possible in this history too.

        The disk right after the same write, before any sync that follows, shows which losses are possible. So a defect
        is never blamed for a loss that is possible without it.

        Args:
            failure: failure of the defective history.
            events: events of the defective history.
        """
        crash_point, restart = failure.crash_point, failure.restart
        disk = self._disks[sum(not _syncs(event) for event in events[: crash_point.disk.event])]
        options = disk.options()
        loss = {
            item: value
            for item, value in failure.loss.items()
            if self._may_lose(disk, crash_point.disk, item, value, options)
        }
        allowed = list(restarts(self._history, crash_point.step, done=crash_point.done))
        return Failure(crash_point, loss, restart if restart in allowed else allowed[0])

    @staticmethod
    def _may_lose(
        disk: Disk,
        other: Disk,
        item: Item,
        value: bytes | int | None,
        options: dict[Item, list[bytes | int | None]],
    ) -> bool:
        if isinstance(item, Name):
            change: Renamed = other.changes[item.number]
            return change in disk.changes
        if isinstance(item, Length) or value in options.get(item, ()):
            return value in options.get(item, ())
        pages = disk.files[item.file].pages.get(item.number, [])
        return _is_torn(value, [*options.get(item, ()), *pages[-1:]])


def _is_torn(page: bytes | int | None, pages: Sequence[bytes | int | None]) -> bool:
    """Return True if each sector of a page equals that sector in one of the others."""
    return all(
        any(_sector(page, number) == _sector(other, number) for other in pages) for number in range(PAGE // SECTOR)
    )


def _sector(page: bytes | int | None, number: int) -> bytes:
    assert isinstance(page, bytes)
    return page[number * SECTOR : (number + 1) * SECTOR]


def _syncs(event: Event) -> bool:
    return isinstance(event, Synced | DirectorySynced)
