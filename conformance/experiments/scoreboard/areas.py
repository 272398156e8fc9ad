"""Areas of the scoreboard, as data: the clauses and machines of each, and the meaning of a divergence."""

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
    """Column of the board; clauses are patterns as in a shell, and no machines mean all."""

    name: str
    place: int
    clauses: tuple[str, ...]
    means: str
    machines: tuple[str, ...] = ()

    def has(self, machine: str, clause: str) -> bool:
        """Return True if a clause of a machine belongs here, unless an earlier area has it."""
        is_machine = not self.machines or machine in self.machines
        return is_machine and any(fnmatchcase(clause, pattern) for pattern in self.clauses)


@dataclass(frozen=True, slots=True)
class Meaning:
    """Consequence for a consumer, in one sentence, of a divergence in one of the clauses."""

    clauses: tuple[str, ...]
    says: str


@dataclass(frozen=True, slots=True)
class Areas:
    """All areas and meanings; ``area`` is in the order in which the area of a clause is searched."""

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
        """Return the consequence for a consumer: the sentence of the first clause that has one, or of the area."""
        for clause in clauses:
            for meaning in self.meaning:
                if any(fnmatchcase(clause, pattern) for pattern in meaning.clauses):
                    return meaning.says
        return area.means


@cache
def load_areas() -> Areas:
    """Return the packaged areas; tests compare them with the catalogue of clauses."""
    return convert(tomllib.loads((files(__package__) / "areas.toml").read_text("utf-8")), Areas)
