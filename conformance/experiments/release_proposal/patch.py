"""A proposal as a diff of the package's sources, for ``git apply``."""

from __future__ import annotations

import difflib
import re
from importlib.resources import files
from string import ascii_lowercase
from typing import TYPE_CHECKING, Final

from conformance.clauses import load_clauses
from conformance.experiments.release_diff.stakes import family
from kidx.dialect import version_of

if TYPE_CHECKING:
    from collections.abc import Iterable

    from conformance.experiments.release_proposal.clause_changes import ClauseChange
    from kidx.dialect import Dialect

TABLE: Final = "kidx/dialect/__init__.py"
_END: Final = "\n)\n# fmt: on"


def has_row(release: str) -> bool:
    """Whether the table of the package has a release; one that is only locked is not in it."""
    return f'"{release}"' in _table()


def patch_of(dialect: Dialect, changes: Iterable[ClauseChange]) -> str:
    """A unified diff of the table of dialects and of the catalogue; empty if nothing changes.

    Args:
        dialect: of the release.
        changes: the clauses whose ranges change; for one that steps have shown to end, an entry of what holds instead
            follows it, whose title, statement and source are still to be written: without them no catalogue is read.
    """
    lines: list[str] = []
    if not has_row(dialect.release):
        lines += _diff(TABLE, _table(), _with_row(_table(), dialect))
    edited: dict[str, str] = {}
    for change in changes:
        chapter = change.clause.chapter
        text = edited.get(chapter) or _chapter(chapter)
        edited[chapter] = _with_range(text, change, dialect.release)
    for chapter in sorted(edited):
        lines += _diff(f"conformance/clauses/{chapter}.toml", _chapter(chapter), edited[chapter])
    return "".join(lines)


def row_of(dialect: Dialect) -> str:
    """The line of the table for one release."""
    columns = (
        dialect.index,
        dialect.append,
        dialect.leader_timestamp,
        dialect.max_lookup,
        dialect.shutdown,
        dialect.translate,
    )
    texts = ", ".join(f'"{column}"' for column in columns)
    release = f'    (("{dialect.release}",),'
    return f"{release:43}({texts}), {dialect.list_offsets_versions}),"


def _table() -> str:
    return files("kidx").joinpath("dialect/__init__.py").read_text("utf-8")


def _chapter(name: str) -> str:
    return files("conformance").joinpath("clauses", f"{name}.toml").read_text("utf-8")


def _diff(path: str, before: str, after: str) -> list[str]:
    old, new = before.splitlines(keepends=True), after.splitlines(keepends=True)
    return list(difflib.unified_diff(old, new, f"a/{path}", f"b/{path}"))


def _with_row(text: str, dialect: Dialect) -> str:
    """The table with a row more: behind the last one that has an older release.

    Raises:
        ValueError: the text holds no such table.
    """
    table = text[: text.index(_END)]
    start = table.index("_SPANS")
    place = start
    for entry in re.finditer(r'^    \(\("', table[start:], re.MULTILINE):
        release = re.match(r'    \(\("([\d.]+)"', table[start + entry.start() :])
        if release and version_of(release[1]) < dialect.version:
            after = re.search(r"\(\d+, \d+\)\),\n?", table[start + entry.start() :])
            assert after is not None
            place = start + entry.start() + after.end()
    head, tail = text[:place].rstrip("\n"), text[place:].lstrip("\n")
    return f"{head}\n{row_of(dialect)}\n{tail}"


def _with_range(text: str, change: ClauseChange, release: str) -> str:
    head, found, tail = text.partition(f'id = "{change.clause.id}"\n')
    assert found
    entry, mark, rest = tail.partition("\n[[clause]]")
    entry = re.sub(r'^releases = ".*"$', f'releases = "{change.releases}"', entry, count=1, flags=re.MULTILINE)
    if not change.holds and not change.because:
        entry = f"{entry.rstrip()}\n{_instead(change, release)}"
    return f"{head}{found}{entry}{mark}{rest}"


def _instead(change: ClauseChange, release: str) -> str:
    """What holds instead of a clause, as far as it can be told without words."""
    clause = change.clause
    mine = family(clause.id)
    taken = {id_ for id_ in load_clauses() if family(id_) == mine}
    new = next(id_ for letter in ascii_lowercase if (id_ := f"{mine}{letter}") not in taken)
    machines = ", ".join(f'"{machine}"' for machine in clause.exercised_by)
    lines = [
        "",
        "[[clause]]",
        f'id = "{new}"',
        'title = ""',
        'statement = ""',
        f'level = "{clause.level}"',
        *(['reason = ""'] if clause.level == "OBSERVED" else []),
        f'releases = ">={release}"',
        'source = ""',
        'evidence = "E"',
        *([f'trace = "{change.trace}"'] if change.trace else []),
        f"exercised_by = [{machines}]",
        "",
    ]
    return "\n".join(lines)
