"""Areas of the scoreboard, read from ``areas.toml``: clauses, state machines, and the meaning of a divergence."""

from __future__ import annotations

import tomllib
from collections.abc import Iterable
from dataclasses import dataclass
from fnmatch import fnmatchcase
from functools import cache
from importlib.resources import files

from msgspec import convert


@dataclass(frozen=True, slots=True)
class Area:
    """Column of the scoreboard.

    Attributes:
        name: The heading.
        place: The number of the column.
        clauses: Shell patterns of the ids of clauses.
        means: The consequence of a divergence for a consumer, in one sentence.
        machines: The state machines whose results belong to the area; empty for all.
    """

    name: str
    place: int
    clauses: tuple[str, ...]
    means: str
    machines: tuple[str, ...] = ()

    def has(self, machine: str, clause: str) -> bool:
        """Return True if the area includes a clause of a machine, unless an earlier area does."""
        is_machine = not self.machines or machine in self.machines
        return is_machine and any(fnmatchcase(clause, pattern) for pattern in self.clauses)


@dataclass(frozen=True, slots=True)
class Meaning:
    """Consequence of a divergence in some clauses for a consumer.

    Attributes:
        clauses: Shell patterns of the ids of clauses.
        says: The consequence, in one sentence.
    """

    clauses: tuple[str, ...]
    says: str


@dataclass(frozen=True, slots=True)
class Areas:
    """Content of ``areas.toml``; a clause belongs to the first area in ``area`` that includes it."""

    area: tuple[Area, ...]
    meaning: tuple[Meaning, ...]

    @property
    def columns(self) -> list[Area]:
        """Areas in the order of the board's columns."""
        return sorted(self.area, key=lambda area: area.place)

    def of(self, machine: str, clause: str) -> Area:
        """Return the area of a clause of a machine; a divergence without a clause has the clause ``""``."""
        return next(area for area in self.area if area.has(machine, clause))

    def meaning_of(self, area: Area, clauses: Iterable[str]) -> str:
        """Return the consequence of a divergence for a consumer: of the first clause that has one, or of the area."""
        for clause in clauses:
            for meaning in self.meaning:
                if any(fnmatchcase(clause, pattern) for pattern in meaning.clauses):
                    return meaning.says
        return area.means


@cache
def load_areas() -> Areas:
    """Return the packaged areas."""
    return convert(tomllib.loads((files(__package__) / "areas.toml").read_text("utf-8")), Areas)
