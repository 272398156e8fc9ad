"""Detection of the operations that an implementation lacks, by one call of each operation.

A machine must know before its first step which operations to skip. A participant that lacks a requested operation drops
out of the example, because its state after the operation is unknown.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from conformance.operations import KINDS, Operation, Outcome
from conformance.operations.index import INDEX_OPS
from conformance.operations.outcomes import FAILURE
from conformance.scratch import scratch_directory

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from conformance.implementations.protocol import Implementation
    from conformance.operations.op import Op

SIZE: Final = 1200
"""Size in bytes of a new index: 150 entries of ``.index``, 100 of ``.timeindex``."""


class TryOut(NamedTuple):
    """Operations to try on a new index or log.

    Attributes:
        opening: The operation that opens it.
        operations: The operations to try after that.
    """

    opening: Operation
    operations: tuple[Operation, ...]


def _tried(kind: str, wanted: Callable[[Op], bool]) -> tuple[Operation, ...]:
    """Return the operations to try on a kind of index; those that only this kind has come first and add entries."""
    found = (each for each in INDEX_OPS.values() if kind in each.of and each.tried is not None and wanted(each))
    return tuple(Operation(each.name, each.tried or ()) for each in sorted(found, key=lambda each: len(each.of)))


INDEX_REQUESTS: Final = {kind: _tried(kind, lambda each: bool(each.does) and each.effect is None) for kind in KINDS}
"""Every operation of the line protocol on an index of each kind, except those that open or release it."""
_ENDS: Final = _tried(KINDS[0], lambda each: each.effect is not None)
"""Operations that release an index, to be tried last."""
TRIED_ON_INDEXES: Final = {
    kind: TryOut(
        Operation("open", (kind, f"probe-{kind}", 0, SIZE, True)),
        (*INDEX_REQUESTS[kind], *_tried(kind, lambda each: not each.does), *_ENDS),
    )
    for kind in KINDS
}
"""Operations to try on an index of each kind."""

_SETTINGS: Final = {"segment.bytes": 1000, "segment.index.bytes": 1200, "index.interval.bytes": 0}
TRIED_ON_LOGS: Final = TryOut(
    Operation("open_log", (_SETTINGS, 0, 0, True, 10_000)),
    (
        Operation("append_as_leader", ([{"records": [[0, 1000]]}], 0)),
        Operation("append_as_follower", ([{"base": 1, "epoch": 0, "records": [[0, 1000]]}], 0)),
        Operation("list_offsets", ((1000,),)),
        Operation("read_log", (0,)),
        Operation("update_high_watermark", (2,)),
        Operation("roll_log"),
        Operation("assign_epoch", (1, 2)),
        Operation("end_offset_for_epoch", (0,)),
        Operation("set_clock", (20_000,)),
        Operation("expire_producers"),
        Operation("delete_records", (1,)),
        Operation("apply_retention"),
        Operation("truncate_log", (2,)),
        Operation("truncate_fully", (5,)),
        Operation("close_log", (True,)),
    ),
)
"""Operations to try on a log: every request of the line protocol."""


def tried(implementation: Implementation, try_outs: Iterable[TryOut]) -> dict[str, Outcome]:
    """Execute the operations and return the outcome of each; an operation is unsupported if any kind of index lacks it.

    If the implementation fails, no further operation is tried: the machines will report the failure.
    """
    found: dict[str, Outcome] = {}
    with scratch_directory() as directory:
        for opening, operations in try_outs:
            implementation.begin(directory)
            outcome = implementation.perform(opening).outcome
            for operation in operations if outcome.error is None else ():
                outcome = implementation.perform(operation).outcome
                if outcome.error == FAILURE:
                    break
                if operation.name not in missing(found):
                    found[operation.name] = outcome
            if outcome.error == FAILURE:
                break
        implementation.end()
    return found


def missing(outcomes: Mapping[str, Outcome]) -> set[str]:
    """Return the operations whose outcome is unsupported."""
    return {name for name, outcome in outcomes.items() if outcome.error == "unsupported"}
