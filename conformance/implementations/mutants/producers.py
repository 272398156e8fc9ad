"""Defects of a log's state of its producers: transactions, sequence numbers, epochs and snapshots.

A row is a mutant: violated clause, name, defect, function (the names that lead to it from the class), fragment of its
source (``START``: its beginning), and replacement. A class with ``@defect`` is a mutant, too.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from conformance.implementations.mutants.registry import START, Row, defect, plant
from kidx.producers import ProducerAppendInfo, ProducerStateManager

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping


from kidx.log import UnifiedLog

# fmt: off
plant(
    UnifiedLog,
    # -- the last stable offset --
    Row("LG-43", "forgets-unreplicated-transactions",
        "The last stable offset passes a completed transaction before its marker is replicated.",
        "producer_state.first_unstable", "(self.unreplicated, self.ongoing)", "(self.ongoing,)"),
    Row("LG-43", "nothing-is-replicated", "The last stable offset never passes a completed transaction.",
        "producer_state.on_high_watermark", START, "return"),
    Row("LG-43", "markers-count-too-early",
        "The last stable offset passes a transaction when the high watermark reaches its marker, not the next offset.",
        "producer_state.on_high_watermark", START, "high_watermark += 1"),
    Row("LG-39", "snapshots-tell-nothing-open", "Open transactions in a producer snapshot are ignored.",
        "producer_state._load_snapshot", "self.ongoing[began] = Transaction(producer, began)", "pass"),
    # -- snapshots --
    Row("LG-33", "takes-snapshots-without-need",
        "A snapshot is taken even if nothing was written since the last one.",
        "producer_state.take_snapshot", "self.map_end_offset <= self.last_snapshot_offset", "False"),
    Row("LG-33", "takes-no-snapshots", "No snapshot is ever taken.",
        "producer_state.take_snapshot", START, "return"),
    Row("LG-32", "writes-the-first-offset", "A snapshot has the first instead of the last offset of the last batch.",
        "producer_state.take_snapshot.encode", "entry.last_offset", "entry.last_offset - entry.last_offset_delta"),
    Row("LG-34b", "keeps-stray-snapshots", "Opening a log keeps snapshots at offsets at which no segment begins.",
        "producer_state.remove_stray_snapshots", START, "base_offsets = [*base_offsets, *self.snapshots]"),
    Row("LG-34b", "snapshots-outlive-segments", "No snapshot is ever deleted.",
        "producer_state.delete_snapshot", "path.unlink(missing_ok=True)", "pass"),
    Row("LG-39", "gives-up-at-a-damaged-snapshot", "If the latest snapshot is corrupt, the earlier ones are not read.",
        "producer_state._load_snapshot", "self.delete_snapshot(offset); continue",
        "self.delete_snapshot(offset); break"),
    Row("LG-39", "reads-the-oldest-snapshot", "The oldest snapshot is read, not the newest.",
        "producer_state.latest_snapshot", "max(self.snapshots, default=None)", "min(self.snapshots, default=None)"),
    Row("LG-39", "remembers-what-was-cut-away", "Truncating a log does not change the producers.",
        "producer_state._forget", "self.producers.clear(); self.ongoing.clear()", "pass"),
    # -- expiration --
    Row("LG-40", "nobody-expires", "An idle producer never expires.",
        "producer_state.is_expired", START, "return False"),
    Row("LG-40", "expires-in-transactions", "An idle producer expires even during its transaction.",
        "producer_state.is_expired", "entry.current_txn_first_offset is None", "True"),
    Row("LG-40", "expires-a-millisecond-late",
        "A producer expires only if it is idle for longer than the limit (``>`` for ``>=``).",
        "producer_state.is_expired", "now - self.last_timestamp(entry) >= expiration_ms",
        "now - self.last_timestamp(entry) > expiration_ms"),
    # -- sequence numbers and epochs --
    Row("LG-35", "epochs-begin-anywhere", "A new epoch may begin with any sequence number.",
        "producer_state.append_info._check_sequence", START, "if epoch != self.updated.producer_epoch: return"),
    Row("LG-35", "gaps-are-passed-over", "Sequence numbers may be skipped.",
        "producer_state.append_info._check_sequence", START,
        "if epoch == self.updated.producer_epoch and sequence > self._last_sequence(epoch): return"),
    Row("LG-38", "old-markers-are-taken", "A leader accepts a marker of an older producer epoch.",
        "producer_state.append_info._check_epoch", START, "if self.origin is Origin.COORDINATOR: return"),
    Row("LG-38", "old-coordinators-are-obeyed", "A leader accepts a marker of an older coordinator.",
        "producer_state.append_info._check_coordinator", START, "return"),
    Row("LG-38", "markers-leave-the-epoch", "A marker of a newer epoch does not raise the epoch of its producer.",
        "producer_state.append_info._marker", "self.updated.update_epoch(batch.producer_epoch)",
        "known = self.updated.producer_epoch; self.updated.update_epoch(batch.producer_epoch); "
        "self.updated.producer_epoch = known if known >= 0 else batch.producer_epoch"),
    Row("LG-40", "markers-have-no-timestamp", "A marker does not update the last timestamp of its producer.",
        "producer_state.append_info._marker", "self.updated.last_timestamp = timestamp", "pass"),
    # -- the verification of transactions before they begin --
    Row("LG-45a", "guards-outlive-transactions", "A verification guard is accepted for the next transaction, too.",
        "producer_state.end_verification", START, "return"),
    Row("LG-45a", "open-in-any-epoch", "A transaction of another producer epoch counts as open.",
        "producer_state.has_ongoing", "entry.producer_epoch == epoch or not self.dialect.verification_knows_epochs",
        "True"),
    Row("LG-45b", "the-first-sequence-counts", "A smaller sequence number of a later verification is not stored.",
        "producer_state.verify", START, "if producer_id in self.verifications: return self.verifications[producer_id]"),
    Row("LG-45b", "sequences-are-not-verified", "A batch may begin above the verified sequence number.",
        "producer_state.append_info._check_verified", START, "return"),
    Row("LG-45d", "markers-of-the-same-epoch",
        "A marker of transaction version 2 is accepted with the epoch of its transaction.",
        "producer_state.append_info._ends_its_epoch", START, "return False"),
    Row("LG-32", "checksum-of-the-whole-file", "The checksum of a snapshot is wrong.",
        "producer_state.take_snapshot", "file.write(encode(producers, timestamps))",
        "data = bytearray(encode(producers, timestamps)); data[5] ^= 1; file.write(data)"),
    Row("LG-42", "sorts-producers-by-id", "A snapshot has its producers in the order of their ids.",
        "producer_state.take_snapshot", "self._order.sort(self.producers)", "sorted(self.producers)"),
    Row("LG-32", "deltas-of-one", "A batch of several records is remembered as if it had one.",
        "producer_state.apply", START,
        "info.updated.batches.extend([b._replace(offset_delta=0) for b in info.updated.batches][-1:])"),
)
# fmt: on


# -- snapshots ---------------------------------------------------------------------------------------------------------


@defect("LG-33")
class TakesTheSnapshotTooEarly(ProducerStateManager):
    """A snapshot has the offset of the last record, not the next one."""

    def take_snapshot(self) -> None:
        end = self.map_end_offset
        self.map_end_offset = max(end - 1, 0)
        super().take_snapshot()
        self.map_end_offset = end


# -- sequence numbers and epochs ---------------------------------------------------------------------------------------


class _RemembersFewer(ProducerStateManager):
    """Base of a state that remembers fewer batches of a producer."""

    remembered: int

    def apply_all(self, infos: Mapping[int, ProducerAppendInfo], producer_ids: Iterable[int]) -> None:
        super().apply_all(infos, producer_ids)
        for producer in infos:
            batches = self.producers[producer].batches
            while len(batches) > self.remembered:
                batches.popleft()


@defect("LG-37")
class RemembersTheLastBatchOnly(_RemembersFewer):
    """Only the last batch of a producer is detected as a duplicate, not its last five."""

    remembered = 1


@defect("LG-37")
class RemembersFourBatches(_RemembersFewer):
    """The last four batches of a producer are detected as duplicates, not five."""

    remembered = 4
