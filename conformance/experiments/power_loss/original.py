"""Power failures of a life without its planted defect: only other failures are due to the defect."""

from __future__ import annotations

from typing import TYPE_CHECKING

from conformance.experiments.power_loss.disk import PAGE, SECTOR, Disk, Item, Length, Name, disks
from conformance.experiments.power_loss.failures import Failure, restarts
from conformance.implementations.jvm.journal import DirectorySynced, Event, Renamed, Synced

if TYPE_CHECKING:
    from collections.abc import Sequence

    from conformance.experiments.power_loss.lives import Life


class Original:
    """Life without a defect.

    Args:
        life: the life as Kafka's classes executed it.
    """

    def __init__(self, life: Life) -> None:
        self._life = life
        self._disks: dict[int, Disk] = {}
        writes = 0
        for event, disk in zip(life.events, disks(life.events), strict=True):
            writes += not _syncs(event)
            if writes not in self._disks:
                self._disks[writes] = disk.copy()

    def nearest(self, failure: Failure, events: Sequence[Event]) -> Failure:
        """Return the failure, reduced to losses and checkpoints that are possible in this life too.

        They are taken from the state right after the same write, before any sync that follows it. So a defect is never
        blamed
        for a loss that is possible without it.

        Args:
            failure: failure of the defective life.
            events: events of the defective life.
        """
        moment, restart = failure.moment, failure.restart
        disk = self._disks[sum(not _syncs(event) for event in events[: moment.disk.event])]
        options = disk.options()
        loss = {
            item: value
            for item, value in failure.loss.items()
            if self._may_lose(disk, moment.disk, item, value, options)
        }
        allowed = list(restarts(self._life, moment.step, done=moment.done))
        return Failure(moment, loss, restart if restart in allowed else allowed[0])

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
