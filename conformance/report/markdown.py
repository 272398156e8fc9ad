"""A summary for the pages of a CI system: the verdict, a line for each release, every difference with its replay."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from conformance.report.combined import STRONGEST_FIRST
from conformance.report.divergence import describe
from conformance.report.marked import code, html, table, text
from conformance.runs.seeds import seed_in_words

if TYPE_CHECKING:
    from conformance.events import Measured
    from conformance.report.combined import Combined

SIGNS: Final = {"conforms": "✓", "diverges": "✗", "expected-divergence": "≈", "unsupported": "–", "not-run": "○"}
"""What a verdict looks like where colour alone would say it."""
_HEADLINES: Final = {"conforms": "✓ conforms", "diverges": "✗ diverges", "incomplete": "⚠ incomplete"}
_SHOWN = 20
"""Differences in full; a page of a CI system cuts a long one off in the middle."""


def markdown(report: Combined) -> str:
    """The report as GitHub-flavoured Markdown."""
    lines = [f"## Log index conformance: {_HEADLINES[report.verdict]}", "", _about(report), ""]
    lines += [f"> ⚠ {text(line)}" for line in report.cut_off]
    lines += [f"> ✗ stale: {text(line)}" for line in report.stale]
    if lines[-1]:
        lines.append("")
    header = ["implementation", "release", *(f"{SIGNS[verdict]} {verdict}" for verdict in STRONGEST_FIRST)]
    rows = []
    for implementation in report.implementations:
        for release in report.tested(implementation):
            counts = report.count(implementation, release)
            rows.append([code(implementation), text(release), *(str(counts[verdict]) for verdict in STRONGEST_FIRST)])
    lines += table(header, rows, numbers=2)
    lines += _divergences(report)
    for name, measured in report.measured.items():
        lines += ["", f"### {text(name)}", "", *_measured(measured)]
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
    return f"{report.steps} steps in {report.seconds:.1f} s · {text(said)}"


def _divergences(report: Combined) -> list[str]:
    if not report.divergences:
        return []
    lines = ["", f"### {len(report.divergences)} differences"]
    for divergence in report.divergences[:_SHOWN]:
        failure = divergence.failure
        ids = ", ".join(failure["clauses"]) or "no clause"
        lines += [
            "",
            f"<details><summary>{html(failure['party'])}, {html(divergence.machine)} machine: {html(ids)}</summary>",
            "",
            "<pre>",
            *(f"    {html(line)}" for line in describe(divergence).split("\n")),
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
    return table(["", "holds", *map(text, columns)], (list(map(text, row)) for row in cells), numbers=2)


def _pace(report: Combined) -> list[str]:
    rows = []
    for pace in report.pace:
        rates = [f"{n / pace.seconds:.0f}" if pace.seconds else "" for n in (pace.steps, pace.checks)]
        rows.append([text(pace.label), str(pace.examples), str(pace.steps), f"{pace.seconds:.1f}", *rates])
    return table(["machine", "examples", "steps", "seconds", "steps/s", "checks/s"], rows, numbers=1)
