"""Planted defects of ``line_log.py``; each is a mistake that an implementer of a log could make.

``line_log.py RELEASE --defect NAME`` has one of them. The trace that kills each is in
``tests/meta/line_log_kills.ndjson``; ``python -m tests.meta.line_log_kills [NAME ...]`` records missing ones.
"""

from __future__ import annotations

import base64
import re
from pathlib import Path
from typing import Any

from line_log import Adapter, OutOfRangeError

from kidx.log import AppendResult, UnifiedLog
from kidx.records import build_batch, iter_memory_batches

DEFECTS: dict[str, type[Adapter]] = {}
"""The defects by name."""


class Defect(Adapter):
    """Base class of the defects, which registers them by name."""

    def __init_subclass__(cls) -> None:
        DEFECTS[re.sub(r"(?<!^)(?=[A-Z])", "-", cls.__name__).lower()] = cls


# -- answers -----------------------------------------------------------------------------------------------------


class FindsAfterTheTimestamp(Defect):
    """A lookup finds the first record after the timestamp, not at it."""

    def answer(self, target: int) -> list[int] | None:
        return super().answer(target + 1 if 0 <= target < (1 << 62) else target)


class LatestIsTheLastOffset(Defect):
    """-1 is the last record's offset, not the next one's."""

    def answer(self, target: int) -> list[int] | None:
        found = super().answer(target)
        return [found[0], max(0, found[1] - 1), found[2]] if target == -1 and found else found


class EarliestIsTheFirstSegment(Defect):
    """-2 is the base offset of the first segment, whatever was deleted."""

    def answer(self, target: int) -> list[int] | None:
        found = super().answer(target)
        return [-1, self.log.segments.first.base_offset, found[2]] if target == -2 and found else found


class LargestIsTheLastOfItsBatch(Defect):
    """-3 is the last offset of the batch that holds the largest timestamp."""

    def answer(self, target: int) -> list[int] | None:
        found = super().answer(target)
        if target == -3 and found and found[1] >= 0:
            for segment in self.log.segments:
                for batch in segment.batches():
                    if batch.base_offset <= found[1] <= batch.last_offset:
                        return [found[0], batch.last_offset, found[2]]
        return found


class AnswersTheTarget(Defect):
    """The timestamp of a result is the target, not the record's timestamp."""

    def answer(self, target: int) -> list[int] | None:
        found = super().answer(target)
        return [target, *found[1:]] if found and target >= 0 else found


class AnswersBelowTheStart(Defect):
    """Deleted records are still found by their timestamps."""

    def answer(self, target: int) -> list[int] | None:
        start, self.log.start_offset = self.log.start_offset, 0
        try:
            return super().answer(target)
        finally:
            self.log.start_offset = start


class NoEpochs(Defect):
    """Results have no leader epoch, although the program declares the capability ``epochs``."""

    def answer(self, target: int) -> list[int] | None:
        found = super().answer(target)
        return [*found[:2], -1] if found else found


class SkipsTheBatchOfTheOffset(Defect):
    """A read at an offset inside a batch begins with the next batch."""

    def do_read(self, offset: int, max_bytes: int) -> str:
        for segment in self.log.segments.values_from(offset):
            for batch in segment.batches():
                if batch.base_offset < offset <= batch.last_offset:
                    return super().do_read(batch.last_offset + 1, max_bytes)
        return super().do_read(offset, max_bytes)


class ReadsHalfABatch(Defect):
    """A read returns at most 40 bytes, which end inside the first batch."""

    def do_read(self, offset: int, max_bytes: int) -> str:
        return base64.b64encode(base64.b64decode(super().do_read(offset, max_bytes))[:40]).decode()


class ReadsFromTheOffsetBefore(Defect):
    """A read begins one offset too early, even if that record is deleted."""

    def do_read(self, offset: int, max_bytes: int) -> str:
        if offset < self.log.start_offset:
            raise OutOfRangeError("below the start")
        return super().do_read(max(0, offset - 1), max_bytes)


# -- writing -----------------------------------------------------------------------------------------------------


