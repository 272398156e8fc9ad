"""Leaves out of a trace what it does not need to show what it is kept for: operations, and parts of their arguments.

Hypothesis shrinks what rules draw and gives up on long lives early; this takes the recorded operations, which are plain
data. Nothing is tried that no machine would do: a damage to a file that is in use (which kills the process), or a trace
that begins with anything but an opening.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final, TypeVar

from conformance.operations import FILE_OPERATIONS, Operation

_LETTING_GO: Final = ("close", "crash", "delete_segment", "delete")
_NEEDED_SETTINGS: Final = frozenset({"segment.bytes", "segment.index.bytes"})
"""Without them a log's segment holds millions of batches."""

T = TypeVar("T")
Operations = tuple[Operation, ...]
Still = Callable[[Sequence[Operation]], T | None]
"""Performs operations and returns what the trace is kept for; None if they do not show it."""


def is_opening(operation: Operation) -> bool:
    """Whether an operation opens an index, a segment or a log."""
    return operation.name.startswith("open")


def is_damage(operation: Operation) -> bool:
    """Whether an operation is the harness's own, on a file that nobody has open."""
    return operation.name in FILE_OPERATIONS or operation.name.startswith("damage")


def shorten(operations: Sequence[Operation], still: Still[T]) -> tuple[Operations, T] | None:
    """A trace that no single omission makes shorter.

    Args:
        operations: the trace.
        still: see :data:`Still`.

    Returns:
        The trace with what it shows; None if it does not show it in the first place.
    """
    shown = still(operations)
    if shown is None:
        return None
    best = tuple(operations), shown
    size = len(operations) // 2
    while size > 1:
        best = _without_blocks(*best, size, still)
        size //= 2
    before: Operations = ()
    while best[0] != before:
        before = best[0]
        best = _without_each(*best, still)
        best = _simpler_each(*best, still)
    return best


def _without_blocks(best: Operations, shown: T, size: int, still: Still[T]) -> tuple[Operations, T]:
    # From the end: what comes late is needed least often, and leaves what comes before as it was.
    for start in reversed(range(0, len(best), size)):
        best, shown = _tried(best[:start] + best[start + size :], best, shown, still)
    return best, shown


def _without_each(best: Operations, shown: T, still: Still[T]) -> tuple[Operations, T]:
    before = 0
    while len(best) != before:
        before = len(best)
        for start, stop in _omissions(best):
            if stop <= len(best):  # otherwise found before the trace got shorter
                best, shown = _tried(best[:start] + best[stop:], best, shown, still)
    return best, shown


def _simpler_each(best: Operations, shown: T, still: Still[T]) -> tuple[Operations, T]:
    for number in reversed(range(len(best))):
        before = None
        while best[number] is not before:
            before = best[number]
            for simpler in _simpler(before):
                candidate = (*best[:number], simpler, *best[number + 1 :])
                best, shown = _tried(candidate, best, shown, still)
                if best is candidate:
                    break
    return best, shown


def _tried(candidate: Operations, best: Operations, shown: T, still: Still[T]) -> tuple[Operations, T]:
    if candidate == best or not _is_sane(candidate):
        return best, shown
    seen = still(candidate)
    return (best, shown) if seen is None else (candidate, seen)


def _omissions(operations: Operations) -> Iterator[tuple[int, int]]:
    """What to leave out, from the end backwards so that the places before stay where they are."""
    openings = [i for i, operation in enumerate(operations) if is_opening(operation)]
    for opening in reversed(openings[1:]):
        yield 0, opening
    for opening in reversed(openings[1:]):
        earlier = max(i for i in openings if i < opening)
        for start in range(earlier, opening):
            yield start, opening
            yield start + 1, opening + 1
    for i in reversed(range(len(operations) - 1)):
        yield i, i + 1


def _is_sane(operations: Operations) -> bool:
    if not operations or not is_opening(operations[0]):
        return False
    in_use = True
    for operation in operations:
        if is_opening(operation):
            in_use = True
        elif operation.name.startswith(_LETTING_GO):
            in_use = False
        elif is_damage(operation) and in_use:
            return False
    return True


def _simpler(operation: Operation) -> Iterator[Operation]:
    """The same operation on a log with fewer settings, targets, batches, records or options."""
    name, arguments = operation
    if name == "open_log":
        settings, *rest = arguments
        for key in sorted(settings.keys() - _NEEDED_SETTINGS):
            fewer = {other: value for other, value in settings.items() if other != key}
            yield Operation(name, (fewer, *rest))
    elif name == "list_offsets":
        yield from (Operation(name, (rest,)) for rest in _without_one(arguments[0]))
    elif name in ("append_as_follower", "append_as_leader"):
        batches, epoch = arguments
        yield from (Operation(name, (rest, epoch)) for rest in _without_one(batches))
        for i, batch in enumerate(batches):
            for plainer in _plainer(batch):
                yield Operation(name, ([*batches[:i], plainer, *batches[i + 1 :]], epoch))


def _plainer(batch: dict[str, Any]) -> Iterator[dict[str, Any]]:
    if "codec" in batch:
        yield {key: value for key, value in batch.items() if key != "codec"}
    yield from ({**batch, "records": rest} for rest in _without_one(batch["records"]))


def _without_one(items: Sequence[Any]) -> Iterator[list[Any]]:
    if len(items) > 1:
        yield from ([*items[:i], *items[i + 1 :]] for i in range(len(items)))
