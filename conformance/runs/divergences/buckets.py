"""Buckets of a run's divergences: one for each participant, signature and clauses, with the shortest steps."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from conformance.runs.divergences.severity import severity
from conformance.runs.divergences.signatures import signature_of

if TYPE_CHECKING:
    from conformance.lockstep.divergence import Divergence
    from conformance.operations import Operation


class BucketKey(NamedTuple):
    """Key of a bucket: the implementation, the signature (``shape``), and the clauses that the step exercised."""

    participant: str
    shape: str
    clauses: tuple[str, ...]


@dataclass(slots=True)
class Bucket:
    """Bucket of divergences with one key.

    Attributes:
        divergence: The most severe divergence; among equally severe ones, one with the fewest steps.
        operations: The steps of that divergence.
        count: The number of occurrences.
    """

    divergence: Divergence
    operations: tuple[Operation, ...]
    count: int = 1


def _order(divergence: Divergence, operations: tuple[Operation, ...]) -> tuple[bool, int, int]:
    """Return a sort key, which is smallest for the divergence that the bucket keeps."""
    violates_guarantee, rank = severity(divergence)
    return not violates_guarantee, -rank, len(operations)


class Buckets(dict[BucketKey, Bucket]):
    """All buckets, in the order of their first occurrence."""

    def record(self, divergence: Divergence, operations: Iterable[Operation]) -> None:
        """Record a divergence in the last of these operations."""
        kind = BucketKey(divergence.participant, signature_of(divergence), divergence.clauses)
        known = self.get(kind)
        if known is None:
            self[kind] = Bucket(divergence, tuple(operations))
            return
        known.count += 1
        steps = tuple(operations)
        if _order(divergence, steps) < _order(known.divergence, known.operations):
            known.divergence, known.operations = divergence, steps

    def merge(self, later: Buckets) -> None:
        """Add the buckets of later examples. Of two divergences with equally many steps, the earlier one is kept."""
        for kind, bucket in later.items():
            known = self.get(kind)
            if known is None:
                self[kind] = bucket
            else:
                known.count += bucket.count
                if _order(bucket.divergence, bucket.operations) < _order(known.divergence, known.operations):
                    known.divergence, known.operations = bucket.divergence, bucket.operations
