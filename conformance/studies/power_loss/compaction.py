"""Compacted logs: examples with cleaning rounds, and the records that each key must have after a power failure.

A cleaner writes new segments (``.cleaned``), renames them (``.swap``), removes the old ones and renames the new ones
again. The end of the round is then written to ``cleaner-offset-checkpoint``. Whatever of this survives, each key has
its latest value, and a key whose tombstone has been removed has no older value again.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

from conformance.operations import Operation
from conformance.studies.power_loss.batches import Batch, KeyedRecord, keyed_records
from conformance.studies.power_loss.histories import NO_CHECKPOINT, OperationGenerator

if TYPE_CHECKING:
    from collections.abc import Mapping
    from random import Random

    from conformance.operations.log import LogState
    from conformance.studies.power_loss.histories import History

_KEY_IN_TRANSACTION = 5
"""Size in bytes of the keys of transactional records."""


class CompactedOperationGenerator(OperationGenerator):
    """Generator of the operations of a compacted log; see the base class."""

    acts: ClassVar[Sequence[str]] = (
        *("append",) * 10,
        *("roll",) * 2,
        *("clean",) * 8,
        *("truncate", "delete_records", "become_leader"),
        *("transaction", "transaction"),
        *("restart", "restart"),
    )

    def __init__(self, chance: Random) -> None:
        super().__init__(chance)
        self.settings |= {
            "cleanup.policy": "compact",
            "delete.retention.ms": chance.choice((0, 0, 86_400_000)),
            "segment.bytes": chance.choice((300, 500, 1000)),
        }
        self._sizes = (0, 4, 20)

    def _do(self, act: str, state: LogState) -> list[Operation]:
        if act != "clean":
            return super()._do(act, state)
        buffer, slots = self._chance.choice((4096, 4096, 300)), self._chance.choice((50, 50, 3))
        rolls = [Operation("roll_log")] if self._chance.random() < 0.7 else []
        return [
            *rolls,
            Operation("update_high_watermark", (state.end_offset,)),
            Operation("clean_log", (NO_CHECKPOINT, buffer, slots, self._chance.choice((0, 1000)))),
        ]

    def _append(self, of_producer: dict[str, Any], count: int | None = None) -> Operation:
        appended = super()._append(of_producer, count)
        if "marker" in of_producer:
            return appended
        (batch,), epoch = appended.args
        records = [[*record[:2], *self._value_and_key(of_producer)] for record in batch["records"]]
        return Operation("append_as_leader", ([batch | {"records": records}], epoch))

    def _value_and_key(self, of_producer: dict[str, Any]) -> tuple[int, int]:
        """Return the sizes of a value, -1 for a tombstone, and of a key."""
        key = _KEY_IN_TRANSACTION if of_producer else self._chance.choice((1, 2, 3))
        return self._chance.choice((-1, *self._sizes)), key


def is_compacted(settings: Mapping[str, Any]) -> bool:
    """Return True if the cleaner compacts logs with these settings."""
    return "compact" in settings.get("cleanup.policy", "")


class Expected(NamedTuple):
    """Latest record of a key that an opened log must have.

    Attributes:
        later: offsets of later records of the key, each of which the log may have instead.
        removed: True if the cleaner may have removed the key, because it has a tombstone.
    """

    record: KeyedRecord
    later: frozenset[int]
    removed: bool


class Keys:
    """Records with a key that a log would have after each operation of a history if no record was ever cleaned.

    Args:
        logs: batches before the first operation, and after each.
    """

    def __init__(self, history: History, logs: Sequence[list[Batch]]) -> None:
        self._after: list[dict[int, KeyedRecord]] = [{}]
        for batches, seen in zip(logs[1:], history.observations, strict=False):
            known = self._after[-1]
            if seen.state is not None:
                start, end = seen.state.start_offset, seen.state.end_offset
                first = max(known, default=-1) + 1
                appended = {each.offset: each for each in keyed_records(batches) if each.offset >= first}
                known = {offset: each for offset, each in (known | appended).items() if start <= offset < end}
            self._after.append(known)
        self._logs = logs

    def expected(self, step: int, bound: int, *, done: bool) -> Iterator[Expected]:
        """Yield the latest record of each key below an offset, and of each key whose tombstone was removed.

        Args:
            step: number of the interrupted or last operation.
            bound: offset below which all records are synced.
            done: True if the operation has ended.
        """
        before, after = self._after[step + 1 if done else step], self._after[step + 1]
        present = {record.offset for record in keyed_records(self._logs[step + 1 if done else step])}
        latest: dict[bytes, KeyedRecord] = {}
        for offset in sorted(before.keys() & after.keys()):
            record = before[offset]
            if offset < bound or (record.value is None and offset not in present):
                latest[record.key] = record
        everything = before | after
        for record in latest.values():
            same = [each for each in everything.values() if each.key == record.key and each.offset >= record.offset]
            later = frozenset(each.offset for each in same) - {record.offset}
            yield Expected(record, later, removed=any(each.value is None for each in same))


def wrong_keys(batches: Iterable[Batch], expected: Iterable[Expected]) -> Iterator[str]:
    """Yield a description of each key that does not have its latest value."""
    found: dict[bytes, KeyedRecord] = {}
    for record in keyed_records(batches):
        found[record.key] = record
    for record, later, removed in expected:
        actual = found.get(record.key)
        if actual == record or (removed if actual is None else actual.offset in later):
            continue
        what = "its tombstone" if record.value is None else "its latest value"
        there = "nothing" if actual is None else f"offset {actual.offset}"
        yield f"key of {len(record.key)} bytes: {there} instead of {what} at offset {record.offset}"
