"""Traces that kill mutants: one file per kind of mutant, with one document per line, sorted by the mutant's name."""

from __future__ import annotations

import json
from pathlib import Path

from conformance.operations.trace import Trace


def load_kills(path: Path) -> dict[str, Trace]:
    """Return the traces by the name of the mutant that each kills; empty if the file does not exist."""
    if not path.exists():
        return {}
    kills: dict[str, Trace] = {}
    for document in map(json.loads, path.read_text("utf-8").splitlines()):
        kills[document["kills"]] = Trace.from_document(document, f"{path.name}: {document['kills']}")
    return kills


def keep_kill(path: Path, name: str, trace: Trace) -> None:
    """Write the trace that kills a mutant to the file, and replace an older trace of the mutant."""
    kills = sorted((load_kills(path) | {name: trace}).items())
    path.write_text("".join(json.dumps({"kills": name} | kill.to_json()) + "\n" for name, kill in kills), "utf-8")
