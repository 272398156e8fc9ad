"""The producers of a log, and their snapshots on disk (``ProducerStateManager``)."""

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
from kidx.producers.verification import Verification

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from kidx.dialect import Dialect
    from kidx.producers.append_info import CompletedTxn, Origin, ProducerAppendInfo
    from kidx.records import RecordBatch

SNAPSHOT_SUFFIX: Final = ".snapshot"
EXPIRATION_MS: Final = 24 * 3_600_000
"""``producer.id.expiration.ms``: after how much silence a producer is forgotten."""

SNAPSHOT_LIMIT: Final = 256 << 20
"""Bytes that a snapshot may have: more than four million producers."""


def snapshot_name(offset: int) -> str:
    """``00000000000000000007.snapshot``: what was known of producers before offset 7."""
    return f"{offset:020d}{SNAPSHOT_SUFFIX}"


def list_snapshots(directory: Path) -> set[int]:
    """The offsets of the snapshots of a log.

    Raises:
        InvalidArgumentError: a snapshot's name does not begin with an offset.
        OSError: the directory cannot be read.
    """
    offsets = set()
    with os.scandir(directory) as entries:
        for entry in entries:
            if entry.name.endswith(SNAPSHOT_SUFFIX) and entry.is_file():
                try:
                    offsets.add(int(entry.name.partition(".")[0]))
                except ValueError as error:
                    raise InvalidArgumentError(f"{entry.path} is a snapshot of no offset") from error
    return offsets


