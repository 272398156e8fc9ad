"""Contract for a broker's responses to ListOffsets, independent of how it stores records.

The contract is KIP-79 (the earliest record at or after a timestamp), KIP-98 (isolation levels), KIP-207 and KIP-734
(the record with the largest timestamp). In some cases, Kafka's response depends on where segments begin and on whether
retention has run. Then every response that is right for some segments and some time of retention is allowed.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Literal, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from conformance.implementations.wire.partition_history import PartitionHistory, StoredBatch, StoredRecord
    from conformance.kafka.client import PartitionOffsetResponse

View = Literal["read_uncommitted", "read_committed", "replica"]
"""Records that a reader may read: the records of a consumer's isolation level, or all records for a replica."""

SINCE: Final = {-1: 0, -2: 0, -3: 7, -4: 8, -5: 9, -6: 11}
"""Version of the request that introduced each special target."""
EPOCHS_SINCE: Final = 4
"""First version of the request whose response has a leader epoch."""
ANY_TIME: Final = -(1 << 63)
"""Smallest timestamp, which every record matches."""
# The special targets: latest, earliest, maximum timestamp, earliest local, latest tiered, earliest pending upload.
LATEST, EARLIEST, LARGEST, _LOCAL, _TIERED, _PENDING = -1, -2, -3, -4, -5, -6
TIERED_TARGETS: Final = (LARGEST, _LOCAL, _TIERED, _PENDING)
"""Targets whose result depends on the segments that a broker with tiered storage has copied and deleted."""


class Pair(NamedTuple):
    """Offset and timestamp of a response; -1 and -1 if it has none."""

    offset: int
    timestamp: int


NOTHING: Final = Pair(-1, -1)
"""Response without a result."""


class ContractViolation(NamedTuple):
    """Violation of the contract: the violated clause, and the allowed responses."""

    clause: str
    allowed: str


