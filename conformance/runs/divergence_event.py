"""Event of a divergence, with the path of its saved trace and the command that replays it."""

from __future__ import annotations

import shlex
from importlib.metadata import version
from typing import TYPE_CHECKING, Any

from conformance.clauses import load_clauses
from conformance.errors import ToolError
from conformance.events import Diverged
from conformance.lockstep.divergence import failure_json
from conformance.operations.trace import Trace
from conformance.quoting import quoted

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from pathlib import Path

    from conformance.lockstep.divergence import Divergence
    from conformance.operations import Json, Operation


def new_trace(
    machine: str,
    release: str,
    operations: Iterable[Operation],
    failure: Json | None = None,
    title: str = "",
    **origin: Any,
) -> Trace:
    """Return a trace with the versions of the programs that recorded it.

    Args:
        machine: name of the machine that recorded the operations.
        release: release with which the implementation was compared.
        failure: divergence as JSON, or None.
        title: description of the trace.
        **origin: further entries of ``provenance``.
    """
    provenance = {"kidx": version("kidx"), "hypothesis": version("hypothesis"), **origin}
    return Trace(machine, release, tuple(operations), failure, title, provenance)


def requirements_of(clauses: Iterable[str]) -> tuple[tuple[str, str, str], ...]:
    """Return id, level and statement of clauses."""
    catalogue = load_clauses()
    return tuple((id_, catalogue[id_].level, catalogue[id_].statement) for id_ in clauses)


def replay_command(
    trace: object, release: str, implementation: str = "", level: str = "observed", edition: str = ""
) -> str:
    """Return the command that replays a trace, with ``-i`` unless the implementation is Kafka's classes."""
    words = ["conformance", "replay", str(trace), "--kafka", release]
    words += ["-i", implementation] if implementation not in ("", "jvm") else []
    words += ["--level", level] if level != "observed" else []
    words += ["--edition", edition] if edition else []
    return shlex.join(words)


def in_one_line(error: Exception) -> str:
    """Return the message of an unexpected error on one line."""
    return quoted(repr(error))


def divergence_event(
    machine: str,
    divergence: Divergence,
    operations: Sequence[Operation],
    traces: Path,
    *,
    implementation: str,
    seed: int,
    shrinking: str,
    level: str = "observed",
    edition: str = "",
    **origin: str,
) -> Diverged:
    """Save the trace of a divergence, and return its event, in which the clauses of level MUST come first.

    Args:
        machine: name of the machine whose operations these are.
        divergence: last step of the operations.
        operations: steps that lead to it.
        traces: directory of traces; if the trace cannot be saved there, the event contains the reason.
        implementation: specification of the implementation, as the command line has it; empty for the reference.
        shrinking: result of shrinking; empty if the steps were not shrunk.
        level: lowest level of clauses that counts in the run.
        edition: edition whose clauses alone count in the run; empty for the catalogue.
        **origin: further entries of the trace's ``provenance``.
    """
    failure = failure_json(divergence)
    more = {name: text for name, text in (("edition", edition), ("shrinking", shrinking)) if text}
    trace = new_trace(machine, divergence.release, operations, failure, seed=seed, **origin, level=level, **more)
    path, note = _saved(trace, traces)
    requirements = sorted(requirements_of(divergence.clauses), key=lambda one: one[1] != "MUST")
    return Diverged(
        machine,
        failure,
        tuple(requirements),
        tuple(map(str, operations)),
        path,
        replay_command(path, divergence.release, implementation, level, edition) if path else "",
        implementation,
        shrinking,
        releases=(divergence.release,),
        machines=(machine,),
        note=note,
    )


def _saved(trace: Trace, directory: Path) -> tuple[str, str]:
    """Save a trace. Return its path and an empty text, or after an error an empty text and the reason."""
    try:
        return str(trace.save(directory)), ""
    except ToolError as error:
        return "", str(error)
    except Exception as error:  # noqa: BLE001 -- a divergence is reported even if its trace cannot be saved
        return "", f"cannot write its trace: {in_one_line(error)}"
