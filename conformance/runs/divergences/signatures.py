"""Signature, severity and bucket of a divergence.

The signature identifies a divergence if no clause applies to the step. The severity selects the representative, and is
preserved when steps are shrunk. A run has one bucket for each participant, signature and clauses, with the shortest
steps.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import PurePath
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from conformance.lockstep.divergence import Divergence
    from conformance.operations import Operation

DIRECTORY = "directory"
"""The signature of extra or missing files, which are noticed only when directories are compared."""


def signature_of(divergence: Divergence) -> str:
    """Return the signature: the operation and the first aspect (outcome, text, state or bytes: what differs).

    An outcome also has the kinds of the expected and of the actual one.
    Example: ``"append: outcome ok -> full"``, ``"close: bytes"``, ``"lookup: failure"``, ``"directory"``.
    """
    name, aspect = divergence.operation.name, divergence.aspects[0]
    if divergence.is_failure:
        return f"{name}: failure"
    if aspect == "bytes" and not divergence.clauses and _is_listing(divergence.expected):
        return DIRECTORY
    if divergence.outcomes is not None:
        return f"{name}: outcome {' -> '.join(each.error or 'ok' for each in divergence.outcomes)}"
    return f"{name}: {aspect}"


def signature_detail(divergence: Divergence) -> str:
    """Return the suffix that distinguishes divergences of a log with the same signature; often empty.

    Example: ``" of end_offset"``, ``" of .timeindex"``, ``" of -3, times"``.
    """
    divided: tuple[str, ...] = ()
    aspect = divergence.aspects[0]
    if aspect == "state":
        divided = divergence.fields
    elif aspect == "bytes":
        divided = tuple(PurePath(file.name).suffix or file.name for file in divergence.files)
    elif aspect == "outcome" and divergence.operation.name == "list_offsets":
        divided = tuple(_targets(divergence))
    names = sorted({name for name in divided if name})
    return f" of {', '.join(names)}" if names else ""


def _targets(divergence: Divergence) -> Iterator[str]:
    """Yield the targets whose results differ; all ordinary timestamps count as one."""
    if divergence.outcomes is None or any(divergence.are_errors):
        return
    answers = zip(divergence.operation.args[0], *(each.value for each in divergence.outcomes), strict=False)
    yield from ("times" if target >= 0 else str(target) for target, mine, theirs in answers if mine != theirs)


def _is_listing(value: object) -> bool:
    return isinstance(value, list) and all(isinstance(name, str) for name in value)


_WRONG, _ONE_SIDED, _STATE, _MESSAGE = 3, 2, 1, 0
"""The ranks of a difference; see :func:`severity`."""


def severity(divergence: Divergence) -> tuple[bool, int]:
    """Return the severity of a divergence; larger is more severe.

    The first element is True if a guarantee (a MUST clause) is violated. The second ranks the difference: wrong bytes
    or a wrong result are the most severe, then an error or no result on one side only, then the state, then the kind or
    message of an error. All crashes are equally severe.
    """
    return divergence.counts("must"), _rank(divergence)


def _rank(divergence: Divergence) -> int:
    if divergence.is_failure or "bytes" in divergence.aspects:
        return _WRONG
    if divergence.outcomes is not None:
        if all(divergence.are_errors):
            return _STATE if "state" in divergence.aspects else _MESSAGE
        return _ONE_SIDED if any(each.is_empty for each in divergence.outcomes) else _WRONG
    return _STATE if divergence.aspects[0] == "state" else _MESSAGE


@dataclass(slots=True)
class Bucket:
    """Bucket of divergences of one participant, with one signature (``shape``) and the same clauses.

    Attributes:
        divergence: The most severe divergence; among equally severe ones, one with the fewest steps.
        operations: The steps of that divergence.
        count: The number of occurrences.
    """

    divergence: Divergence
    operations: tuple[Operation, ...]
    count: int = 1

    @property
    def shape(self) -> str:
        """The signature."""
        return signature_of(self.divergence)


def _order(divergence: Divergence, operations: tuple[Operation, ...]) -> tuple[bool, int, int]:
    """Return a sort key, which is smallest for the divergence that the bucket keeps."""
    violates_guarantee, rank = severity(divergence)
    return not violates_guarantee, -rank, len(operations)


class Buckets(dict[tuple[str, str, tuple[str, ...]], Bucket]):
    """All buckets, in the order of their first occurrence."""

    def record(self, divergence: Divergence, operations: Iterable[Operation]) -> None:
        """Record a divergence in the last of these operations."""
        kind = divergence.participant, signature_of(divergence), divergence.clauses
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
