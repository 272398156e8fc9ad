"""Search for a shorter trace that shows the same divergence: deletes operations, then parts of arguments.

Hypothesis shrinks the draws of rules. This module shrinks the recorded operations, which are plain data, so that a
candidate needs a replay and no draws. Groups and blocks are deleted first (delta debugging), then single operations,
then several operations that depend on each other, then arguments.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Generic, TypeVar

from conformance.runs.shrinking.reductions import (
    cost,
    is_valid_sequence,
    opened_once,
    rebased,
    renumbered_without,
    reopen_cycles,
    replaced,
    shifted,
    simplified,
    single,
    written_out,
)

if TYPE_CHECKING:
    from conformance.operations import Operation
    from conformance.runs.shrinking.reductions import Choice

SHRINK_SECONDS: Final = 20.0
"""The default maximum time for shrinking one divergence, in seconds."""

_BISECTING: Final = 4
"""The number of passes that search for the smallest value of every number; later passes only try likely values."""

_SHARE_OF_FIRST_ORDER: Final = 0.2
"""The share of the time after which the second order of deletions is not tried."""

T = TypeVar("T")
Operations = tuple["Operation", ...]
Predicate = Callable[[Sequence["Operation"]], T | None]
"""Function that executes operations, and returns the result if it shows the same divergence, else None."""


@dataclass(frozen=True, slots=True)
class ShrinkResult(Generic[T]):
    """Result of shrinking.

    Attributes:
        operations: The shrunk trace.
        result: The return value of the predicate for it.
        minimal: True if no deletion and no known simplification shows the same; False if time ran out.
        tried: The number of candidates that were executed.
    """

    operations: Operations
    result: T
    minimal: bool
    tried: int


class _TimeIsUpError(Exception):
    """Exception that ends the search with the best candidate so far."""


def shrink(
    operations: Sequence[Operation],
    reproduce: Predicate[T],
    *,
    seconds: float = SHRINK_SECONDS,
    clock: Callable[[], float] = time.monotonic,
    needed: Callable[[T], Sequence[Operation]] | None = None,
) -> ShrinkResult[T] | None:
    """Shrink a trace.

    Args:
        operations: The trace; it opens an object before the operations that need one, and so does every candidate.
        reproduce: The predicate, see :data:`Predicate`. It is not called twice for one candidate.
        seconds: The time after which no further candidate is executed.
        clock: A monotonic clock in seconds.
        needed: A function that returns the operations that a result needs, if these may be fewer than were executed.

    Returns:
        The shrunk trace with its result; None if ``operations`` do not show the divergence in the first place.
    """
    started = clock()
    result = reproduce(operations)
    if result is None:
        return None
    search = _Search(tuple(operations), result, reproduce, lambda share: clock() - started >= share * seconds, needed)
    return search.run()


class _Search(Generic[T]):
    """State of a search: the best candidate so far, and the candidates that have been tried."""

    def __init__(
        self,
        operations: Operations,
        result: T,
        reproduce: Predicate[T],
        is_time_up: Callable[[float], bool],
        needed: Callable[[T], Sequence[Operation]] | None,
    ) -> None:
        self.best = operations if needed is None else tuple(needed(result))
        self.result = result
        self.minimal = False
        self._reproduce = reproduce
        self._is_time_up = is_time_up
        self._needed = needed
        self._performed = 1
        self._rounds = 0
        self._numbers: dict[str, int] = {}
        self._known: dict[int, tuple[Operation, int]] = {}
        self._tried = {self._key(operations), self._key(self.best)}

    def run(self) -> ShrinkResult[T]:
        """Execute all passes, from the first one again after any pass that made the trace simpler."""
        try:
            self._omit_from_two_ends()
            while not self.minimal:
                self._omit()
                self.minimal = not any(
                    self._improves(each) for each in (self._fewer_options, self._without_several, self._smaller_numbers)
                )
        except _TimeIsUpError:
            pass
        return ShrinkResult(self.best, self.result, self.minimal, self._performed)

    def _omit_from_two_ends(self) -> None:
        """Delete operations in two orders if time allows, as the first deletions decide which others are possible."""
        start = self.best, self.result
        self._omit()
        if self._is_time_up(_SHARE_OF_FIRST_ORDER):
            return
        first = self.best, self.result
        self.best, self.result = start
        try:
            self._without_blocks()
            self._without_each()
        finally:
            if cost(first[0]) <= cost(self.best):
                self.best, self.result = first

    def _omit(self) -> None:
        self._without_names()
        self._without_blocks()
        self._without_each()

    def _improves(self, a_pass: Callable[[], None]) -> bool:
        start = self.best
        a_pass()
        return self.best is not start

    def _try(self, candidate: Sequence[Operation]) -> bool:
        """Execute a candidate, unless it was tried or is invalid; True if it shows the same, and is now the best.

        Raises:
            _TimeIsUpError: The time is up.
        """
        wanted = tuple(candidate)
        key = self._key(wanted)
        if key in self._tried or not is_valid_sequence(wanted) or cost(wanted) >= cost(self.best):
            return False
        if self._is_time_up(1.0):
            raise _TimeIsUpError
        self._tried.add(key)
        self._performed += 1
        try:
            result = self._reproduce(wanted)
        except (TypeError, ValueError, LookupError):
            return False  # the rest of the steps depends on what was deleted
        if result is None:
            return False
        found = wanted if self._needed is None else tuple(self._needed(result))
        if cost(found) >= cost(self.best):
            return False
        self._tried.add(self._key(found))
        self.best, self.result, self.minimal = found, result, False
        return True

    def _key(self, operations: Operations) -> tuple[int, ...]:
        """Return a key that is equal for equal candidates; operations are numbered by their text."""
        key = []
        for operation in operations:
            known = self._known.get(id(operation))
            if known is None:
                number = self._numbers.setdefault(repr(operation), len(self._numbers))
                # The operation itself is stored, so that its identity is not reused.
                known = self._known[id(operation)] = operation, number
            key.append(known[1])
        return tuple(key)

    # -- passes ----------------------------------------------------------------------------------------------------

    def _without_names(self) -> None:
        """Delete all operations of one name, except the first and the last: half of many traces only reads."""
        names = Counter(operation.name for operation in self.best[1:-1])
        for name, _ in names.most_common():
            first, *rest, last = self.best if len(self.best) > 1 else (*self.best, *self.best)
            if rest:
                self._try((first, *(operation for operation in rest if operation.name != name), last))

    def _without_blocks(self) -> None:
        """Delete blocks of half the trace, of a quarter, and so on."""
        size = len(self.best) // 2
        while size > 1:
            # From the end: late steps are needed least often, and do not affect the earlier ones.
            for start in reversed(range(0, len(self.best), size)):
                self._try(self.best[:start] + self.best[start + size :])
            size //= 2

    def _without_each(self) -> None:
        """Delete single operations, and all from one opening to the next, until no single deletion shows the same."""
        improved = True
        while improved:
            improved = False
            for start, stop in reopen_cycles(self.best):
                if stop <= len(self.best):  # found before the trace got shorter
                    improved |= self._try(self.best[:start] + self.best[stop:])
            for number in reversed(range(len(self.best))):
                if number < len(self.best):
                    improved |= self._try(self.best[:number] + self.best[number + 1 :]) or any(
                        map(self._try, renumbered_without(self.best, number))
                    )

    def _without_several(self) -> None:
        """Delete series of operations, then any two of them, that can only be deleted together."""
        for chosen in _several(len(self.best)):
            if self._try([operation for i, operation in enumerate(self.best) if i not in chosen]):
                return

    def _fewer_options(self) -> None:
        """Shorten lists, and delete openings, options and settings, operation by operation."""
        for candidate in (*opened_once(self.best), *written_out(self.best)):
            self._try(candidate)
        for number in reversed(range(len(self.best))):
            while number < len(self.best) and any(
                self._try((*self.best[:number], one, *self.best[number + 1 :])) for one in simplified(self.best[number])
            ):
                pass

    def _smaller_numbers(self) -> None:
        """Simplify the numbers of the whole trace together, then one by one."""
        self._rounds += 1
        for candidate in rebased(self.best):
            self._try(candidate)
        for choice_at in (shifted, replaced, single):
            place = 0
            while (choice := choice_at(self.best, place)) is not None:
                place += 1
                if not any(self._try(choice.with_value(target)) for target in choice.targets):
                    self._bisect(choice)

    def _bisect(self, choice: Choice) -> None:
        """Search the smallest number by bisection, assuming that all larger ones work."""
        good, bad, sign = abs(choice.value), 0, -1 if choice.value < 0 else 1
        while good - bad > 1 and self._rounds <= _BISECTING:
            middle = (good + bad) // 2
            good, bad = (middle, bad) if self._try(choice.with_value(sign * middle)) else (good, middle)


def _several(count: int) -> Iterator[Any]:
    """Yield positions to delete together: every series of two and more, then every two."""
    for size in range(2, count):
        for start in reversed(range(1, count - size + 1)):
            yield range(start, start + size)
    for later in reversed(range(1, count)):
        for earlier in reversed(range(1, later)):
            yield (earlier, later)
