"""A summary for the pages of a CI system: the verdict, a line for each release, every difference with its replay."""

from __future__ import annotations

import re
from html import escape
from typing import TYPE_CHECKING, Final

from conformance.report.combined import STRONGEST_FIRST
from conformance.report.divergence import describe
from conformance.runs.seeds import seed_in_words
from kidx.printable import printable

if TYPE_CHECKING:
    from collections.abc import Iterable

    from conformance.events import Measured
    from conformance.report.combined import Combined

SIGNS: Final = {"conforms": "✓", "diverges": "✗", "expected-divergence": "≈", "unsupported": "–", "not-run": "○"}
"""What a verdict looks like where colour alone would say it."""
_HEADLINES: Final = {"conforms": "✓ conforms", "diverges": "✗ diverges", "incomplete": "⚠ incomplete"}
_MARKS: Final = re.compile(r"[\\`*\[\]|~$]")
_PLAIN: Final = re.compile(r"[\w .,:;/=@+(){}'\"#%^?!-]+", re.ASCII)
_SHOWN = 20
"""Differences in full; a page of a CI system cuts a long one off in the middle."""


def markdown(report: Combined) -> str:
    """The report as GitHub-flavoured Markdown."""
    lines = [f"## Log index conformance: {_HEADLINES[report.verdict]}", "", _about(report), ""]
    lines += [f"> ⚠ {_text(line)}" for line in report.cut_off]
    lines += [f"> ✗ stale: {_text(line)}" for line in report.stale]
    if lines[-1]:
        lines.append("")
    header = ["implementation", "release", *(f"{SIGNS[verdict]} {verdict}" for verdict in STRONGEST_FIRST)]
    rows = []
    for implementation in report.implementations:
        for release in report.tested(implementation):
            counts = report.count(implementation, release)
            rows.append([_code(implementation), _text(release), *(str(counts[verdict]) for verdict in STRONGEST_FIRST)])
    lines += _table(header, rows, numbers=2)
    lines += _divergences(report)
    for table, measured in report.measured.items():
        lines += ["", f"### {_text(table)}", "", *_measured(measured)]
    lines += ["", "<details><summary>Examples and speed</summary>", "", *_pace(report), "", "</details>"]
    return "\n".join(lines) + "\n"


def _about(report: Combined) -> str:
    headers = report.headers
    facts = {
        "profile": ", ".join(dict.fromkeys(header.profile for header in headers)),
        "level": ", ".join(dict.fromkeys(header.level for header in headers)),
        "seed": ", ".join(dict.fromkeys(seed_in_words(header.seed, header.seed_source) for header in headers)),
    }
    said = " · ".join(f"{name} {value}" for name, value in facts.items())
    return f"{report.steps} steps in {report.seconds:.1f} s · {_text(said)}"


def _divergences(report: Combined) -> list[str]:
    if not report.divergences:
        return []
    lines = ["", f"### {len(report.divergences)} differences"]
    for divergence in report.divergences[:_SHOWN]:
        failure = divergence.failure
        ids = ", ".join(failure["clauses"]) or "no clause"
        lines += [
            "",
            f"<details><summary>{_html(failure['party'])}, {_html(divergence.machine)} machine: {_html(ids)}</summary>",
            "",
            "<pre>",
            *(f"    {_html(line)}" for line in describe(divergence).split("\n")),
            "</pre>",
            "",
            "</details>",
        ]
    if len(report.divergences) > _SHOWN:
        lines += ["", f"… and {len(report.divergences) - _SHOWN} more, in the HTML page."]
    return lines


def _measured(rows: list[Measured]) -> list[str]:
    columns = list(dict.fromkeys(name for row in rows for name in row.figures))
    sign = {True: "✓", False: "✗", None: ""}
    cells = ([row.name, sign[row.holds], *(str(row.figures.get(name, "")) for name in columns)] for row in rows)
    return _table(["", "holds", *map(_text, columns)], (list(map(_text, row)) for row in cells), numbers=2)


def _pace(report: Combined) -> list[str]:
    rows = []
    for pace in report.pace:
        rates = [f"{n / pace.seconds:.0f}" if pace.seconds else "" for n in (pace.steps, pace.checks)]
        rows.append([_text(pace.label), str(pace.examples), str(pace.steps), f"{pace.seconds:.1f}", *rates])
    return _table(["machine", "examples", "steps", "seconds", "steps/s", "checks/s"], rows, numbers=1)


def _table(header: list[str], rows: Iterable[list[str]], *, numbers: int) -> list[str]:
    """A table whose columns from ``numbers`` on are numbers."""
    rule = ["---" if column < numbers else "---:" for column in range(len(header))]
    return [f"| {' | '.join(row)} |" for row in (header, rule, *rows)]


def _text(text: str) -> str:
    """A text on one line that means nothing to Markdown or HTML, in a table or outside."""
    return _MARKS.sub(r"\\\g<0>", _html(text))


def _code(text: str) -> str:
    """A name as code; one with characters that end code or a cell as text."""
    return f"`{text}`" if _PLAIN.fullmatch(text) else _text(text)


def _html(text: str) -> str:
    """A text on one line that means nothing to HTML."""
    return escape(printable(text), quote=False)
