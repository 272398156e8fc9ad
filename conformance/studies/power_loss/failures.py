"""Power failures of a recorded history: when power fails, which writes are lost, and how the broker restarts."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import product
from random import Random
from typing import TYPE_CHECKING, Final

import msgspec
from msgspec.structs import replace

from conformance.implementations.jvm.journal import StepBegins
from conformance.operations import Operation
from conformance.studies.power_loss.disk import PAGE, SECTOR, Disk, Item, Length, Loss, Name, Page, disks, torn
from conformance.studies.power_loss.histories import NO_CHECKPOINT, last_checkpoints
from kidx.dialect import dialect_of

if TYPE_CHECKING:
    from conformance.implementations.jvm.journal import Event
    from conformance.studies.power_loss.histories import History

MARKER: Final = ".kafka_cleanshutdown"
"""Name of the file that shows a clean shutdown."""
_TRUNCATIONS: Final = frozenset({"truncate_log", "truncate_fully"})
_SECTORS: Final = PAGE // SECTOR


class Restart(msgspec.Struct, frozen=True):
    """Restart of the broker.

    Attributes:
        clean: True if the broker finds that it was shut down cleanly.
        recovery_point: recovery point in the checkpoint.
        start: log start offset in the checkpoint.
        marker_is_back: True if the removal of ``.kafka_cleanshutdown``, which a starting broker removes, is lost.
        cleaned_to: offset in ``cleaner-offset-checkpoint``, or -1.
    """

    clean: bool
    recovery_point: int
    start: int
    marker_is_back: bool = False
    cleaned_to: int = NO_CHECKPOINT


@dataclass(frozen=True)
class CrashPoint:
    """Point of a history at which power may fail.

    Attributes:
        disk: contents of the disk, with the writes that are not durable yet.
        step: number of the current or last operation.
        done: True if that operation has ended.
        restarts: possible restarts of the broker.
    """

    disk: Disk
    step: int
    done: bool
    restarts: tuple[Restart, ...]


@dataclass(frozen=True)
class Failure:
    """Power failure, and the restart after it.

    Attributes:
        crash_point: point at which the power fails.
        loss: writes, lengths and names that are lost.
    """

    crash_point: CrashPoint
    loss: Loss
    restart: Restart

    def files(self) -> dict[str, bytes]:
        """Return the remaining files."""
        return self.crash_point.disk.surviving(self.loss)

    def described(self) -> list[str]:
        """Return descriptions of the lost items."""
        lost = [self.crash_point.disk.described(item, value) for item, value in self.loss.items()]
        return [*lost, f"the removal of {MARKER}"] if self.restart.marker_is_back else lost

    def opening(self, history: History) -> Operation:
        """Return the operation that opens the log."""
        settings, *_, now = history.operations[0].args
        return Operation(
            "open_log", (settings, self.restart.start, self.restart.recovery_point, self.restart.clean, now)
        )


def crash_points(history: History) -> Iterator[CrashPoint]:
    """Yield the crash points of a history at which a write may be lost that could not be lost at an earlier one."""
    return crash_points_of(history.events, lambda step, done: restarts(history, step, done=done))


def crash_points_of(
    events: Sequence[Event], restarting: Callable[[int, bool], Iterable[Restart]], *, after: bool = True
) -> Iterator[CrashPoint]:
    """Yield the crash points at which a write may be lost that could not be lost at an earlier one.

    Args:
        events: the recorded writes, renames and syncs.
        restarting: function that returns the possible restarts; its arguments are the number of an operation, and True
            if the operation has ended.
        after: True to yield the crash point after each operation, too.
    """
    last = len(events)
    before: dict[Item, list[bytes | int | None]] = {}
    for disk in disks(events):
        done = after and (disk.event == last or isinstance(events[disk.event], StepBegins))
        options = disk.options()
        if options and disk.step >= 0 and (options != before or done):
            before = options
            yield CrashPoint(disk.copy(), disk.step, done, tuple(restarting(disk.step, done)))


def restarts(history: History, step: int, *, done: bool) -> Iterator[Restart]:
    """Yield the possible restarts of a broker; of a compacted log with each checkpoint that the cleaner may have."""
    for cleaned_to in last_checkpoints(history.operations[: step + 1 if done else step], history.observations):
        for restart in _restarts(history, step, done=done):
            yield replace(restart, cleaned_to=cleaned_to)


def _restarts(history: History, step: int, *, done: bool) -> Iterator[Restart]:
    """Yield the possible restarts of a broker after a power failure at a step.

    A broker writes its checkpoints when it truncates the log, and periodically. So the recovery point in the checkpoint
    is one that the log had since it was last truncated, and the log start is one that the log had. A shutdown counts as
    clean when it is complete, until the next broker has removed the marker: before 2.8 after it has loaded its logs.
    """
    ended = step if done else step - 1
    operations = history.operations[: ended + 1]
    first = max((n for n, each in enumerate(operations) if each.name in _TRUNCATIONS), default=0)
    states = history.checkpoints[: ended + 1]
    points = {state.recovery_point for state in states[first:] if state is not None} or {0}
    starts = {state.start_offset for state in states[first:] if state is not None} or {0}
    shut_down = bool(operations) and operations[-1].name == "close_log"
    marker_is_back = ended < step and dialect_of(history.release).loading_removes_marker_first
    trusted = Restart(True, max(points), max(starts), marker_is_back)
    if shut_down and not marker_is_back:
        yield trusted
    for point in sorted(points, reverse=True):
        yield Restart(clean=False, recovery_point=point, start=max(starts))
    if len(starts) > 1:
        yield Restart(clean=False, recovery_point=max(points), start=min(starts))
    if shut_down and marker_is_back:
        yield trusted


def losses(disk: Disk, most: int, chance: Random) -> Iterator[Loss]:
    """Yield possible losses: all of them if they are few, else a random sample.

    Args:
        disk: state of the disk.
        most: maximum number of which all are returned.
        chance: source of randomness.
    """
    options = disk.options()
    if math.prod(len(values) + 1 for values in options.values()) <= most:
        items = list(options)
        for chosen in product(*([_KEPT, *values] for values in options.values())):
            yield {item: value for item, value in zip(items, chosen, strict=True) if value is not _KEPT}  # type: ignore[misc]
        return
    everything = {item: values[0] for item, values in options.items()}
    yield everything
    yield {}
    for item, values in options.items():
        yield {item: values[0]}
        yield {other: value for other, value in everything.items() if other != item}
    for _ in range(most):
        yield _drawn(disk, options, chance)


_KEPT: Final = object()
"""Choice of not losing an item."""


def _drawn(disk: Disk, options: dict[Item, list[bytes | int | None]], chance: Random) -> Loss:
    """Draw a loss: each item is lost with one probability; names may also be lost from a certain change on."""
    probability = chance.choice((0.15, 0.5, 0.85))
    survive = chance.randint(0, len(disk.changes)) if chance.random() < 0.7 else None
    loss: dict[Item, bytes | int | None] = {}
    for item, values in options.items():
        if isinstance(item, Name) and survive is not None:
            if item.number >= survive:
                loss[item] = None
        elif chance.random() < probability:
            if isinstance(item, Page) and chance.random() < 0.2:
                pages = disk.files[item.file].pages[item.number]
                page = torn(pages, [chance.random() < 0.5 for _ in range(_SECTORS)])
                if page != pages[-1]:
                    loss[item] = page
            else:
                loss[item] = chance.choice(values)
    return loss


def fewest(failure: Failure, still: Callable[[Failure], bool]) -> Failure:
    """Return the failure with a minimal loss: without any one of the items it is a different failure.

    Args:
        failure: the failure to shrink.
        still: function that returns True if a failure violates the same guarantee.
    """
    found = True
    while found:
        found = False
        for item in sorted(failure.loss, key=_weight):
            less = {other: value for other, value in failure.loss.items() if other != item}
            smaller = Failure(failure.crash_point, less, failure.restart)
            if still(smaller):
                failure, found = smaller, True
    return failure


def _weight(item: Item) -> tuple[int, int]:
    """Return a sort key: names first, then pages; later ones first."""
    match item:
        case Name(number):
            return 0, -number
        case Page(file, _):
            return 1, -file
        case Length(file):
            return 2, -file
