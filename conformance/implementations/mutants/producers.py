"""Defects of a log's state of its producers: transactions, sequence numbers, epochs and snapshots."""

from __future__ import annotations

from typing import TYPE_CHECKING

from conformance.implementations.mutants.registry import defect
from kidx.producers import BatchMetadata, Origin, ProducerAppendInfo, ProducerEntry, ProducerStateManager
from kidx.producers.snapshot import HEAD, PRODUCER

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from kidx.producers import CompletedTxn, Transaction
    from kidx.records import RecordBatch

# -- the last stable offset --------------------------------------------------------------------------------------------


@defect("LG-43")
class ForgetsUnreplicatedTransactions(ProducerStateManager):
    """A completed transaction is stable before its marker is replicated."""

    @property
    def first_unstable(self) -> Transaction | None:
        return self.ongoing[min(self.ongoing)] if self.ongoing else None


@defect("LG-43")
class NothingIsReplicated(ProducerStateManager):
    """A completed transaction remains unstable though its marker is replicated."""

    def on_high_watermark(self, high_watermark: int) -> None:
        pass


@defect("LG-43")
class MarkersCountTooEarly(ProducerStateManager):
    """A transaction is stable when the high watermark is its marker's offset, not after it."""

    def on_high_watermark(self, high_watermark: int) -> None:
        super().on_high_watermark(high_watermark + 1)


@defect("LG-39")
class SnapshotsTellNothingOpen(ProducerStateManager):
    """A transaction that a snapshot says is open is forgotten."""

    def _load_snapshot(self, start_offset: int, now: int) -> None:
        super()._load_snapshot(start_offset, now)
        self.ongoing.clear()


# -- snapshots ---------------------------------------------------------------------------------------------------------


@defect("LG-33")
class TakesSnapshotsWithoutNeed(ProducerStateManager):
    """A snapshot is taken also where nothing has been written since the last one."""

    def take_snapshot(self) -> None:
        self.last_snapshot_offset = -1
        super().take_snapshot()


@defect("LG-33")
class TakesTheSnapshotTooEarly(ProducerStateManager):
    """A snapshot has the offset of the last record, not the next one."""

    def take_snapshot(self) -> None:
        end = self.map_end_offset
        self.map_end_offset = max(end - 1, 0)
        super().take_snapshot()
        self.map_end_offset = end


@defect("LG-33")
class TakesNoSnapshots(ProducerStateManager):
    """No snapshot is ever taken."""

    def take_snapshot(self) -> None:
        pass


@defect("LG-32")
class ChecksumOfTheWholeFile(ProducerStateManager):
    """The checksum of a snapshot is wrong."""

    def take_snapshot(self) -> None:
        super().take_snapshot()
        if (offset := self.latest_snapshot) is not None:
            path = self.directory / f"{offset:020d}.snapshot"
            content = bytearray(path.read_bytes())
            content[5] ^= 1
            path.write_bytes(content)


@defect("LG-32")
class WritesTheFirstOffset(ProducerStateManager):
    """A snapshot has the first offset of the last batch where the last belongs."""

    def take_snapshot(self) -> None:
        kept = {producer: entry.batches.copy() for producer, entry in self.producers.items()}
        for entry in self.producers.values():
            if entry.batches:
                entry.batches[-1] = entry.batches[-1]._replace(last_offset=entry.batches[-1].first_offset)
        super().take_snapshot()
        for producer, batches in kept.items():
            self.producers[producer].batches = batches


@defect("LG-34b")
class KeepsStraySnapshots(ProducerStateManager):
    """Opening a log leaves the snapshots that no segment begins with."""

    def remove_stray_snapshots(self, base_offsets: Iterable[int]) -> None:
        super().remove_stray_snapshots([*base_offsets, *self.snapshots])


@defect("LG-34b")
class SnapshotsOutliveSegments(ProducerStateManager):
    """No snapshot is ever deleted."""

    def delete_snapshot(self, offset: int) -> None:
        self._known.discard(offset)


@defect("LG-42")
class SortsProducersById(ProducerStateManager):
    """A snapshot has its producers in the order of their ids."""

    def take_snapshot(self) -> None:
        super().take_snapshot()
        offset = self.latest_snapshot
        if offset is None:
            return
        path = self.directory / f"{offset:020d}.snapshot"
        content = path.read_bytes()
        body = content[HEAD.size :]
        rows = sorted(body[at : at + PRODUCER.size] for at in range(0, len(body), PRODUCER.size))
        path.write_bytes(content[: HEAD.size] + b"".join(rows))


@defect("LG-39")
class GivesUpAtADamagedSnapshot(ProducerStateManager):
    """If the latest snapshot is corrupt, the earlier ones are not read."""

    def _load_snapshot(self, start_offset: int, now: int) -> None:
        latest = self.latest_snapshot
        super()._load_snapshot(start_offset, now)
        if latest is not None and self.latest_snapshot != latest:
            self._forget()
            self.map_end_offset = self.last_snapshot_offset = start_offset


@defect("LG-39")
class ReadsTheOldestSnapshot(ProducerStateManager):
    """The first snapshot left is read, not the last."""

    @property
    def latest_snapshot(self) -> int | None:
        return min(self.snapshots, default=None)


