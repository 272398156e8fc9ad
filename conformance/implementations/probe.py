"""Which operations an implementation does not have, found out by asking for each of them once.

A machine has to know before its first step what to leave out. A participant that meets an operation it lacks leaves
the example, because its state after that operation is unknown.
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
"""Bytes of a new index: 150 entries of ``.index``, 100 of ``.timeindex``."""


def _tried(kind: str, wanted: Callable[[Op], bool]) -> tuple[Operation, ...]:
    """What is tried of a kind of index, the operations first that no other kind has: they put something into it."""
    found = (each for each in INDEX_OPS.values() if kind in each.of and each.tried is not None and wanted(each))
    return tuple(Operation(each.name, each.tried or ()) for each in sorted(found, key=lambda each: len(each.of)))


TRY_OUT: Final = {kind: _tried(kind, lambda each: bool(each.does) and each.effect is None) for kind in KINDS}
"""Every operation of the line protocol on an index of each kind, but for opening it and letting go of it."""

_MORE: Final = {kind: _tried(kind, lambda each: not each.does) for kind in KINDS}
_ENDS: Final = _tried(KINDS[0], lambda each: each.effect is not None)


def missing_operations(implementation: Implementation, kinds: Iterable[str]) -> set[str]:
    """The operations that are unsupported, by an index of any kind that should have them.

    Where the implementation fails, the search is over: machines will find out why, and attribute it.
    """
    missing: set[str] = set()
    with scratch_directory() as directory:
        for kind in kinds:
            if not _try_out(implementation, kind, directory, missing):
                break
        implementation.end()
    return missing


def _try_out(implementation: Implementation, kind: str, directory: Path, missing: set[str]) -> bool:
    """Tries everything on a new index; False if the implementation failed."""
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
