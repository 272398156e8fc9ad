"""Event of a divergence: its trace is saved, and the event names the command that replays it."""

from __future__ import annotations

import shlex
from importlib.metadata import version
from typing import TYPE_CHECKING, Any

from conformance.clauses import load_clauses
from conformance.events import Diverged
from conformance.lockstep.divergence import failure_json
from conformance.operations.trace import Trace
from conformance.runs.trace_saving import keep

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from conformance.lockstep.divergence import Divergence
    from conformance.operations import Operation


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
    **origin: str,
) -> Diverged:
    """Save the trace of a divergence, and return its event; clauses that MUST hold come first.

    Args:
        machine: name of the machine whose operations these are.
        divergence: last step of the operations.
        operations: steps that lead to it.
        traces: directory of traces; if it cannot be written, the event says why.
        implementation: specification of the implementation, as the command line has it; empty for the reference.
        seed: seed of the run.
        shrinking: result of shrinking; empty if the steps were not shrunk.
        level: lowest level of clauses that counts in the run.
        **origin: further entries of the trace's ``provenance``.
    """
    failure = failure_json(divergence)
    provenance: dict[str, Any] = {
        "kidx": version("kidx"),
        "hypothesis": version("hypothesis"),
        "seed": seed,
        **origin,
        "level": level,
    }
    if shrinking:
        provenance["shrinking"] = shrinking
    kept = keep(Trace(machine, divergence.release, tuple(operations), failure, provenance=provenance), traces)
    catalogue = load_clauses()
    clauses = sorted((catalogue[name] for name in divergence.clauses), key=lambda clause: clause.level != "MUST")
    return Diverged(
        machine,
        failure,
        tuple((clause.id, clause.level, clause.statement) for clause in clauses),
        tuple(map(str, operations)),
        kept.path,
        _replay(kept.path, divergence.release, implementation, level),
        implementation,
        shrinking,
        releases=(divergence.release,),
        machines=(machine,),
        note=kept.note,
    )


def _replay(trace: str, release: str, implementation: str, level: str) -> str:
    """Return the command that replays a trace; empty if there is no trace."""
    if not trace:
        return ""
    command = ["conformance", "replay", trace, "--kafka", release]
    if implementation not in ("", "jvm"):
        command += ["-i", implementation]
    if level != "observed":
        command += ["--level", level]
    return shlex.join(command)
