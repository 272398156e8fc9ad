"""Detection of the operations that an implementation lacks, by calling each of them once.

A machine has to know before its first step which operations to skip. A participant that gets an operation it lacks
drops out of the example, because its state after that operation is unknown.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Final

from conformance.implementations.replies import FAILURE
from conformance.operations import KINDS, Operation
from conformance.operations.index import INDEX_OPS
from conformance.scratch import scratch_directory

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from conformance.implementations.protocol import Implementation
    from conformance.operations.op import Op

SIZE: Final = 1200
"""Size in bytes of a new index: 150 entries of ``.index``, 100 of ``.timeindex``."""


def _tried(kind: str, wanted: Callable[[Op], bool]) -> tuple[Operation, ...]:
    """Return the operations to try on a kind of index, first the operations of this kind only: they add entries."""
    found = (each for each in INDEX_OPS.values() if kind in each.of and each.tried is not None and wanted(each))
    return tuple(Operation(each.name, each.tried or ()) for each in sorted(found, key=lambda each: len(each.of)))


TRY_OUT: Final = {kind: _tried(kind, lambda each: bool(each.does) and each.effect is None) for kind in KINDS}
"""Every operation of the line protocol on an index of each kind, except opening and releasing it."""

_MORE: Final = {kind: _tried(kind, lambda each: not each.does) for kind in KINDS}
_ENDS: Final = _tried(KINDS[0], lambda each: each.effect is not None)


def missing_operations(implementation: Implementation, kinds: Iterable[str]) -> set[str]:
    """Return the operations that an index of any applicable kind does not support.

    If the implementation fails, the search ends: machines will find the cause, and report it.
    """
    missing: set[str] = set()
    with scratch_directory() as directory:
        for kind in kinds:
            if not _try_out(implementation, kind, directory, missing):
                break
        implementation.end()
    return missing


def _try_out(implementation: Implementation, kind: str, directory: Path, missing: set[str]) -> bool:
    """Try every operation on a new index; return False if the implementation failed."""
    implementation.begin(directory)
    opened = implementation.perform(Operation("open", (kind, f"probe-{kind}", 0, SIZE, True))).outcome
    if opened.error is not None:
        return opened.error != FAILURE
    for operation in (*TRY_OUT[kind], *_MORE[kind], *_ENDS):
        outcome = implementation.perform(operation).outcome
        if outcome.error == FAILURE:
            return False
        if outcome.error == "unsupported":
            missing.add(operation.name)
    return True
