"""The areas of the scoreboard, as data: which clauses of which machines belong to each, and what they mean."""

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
    """A column of the board; clauses are patterns as of a shell, and no machines are all."""

    name: str
    place: int
    clauses: tuple[str, ...]
    means: str
    machines: tuple[str, ...] = ()

    def has(self, machine: str, clause: str) -> bool:
        """Whether what a machine shows of a clause belongs here, unless an area before it has it."""
        is_machine = not self.machines or machine in self.machines
        return is_machine and any(fnmatchcase(clause, pattern) for pattern in self.clauses)


@dataclass(frozen=True, slots=True)
class Meaning:
    """What a difference in one of the clauses means for a consumer, in one sentence."""

    clauses: tuple[str, ...]
    says: str


@dataclass(frozen=True, slots=True)
class Areas:
    """All of it; ``area`` in the order in which a clause looks for its own."""

    area: tuple[Area, ...]
    meaning: tuple[Meaning, ...]

    @property
    def columns(self) -> list[Area]:
        """As the board shows them."""
        return sorted(self.area, key=lambda area: area.place)

    def of(self, machine: str, clause: str) -> Area:
        """Where a clause of a machine belongs; a difference without a clause has the name ``""``."""
        return next(area for area in self.area if area.has(machine, clause))

    def meaning_of(self, area: Area, clauses: Iterable[str]) -> str:
        """What a difference means for a consumer: the sentence of the first clause that has one, or the area's."""
        for clause in clauses:
            for meaning in self.meaning:
                if any(fnmatchcase(clause, pattern) for pattern in meaning.clauses):
                    return meaning.says
        return area.means


@cache
def load_areas() -> Areas:
    """What the package has; tests hold it against the catalogue of clauses."""
    return convert(tomllib.loads((files(__package__) / "areas.toml").read_text("utf-8")), Areas)
