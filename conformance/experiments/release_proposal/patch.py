"""Patch of this package's sources that adds a new Kafka release, for ``git apply``."""

from __future__ import annotations

import difflib
import re
from importlib.resources import files
from string import ascii_lowercase
from typing import TYPE_CHECKING, Final

from conformance.clauses import family
from conformance.clauses.edited_range import with_release, without_release
from kidx.dialect import PUBLISHED, ROWS, version_of

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable

    from conformance.experiments.release_proposal.clause_changes import ClauseChange
    from kidx.dialect import Dialect

TABLE: Final = "kidx/dialect/table.py"
RELEASES: Final = "kidx/dialect/__init__.py"


def has_release(release: str) -> bool:
    """Return True if the release is in the package's list of published releases."""
    return release in PUBLISHED.split()


def patch_of(dialect: Dialect, changes: Iterable[ClauseChange], untested: Collection[str] = ()) -> str:
    """Return a unified diff of the table of behaviours and of the catalogue; empty if nothing changes.

    Args:
        dialect: The value of every behaviour in the release. The patch edits each row of the table that contradicts it.
        changes: The clauses whose ranges change. After a clause that ends, the patch adds a draft of the clause that
            replaces it. A person must write the draft's title, statement, promise, reason and source.
        untested: The behaviours whose rows remain unchanged, because nothing is known about them.
    """
    lines: list[str] = []
    if not has_release(dialect.release):
        lines += _diff(RELEASES, _text(RELEASES), _with_release(_text(RELEASES), dialect.release))
    lines += _diff(TABLE, _text(TABLE), _with_behaviours(_text(TABLE), dialect, untested))
    edited: dict[str, str] = {}
    for change in changes:
        chapter = change.clause.chapter
        text = edited.get(chapter) or _chapter(chapter)
        edited[chapter] = _with_range(text, change, dialect.release)
    for chapter in sorted(edited):
        lines += _diff(f"conformance/clauses/{chapter}.toml", _chapter(chapter), edited[chapter])
    return "".join(lines)


def edited_rows(dialect: Dialect, untested: Collection[str] = ()) -> dict[str, tuple[tuple[str, str], ...]]:
    """Return the rows whose ranges contradict the dialect, each with its ranges before and after.

    Args:
        dialect: The value of every behaviour in the release.
        untested: The behaviours whose rows remain unchanged if they have a value for the release.
    """
    release = dialect.release
    known = [other for other in PUBLISHED.split() if other != release]
    edited: dict[str, tuple[tuple[str, str], ...]] = {}
    for name, row in ROWS.items():
        if name in untested and any(not range_.text or release in range_ for range_ in row.values.values()):
            continue
        wanted = getattr(dialect, name)
        ranges = tuple(
            (range_.text, (with_release if value == wanted else without_release)(range_.text, release, known))
            for value, range_ in row.values.items()
            if range_.text and (value == wanted) is not (release in range_)
        )
        if ranges:
            edited[name] = ranges
    return edited


def _text(path: str) -> str:
    package, _, rest = path.partition("/")
    return files(package).joinpath(rest).read_text("utf-8")


def _chapter(name: str) -> str:
    return files("conformance").joinpath("clauses", f"{name}.toml").read_text("utf-8")


def _diff(path: str, before: str, after: str) -> list[str]:
    old, new = before.splitlines(keepends=True), after.splitlines(keepends=True)
    return list(difflib.unified_diff(old, new, f"a/{path}", f"b/{path}"))


def _with_release(text: str, release: str) -> str:
    """Return the source text of the list of published releases, with the release added in order."""
    newer = [other for other in PUBLISHED.split() if version_of(other) > version_of(release)]
    if newer:
        return re.sub(rf"(?<=[ \"]){re.escape(newer[0])}(?=[ \"])", f"{release} {newer[0]}", text, count=1)
    last = PUBLISHED.split()[-1]
    return re.sub(rf'(?<=[ "]){re.escape(last)}(?=")', f"{last} {release}", text, count=1)


def _with_behaviours(text: str, dialect: Dialect, untested: Collection[str]) -> str:
    """Return the source text of the table, with ranges that match the dialect."""
    for name, ranges in edited_rows(dialect, untested).items():
        head, mark, rest = text.partition(f"\n    {name}")
        row, end, tail = rest.partition('.")\n')
        for before, after in ranges:
            row = row.replace(f'"{before}"', f'"{after}"', 1)
        text = f"{head}{mark}{row}{end}{tail}"
    return text


def _with_range(text: str, change: ClauseChange, release: str) -> str:
    """Return the text of a chapter with the changed range of a clause."""
    head, found, tail = text.partition(f'id = "{change.clause.id}"\n')
    assert found
    entry, mark, rest = tail.partition("\n[[clause]]")
    entry = re.sub(r'^releases = ".*"$', f'releases = "{change.releases}"', entry, count=1, flags=re.MULTILINE)
    if not change.applies and not change.because:
        entry = f"{entry.rstrip()}\n{_draft(change, release, text)}"
    return f"{head}{found}{entry}{mark}{rest}"


def _draft(change: ClauseChange, release: str, text: str) -> str:
    """Return a draft, without prose, of the clause that replaces an ended clause; ``text`` is the chapter's text."""
    clause = change.clause
    stem = family(clause.id)
    taken = set(re.findall(r'^id = "(.*)"$', text, re.MULTILINE))
    new = next(id_ for letter in ascii_lowercase if (id_ := f"{stem}{letter}") not in taken)
    lines = [
        "",
        "[[clause]]",
        f'id = "{new}"',
        'title = ""',
        'statement = ""',
        f'level = "{clause.level}"',
        *(['promise = ""'] if clause.level != "OBSERVED" else []),
        *(['reason = ""'] if clause.level != "MUST" else []),
        f'releases = ">={release}"',
        'source = ""',
        'evidence = "E"',
        *([f'trace = "{change.trace}"'] if change.trace else []),
        "",
    ]
    return "\n".join(lines)
