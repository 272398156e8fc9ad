"""Editions: frozen lists of clauses, so that a clause written later changes no verdict.

An edition has the id and the level of each of its clauses, and a digest of the statement. A run with an edition counts
these clauses alone, at the level that they had: a difference counts only if one of them is about the step. A crash
always counts. What has changed since is said (:meth:`Edition.changes`).

An edition is a file of ``conformance/clauses/frozen``, made by ``conformance clauses --freeze NAME``,
or any other such file.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Iterator
from contextlib import contextmanager
from functools import cache
from hashlib import sha256
from importlib.resources import files
from pathlib import Path
from typing import Final

import msgspec

from conformance.clauses import LEVELS, Clause, Level, load_clauses
from conformance.errors import ToolError

SUFFIX: Final = ".json"
_FILES: Final = files(__package__) / "frozen"


class Edition(msgspec.Struct, frozen=True):
    """Frozen list of clauses.

    Attributes:
        clauses: The level and the digest of the statement of each clause, by id.
    """

    edition: str
    clauses: dict[str, tuple[Level, str]]

    def counts(self, clause: str, level: str) -> bool:
        """Return True if a clause is part of the edition, and has not been raised to a level since."""
        if clause not in self.clauses:
            return False
        own, _ = self.clauses[clause]
        is_counted = LEVELS.index(own) <= LEVELS.index(level.upper())
        return is_counted or not load_clauses()[clause].counts(level)

    def changes(self, clauses: Collection[str]) -> dict[str, list[str]]:
        """Return which of some clauses of the catalogue are newer, reworded, or have moved to another level since."""
        catalogue = load_clauses()
        known = [clause for clause in clauses if clause in self.clauses]
        found = {
            "newer": [clause for clause in clauses if clause not in self.clauses],
            "reworded": [clause for clause in known if digest(catalogue[clause]) != self.clauses[clause][1]],
            "moved": [clause for clause in known if catalogue[clause].level != self.clauses[clause][0]],
        }
        return {how: ids for how, ids in found.items() if ids}


def digest(clause: Clause) -> str:
    """Return 16 hexadecimal digits that depend on the statement of a clause."""
    return sha256(clause.statement.encode()).hexdigest()[:16]


def frozen(name: str, clauses: Iterable[Clause]) -> str:
    """Return the text of an edition of these clauses, one on each line."""
    lines = (f'"{each.id}": {json.dumps([each.level, digest(each)])}' for each in clauses)
    return f'{{"edition": {json.dumps(name)}, "clauses": {{\n' + ",\n".join(lines) + "\n}}\n"


def edition_names() -> tuple[str, ...]:
    """Return the names of the packaged editions."""
    return tuple(sorted(each.name.removesuffix(SUFFIX) for each in _FILES.iterdir() if each.name.endswith(SUFFIX)))


@cache
def load_edition(name: str) -> Edition:
    """Return an edition, by the name of a packaged one or the path of a file.

    Raises:
        ToolError: There is no such edition, or the file cannot be read.
    """
    if not name.endswith(SUFFIX) and name not in edition_names():
        raise ToolError(f"unknown edition {name!r}; choose from {', '.join(edition_names())}, or name a {SUFFIX} file")
    file = Path(name) if name.endswith(SUFFIX) else _FILES / f"{name}{SUFFIX}"
    try:
        edition = msgspec.json.decode(file.read_bytes(), type=Edition)
    except OSError as error:
        raise ToolError(f"cannot read the edition {name}: {error.strerror or error}") from None
    except msgspec.DecodeError as error:
        raise ToolError(f"{name} is not an edition: {error}; `conformance clauses --freeze` writes one") from None
    if not edition.clauses.keys() & load_clauses().keys():
        raise ToolError(f"the edition {name} has no clause of the catalogue")
    return edition


_in_force: list[Edition] = []


@contextmanager
def use_edition(name: str) -> Iterator[None]:
    """Count only the clauses of an edition in the block; all clauses if the name is empty.

    Raises:
        ToolError: There is no such edition.
    """
    before = list(_in_force)
    _in_force[:] = [load_edition(name)] if name else []
    try:
        yield
    finally:
        _in_force[:] = before


def in_edition(clause: str) -> bool:
    """Return True if a clause is part of the edition in force; always True without one."""
    return all(clause in edition.clauses for edition in _in_force)


def counted_clauses(clauses: Collection[str], level: str) -> Collection[str] | None:
    """Return the clauses that count for a difference at a level; None if the edition in force has none of them."""
    if not _in_force:
        return clauses
    return tuple(clause for clause in clauses if _in_force[-1].counts(clause, level)) or None
