"""Bugs that Kafka's indexes really had, each re-created as a mutant: would the machines have found it, and how soon."""

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
class HistoricalBug:
    """One ticket.

    Attributes:
        ticket: e.g. ``"KAFKA-588"``.
        title: what went wrong, in our words.
        affected: releases, in words.
        fixed: the first release without it, or that no fix is known.
        recreation: ``"the bug"`` where the mutant does what Kafka did, else ``"analogy: ..."`` and how they differ.
        mutant: its name.
        read: what was read of it: commits and pull requests of apache/kafka, the notes on Kafka's behaviour.
        shown: traces of the regression corpus in which an affected release does it, as ``"log/log-..."``.
        doubt: why the entry is not verified; empty where it is.
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
        """By what the entry was verified, in a few words."""
        if self.shown:
            return "shown in affected releases"
        return self.read[0].split(",")[0] if self.read and not self.doubt else "not verified"

    @property
    def is_the_bug(self) -> bool:
        """Whether the mutant does what Kafka did, and not something like it."""
        return self.recreation == "the bug"

    @property
    def link(self) -> str:
        """The ticket's page."""
        return f"https://issues.apache.org/jira/browse/{self.ticket}"

    @property
    def planted(self) -> Mutant:
        """The mutant itself."""
        return MUTANTS[self.mutant]


@cache
def load_bugs() -> tuple[HistoricalBug, ...]:
    """The catalogue, in the order of the tickets.

    Raises:
        ToolError: the packaged data is malformed.
    """
    document = tomllib.loads((files(__package__) / "historical.toml").read_text("utf-8"))
    try:
        bugs = tuple(HistoricalBug(**bug) for bug in document["bug"])
    except TypeError as error:
        raise ToolError(f"historical.toml: {error}") from None
    for bug in bugs:
        if bug.mutant not in MUTANTS:
            raise ToolError(f"historical.toml: {bug.ticket} names no mutant: {bug.mutant!r}")
    return bugs
