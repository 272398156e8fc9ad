"""Reference of the broker machine: one partition, implemented by kidx in the dialect of the release.

The machine passes the values that it cannot control in a broker: the leader's epoch, the broker's clock, the content of
the checkpoint files, and whether retention has run. kidx determines everything else.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from conformance.kafka.client import OffsetResult
from kidx.dialect import dialect_of
from kidx.errors import KidxError
from kidx.log import LogConfig, OffsetOutOfRangeError, RecordTooLargeError, UnifiedLog, UnsupportedTargetError
from kidx.log import list_offset as answer_of
from kidx.records import CorruptRecordError, iter_memory_batches
from kidx.segment import system_clock

if TYPE_CHECKING:
    from collections.abc import Sequence

    from conformance.kafka.client import Isolation

COMPARED: Final = (".log", ".index", ".timeindex", ".txnindex")
"""Suffixes of the files that are compared."""
EPOCHS: Final = "leader-epoch-checkpoint"
"""Name of the file with the leader epochs, which is compared, too."""
DELETE_ALL: Final = -1
"""Offset in a DeleteRecords request that means the high watermark."""

Files = dict[str, bytes]
"""Content of files, by name."""


class Checkpoints(NamedTuple):
    """Files that a broker finds when it starts.

    Attributes:
        clean: True if the mark of a clean shutdown exists.
        recovery_point: The offset in the checkpoint of recovery points.
        log_start_offset: The offset in the checkpoint of log start offsets.
    """

    clean: bool
    recovery_point: int
    log_start_offset: int


NEW: Final = Checkpoints(clean=True, recovery_point=0, log_start_offset=0)
"""Checkpoints of a new partition."""


class ReferencePartition:
    """Partition as a broker of the release stores it, without a broker.

    The class of the log is a class attribute, so that a mutant can replace it with a defective class.

    Args:
        directory: The directory of the partition. It need not exist; existing files are loaded.
        settings: Topic configurations by their names.
        leader_epoch: The epoch of the broker, which is the leader.
        checkpoints: The broker's checkpoints of the partition.
    """

    unified_log: type[UnifiedLog] = UnifiedLog

    def __init__(
        self, release: str, directory: Path, settings: dict[str, Any], leader_epoch: int, checkpoints: Checkpoints = NEW
    ) -> None:
        self.dialect = dialect_of(release)
        self.directory = directory
        self.settings = settings
        self._stamp: int | None = None
        self.epoch = leader_epoch
        self.log = self._open(checkpoints)

    def _open(self, checkpoints: Checkpoints) -> UnifiedLog:
        # Batches that the broker recompressed are stored unchanged, because its Java may compress differently (LG-58).
        settings = {name: value for name, value in self.settings.items() if name != "compression.type"}
        log = self.unified_log(
            self.directory,
            LogConfig.of_topic(settings),
            log_start_offset=checkpoints.log_start_offset,
            recovery_point=checkpoints.recovery_point,
            clean=checkpoints.clean,
            clock=self._now,
            dialect=self.dialect,
        )
        log.assign_epoch_start_offset(self.epoch, log.end_offset)
        log.update_high_watermark(log.end_offset)
        return log

    @property
    def _wants_keys(self) -> bool:
        return "compact" in self.settings.get("cleanup.policy", "delete")

    def _now(self) -> int:
        return system_clock() if self._stamp is None else self._stamp

    # -- changes ---------------------------------------------------------------------------------------------------

    def append(self, data: bytes, *, stamp: int = -1, from_client: bool = True) -> tuple[int, str | None]:
        """Append a batch as a leader; return its offset, or -1 and the name of the error.

        Args:
            data: The batch, with 0 as its first offset.
            stamp: The broker's time of the append, for LogAppendTime.
            from_client: True for a batch of a client; False for a marker of the transaction coordinator.
        """
        offset = self.log.end_offset
        if from_client and self._wants_keys and _lacks_keys(data):
            return -1, "INVALID_RECORD"
        self._stamp = stamp if stamp >= 0 else None
        try:
            self.log.append_as_leader(data, self.epoch, from_client=from_client)
        except RecordTooLargeError:
            return -1, "too large"
        except CorruptRecordError:
            return -1, "CORRUPT_MESSAGE"
        except KidxError as error:
            return -1, f"kidx: {error}"
        finally:
            self._stamp = None
        self.log.update_high_watermark(self.log.end_offset)
        return offset, None

    def append_rebuilt(self, data: bytes) -> None:
        """Append a batch that a leader has recompressed, with its final offset (SEG-8).

        Raises:
            KidxError: The batch does not begin at the end of the log.
        """
        self.log.append_as_follower(data)
        self.log.update_high_watermark(self.log.end_offset)

    def delete_records(self, offset: int) -> str | None:
        """Move the log start offset; return the name of the error, or None."""
        if "delete" not in self.settings.get("cleanup.policy", "delete"):
            return "POLICY_VIOLATION"
        if offset < DELETE_ALL:
            return "OFFSET_OUT_OF_RANGE"
        try:
            self.log.delete_records(self.log.high_watermark if offset == DELETE_ALL else offset)
        except OffsetOutOfRangeError:
            return "OFFSET_OUT_OF_RANGE"
        return None

    def roll(self, base: int) -> None:
        """Start a segment at this offset, unless a segment starts there."""
        if self.log.segments.active.base_offset != base:
            self.log.roll()

    def run_retention(self) -> None:
        """Run retention; a broker decides itself when it runs."""
        self.log.delete_old_segments()

    def stop(self, *, clean: bool) -> None:
        """Close the log as a clean shutdown does, or release the files as a killed process does."""
        if clean:
            self.log.close()
        else:
            self.log.release_handles()

    def start(self, checkpoints: Checkpoints) -> None:
        """Load the log again, as a broker that becomes the leader."""
        self.log = self._open(checkpoints)

    def become_leader(self, epoch: int) -> None:
        """Become the leader again, in a new epoch."""
        self.epoch = epoch
        self.log.assign_epoch_start_offset(epoch, self.log.end_offset)

    # -- queries ---------------------------------------------------------------------------------------------------

    def answers(self, targets: Sequence[int], isolation: Isolation) -> list[OffsetResult]:
        """Return the response to each target of ListOffsets."""
        return [self._answer(target, isolation) for target in targets]

    def _answer(self, target: int, isolation: Isolation) -> OffsetResult:
        try:
            found = answer_of(self.log, target, isolation_level=isolation, leader_epoch=self.epoch)
        except UnsupportedTargetError:
            return OffsetResult(target, error="UNSUPPORTED_VERSION")
        except KidxError as error:
            return OffsetResult(target, error=f"kidx: {error}")
        if found is None or found.offset < 0:
            return OffsetResult(target)
        return OffsetResult(target, found.offset, found.timestamp, found.leader_epoch)

    def fetch(self, offset: int) -> tuple[int, bytes] | None:
        """Return the position in the file at which a fetch from an offset begins, and the data; or None without data.

        Raises:
            KidxError, OSError: The fetch fails.
        """
        for segment in self.log.segments.values_from(offset):
            found = segment.read(offset, 1, min_one_message=True)
            if found is not None:
                data = segment.log.path.read_bytes()
                return found.position, data[found.position : found.position + found.size]
        return None

    def files(self) -> Files:
        """Return name and content of every file that is compared."""
        return files_of(self.directory)


def _lacks_keys(data: bytes) -> bool:
    """Return True if a record has no key; False for a corrupt batch, which is rejected for another reason."""
    batches = [batch for batch in iter_memory_batches(data) if batch.is_valid]
    return any(record.key is None for batch in batches for record in batch)


def files_of(directory: Path) -> Files:
    """Return name and content of a partition's files: logs, indexes, and the entries of the leader epochs.

    The header of the leader epochs' file is omitted, because a file without entries need not exist.
    """
    found: Files = {}
    with os.scandir(directory) as entries:
        for entry in entries:
            if entry.name.endswith(COMPARED):
                found[entry.name] = Path(entry.path).read_bytes()
            elif entry.name == EPOCHS:
                found[entry.name] = b"\n".join(Path(entry.path).read_bytes().split(b"\n")[2:])
    return found
