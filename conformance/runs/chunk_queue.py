"""Queues of the chunks (groups of examples) of a run's machines, with the results of finished chunks.

Workers do not wait for each other at the end of a machine: they continue with the chunks of the next machine.
"""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Iterable
from concurrent.futures import Future
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from conformance.runs.chunk_result import ChunkResult
    from conformance.runs.chunks import Chunk


class ChunkQueue:
    """Queue of the chunks of one machine, with the results of finished ones.

    Attributes:
        machine: The name of the machine.
        chunks: All chunks of the machine, in order.
        deadline: The time on the monotonic clock at which the machine's run ends; None for no limit.
        done: The results of chunks that this process ran, by chunk number.
    """

    def __init__(self, machine: str, chunks: list[Chunk], deadline: float | None) -> None:
        self.machine = machine
        self.chunks = chunks
        self.deadline = deadline
        self.done: dict[int, ChunkResult] = {}
        self._assigned: dict[int, Future[ChunkResult]] = {}
        self._left = iter(chunks)
        self._lock = threading.Lock()
        self._changed = threading.Condition(self._lock)
        self._is_closed = False

    def is_late(self) -> bool:
        """Return True if the deadline has passed."""
        return self.deadline is not None and time.monotonic() >= self.deadline

    def take(self) -> Chunk | None:
        """Return the next chunk; None if all have been taken, or if the run has continued with another machine."""
        with self._lock:
            return None if self._is_closed else next(self._left, None)

    def put(self, chunk: Chunk, evidence: ChunkResult) -> None:
        """Store the result of a chunk that this process ran."""
        self.done[chunk.number] = evidence

    def assign(self, chunk: Chunk, future: Future[ChunkResult]) -> None:
        """Store the future of a chunk that a worker runs."""
        with self._changed:
            self._assigned[chunk.number] = future
            self._changed.notify_all()

    def is_done(self, chunk: Chunk) -> bool:
        """Return True if the result of a chunk is available."""
        with self._lock:
            promised = self._assigned.get(chunk.number)
            return chunk.number in self.done or (promised is not None and promised.done())

    def wait(self, chunk: Chunk) -> ChunkResult:
        """Wait for the result of a chunk, and return it."""
        if chunk.number in self.done:
            return self.done.pop(chunk.number)
        with self._changed:
            while chunk.number not in self._assigned:
                self._changed.wait()
        return self._assigned.pop(chunk.number).result()

    def lost(self) -> list[Chunk]:
        """Return the chunks whose worker has ended without a result."""
        with self._lock:
            failed = {number for number, future in self._assigned.items() if future.done() and future.exception()}
        return [chunk for chunk in self.chunks if chunk.number in failed]

    def close(self) -> None:
        """Stop handing out chunks."""
        with self._lock:
            self._is_closed = True


class ChunkQueues:
    """Chunk queues of a run's machines, in the order of the machines.

    Args:
        coming: The queues of the machines that workers may begin early. An iterator, which creates a queue when it is
            needed.
    """

    def __init__(self, coming: Iterable[ChunkQueue]) -> None:
        self._upcoming_machines = iter(coming)
        self._open: deque[ChunkQueue] = deque()

    def advance_to(self, machine: str, chunks: Iterable[Chunk], deadline: float | None) -> ChunkQueue:
        """Return the queue of the machine that the run has reached; drop the chunks of earlier machines."""
        while (queue := self._first()) is not None:
            if queue.machine == machine:
                return queue
            self._open.popleft().close()
        queue = ChunkQueue(machine, list(chunks), deadline)
        self._open.append(queue)
        return queue

    def lost(self) -> list[tuple[str, list[Chunk]]]:
        """Return the lost chunks of each machine."""
        return [(queue.machine, queue.lost()) for queue in self._open]

    def _first(self) -> ChunkQueue | None:
        return self._open[0] if self._open else self._open_next()

    def _open_next(self) -> ChunkQueue | None:
        queue = next(self._upcoming_machines, None)
        if queue is not None:
            self._open.append(queue)
        return queue

    def take(self) -> tuple[ChunkQueue, Chunk] | None:
        """Return the next chunk of the current machine, or else of the first later machine that has one."""
        for queue in self._open:
            if (chunk := queue.take()) is not None:
                return queue, chunk
        while (later := self._open_next()) is not None:
            if (chunk := later.take()) is not None:
                return later, chunk
        return None
