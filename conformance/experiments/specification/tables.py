"""Pages of the specification that are generated from tables: byte layouts, and changes between releases."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING

from conformance.clauses import family, load_clauses
from conformance.experiments.specification.bar import release_bar
from conformance.report.markdown_escape import prose, table, text
from kidx import layout
from kidx.dialect import PUBLISHED, ROWS
from kidx.dialect.release_range import range_of

if TYPE_CHECKING:
    from kidx.dialect.behaviour import Behaviour

_RELEASES = PUBLISHED.split()


_FORMATS = """# Byte layouts

All integers are big-endian and signed (AI-1). No index file has a header or a checksum: each is a dense array of
entries from byte 0. The code is driven by these tables, `kidx/layout.py`.
"""
_CHANGES = """# What changed from release to release

{count} behaviours differ between Kafka's releases from {first} to {last}. Releases are in the order of their numbers.
A patch release may have what a later minor release lacks: 3.9.2 appeared after 4.0.0.
"""
_CHANGED = {"True": "is new", "False": "is no longer so"}


def formats_page() -> str:
    """Return the page of byte layouts."""
    lines = [_FORMATS]
    for each in (layout.OFFSET_INDEX, layout.TIME_INDEX, layout.ABORTED_TXN):
        rows = [
            [f"{field.offset}–{field.offset + field.size - 1}", str(field.size), f"`{field.name}`", text(field.meaning)]
            for field in each.fields
        ]
        lines += [f"## `{each.name}`: {each.size} bytes an entry {{ #{each.name[1:]} }}\n"]
        lines += [*table(["bytes", "size", "field", "meaning"], rows, numbers=4), "", f"Source: {text(each.source)}\n"]
    return "\n".join(lines)


def changes_page() -> str:
    """Return the page of the changes from release to release."""
    changed: dict[str, list[str]] = {}
    for before, release in pairwise(_RELEASES):
        for name, row in ROWS.items():
            if row.value_in(before) != row.value_in(release):
                change = _CHANGED.get(str(row.value_in(release))) or f"becomes {_value(row.value_in(release))}"
                changed.setdefault(release, []).append(f"[`{name}`](#{name}) {change}: {_sentence(row)}")
    rows = [[release, "<br>".join(changes)] for release, changes in changed.items()]
    lines = [
        _CHANGES.format(count=len(ROWS), first=_RELEASES[0], last=_RELEASES[-1]),
        *table(["release", "differs from the preceding one"], rows, numbers=2),
        "",
    ]
    section = ""
    for name, row in ROWS.items():
        if row.section != section:
            section = row.section
            lines += [f"## {section.capitalize()}\n"]
        lines += _behaviour(name, row)
    return "\n".join(lines)


def _behaviour(name: str, row: Behaviour[object]) -> list[str]:
    lines = [f"### `{name}` {{ #{name} }}\n", f"{_sentence(row)}\n"]
    for value in row.values:
        releases = [release for release in _RELEASES if row.value_in(release) == value]
        if releases and value is not False:
            label = f"{name} is {value} in {range_of(releases, _RELEASES)}"
            lines += [f"{_value(value)}: `{range_of(releases, _RELEASES)}`\n", f"{release_bar(releases, label)}\n"]
    named = [each for each in load_clauses() if family(each) in row.clauses]
    return [*lines, *([f"Clauses: {', '.join(named)}\n"] if named else [])]


def _sentence(row: Behaviour[object]) -> str:
    return prose(row.__doc__ or "")


def _value(value: object) -> str:
    shown = str(value) if str(value).isidentifier() else repr(value)
    return {"True": "yes", "False": "no"}.get(shown, f"<code>{text(shown)}</code>")
