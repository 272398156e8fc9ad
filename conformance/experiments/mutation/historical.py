"""Bugs that Kafka's indexes had, re-created as mutants, to measure how soon the state machines would have found them.

A mutant is a copy of kidx with one planted defect.
"""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING

from conformance.errors import ToolError
from conformance.implementations.mutants import MUTANTS, Mutant

if TYPE_CHECKING:
    from collections.abc import Sequence


@dataclass(frozen=True, slots=True)
class KnownBug:
    """Ticket of a bug, and the mutant that re-creates it.

    Attributes:
        ticket: e.g. ``"KAFKA-588"``.
        title: description of the bug.
        affected: affected releases, as text.
        fixed: the first release without the bug, or a note that no fix is known.
        recreation: ``"the bug"`` if the mutant does exactly what Kafka did, else ``"analogy: ..."`` with the
            difference.
        read: sources: commits and pull requests of apache/kafka.
        shown: regression traces in which an affected release shows the bug, as ``"log/log-..."``.
        doubt: reason why the entry is not verified; empty if it is.
    """

    ticket: str
    title: str
    affected: str
    fixed: str
    recreation: str
    mutant: str
    read: Sequence[str] = ()
    shown: Sequence[str] = ()
    doubt: str = ""

    @property
    def verified(self) -> str:
        """Short description of how the entry was verified."""
        if self.shown:
            return "shown in affected releases"
        return self.read[0].split(",")[0] if self.read and not self.doubt else "not verified"

    @property
    def is_the_bug(self) -> bool:
        """True if the mutant does exactly what Kafka did, False if it does something similar."""
        return self.recreation == "the bug"

    @property
    def link(self) -> str:
        """Address of the ticket."""
        return f"https://issues.apache.org/jira/browse/{self.ticket}"

    @property
    def planted(self) -> Mutant:
        """Mutant that re-creates the bug."""
        return MUTANTS[self.mutant]


@cache
def load_bugs() -> tuple[KnownBug, ...]:
    """Return the catalogue, in the order of the tickets.

    Raises:
        ToolError: the packaged data is malformed.
    """
    document = tomllib.loads((files(__package__) / "historical.toml").read_text("utf-8"))
    try:
        bugs = tuple(KnownBug(**bug) for bug in document["bug"])
    except TypeError as error:
        raise ToolError(f"historical.toml: {error}") from None
    for bug in bugs:
        if bug.mutant not in MUTANTS:
            raise ToolError(f"historical.toml: {bug.ticket} has an unknown mutant: {bug.mutant!r}")
    return bugs