class ProducerStateManager(ProducerState):
    """The producers of one log.

    Up to 2.7 the directory is listed whenever snapshots matter; later, what was there at first is remembered.

    Args:
        directory: of the log; its name is topic and partition.
        dialect: the rules of a release.
        expiration_ms: after so much silence a producer is forgotten when snapshots are loaded.

    Attributes:
        last_snapshot_offset: where the last snapshot was taken, or would not be worth one.
        verifications: of transactions that have not begun, by producer id; snapshots know nothing of them (LG-45).

    Raises:
        InvalidArgumentError, OSError: as :func:`list_snapshots`.
    """

    __slots__ = ("_known", "_order", "directory", "expiration_ms", "last_snapshot_offset", "verifications")

    def __init__(self, directory: Path, dialect: Dialect, *, expiration_ms: int = EXPIRATION_MS) -> None:
        super().__init__(directory.name, dialect)
        self.directory = directory
        self.expiration_ms = expiration_ms
        self.last_snapshot_offset = 0
        self.verifications: dict[int, Verification] = {}
        self._order = HashOrder(lambda: dialect.producers_are_in_scala)
        self._known = list_snapshots(directory)

    # -- snapshots ---------------------------------------------------------------------------------------------

    @property
    def snapshots(self) -> list[int]:
        """The offsets of the snapshots, in order."""
        there = list_snapshots(self.directory)
        return sorted(self._known if there != self._known and self.dialect.snapshots_are_remembered else there)

    @property
    def latest_snapshot(self) -> int | None:
        """The offset of the latest snapshot; None without one."""
        return max(self.snapshots, default=None)

    def delete_snapshot(self, offset: int) -> None:
        """Deletes a snapshot that is known of.

        Raises:
            OSError: the file cannot be deleted.
        """
        if offset not in self._known and self.dialect.snapshots_are_remembered:
            return
        self._known.discard(offset)
        (self.directory / snapshot_name(offset)).unlink(missing_ok=True)

    def remove_stray_snapshots(self, base_offsets: Iterable[int]) -> None:
        """Deletes what no segment begins with, but for the last one, if it is behind all segments (from 2.8).

        Args:
            base_offsets: of the segments.

        Raises:
            OSError: a file cannot be deleted.
        """
        bases = set(base_offsets)
        self._known = list_snapshots(self.directory)
        strays = sorted(self._known - bases)
        keeps_last = bool(strays) and not (bases and strays[-1] < max(bases))
        if keeps_last:
            strays.pop()
        if strays and self.dialect.snapshots_are_remembered:
            for offset in strays:
                self.delete_snapshot(offset)

    def take_snapshot(self) -> None:
        """Writes down what is known, unless that has been done at this offset.

        Raises:
            OSError: the file cannot be written.
        """
        if self.map_end_offset <= self.last_snapshot_offset:
            return
        producers = {producer: self.producers[producer] for producer in self._order.sort(self.producers)}
        timestamps = {producer: self.last_timestamp(entry) for producer, entry in producers.items()}
        path = f"{self.directory}/{snapshot_name(self.map_end_offset)}"
        with open(os.open(path, os.O_WRONLY | os.O_CREAT, 0o666), "wb") as file:  # noqa: PTH123 -- a longer one keeps its end
            file.write(encode(producers, timestamps))
        self._known.add(self.map_end_offset)
        self.last_snapshot_offset = self.map_end_offset

    def _load_snapshot(self, start_offset: int, now: int) -> None:
        """Reads the latest snapshot that can be believed; the others are deleted."""
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
                    self._order.arrive(producer, self.producers)
                self.producers[producer] = entry
                if (began := entry.current_txn_first_offset) is not None:
                    self.ongoing[began] = Transaction(producer, began)
            self.map_end_offset = self.last_snapshot_offset = offset
            return
        self.map_end_offset = self.last_snapshot_offset = start_offset

    # -- transactions before they begin ------------------------------------------------------------------------

    def has_ongoing(self, producer_id: int, epoch: int) -> bool:
        """Whether a producer's transaction is open; from 4.0 on, in this epoch."""
        entry = self.producers.get(producer_id)
        if entry is None or entry.current_txn_first_offset is None:
            return False
        return entry.producer_epoch == epoch or not self.dialect.verification_knows_epochs

    def verify(self, producer_id: int, sequence: int, epoch: int, now: int, *, raises_epochs: bool) -> Verification:
        """The verification of a producer's next transaction, which may have begun before."""
        found = self.verifications.get(producer_id)
        if found is None:
            found = self.verifications[producer_id] = Verification(now, sequence, epoch, raises_epochs)
        found.ask(sequence, epoch)
        return found

    def prepare(self, producer_id: int, origin: Origin) -> ProducerAppendInfo:
        """See the base class."""
        info = super().prepare(producer_id, origin)
        info.verification = self.verifications.get(producer_id)
        return info

    def examine(
        self,
        batch: RecordBatch,
        infos: dict[int, ProducerAppendInfo],
        origin: Origin,
        transaction_version: int = UNKNOWN_VERSION,
        *,
        located: bool = False,
    ) -> CompletedTxn | None:
        """Takes a batch of an append into account (``updateProducers``).

        Args:
            batch: of a producer.
            infos: of the append, by producer id; gets one for a producer that it does not have.
            origin: of the append.
            transaction_version: of a marker's transaction.
            located: where the batch lies in the log is known.

        Returns:
            The transaction that it completes.

        Raises:
            KidxError: as :meth:`ProducerAppendInfo.append`.
        """
        info = infos.get(batch.producer_id)
        if info is None:
            info = infos[batch.producer_id] = self.prepare(batch.producer_id, origin)
            info.transaction_version = transaction_version
        completed = info.append(batch, located=located)
        self.ends_verification(batch)
        return completed

    def ends_verification(self, batch: RecordBatch) -> None:
        """A batch has been looked at: with it a transaction has begun, or ended.

        From 4.0 on, a marker of the epoch that is being verified leaves that to the transaction that follows.
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

    # -- what happens to the log -------------------------------------------------------------------------------

    def apply_all(self, infos: Mapping[int, ProducerAppendInfo], calls: Iterable[int]) -> None:
        """Remembers what one append has changed of several producers, new ones in the order of Kafka's table.

        Args:
            infos: by producer id.
            calls: the producer id of every batch.
        """
        for producer in in_hash_order(calls, lambda: self.dialect.appends_are_in_scala):
            self.apply(infos[producer])

    def apply(self, info: ProducerAppendInfo) -> None:
        """See the base class."""
        if info.producer_id not in self.producers:
            self._order.arrive(info.producer_id, self.producers)
        super().apply(info)

    def truncate_and_reload(self, start_offset: int, end_offset: int, now: int) -> None:
        """The log has another end: snapshots out of its range go, and the last one left is read.

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
        """Everything below is deleted; up to 2.7, the snapshots as well.

        Raises:
            OSError: a snapshot cannot be deleted.
        """
        self.on_high_watermark(start_offset)
        self.map_end_offset = max(self.map_end_offset, start_offset)
        if any(offset < start_offset for offset in self.snapshots) and not self.dialect.snapshots_are_remembered:
            self.delete_snapshots_before(start_offset)
        latest = self.latest_snapshot
        self.last_snapshot_offset = start_offset if latest is None else latest

    def delete_snapshots_before(self, offset: int) -> None:
        """Deletes the snapshots of smaller offsets.

        Raises:
            OSError: a file cannot be deleted.
        """
        for snapshot in self.snapshots:
            if snapshot < offset:
                self.delete_snapshot(snapshot)

    def truncate_fully_and_start_at(self, offset: int) -> None:
        """The log is empty.

        Raises:
            OSError: a snapshot cannot be deleted.
        """
        self._forget()
        for snapshot in self.snapshots:
            self.delete_snapshot(snapshot)
        self.last_snapshot_offset = 0
        self.map_end_offset = offset
