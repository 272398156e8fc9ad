"""Bugs that Kafka's indexes really had, each re-created as a mutant: would the machines have found it, and how soon."""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from functools import cache
from importlib.resources import files

from conformance.errors import ToolError
from conformance.implementations.mutants import MUTANTS, Mutant


@dataclass(frozen=True, slots=True)
class HistoricalBug:
    """One ticket.

    Attributes:
        ticket: e.g. ``"KAFKA-588"``.
        title: what went wrong, in our words.
        affected: releases, in words.
        recreation: how the mutant does the same wrong.
        mutant: its name.
        read: what of it was read; empty where only the behaviour notes name it.
    """

    ticket: str
    title: str
    affected: str
    recreation: str
    mutant: str
    read: str = ""

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
    document = tomllib.loads((files("conformance") / "power/historical.toml").read_text("utf-8"))
    try:
        bugs = tuple(HistoricalBug(**bug) for bug in document["bug"])
    except TypeError as error:
        raise ToolError(f"historical.toml: {error}") from None
    for bug in bugs:
        if bug.mutant not in MUTANTS:
            raise ToolError(f"historical.toml: {bug.ticket} names no mutant: {bug.mutant!r}")
    return bugs
