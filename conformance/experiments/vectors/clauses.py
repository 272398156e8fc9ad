"""Clauses that no test vector exercises."""

from __future__ import annotations

import tomllib
from importlib.resources import files

from conformance.clauses import load_clauses


def not_shown() -> dict[str, str]:
    """Return the clauses that no vector exercises, each with the reason."""
    reasons = {clause.id: clause.not_exercised for clause in load_clauses().values() if clause.not_exercised}
    declared = tomllib.loads((files(__package__) / "not_shown.toml").read_text("utf-8"))
    return reasons | {clause: reason for reason, clauses in declared.items() for clause in clauses}
