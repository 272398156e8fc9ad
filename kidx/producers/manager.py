"""Producers of a log, and their snapshots on disk (``ProducerStateManager``)."""

from __future__ import annotations

import contextlib
import os
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, ClassVar, Final

from kidx.dialect import Dialect, dialect_of
from kidx.discovery import DELETED, START_OFFSETS, parse_partition, read_offset_checkpoint
from kidx.errors import InvalidArgumentError, KidxError
from kidx.files import read_small
from kidx.java_values import to_long
from kidx.producers.append_info import UNKNOWN_VERSION, CompletedTxn, Origin, ProducerAppendInfo, Transaction
from kidx.producers.entry import ProducerEntry, VerificationStateEntry
from kidx.producers.errors import CorruptSnapshotError
from kidx.producers.snapshot import HashOrder, decode, encode, in_hash_order
from kidx.records import file_batches
from kidx.records.record import NO_PRODUCER_ID, NO_TIMESTAMP

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from pathlib import Path

    from kidx.records import RecordBatch


SNAPSHOT_SUFFIX: Final = ".snapshot"
EXPIRATION_MS: Final = 24 * 3_600_000
"""``producer.id.expiration.ms``: idle time in milliseconds after which a producer is forgotten."""
LATE_MS: Final = 300_000
"""Milliseconds after the longest allowed transaction, after which an open transaction is late."""

SNAPSHOT_LIMIT: Final = 256 << 20
"""Maximum size of a snapshot in bytes: more than four million producers."""


