"""Which operations an implementation does not have, found out by asking for each of them once.

A machine has to know before its first step what to leave out. A participant that meets an operation it lacks leaves
the example, because its state after that operation is unknown.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Final

from conformance.implementations.replies import FAILURE
from conformance.operations import Operation
from conformance.scratch import scratch_directory

if TYPE_CHECKING:
    from collections.abc import Iterable

    from conformance.implementations.protocol import Implementation

SIZE: Final = 1200
"""Bytes of a new index: 150 entries of ``.index``, 100 of ``.timeindex``."""

_MAPPED: Final = (
    Operation("lookup", (9,)),
    Operation("entry", (0,)),
    Operation("sanity_check"),
    Operation("flush"),
    Operation("truncate_to", (15,)),
    Operation("resize", (SIZE // 2,)),
    Operation("trim"),
    Operation("truncate"),
    Operation("reset"),
)

TRY_OUT: Final[dict[str, tuple[Operation, ...]]] = {
    "offset": (Operation("append", (7, 120)), Operation("fetch_upper_bound", (7, 0, 100)), *_MAPPED),
    "time": (Operation("maybe_append", (7, 7, False)), *_MAPPED),
    "transaction": (
        Operation("append_aborted", (1, 0, 7, 8)),
        Operation("collect_aborted", (0, 10)),
        Operation("sanity_check"),
        Operation("flush"),
        Operation("truncate_to", (15,)),
        Operation("reset"),
    ),
}
"""Every operation of the line protocol on an index of each kind, but for opening it and letting go of it."""

_MORE: Final = {"transaction": (Operation("all_aborted"),)}
_ENDS: Final = (Operation("close"), Operation("delete"))


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
    for operation in (*TRY_OUT[kind], Operation("rename", ("renamed",)), *_MORE.get(kind, ()), *_ENDS):
        outcome = implementation.perform(operation).outcome
        if outcome.error == FAILURE:
            return False
        if outcome.error == "unsupported":
            missing.add(operation.name)
    return True