# -- expiration --------------------------------------------------------------------------------------------------------


@defect("LG-40")
class NobodyExpires(ProducerStateManager):
    """An idle producer never expires."""

    def is_expired(self, entry: ProducerEntry, now: int, expiration_ms: int) -> bool:
        return False


@defect("LG-40")
class ExpiresInTransactions(ProducerStateManager):
    """A silent producer is forgotten in the middle of its transaction."""

    def is_expired(self, entry: ProducerEntry, now: int, expiration_ms: int) -> bool:
        return now - self.last_timestamp(entry) >= expiration_ms


@defect("LG-40")
class ExpiresAMillisecondLate(ProducerStateManager):
    """Silence has to be longer than the limit (``>`` for ``>=``)."""

    def is_expired(self, entry: ProducerEntry, now: int, expiration_ms: int) -> bool:
        return super().is_expired(entry, now, expiration_ms + 1)


# -- sequence numbers and epochs ---------------------------------------------------------------------------------------


class Infos(ProducerStateManager):
    """A manager whose append infos are of another class."""

    info: type[ProducerAppendInfo] = ProducerAppendInfo

    def prepare(self, producer_id: int, origin: Origin) -> ProducerAppendInfo:
        info = super().prepare(producer_id, origin)
        info.__class__ = self.info
        return info


class _Anywhere(ProducerAppendInfo):
    def _check_sequence(self, epoch: int, sequence: int, offset: int) -> None:
        if epoch == self.updated.producer_epoch:
            super()._check_sequence(epoch, sequence, offset)


@defect("LG-35")
class EpochsBeginAnywhere(Infos):
    """A new epoch may begin with any sequence number."""

    info = _Anywhere


class _Gaps(ProducerAppendInfo):
    def _check_sequence(self, epoch: int, sequence: int, offset: int) -> None:
        if epoch != self.updated.producer_epoch or sequence <= self._last_sequence(epoch):
            super()._check_sequence(epoch, sequence, offset)


@defect("LG-35")
class GapsArePassedOver(Infos):
    """Sequence numbers may be skipped."""

    info = _Gaps


class _Unfenced(ProducerAppendInfo):
    def _check_epoch(self, epoch: int, offset: int) -> None:
        if self.origin is not Origin.COORDINATOR:
            super()._check_epoch(epoch, offset)


@defect("LG-38")
class OldMarkersAreTaken(Infos):
    """A leader takes a marker of an older epoch."""

    info = _Unfenced


class _AnyCoordinator(ProducerAppendInfo):
    def _check_coordinator(self, epoch: int, offset: int) -> None:
        pass


@defect("LG-38")
class OldCoordinatorsAreObeyed(Infos):
    """A leader takes a marker of an older coordinator."""

    info = _AnyCoordinator


class _KeepsEpoch(ProducerAppendInfo):
    def append(self, batch: RecordBatch, *, has_metadata: bool = False) -> CompletedTxn | None:
        before = self.updated.producer_epoch
        completed = super().append(batch, has_metadata=has_metadata)
        if batch.is_control and before >= 0:
            self.updated.producer_epoch = before
        return completed


@defect("LG-38")
class MarkersLeaveTheEpoch(Infos):
    """A marker of a newer epoch does not raise the epoch of its producer."""

    info = _KeepsEpoch


@defect("LG-37")
class RemembersTheLastBatchOnly(ProducerStateManager):
    """Only the last batch of a producer is known again, not its last five."""

    def apply_all(self, infos: Mapping[int, ProducerAppendInfo], calls: Iterable[int]) -> None:
        super().apply_all(infos, calls)
        for producer in infos:
            batches = self.producers[producer].batches
            while len(batches) > 1:
                batches.popleft()


@defect("LG-37")
class RemembersFourBatches(ProducerStateManager):
    """Four batches of a producer are known again, not five."""

    def apply_all(self, infos: Mapping[int, ProducerAppendInfo], calls: Iterable[int]) -> None:
        super().apply_all(infos, calls)
        for producer in infos:
            batches = self.producers[producer].batches
            while len(batches) > 4:
                batches.popleft()


@defect("LG-39")
class RemembersWhatWasCutAway(ProducerStateManager):
    """Truncating a log does not change the producers."""

    def _forget(self) -> None:
        self.unreplicated.clear()


class _Timeless(ProducerAppendInfo):
    def append(self, batch: RecordBatch, *, has_metadata: bool = False) -> CompletedTxn | None:
        before = self.updated.last_timestamp
        completed = super().append(batch, has_metadata=has_metadata)
        if batch.is_control:
            self.updated.last_timestamp = before
        return completed


@defect("LG-40")
class MarkersHaveNoTimestamp(Infos):
    """A producer was last heard of with its last batch, not with its marker."""

    info = _Timeless


@defect("LG-32")
class DeltasOfOne(ProducerStateManager):
    """A batch of several records is remembered as if it had one."""

    def apply(self, info: ProducerAppendInfo) -> None:
        info.updated.batches.extend(
            [BatchMetadata(b.last_sequence, b.last_offset, 0, b.timestamp) for b in list(info.updated.batches)][-1:]
        )
        super().apply(info)