@dataclass(slots=True)
class ProducerState:
    """Producers of one partition.

    Attributes:
        append_info: class of the changes of an append.
        topic_partition: topic and partition in messages, e.g. ``"orders-0"``.
        dialect: rules of a release.
        producers: entries by producer id.
        ongoing: the open transactions, by first offset.
        unreplicated: the completed transactions whose marker is not below the high watermark yet, by first offset.
        map_end_offset: the offset after the last batch applied.
    """

    append_info: ClassVar[type[ProducerAppendInfo]] = ProducerAppendInfo

    topic_partition: str = "t-0"
    dialect: Dialect = field(default_factory=dialect_of)
    producers: dict[int, ProducerEntry] = field(default_factory=dict)
    ongoing: dict[int, Transaction] = field(default_factory=dict)
    unreplicated: dict[int, Transaction] = field(default_factory=dict)
    map_end_offset: int = 0

    # -- queries --------------------------------------------------------------------------------------------------

    @property
    def is_empty(self) -> bool:
        """True if no producer is known, and no completed transaction waits for its replication."""
        return not self.producers and not self.unreplicated

    @property
    def first_undecided_offset(self) -> int | None:
        """First offset of the earliest open transaction, or None."""
        return min(self.ongoing, default=None)

    @property
    def first_unstable(self) -> Transaction | None:
        """Earliest transaction that is open, or completed and not replicated; or None."""
        candidates = [held[min(held)] for held in (self.unreplicated, self.ongoing) if held]
        return min(candidates, key=lambda transaction: transaction.first_offset, default=None)

    @property
    def oldest_transaction_timestamp(self) -> int:
        """Last timestamp of the producer with the earliest open transaction; -1 without one."""
        first = self.first_undecided_offset
        entry = None if first is None else self.producers.get(self.ongoing[first].producer_id)
        return NO_TIMESTAMP if entry is None else self.last_timestamp(entry)

    def last_timestamp(self, entry: ProducerEntry) -> int:
        """Return the last timestamp of a producer in milliseconds; 2.4.0 takes it from the last batch."""
        if self.dialect.markers_have_timestamps:
            return entry.last_timestamp
        return entry.batches[-1].timestamp if entry.batches else NO_TIMESTAMP

    def snapshot(self) -> ProducerState:
        """Return a copy that is independent of later changes."""
        entries = {producer: replace(entry, batches=entry.batches.copy()) for producer, entry in self.producers.items()}
        return ProducerState(
            self.topic_partition,
            self.dialect,
            entries,
            dict(self.ongoing),
            dict(self.unreplicated),
            self.map_end_offset,
        )

    # -- changes by an append --------------------------------------------------------------------------------------

    def prepare(self, producer_id: int, origin: Origin) -> ProducerAppendInfo:
        """Return an empty set of changes of a producer (``prepareUpdate``)."""
        current = self.producers.get(producer_id) or ProducerEntry()
        return self.append_info(self.topic_partition, producer_id, current, origin, self.dialect)

    def apply(self, info: ProducerAppendInfo) -> None:
        """Apply the changes of an append; transactions that it completes remain open until :meth:`complete`."""
        known = self.producers.get(info.producer_id)
        if known is None:
            self.producers[info.producer_id] = info.updated
        else:
            known.update(info.updated)
        for transaction in info.started:
            self.ongoing[transaction.first_offset] = transaction

    def update(self, batch: RecordBatch) -> CompletedTxn | None:
        """Apply a replicated batch.

        Returns:
            The transaction that it completes, which remains open until :meth:`complete`.

        Raises:
            KidxError: See :meth:`ProducerAppendInfo.append`.
        """
        if batch.producer_id <= NO_PRODUCER_ID:
            return None
        info = self.prepare(batch.producer_id, Origin.REPLICATION)
        completed = info.append(batch)
        self.apply(info)
        return completed

    def last_stable_offset(self, completed: CompletedTxn) -> int:
        """Return the first offset of the other producers' open transactions; without any, the next offset (TX-15)."""
        others = [first for first, open_ in self.ongoing.items() if open_.producer_id != completed.producer_id]
        return min(others) if others else to_long(completed.last_offset + 1)

    def complete(self, completed: CompletedTxn) -> None:
        """End a transaction, which remains unstable until its marker is replicated.

        Raises:
            InvalidArgumentError: the transaction is not open.
        """
        transaction = self.ongoing.pop(completed.first_offset, None)
        if transaction is None:
            raise InvalidArgumentError(
                f"Attempted to complete transaction {self._text(completed)} on partition {self.topic_partition}"
                " which was not started"
            )
        transaction.last_offset = completed.last_offset
        self.unreplicated[completed.first_offset] = transaction

    def _text(self, completed: CompletedTxn) -> str:
        producer_id, first, last, is_aborted = completed
        aborted = str(is_aborted).lower()
        opening, closing = "[]" if self.dialect.completed_transactions_are_records else "()"
        fields = f"producerId={producer_id}, firstOffset={first}, lastOffset={last}, isAborted={aborted}"
        return f"CompletedTxn{opening}{fields}{closing}"

    # -- changes by replication and time --------------------------------------------------------------------------

    def on_high_watermark(self, high_watermark: int) -> None:
        """Forget the completed transactions whose marker is below the high watermark, and so on all replicas."""
        self.unreplicated = {
            first: transaction
            for first, transaction in self.unreplicated.items()
            if transaction.last_offset is None or transaction.last_offset >= high_watermark
        }

    def is_expired(self, entry: ProducerEntry, now: int, expiration_ms: int) -> bool:
        """Return True if a producer without an open transaction has been idle for ``expiration_ms`` milliseconds."""
        return entry.current_txn_first_offset is None and now - self.last_timestamp(entry) >= expiration_ms

    def remove_expired(self, now: int, expiration_ms: int) -> None:
        """Forget producers that have been idle for ``expiration_ms`` milliseconds."""
        for producer in [p for p, entry in self.producers.items() if self.is_expired(entry, now, expiration_ms)]:
            del self.producers[producer]


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

    __slots__ = ("_aside", "_known", "_order", "directory", "expiration_ms", "last_snapshot_offset", "verifications")

    def __init__(self, directory: Path, dialect: Dialect, *, expiration_ms: int = EXPIRATION_MS) -> None:
        super().__init__(directory.name, dialect)
        self.directory = directory
        self.expiration_ms = expiration_ms
        self.last_snapshot_offset = 0
        self.verifications: dict[int, VerificationStateEntry] = {}
        self._order = HashOrder(lambda: dialect.producers_in_scala_map)
        self._known = list_snapshots(directory)
        self._aside: list[Path] = []

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
        if (path := self._forget_snapshot(offset)) is not None:
            path.unlink(missing_ok=True)

    def set_snapshot_aside(self, offset: int) -> None:
        """Rename a snapshot as :meth:`delete_snapshot` deletes it; :meth:`delete_set_aside` deletes the file.

        Raises:
            OSError: the file cannot be renamed.
        """
        if (path := self._forget_snapshot(offset)) is not None:
            with contextlib.suppress(FileNotFoundError):
                self._aside.append(path.rename(path.with_name(path.name + DELETED)))

    def _forget_snapshot(self, offset: int) -> Path | None:
        if offset not in self._known and self.dialect.caches_snapshot_list:
            return None
        self._known.discard(offset)
        return self.directory / snapshot_name(offset)

    def delete_set_aside(self) -> None:
        """Delete the snapshots that were renamed, as Kafka does after ``file.delete.delay.ms``.

        Raises:
            OSError: a file cannot be deleted.
        """
        aside, self._aside = self._aside, []
        for path in aside:
            path.unlink(missing_ok=True)

    def remove_stray_snapshots(self, base_offsets: Iterable[int]) -> None:
        """Delete the snapshots at offsets where no segment begins, except a last one past all segments (from 2.8).

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
            sequence: sequence number of the batch that the transaction may begin with.
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
        place: tuple[int, int] | None = None,
    ) -> CompletedTxn | None:
        """Check a batch of an append and add its changes (``updateProducers``).

        Args:
            infos: changes of the append by producer id; a missing producer is added.
            transaction_version: version of the transaction that a marker ends.
            place: base offset of the segment and position of the batch in it, if they are known.

        Returns:
            The transaction that it completes.

        Raises:
            KidxError: See :meth:`ProducerAppendInfo.append`.
        """
        info = infos.get(batch.producer_id)
        if info is None:
            info = infos[batch.producer_id] = self.prepare(batch.producer_id, origin)
            info.transaction_version = transaction_version
        completed = info.append(batch, place)
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


def load_producers_before(segment_log: Path, dialect: Dialect) -> ProducerState:
    """Return the producers as of the start of a segment, read from the logs of smaller base offsets in its directory.

    If the beginning of the log is missing, reading begins at the newest snapshot, as in a recovery. Batches below the
    log start offset in the broker's checkpoint are ignored. If a log cannot be read to its end, only its batches before
    the first error count, because a recovery keeps only these.

    Args:
        segment_log: a ``.log`` file named after its base offset.

    Raises:
        OSError: an earlier log, or a snapshot, cannot be opened.
    """
    log = segment_log.absolute()
    state = ProducerState(log.parent.name, dialect)
    if not _is_transactional(log):
        return state
    earlier = sorted(path for path in log.parent.glob("*.log") if path.name < log.name)
    state.map_end_offset = start = _log_start(log.parent)
    if int((earlier or [log])[0].stem):
        _load_snapshot(state, log, start)
    for path in earlier:
        try:
            for batch in file_batches(path):
                if batch.magic < 2 or batch.producer_id < 0 or batch.last_offset < state.map_end_offset:
                    continue
                if (completed := state.update(batch)) is not None:
                    state.complete(completed)
        except KidxError:
            continue
    return state


def _log_start(directory: Path) -> int:
    """Return the log start in the checkpoint of the log directory, or 0 without an entry."""
    topic, partition, _ = parse_partition(directory.name) or ("", 0, "")
    try:
        return read_offset_checkpoint(directory.parent / START_OFFSETS).get((topic, partition), 0)
    except OSError:
        return 0


def _load_snapshot(state: ProducerState, log: Path, start: int) -> None:
    """Load the newest valid snapshot between the log start and the start of the segment."""
    snapshots = {int(path.stem): path for path in log.parent.glob("*.snapshot") if path.stem.isdecimal()}
    for offset in sorted((each for each in snapshots if start < each <= int(log.stem)), reverse=True):
        try:
            state.producers = decode(read_small(snapshots[offset], limit=SNAPSHOT_LIMIT), state.dialect)
        except CorruptSnapshotError:
            continue
        for producer, entry in state.producers.items():
            if (began := entry.current_txn_first_offset) is not None:
                state.ongoing[began] = Transaction(producer, began)
        state.map_end_offset = offset
        return


def _is_transactional(log: Path) -> bool:
    try:
        return any(batch.magic >= 2 and batch.is_transactional for batch in file_batches(log))
    except KidxError:
        return True
