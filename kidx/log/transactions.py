"""How far a log's transactions are decided: what the last stable offset is made of (``ProducerStateManager``)."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from kidx.segment import CompletedTxn, LogSegment, ProducerState

if TYPE_CHECKING:
    from kidx.dialect import Dialect
    from kidx.records import RecordBatch


class Transactions:
    """Open transactions, and completed ones whose marker is not below the high watermark yet.

    Args:
        dialect: the rules of a release.
        name: topic and partition, for messages.

    Attributes:
        first_unstable_offset: where the first transaction began that consumers may not see decided yet, as of the last
            :meth:`settle`; None if there is none.
    """

    def __init__(self, dialect: Dialect, name: str) -> None:
        self.dialect = dialect
        self.name = name
        self.producers = self._empty()
        self.unreplicated: dict[int, CompletedTxn] = {}
        self.first_unstable_offset: int | None = None
        self.located: set[int] = set()
        """First offsets of transactions that began while the log was open: their place in a file is known."""
        self.snapshots: dict[int, ProducerState] = {}
        """What Kafka has written down at some offsets: which transactions are open, and nothing of completed ones."""

    def _empty(self) -> ProducerState:
        return ProducerState(self.name, self.dialect)

    def first_undecided(self) -> int | None:
        """Where the first transaction began that is open, or completed and not replicated; None if there is none."""
        return min((*self.producers.ongoing, *self.unreplicated), default=None)

    def settle(self) -> None:
        """Looks for the first unstable offset anew (``maybeIncrementFirstUnstableOffset``)."""
        self.first_unstable_offset = self.first_undecided()

    def update(self, batches: Iterable[RecordBatch]) -> list[CompletedTxn]:
        """Takes appended batches into account; what they complete stays open until :meth:`complete`.

        Raises:
            KidxError: as :meth:`ProducerState.update`.
        """
        completed = []
        for batch in batches:
            if batch.magic >= 2 and batch.producer_id >= 0:
                if batch.is_transactional and not batch.is_control:
                    self.located.add(batch.base_offset)
                completed.append(self.producers.update(batch))
        return [transaction for transaction in completed if transaction is not None]

    def complete(self, completed: CompletedTxn) -> None:
        """A transaction has ended; it counts as unstable until its marker is replicated."""
        self.producers.complete(completed)
        self.unreplicated[completed.first_offset] = completed

    def on_high_watermark(self, high_watermark: int) -> None:
        """Everything below is on all replicas."""
        self.replicate(high_watermark)
        self.settle()

    def replicate(self, high_watermark: int) -> None:
        """As :meth:`on_high_watermark`; the first unstable offset stays as it is until :meth:`settle`."""
        self.unreplicated = {
            first: completed
            for first, completed in self.unreplicated.items()
            if completed.last_offset >= high_watermark
        }

    def on_log_start(self, start_offset: int) -> None:
        """Everything below is deleted: completed transactions that ended there are forgotten."""
        self.unreplicated = {
            first: completed for first, completed in self.unreplicated.items() if completed.last_offset >= start_offset
        }
        self.settle()

    def clear(self) -> None:
        """The log is empty."""
        self._forget()
        self.snapshots.clear()
        self.settle()

    def _forget(self) -> None:
        self.producers = self._empty()
        self.unreplicated = {}
        self.located.clear()

    def take_snapshot(self, offset: int) -> None:
        """Writes down what is known at the offset where the log ends."""
        self.snapshots[offset] = self.producers.snapshot()

    def rebuild(self, segments: Iterable[LogSegment], start_offset: int, end_offset: int) -> None:
        """Reads the producers anew, from the last snapshot between two offsets and what the log holds behind it.

        The first unstable offset stays as it is until :meth:`settle`.

        What was completed before the snapshot is forgotten, replicated or not; what began before the log start and is
        open in it is known (``truncateAndReload``, ``loadFromSnapshot``).
        """
        snapshots = {offset: state for offset, state in self.snapshots.items() if start_offset < offset <= end_offset}
        self._forget()
        begin = max(snapshots, default=start_offset)
        if snapshots:
            self.producers = snapshots[begin].snapshot()
        self.snapshots = snapshots
        for segment in segments:
            if begin < segment.base_offset <= end_offset:
                self.take_snapshot(segment.base_offset)
            for batch in segment.batches():
                if batch.last_offset < begin:
                    continue
                if batch.base_offset >= end_offset:
                    break
                for completed in self.update([batch]):
                    self.complete(completed)
        self.located.clear()
        self.take_snapshot(end_offset)
