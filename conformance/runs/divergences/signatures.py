"""Signature of a divergence, which identifies it if no clause applies to the step."""

from __future__ import annotations

from pathlib import PurePath
from typing import TYPE_CHECKING

from conformance.lockstep.divergence import error_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from conformance.lockstep.divergence import Divergence

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
    if aspect == "outcome":
        return f"{name}: outcome {error_of(divergence.expected) or 'ok'} -> {error_of(divergence.actual) or 'ok'}"
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
    if error_of(divergence.expected) or error_of(divergence.actual):
        return
    answers = zip(divergence.operation.args[0], divergence.expected[1], divergence.actual[1], strict=False)
    yield from ("times" if target >= 0 else str(target) for target, mine, theirs in answers if mine != theirs)


def _is_listing(value: object) -> bool:
    return isinstance(value, list) and all(isinstance(name, str) for name in value)
