"""Shrinking of a divergence in a lockstep that has only the diverging participant and its reference."""

from __future__ import annotations

import time
from functools import partial
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, Any

from conformance.lockstep import DivergenceError
from conformance.runs.replay import replay_operations
from conformance.runs.sameness import Sameness
from conformance.runs.shrinking import SHRINK_SECONDS, ShrinkResult, shrink
from conformance.scratch import scratch_directory

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from conformance.lockstep import Divergence
    from conformance.operations import Operation


def shrink_divergence(
    lockstep: Any,
    failure: DivergenceError,
    *,
    same: Callable[[Divergence], bool] | None = None,
    seconds: float = SHRINK_SECONDS,
    clock: Callable[[], float] = time.monotonic,
) -> DivergenceError:
    """Return the same divergence in the shortest trace that is found in time.

    Args:
        lockstep: The lockstep of index files, segments or logs that found it, between two examples.
        same: A function that returns True for the same divergence; :func:`is_same` by default.
        seconds: The maximum time, see :func:`~conformance.runs.shrinking.search.shrink`.
        clock: A monotonic clock in seconds.

    Returns:
        The divergence with a description in ``shrinking``. If a replay of the operations does not reproduce the
        divergence, it is returned unchanged.
    """
    divergence = failure.divergence
    wanted = same or partial(is_same, divergence)
    subjects = [subject for subject in lockstep.subjects if subject.name == divergence.participant]
    with scratch_directory() as scratch:
        alone = type(lockstep)(subjects, scratch, releases=[divergence.release], on_divergence=lockstep.on_divergence)
        if not lockstep.is_modelled:
            alone.drop_models()

        def reproduce(operations: Sequence[Operation]) -> DivergenceError | None:
            error = _performed(alone, operations)
            return error if error is not None and wanted(error.divergence) else None

        found = shrink(
            failure.operations, reproduce, seconds=seconds, clock=clock, needed=lambda error: error.operations
        )
    return with_shrink_status(failure, found, seconds)


def with_shrink_status(
    failure: DivergenceError, found: ShrinkResult[DivergenceError] | None, seconds: float
) -> DivergenceError:
    """Return the shrunk divergence, or the original one if it was not reproduced; describe the shrinking in it."""
    if found is None:
        failure.shrinking = "not reproduced when its operations were replayed: not shrunk"
        return failure
    late = f"not minimal: {seconds:g} s were over" if seconds else "not shrunk"
    found.result.shrinking = "minimal" if found.minimal else late
    return found.result


def is_same(one: Divergence, other: Divergence) -> bool:
    """Return True if two divergences share participant, operation, first aspect, and a field or file."""
    return one.against == other.against and _sameness(one).overlaps(_sameness(other))


def _sameness(divergence: Divergence) -> Sameness:
    # Extra files are noticed when directories are compared, after any operation; no clause applies to them.
    is_about_listing = divergence.aspects == ("bytes",) and not divergence.clauses
    operation = "" if is_about_listing else divergence.operation.name
    return Sameness(divergence.participant, "", operation, divergence.aspect, frozenset(_details(divergence)))


def _details(divergence: Divergence) -> set[str]:
    """Return the fields of a state that differ, or the suffixes of the files of a directory that differ."""
    expected, actual = divergence.expected, divergence.actual
    if divergence.aspects[0] == "state":
        return set(divergence.fields)
    if divergence.aspects[0] == "bytes" and isinstance(expected, tuple):
        if all(isinstance(entry, tuple) for entry in expected):  # names with their contents
            return {PurePosixPath(str(name)).suffix for name, *_ in expected}
        if isinstance(actual, tuple) and len(actual) == len(expected):  # the files of a segment, in their order
            return {str(number) for number, pair in enumerate(zip(expected, actual, strict=True)) if pair[0] != pair[1]}
    return set()


def _performed(lockstep: Any, operations: Sequence[Operation]) -> DivergenceError | None:
    """Return the divergence that the operations produce, or None."""
    try:
        replay_operations(lockstep, operations)
    except DivergenceError as error:
        return error
    return None
