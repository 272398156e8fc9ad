"""The chunks of a run's machines: which are still to be performed, by which process, and the evidence of the others.

Processes that help need not wait for each other at the end of a machine: they go on with the chunks of the next one.
"""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Iterable
from concurrent.futures import Future
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from conformance.runs.chunks import Chunk
    from conformance.runs.evidence import Evidence


class Table:
    """The chunks of one machine: which are still to be performed, and the evidence of the others."""

    def __init__(self, machine: str, chunks: list[Chunk], deadline: float | None) -> None:
        self.machine = machine
        self.chunks = chunks
        self.deadline = deadline
        self.done: dict[int, Evidence] = {}
        self._promised: dict[int, Future[Evidence]] = {}
        self._left = iter(chunks)
        self._lock = threading.Lock()
        self._changed = threading.Condition(self._lock)
        self._is_closed = False

    def is_late(self) -> bool:
        """Whether the time is up."""
        return self.deadline is not None and time.monotonic() >= self.deadline

    def take(self) -> Chunk | None:
        """The next chunk; None if all have been taken, or the run has gone on."""
        with self._lock:
            return None if self._is_closed else next(self._left, None)

    def put(self, chunk: Chunk, evidence: Evidence) -> None:
        """Notes the evidence of a chunk of this process."""
        self.done[chunk.number] = evidence

    def promise(self, chunk: Chunk, future: Future[Evidence]) -> None:
        """Notes that another process performs a chunk."""
        with self._changed:
            self._promised[chunk.number] = future
            self._changed.notify_all()

    def is_done(self, chunk: Chunk) -> bool:
        """Whether the evidence of a chunk is there."""
        with self._lock:
            promised = self._promised.get(chunk.number)
            return chunk.number in self.done or (promised is not None and promised.done())

    def wait(self, chunk: Chunk) -> Evidence:
        """The evidence of a chunk, once it is there."""
        if chunk.number in self.done:
            return self.done.pop(chunk.number)
        with self._changed:
            while chunk.number not in self._promised:
                self._changed.wait()
        return self._promised.pop(chunk.number).result()

    def lost(self) -> list[Chunk]:
        """Return the chunks whose process has ended before it had their evidence."""
        with self._lock:
            failed = {number for number, future in self._promised.items() if future.done() and future.exception()}
        return [chunk for chunk in self.chunks if chunk.number in failed]

    def close(self) -> None:
        """Lets no further chunk be taken."""
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

    def come_to(self, machine: str, chunks: Iterable[Chunk], deadline: float | None) -> Table:
        """The table of the machine that the run has come to; what is left of earlier ones is not performed."""
        while (table := self._first()) is not None:
            if table.machine == machine:
                return table
            self._laid.popleft().close()
        table = Table(machine, list(chunks), deadline)
        self._laid.append(table)
        return table

    def lost(self) -> list[tuple[str, list[Chunk]]]:
        """Return the lost chunks of each machine."""
        return [(table.machine, table.lost()) for table in self._laid]

    def _first(self) -> Table | None:
        return self._laid[0] if self._laid else self._lay()

    def _lay(self) -> Table | None:
        table = next(self._coming, None)
        if table is not None:
            self._laid.append(table)
        return table

    def take(self) -> tuple[Table, Chunk] | None:
        """The next chunk of the machine that the run has come to, else of the first one after it that has any left."""
        for table in self._laid:
            if (chunk := table.take()) is not None:
                return table, chunk
        while (later := self._lay()) is not None:
            if (chunk := later.take()) is not None:
                return later, chunk
        return None
