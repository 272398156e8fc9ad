"""The hands of a run's machines: which are still to be dealt, to whom, and what came of the others.

Processes that help need not wait for each other at the end of a machine: they go on with the hands of the next one.
"""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Iterable
from concurrent.futures import Future
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from conformance.runs.dealt import Dealt
    from conformance.runs.hands import Hand


class Table:
    """The hands of one machine: which are still to be dealt, and what came of the others."""

    def __init__(self, machine: str, hands: list[Hand], deadline: float | None) -> None:
        self.machine = machine
        self.hands = hands
        self.deadline = deadline
        self.done: dict[int, Dealt] = {}
        self._promised: dict[int, Future[Dealt]] = {}
        self._left = iter(hands)
        self._lock = threading.Lock()
        self._changed = threading.Condition(self._lock)
        self._is_closed = False

    def is_late(self) -> bool:
        """Whether the time is up."""
        return self.deadline is not None and time.monotonic() >= self.deadline

    def take(self) -> Hand | None:
        """The next hand; None if all have been taken, or the run has gone on."""
        with self._lock:
            return None if self._is_closed else next(self._left, None)

    def put(self, hand: Hand, dealt: Dealt) -> None:
        """Notes what came of a hand of this process."""
        self.done[hand.number] = dealt

    def promise(self, hand: Hand, future: Future[Dealt]) -> None:
        """Notes that another process deals a hand."""
        with self._changed:
            self._promised[hand.number] = future
            self._changed.notify_all()

    def is_dealt(self, hand: Hand) -> bool:
        """Whether it is known what came of a hand."""
        with self._lock:
            promised = self._promised.get(hand.number)
            return hand.number in self.done or (promised is not None and promised.done())

    def wait(self, hand: Hand) -> Dealt:
        """What came of a hand, once it is known."""
        if hand.number in self.done:
            return self.done.pop(hand.number)
        with self._changed:
            while hand.number not in self._promised:
                self._changed.wait()
        return self._promised.pop(hand.number).result()

    def close(self) -> None:
        """Lets no further hand be taken."""
        with self._lock:
            self._is_closed = True


class Tables:
    """The tables of a run's machines, in their order.

    Args:
        coming: those of machines that may be begun before the run has come to them; laid when they are needed.
    """

    def __init__(self, coming: Iterable[Table]) -> None:
        self._coming = iter(coming)
        self._laid: deque[Table] = deque()

    def come_to(self, machine: str, hands: Iterable[Hand], deadline: float | None) -> Table:
        """The table of the machine that the run has come to; what is left of earlier ones is not dealt any more."""
        while (table := self._first()) is not None:
            if table.machine == machine:
                return table
            self._laid.popleft().close()
        table = Table(machine, list(hands), deadline)
        self._laid.append(table)
        return table

    def _first(self) -> Table | None:
        return self._laid[0] if self._laid else self._lay()

    def _lay(self) -> Table | None:
        table = next(self._coming, None)
        if table is not None:
            self._laid.append(table)
        return table

    def take(self) -> tuple[Table, Hand] | None:
        """The next hand of the machine that the run has come to, else of the first one after it that has any left."""
        for table in self._laid:
            if (hand := table.take()) is not None:
                return table, hand
        while (later := self._lay()) is not None:
            if (hand := later.take()) is not None:
                return later, hand
        return None