class ListOffsetsContract:
    """Allowed responses of one partition, which are cached. They are valid until the partition's history changes.

    Args:
        is_partly_remote: True if the largest timestamp may be the largest of the local segments, as with Kafka's tiered
            storage (LO-10).
    """

    def __init__(self, history: PartitionHistory, *, is_partly_remote: bool = False) -> None:
        self.history = history
        self._is_partly_remote = is_partly_remote
        self._allowed: dict[tuple[int, View], frozenset[Pair]] = {}

    def broken(
        self, target: int, version: int, view: View, answer: PartitionOffsetResponse
    ) -> ContractViolation | None:
        """Return the violation of the contract by a response; None if the response is allowed."""
        known = target >= 0 or version >= SINCE.get(target, 1 << 15)
        if answer.error is not None:
            return ContractViolation(clause_of(target), "a result") if known else None
        pair = Pair(answer.offset, answer.timestamp)
        if not known and pair == NOTHING:
            return None
        if target in (_LOCAL, _TIERED, _PENDING) and known:
            return self._broken_tiered(target, answer)
        if target == EARLIEST and self.depends_on_tiers(target, version):
            return self._broken_tiered(_LOCAL, answer)
        allowed = self.allowed(target, view)
        if not known:  # up to 3.8, Kafka treats an unknown target as an ordinary timestamp
            allowed |= self.allowed(ANY_TIME, view)
        if pair not in allowed:
            malformed = pair.offset < 0 and NOTHING in allowed
            clause = self._clause(target, view, pair) if known else "LO-15c"
            return ContractViolation("LO-14" if malformed else clause, self._said(allowed))
        return self._broken_epoch(version, answer)

    def depends_on_tiers(self, target: int, version: int) -> bool:
        """Return True if a response depends on the segments that a broker has copied and deleted.

        Version 0 lists the base offsets of local segments (LO-28).
        """
        return self._is_partly_remote and (target in TIERED_TARGETS or (version == 0 and target == EARLIEST))

    def allowed(self, target: int, view: View) -> frozenset[Pair]:
        """Return every allowed response to a known target."""
        key = target, view
        if key not in self._allowed:
            self._allowed[key] = frozenset(self._find(target, view))
        return self._allowed[key]

    def record_exists(self, target: int, view: View) -> bool:
        """Return True if, by every possible definition of a record, one at or after a timestamp is visible."""
        *_, counts = self._record_filters(view)
        start, end = self.history.start, min(self._ends(view))
        records = (record for batch in self.history.batches if counts(batch) for record in batch.records)
        return any(record.timestamp >= target and start <= record.offset < end for record in records)

    def _find(self, target: int, view: View) -> Iterator[Pair]:
        if target == EARLIEST:
            yield Pair(self.history.start, -1)
        elif target == LATEST:
            yield from (Pair(end, -1) for end in self._ends(view))
        elif target == LARGEST:
            yield from self._largest(view)
        else:
            yield from self._by_time(target, view)

    def _ends(self, view: View) -> tuple[int, ...]:
        """Return the offsets at which the records that a reader may read may end."""
        return self.history.stable_ends if view == "read_committed" else (self.history.end,)

    def _record_filters(self, view: View) -> Iterator[Callable[[StoredBatch], bool]]:
        """Yield the possible definitions of a record: all records, data records, and committed data records."""
        yield lambda _: True
        yield lambda batch: not batch.is_control
        if view == "read_committed":
            yield lambda batch: not batch.is_control and not self.history.is_aborted(batch)

    def _by_time(self, target: int, view: View) -> Iterator[Pair]:
        history, ends = self.history, self._ends(view)
        before = False
        for counts in self._record_filters(view):
            found: StoredRecord | None = None
            for batch in history.batches:
                if found is not None or (target > batch.max_timestamp and target >= 0):
                    # A segment of records without timestamps is as old as its file (LG-22).
                    before = before or (found is None and batch.max_timestamp < 0)
                    continue
                for record in batch.records if counts(batch) else ():
                    if record.timestamp >= target and found is None:
                        if record.offset >= history.start:
                            found = record
                        else:
                            before = True  # deleted records may hide the records after them (LG-23)
            if found is None or found.offset >= min(ends):
                yield NOTHING
            if found is not None and found.offset < max(ends):
                yield Pair(found.offset, found.timestamp)
        if before:
            yield NOTHING

    def _largest(self, view: View) -> Iterator[Pair]:
        """Yield the largest timestamp after any retention: in each suffix of the log that has all visible records."""
        for counts in self._record_filters(view):
            for limit in {*self._ends(view), self.history.end}:
                yield from self._largest_below(limit, counts, self._ends(view))

    def _largest_below(
        self, limit: int, counts: Callable[[StoredBatch], bool], ends: tuple[int, ...]
    ) -> Iterator[Pair]:
        """Yield the largest timestamp of the counted records below an offset, for each possible log start."""
        start, seen_deleted = self.history.start, False
        found: list[Pair] = []
        for batch in reversed(self.history.batches):
            for record in reversed(batch.records) if counts(batch) else ():
                if record.offset >= limit:
                    continue
                if record.offset < start and not seen_deleted:
                    seen_deleted = True
                    yield from self._visible(found, ends)
                if not found or record.timestamp > found[0].timestamp:
                    found = []
                if not found or record.timestamp == found[0].timestamp:
                    found.append(Pair(record.offset, record.timestamp))
            if batch.base_offset <= start or self._is_partly_remote:
                yield from self._visible(found, ends)
        yield from self._visible(found, ends)

    @staticmethod
    def _visible(found: list[Pair], ends: tuple[int, ...]) -> Iterator[Pair]:
        """Yield the responses if these are the records with the largest timestamp, and reads may end at ``ends``."""
        for pair in found:
            if pair.offset < max(ends):
                yield pair
            if pair.offset >= min(ends):
                yield NOTHING
        if not found or found[0].timestamp < 0:
            yield NOTHING

    # -- violations ------------------------------------------------------------------------------------------------

    def _clause(self, target: int, view: View, pair: Pair) -> str:
        if target >= 0 and pair.offset >= max(self._ends(view)):
            return "LO-12"
        return clause_of(target)

    def _broken_epoch(self, version: int, answer: PartitionOffsetResponse) -> ContractViolation | None:
        epochs = {-1}
        if version >= EPOCHS_SINCE and answer.offset >= 0:
            epochs |= {self.history.leader_epoch, *(batch.leader_epoch for batch in self.history.batches)}
        if answer.leader_epoch in epochs:
            return None
        return ContractViolation("LO-14", f"leader epoch {' or '.join(map(str, sorted(epochs)))}")

    def _broken_tiered(self, target: int, answer: PartitionOffsetResponse) -> ContractViolation | None:
        """Check the result for a target of tiered storage; only the broker knows which segments it has copied."""
        lowest, highest = self.history.start, self.history.end
        if target == _LOCAL and lowest <= answer.offset <= highest and answer.timestamp == -1:
            return None
        if target != _LOCAL and -1 <= answer.offset <= highest and answer.timestamp == -1:
            return None
        return ContractViolation(clause_of(target), f"nothing, or an offset up to {highest} without a timestamp")

    @staticmethod
    def _said(allowed: frozenset[Pair]) -> str:
        pairs = sorted(allowed)
        said = ["nothing" if pair == NOTHING else f"offset {pair.offset}, timestamp {pair.timestamp}" for pair in pairs]
        return " or ".join(said[:4]) + (f" or {len(said) - 4} more" if len(said) > 4 else "")


_CLAUSES: Final = {-1: "LO-2b", -2: "LO-1", -3: "LO-10", -4: "LO-3a", -5: "LO-4", -6: "LO-5"}


def clause_of(target: int) -> str:
    """Return the clause that defines the response to a target."""
    return "LO-6" if target >= 0 else _CLAUSES.get(target, "LO-15c")