class ForgetsTheLeadersEpoch(Defect):
    """As leader it writes epoch 0 into each batch."""

    def do_append(self, role: str, batches: str, leader_epoch: int, coordinator: bool) -> list[int] | None:
        return super().do_append(role, batches, 0 if role == "leader" else leader_epoch, coordinator)


class KeepsTheProducersTime(Defect):
    """LogAppendTime is taken for CreateTime."""

    def do_open_log(self, path: str, settings: dict[str, Any], **rest: Any) -> None:
        super().do_open_log(path, settings | {"message.timestamp.type": "CreateTime"}, **rest)


class AppendsBatchByBatch(Defect):
    """The batches of one call are appended one at a time, so that a rejected call leaves some of them in the log."""

    def do_append(self, role: str, batches: str, leader_epoch: int, coordinator: bool) -> list[int] | None:
        results: list[Any] = []
        for batch in iter_memory_batches(base64.b64decode(batches)):
            one = base64.b64encode(batch.to_bytes()).decode()
            results.append(super().do_append(role, one, leader_epoch, coordinator))
        if not results or None in results:
            return None
        last = results[-1]
        largest, size = max(result[3] for result in results), sum(result[6] for result in results)
        return [results[0][0], *last[1:3], largest, *last[4:6], size]


class TakesDuplicates(Defect):
    """A producer's retry is appended again."""

    def do_append(self, role: str, batches: str, leader_epoch: int, coordinator: bool) -> list[int] | None:
        if role == "leader" and not coordinator:
            self.log.producers.producers.clear()
        return super().do_append(role, batches, leader_epoch, coordinator)


class FillsGaps(Defect):
    """A follower writes an empty record at the first offset of a gap, which compaction has left."""

    def do_append(self, role: str, batches: str, leader_epoch: int, coordinator: bool) -> list[int] | None:
        first = next(iter_memory_batches(base64.b64decode(batches)))
        if role == "follower" and first.base_offset > self.log.end_offset:
            filler = build_batch([(0, None, b"")], base_offset=self.log.end_offset, partition_leader_epoch=leader_epoch)
            self.log.append_as_follower(filler, leader_epoch)
        return super().do_append(role, batches, leader_epoch, coordinator)


class RejectsAnEmptyRoll(Defect):
    """A roll of an empty segment is rejected."""

    def do_roll(self) -> None:
        if not self.log.segments.active.size:
            raise OutOfRangeError("there is nothing to roll")
        super().do_roll()


class IgnoresEpochs(Defect):
    """A new leader's epoch is not noted."""

    def do_assign_epoch(self, epoch: int, start_offset: int) -> None:
        pass


# -- truncating --------------------------------------------------------------------------------------------------


class KeepsTheOffset(Defect):
    """A truncation keeps the record at the offset."""

    def do_truncate(self, offset: int) -> bool:
        return super().do_truncate(offset + 1)


class AlwaysTruncates(Defect):
    """A truncation that has nothing to remove says that it did."""

    def do_truncate(self, offset: int) -> bool:
        super().do_truncate(offset)
        return True


class BeginsAtZero(Defect):
    """A full truncation begins at offset 0."""

    def do_truncate_fully(self, offset: int) -> None:
        del offset
        super().do_truncate_fully(0)


class DeletesUnreplicatedRecords(Defect):
    """Records beyond the high watermark are deleted as well."""

    def do_delete_records(self, offset: int) -> None:
        self.log.update_high_watermark(offset)
        super().do_delete_records(offset)


class DeletesTheSegmentOfTheStart(Defect):
    """Deleting records also deletes the segment that contains the log start offset; files are deleted immediately."""

    def __init__(self, release: str, without: tuple[str, ...] = (), hidden: tuple[str, ...] = ()) -> None:
        super().__init__(release, (*without, "deferred_deletion"), hidden)

    def tidy(self) -> None:
        start, later = self.log.start_offset, self.log.segments.higher(self.log.start_offset)
        if start > self.log.segments.first.base_offset and later is not None:
            self.log.start_offset = later.base_offset
        super().tidy()
        self.log.start_offset = start


