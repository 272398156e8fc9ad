"""Check of a log after a power failure: which batches must exist, and which guarantees the reopened log violates.

Power failures that are possible without a planted defect: only other failures are due to the defect.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from conformance.implementations.jvm.journal import DirectorySynced, Event, Renamed, StepBegins, Synced
from conformance.studies.power_loss.batches import Batch, batches_of_log
from conformance.studies.power_loss.compaction import Keys, is_compacted
from conformance.studies.power_loss.disk import PAGE, SECTOR, Disk, Item, Length, Name, disks
from conformance.studies.power_loss.failures import Failure, restarts
from conformance.studies.power_loss.guarantees import Guarantee, violations

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from conformance.studies.power_loss.compaction import Expected
    from conformance.studies.power_loss.histories import History
    from conformance.studies.power_loss.opening import Opener


class Checker:
    """Checker of the power failures of one history.

    Args:
        history: operations, results and file operations of an example.
        opener: opens the remaining files with Kafka's classes.
        original: the same history without its planted defect; None if no defect is planted.
    """

    def __init__(self, history: History, opener: Opener, original: Original | None = None) -> None:
        self.history = history
        self._original = original
        self._opener = opener
        self._logs = list(_logs(history))
        self._keys = Keys(history, self._logs) if is_compacted(history.operations[0].args[0]) else None

    @property
    def has_defect(self) -> bool:
        """True if a defect is planted in the history."""
        return self._original is not None

    def counts(self, failure: Failure) -> bool:
        """Return True unless the same failure is possible without the planted defect."""
        return self._without_defect(failure) != failure

    def _without_defect(self, failure: Failure) -> Failure | None:
        """Return the part of the failure that is possible without the defect; None if no defect is planted."""
        return None if self._original is None else self._original.nearest(failure, self.history.events)

    def durable(self, failure: Failure) -> list[Batch]:
        """Return the batches that must exist after a failure: all except those that an operation was removing."""
        crash_point = failure.crash_point
        start, bound = self._durable_offsets(failure)
        batches = self._logs[crash_point.step + 1] if crash_point.done else self._logs[crash_point.step]
        others = {batch.data for batch in self._logs[crash_point.step + 1]}
        return [b for b in batches if b.last < bound and b.base >= start and b.data in others]

    def expected(self, failure: Failure) -> list[Expected]:
        """Return the latest record that each key of a compacted log must have after a failure."""
        if self._keys is None:
            return []
        start, bound = self._durable_offsets(failure)
        found = self._keys.expected(failure.crash_point.step, bound, done=failure.crash_point.done)
        return [each for each in found if each.record.offset >= start]

    def _durable_offsets(self, failure: Failure) -> tuple[int, int]:
        """Return the first and the last offset, exclusive, of what must exist after a failure."""
        start, end = self._bounds(failure.crash_point.step, done=failure.crash_point.done)
        return start, end if failure.restart.clean else min(failure.restart.recovery_point, end)

    def _bounds(self, step: int, *, done: bool) -> tuple[int, int]:
        """Return log start and end over all states that a failure at a step may show."""
        seen = [each.state for each in self.history.observations[: step + 1]]
        states = [state for state in seen if state is not None][-1 if done else -2 :]
        if not states:
            return 0, 0
        return max(state.start_offset for state in states), min(state.end_offset for state in states)

    def check(self, failure: Failure, *, lockstep: bool = False) -> dict[Guarantee | None, str]:
        """Return the evidence for each guarantee that a failure violates, and for None the divergence of kidx.

        Args:
            lockstep: True to open the remaining files with kidx too.
        """
        files, opening = failure.files(), failure.opening(self.history)
        cleaned_to = failure.restart.cleaned_to
        opened = self._opener.open_with_kafka(files, opening, cleaned_to)
        start, _ = self._bounds(failure.crash_point.step, done=failure.crash_point.done)
        found: dict[Guarantee | None, str] = {}
        for guarantee, text in violations(opened, self.durable(failure), start, self.expected(failure)):
            found.setdefault(guarantee, text)
        if lockstep and (difference := self._opener.difference(opened, files, opening, cleaned_to)):
            found[None] = difference
        return found

    def shows(self, failure: Failure, guarantee: Guarantee | None) -> str:
        """Return the evidence that a failure violates a guarantee, or the divergence for None; empty if it does not."""
        sound = self._without_defect(failure)
        if sound == failure:
            return ""
        shown = self.check(failure, lockstep=guarantee is None).get(guarantee, "")
        if shown and sound is not None and guarantee in self.check(sound, lockstep=guarantee is None):
            return ""
        return shown


def _logs(history: History) -> Iterator[list[Batch]]:
    """Yield the batches before the first operation, and after each."""
    begun = False
    live: dict[str, bytes] = {}
    for disk, event in zip(disks(history.events), history.events, strict=True):
        if isinstance(event, StepBegins):
            yield batches_of_log(live)
            begun = True
        live = disk.live()
    assert begun
    yield batches_of_log(live)


class Original:
    """History of an example as Kafka's classes executed it, before a defect was planted in it."""

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
