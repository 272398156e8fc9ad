"""Producers of a log, and their snapshots on disk (``ProducerStateManager``)."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Final

from kidx.errors import InvalidArgumentError
from kidx.files import read_small
from kidx.producers.append_info import UNKNOWN_VERSION, Transaction
from kidx.producers.errors import CorruptSnapshotError
from kidx.producers.hash_order import HashOrder, in_hash_order
from kidx.producers.snapshot import decode, encode
from kidx.producers.state import ProducerState
from kidx.producers.verification import VerificationStateEntry

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from kidx.dialect import Dialect
    from kidx.producers.append_info import CompletedTxn, Origin, ProducerAppendInfo
    from kidx.records import RecordBatch

SNAPSHOT_SUFFIX: Final = ".snapshot"
EXPIRATION_MS: Final = 24 * 3_600_000
"""``producer.id.expiration.ms``: idle time in milliseconds after which a producer is forgotten."""

SNAPSHOT_LIMIT: Final = 256 << 20
"""Maximum size of a snapshot in bytes: more than four million producers."""


def snapshot_name(offset: int) -> str:
    """Return ``00000000000000000007.snapshot``, the name of the snapshot of the producers before offset 7."""
    return f"{offset:020d}{SNAPSHOT_SUFFIX}"


def list_snapshots(directory: Path) -> set[int]:
    """Return the offsets of the snapshots of a log.

    Raises:
        InvalidArgumentError: the name of a snapshot does not begin with an offset.
        OSError: the directory cannot be read.
    """
    offsets = set()
    with os.scandir(directory) as entries:
        for entry in entries:
            if entry.name.endswith(SNAPSHOT_SUFFIX) and entry.is_file():
                try:
                    offsets.add(int(entry.name.partition(".")[0]))
                except ValueError as error:
                    raise InvalidArgumentError(f"{entry.path} is a snapshot whose name has no offset") from error
    return offsets


class ProducerStateManager(ProducerState):
    """Producers of one log.

    Up to 2.7 the directory is listed whenever snapshots are needed; later releases list it once and cache the list.

    Args:
        directory: directory of the log; its name is topic and partition.
        dialect: rules of a release.
        expiration_ms: idle time in milliseconds after which a producer is forgotten when snapshots are loaded.

    Attributes:
        last_snapshot_offset: offset of the last snapshot, or of a state that needs no snapshot.
        verifications: verifications of transactions that have not begun, by producer id; not part of snapshots (LG-45).

    Raises:
        InvalidArgumentError, OSError: as :func:`list_snapshots`.
    """

    __slots__ = ("_known", "_order", "directory", "expiration_ms", "last_snapshot_offset", "verifications")

    def __init__(self, directory: Path, dialect: Dialect, *, expiration_ms: int = EXPIRATION_MS) -> None:
        super().__init__(directory.name, dialect)
        self.directory = directory
        self.expiration_ms = expiration_ms
        self.last_snapshot_offset = 0
        self.verifications: dict[int, VerificationStateEntry] = {}
        self._order = HashOrder(lambda: dialect.producers_in_scala_map)
        self._known = list_snapshots(directory)

    # -- snapshots ---------------------------------------------------------------------------------------------

    @property
    def snapshots(self) -> list[int]:
        """Offsets of the snapshots, in ascending order."""
        present = list_snapshots(self.directory)
        return sorted(self._known if present != self._known and self.dialect.caches_snapshot_list else present)

    @property
    def latest_snapshot(self) -> int | None:
        """Offset of the latest snapshot, or None."""
        return max(self.snapshots, default=None)

    def delete_snapshot(self, offset: int) -> None:
        """Delete a snapshot; from 2.8 on only if it is in the cached list.

        Raises:
            OSError: the file cannot be deleted.
        """
        if offset not in self._known and self.dialect.caches_snapshot_list:
            return
        self._known.discard(offset)
        (self.directory / snapshot_name(offset)).unlink(missing_ok=True)

    def remove_stray_snapshots(self, base_offsets: Iterable[int]) -> None:
        """Delete the snapshots at offsets where no segment begins, except a last one past all segments (from 2.8).

        Args:
            base_offsets: base offsets of the segments.

        Raises:
            OSError: a file cannot be deleted.
        """
        bases = set(base_offsets)
        self._known = list_snapshots(self.directory)
        strays = sorted(self._known - bases)
        keeps_last = bool(strays) and not (bases and strays[-1] < max(bases))
        if keeps_last:
            strays.pop()
        if strays and self.dialect.caches_snapshot_list:
            for offset in strays:
                self.delete_snapshot(offset)

    def take_snapshot(self) -> None:
        """Write a snapshot, unless one has been written at this offset.

        Raises:
            OSError: the file cannot be written.
        """
        if self.map_end_offset <= self.last_snapshot_offset:
            return
        producers = {producer: self.producers[producer] for producer in self._order.sort(self.producers)}
        timestamps = {producer: self.last_timestamp(entry) for producer, entry in producers.items()}
        path = f"{self.directory}/{snapshot_name(self.map_end_offset)}"
        with open(os.open(path, os.O_WRONLY | os.O_CREAT, 0o666), "wb") as file:  # noqa: PTH123 -- keeps a longer end
            file.write(encode(producers, timestamps))
        self._known.add(self.map_end_offset)
        self.last_snapshot_offset = self.map_end_offset

    def _load_snapshot(self, start_offset: int, now: int) -> None:
        """Load the latest valid snapshot, and delete the invalid ones after it."""
        while (offset := self.latest_snapshot) is not None:
            try:
                found = decode(read_small(self.directory / snapshot_name(offset), limit=SNAPSHOT_LIMIT), self.dialect)
            except CorruptSnapshotError:
                self.delete_snapshot(offset)
                continue
            for producer, entry in found.items():
                if self.is_expired(entry, now, self.expiration_ms):
                    continue
                if producer not in self.producers:
                    self._order.insert(producer, self.producers)
                self.producers[producer] = entry
                if (began := entry.current_txn_first_offset) is not None:
                    self.ongoing[began] = Transaction(producer, began)
            self.map_end_offset = self.last_snapshot_offset = offset
            return
        self.map_end_offset = self.last_snapshot_offset = start_offset

    # -- transactions before their first batch ---------------------------------------------------------------------

    def has_ongoing(self, producer_id: int, epoch: int) -> bool:
        """Return True if the producer has an open transaction; from 4.0 on, in this epoch."""
        entry = self.producers.get(producer_id)
        if entry is None or entry.current_txn_first_offset is None:
            return False
        return entry.producer_epoch == epoch or not self.dialect.verification_knows_epochs

    def verify(
        self, producer_id: int, sequence: int, epoch: int, now: int, *, raises_epochs: bool
    ) -> VerificationStateEntry:
        """Return the verification of a producer's next transaction, and start it if necessary.

        Args:
            producer_id: the producer.
            sequence: sequence number of the batch that the transaction may begin with.
            epoch: epoch of the producer.
            now: the wall clock in milliseconds.
            raises_epochs: True if the producer raises its epoch with each transaction.
        """
        found = self.verifications.get(producer_id)
        if found is None:
            found = self.verifications[producer_id] = VerificationStateEntry(now, sequence, epoch, raises_epochs)
        found.update(sequence, epoch)
        return found

    def prepare(self, producer_id: int, origin: Origin) -> ProducerAppendInfo:
        """See the base class."""
        info = super().prepare(producer_id, origin)
        info.verification = self.verifications.get(producer_id)
        return info

    def update_producer(
        self,
        batch: RecordBatch,
        infos: dict[int, ProducerAppendInfo],
        origin: Origin,
        transaction_version: int = UNKNOWN_VERSION,
        *,
        has_metadata: bool = False,
    ) -> CompletedTxn | None:
        """Check a batch of an append and add its changes (``updateProducers``).

        Args:
            batch: a batch with a producer id.
            infos: changes of the append by producer id; a missing producer is added.
            origin: origin of the append.
            transaction_version: version of the transaction that a marker ends.
            has_metadata: True if the file position of the batch is known.

        Returns:
            The transaction that it completes.

        Raises:
            KidxError: See :meth:`ProducerAppendInfo.append`.
        """
        info = infos.get(batch.producer_id)
        if info is None:
            info = infos[batch.producer_id] = self.prepare(batch.producer_id, origin)
            info.transaction_version = transaction_version
        completed = info.append(batch, has_metadata=has_metadata)
        self.end_verification(batch)
        return completed

    def end_verification(self, batch: RecordBatch) -> None:
        """End a verification because a batch shows that the transaction has begun or ended.

        From 4.0 on, a marker of the epoch that is being verified does not end it: the transaction is yet to begin.
        """
        if not batch.is_transactional:
            return
        found = self.verifications.get(batch.producer_id)
        if found is None:
            return
        follows = found.raises_epochs and batch.is_control and batch.producer_epoch == found.epoch
        if not (follows and self.dialect.verification_knows_epochs):
            del self.verifications[batch.producer_id]

    def remove_expired(self, now: int, expiration_ms: int) -> None:
        """See the base class; verifications that take too long are forgotten too."""
        super().remove_expired(now, expiration_ms)
        for producer in [p for p, found in self.verifications.items() if now - found.began >= expiration_ms]:
            del self.verifications[producer]

    # -- changes of the log ----------------------------------------------------------------------------------------

    def apply_all(self, infos: Mapping[int, ProducerAppendInfo], producer_ids: Iterable[int]) -> None:
        """Apply the changes of one append; new producers are added in the order of Kafka's hash table.

        Args:
            infos: changes by producer id.
            producer_ids: the producer id of every batch, in order.
        """
        for producer in in_hash_order(producer_ids, lambda: self.dialect.appends_in_scala_map):
            self.apply(infos[producer])

    def apply(self, info: ProducerAppendInfo) -> None:
        """See the base class."""
        if info.producer_id not in self.producers:
            self._order.insert(info.producer_id, self.producers)
        super().apply(info)

    def truncate_and_reload(self, start_offset: int, end_offset: int, now: int) -> None:
        """Delete the snapshots outside a truncated log, and load the last remaining one.

        Raises:
            OSError: a snapshot cannot be read or deleted.
        """
        for offset in self.snapshots:
            if offset > end_offset or offset <= start_offset:
                self.delete_snapshot(offset)
        if end_offset == self.map_end_offset:
            self.on_log_start(start_offset)
            return
        self._forget()
        self._load_snapshot(start_offset, now)

    def _forget(self) -> None:
        self.producers.clear()
        self.ongoing.clear()
        self.unreplicated.clear()

    def on_log_start(self, start_offset: int) -> None:
        """Update the state after everything below a new log start was deleted; up to 2.7, delete the snapshots there.

        Raises:
            OSError: a snapshot cannot be deleted.
        """
        self.on_high_watermark(start_offset)
        self.map_end_offset = max(self.map_end_offset, start_offset)
        if any(offset < start_offset for offset in self.snapshots) and not self.dialect.caches_snapshot_list:
            self.delete_snapshots_before(start_offset)
        latest = self.latest_snapshot
        self.last_snapshot_offset = start_offset if latest is None else latest

    def delete_snapshots_before(self, offset: int) -> None:
        """Delete the snapshots below an offset.

        Raises:
            OSError: a file cannot be deleted.
        """
        for snapshot in self.snapshots:
            if snapshot < offset:
                self.delete_snapshot(snapshot)

    def truncate_fully_and_start_at(self, offset: int) -> None:
        """Reset the state for an empty log that starts at ``offset``, and delete all snapshots.

        Raises:
            OSError: a snapshot cannot be deleted.
        """
        self._forget()
        for snapshot in self.snapshots:
            self.delete_snapshot(snapshot)
        self.last_snapshot_offset = 0
        self.map_end_offset = offset
