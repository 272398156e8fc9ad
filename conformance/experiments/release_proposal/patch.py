"""Patch of this package's sources that adds a new Kafka release, for ``git apply``.

The clauses that begin or end with the release are inferred from its dialect and the dialects of known releases. A
clause is a requirement with a range of releases. A dialect has the value of each behaviour that differs between
releases. A behaviour *explains* a clause if, in all known releases, its value determines whether the clause applies. If
the behaviours that explain a clause agree for the new release, and contradict the clause's range, a change of the range
is proposed.
"""

from __future__ import annotations

import difflib
import re
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from string import ascii_lowercase
from typing import TYPE_CHECKING, Any, Final

from conformance.attribution.tables import machines_of
from conformance.clauses import family, load_clauses
from conformance.clauses.machines import MACHINES
from conformance.clauses.release_ranges import BehaviourRange, with_release, without_release
from kidx.dialect import DIALECTS, PUBLISHED, ROWS, Dialect, version_of

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator

    from conformance.clauses import Clause

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


_ID: Final = re.compile(r"\b[A-Z]{2,3}-\d+")


@dataclass(frozen=True)
class ClauseChange:
    """Clause whose range of releases has to change.

    Attributes:
        clause: The current clause.
        applies: True if the clause applies to the release, contrary to its current range; False for the reverse.
        releases: The corrected range.
        because: The behaviours that explain the clause; empty if the change was inferred from traces.
        trace: The id of a trace that shows the change, or empty.
    """

    clause: Clause
    applies: bool
    releases: str
    because: tuple[str, ...] = ()
    trace: str = ""


def changes_of(
    dialect: Dialect, machines: Collection[str] = MACHINES, unknown: Collection[str] = ()
) -> Iterator[ClauseChange]:
    """Yield the clauses whose ranges contradict the dialect of a release.

    Args:
        dialect: The release's dialect.
        machines: The state machines that have tested the release. Clauses that none of them exercises are skipped.
        unknown: The behaviours whose values are unknown, because no executed step depends on them.
    """
    known = {release: other for release, other in DIALECTS.items() if release != dialect.release}
    for clause in load_clauses().values():
        if isinstance(clause.releases, BehaviourRange):
            continue  # the range follows the behaviour's row
        if not _is_exercised(clause, machines):
            continue
        because, applies = _predicted(clause, dialect, known, unknown)
        if applies is not None and applies is not clause.applies_to(dialect.release):
            yield change(clause, dialect.release, because, applies=applies)


def clauses_of(behaviours: Collection[str]) -> Iterator[Clause]:
    """Yield the clauses whose ranges are defined by these behaviours."""
    for clause in load_clauses().values():
        if isinstance(clause.releases, BehaviourRange) and clause.releases.behaviour in behaviours:
            yield clause


def unexercised_clauses(machines: Collection[str]) -> tuple[str, ...]:
    """Return the clauses that apply only to some releases and that none of these machines exercises."""
    return tuple(
        clause.id
        for clause in load_clauses().values()
        if not _is_exercised(clause, machines) and not all(map(clause.applies_to, DIALECTS))
    )


def _is_exercised(clause: Clause, machines: Collection[str]) -> bool:
    return any(machine in machines for machine in machines_of(clause.id))


def change(
    clause: Clause, release: str, because: Iterable[str] = (), trace: str = "", *, applies: bool
) -> ClauseChange:
    """Return the change after which a clause's range includes (``applies``) or excludes a release."""
    known = [other for other in DIALECTS if other != release]
    edited = (with_release if applies else without_release)(clause.releases.text, release, known)
    return ClauseChange(clause, applies, edited, tuple(because), trace)


def _predicted(
    clause: Clause, dialect: Dialect, known: dict[str, Dialect], unknown: Collection[str]
) -> tuple[tuple[str, ...], bool | None]:
    """Predict whether a clause applies to a release.

    If the clause is named in the table of behaviours, only behaviours in whose rows it is named count. There is no
    prediction if one of these has a value that no known release has.

    Args:
        dialect: The release's dialect.
        unknown: The behaviours whose values are unknown.

    Returns:
        The behaviours that explain the clause; and True if it applies, False if not, None without a prediction.
    """
    applies = {release: clause.applies_to(release) for release in known}
    if len(set(applies.values())) == 1:
        return (), None
    naming = {name for name in ROWS if family(clause.id) in _ids_of(name)}
    if any(all(getattr(dialect, name) != getattr(other, name) for other in known.values()) for name in naming):
        return (), None
    predictions: dict[str, bool | None] = {}
    for name in ROWS:
        by_value: dict[Any, set[bool]] = {}  # whether the clause applies to the releases with a value
        for release, other in known.items():
            by_value.setdefault(getattr(other, name), set()).add(applies[release])
        if all(len(each) == 1 for each in by_value.values()):
            prediction = next(iter(by_value.get(getattr(dialect, name), {None})))
            predictions[name] = None if name in unknown else prediction
    of_naming = {name: prediction for name, prediction in predictions.items() if name in naming}
    if explaining := of_naming or predictions:
        distinct = set(explaining.values())
        return tuple(explaining), distinct.pop() if len(distinct) == 1 else None
    return (), None


@cache
def _ids_of(name: str) -> frozenset[str]:
    """Return the clauses that are named in a behaviour's row of the table."""
    return frozenset((*ROWS[name].clauses, *_ID.findall(ROWS[name].__doc__ or "")))