class KeepsBytes(Defect):
    """Retention ignores retention.bytes."""

    def do_open_log(self, path: str, settings: dict[str, Any], **rest: Any) -> None:
        super().do_open_log(path, settings | {"retention.bytes": -1}, **rest)


class KeepsForEver(Defect):
    """Retention ignores retention.ms."""

    def do_open_log(self, path: str, settings: dict[str, Any], **rest: Any) -> None:
        super().do_open_log(path, settings | {"retention.ms": -1}, **rest)


class CountsNothing(Defect):
    """Retention does not return the number of deleted segments."""

    def do_retention(self) -> int:
        super().do_retention()
        return 0


# -- opening and closing -----------------------------------------------------------------------------------------


class TrustsAfterACrash(Defect):
    """A crash counts as a clean shutdown."""

    def do_open_log(self, path: str, settings: dict[str, Any], *, clean: bool, **rest: Any) -> None:
        del clean
        super().do_open_log(path, settings, clean=True, **rest)


class FlushesNothing(Defect):
    """The recovery point never moves."""

    def do_state(self) -> dict[str, Any]:
        return super().do_state() | {"recovery_point": 0}


class LeavesLostIndexesEmpty(Defect):
    """A lost offset index is replaced by an empty one."""

    def do_open_log(self, path: str, settings: dict[str, Any], **rest: Any) -> None:
        for log in Path(path).glob("*.log"):
            log.with_suffix(".index").touch()
        super().do_open_log(path, settings, **rest)


class LosesEpochs(Defect):
    """Leader epochs are not read back."""

    def do_open_log(self, path: str, settings: dict[str, Any], **rest: Any) -> None:
        (Path(path) / "leader-epoch-checkpoint").unlink(missing_ok=True)
        super().do_open_log(path, settings, **rest)


class LosesSnapshots(Defect):
    """Snapshots of producers are deleted when the log is opened."""

    def do_open_log(self, path: str, settings: dict[str, Any], **rest: Any) -> None:
        for snapshot in Path(path).glob("*.snapshot"):
            snapshot.unlink()
        super().do_open_log(path, settings, **rest)


class ForgetsTheStart(Defect):
    """The checkpoint of the log start offset is ignored."""

    def do_open_log(self, path: str, settings: dict[str, Any], *, log_start_offset: int, **rest: Any) -> None:
        del log_start_offset
        super().do_open_log(path, settings, log_start_offset=0, **rest)


class ClosesWithoutPreparing(Defect):
    """A clean shutdown closes the log without preparing: from 4.4, no index is trimmed."""

    def do_close(self, prepared: bool) -> None:
        del prepared
        super().do_close(prepared=False)


class ClosesAsACrash(Defect):
    """A close closes the files without flushing or trimming."""

    def do_close(self, prepared: bool) -> None:
        del prepared
        log, self.log = self.log, None
        log.release_handles()


class StandsStill(Defect):
    """The clock that open_log has set is never moved."""

    def do_set_clock(self, now: int) -> None:
        pass


class NeverExpires(Defect):
    """Inactive producers never expire."""

    def do_expire_producers(self) -> None:
        pass


# -- transactions, and the reported state -------------------------------------------------------------------------


class StableToTheEnd(Defect):
    """The last stable offset is the high watermark, even while a transaction is open."""

    def do_state(self) -> dict[str, Any]:
        state = super().do_state()
        return state | {"last_stable_offset": state["high_watermark"]}


class _EmptyTransactionIndex(UnifiedLog):
    """Log that empties the transaction indexes after each append."""

    def append_as_follower(self, records: bytes, leader_epoch: int = 0) -> AppendResult:
        result = super().append_as_follower(records, leader_epoch)
        for file in self.directory.glob("*.txnindex"):
            file.write_bytes(b"")
        return result


class NotesNoAbortedTransactions(Defect):
    """The transaction index remains empty."""

    log_class = _EmptyTransactionIndex


class CountsTheIndexes(Defect):
    """The size of a segment includes its indexes."""

    def do_state(self) -> dict[str, Any]:
        state = super().do_state()
        return state | {"segments": [[base, size + 8 * bool(size)] for base, size in state["segments"]]}
