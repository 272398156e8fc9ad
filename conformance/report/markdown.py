"""Summary for the pages of a CI system: the verdict, one line per release, every divergence with its replay command."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from conformance.report.combined import VERDICTS_BY_SEVERITY
from conformance.report.divergence import format_divergence
from conformance.report.markdown_escape import code, html, table, text
from conformance.runs.profiles import format_seed
from conformance.verdict import VERDICT_LABELS

if TYPE_CHECKING:
    from collections.abc import Mapping

    from conformance.events import Measured
    from conformance.report.combined import CombinedReport
    from conformance.verdict import Conclusion

VERDICT_SYMBOLS: Final = {
    "conforms": "✓",
    "diverges": "✗",
    "expected-divergence": "≈",
    "tolerated": "◌",
    "could-not-run": "⊘",
    "unsupported": "–",
    "not-run": "○",
}
"""Symbols for verdicts that would otherwise be distinguished by colour only."""
CONCLUSION_SYMBOLS: Final[Mapping[Conclusion, str]] = {
    "conforms": "✓",
    "diverges": "✗",
    "incomplete": "⚠",
    "nothing-compared": "⚠",
}
_SHOWN = 20
"""Number of divergences shown in full; a CI system truncates a long page."""


_WORDS: Final = (
    "tolerated at this level: differed as an API or OBSERVED clause permits, and does not count; not run: no step"
    " exercised them; could not run: a step did, and the implementation had failed before or rejected it; does not"
    " apply: the implementation lacks their operations."
)


def headline(verdict: Conclusion) -> str:
    """Return a verdict on runs with its symbol."""
    return f"{CONCLUSION_SYMBOLS[verdict]} {VERDICT_LABELS[verdict]}"


def markdown(report: CombinedReport) -> str:
    """Return the report as GitHub-flavoured Markdown."""
    lines = [f"## Log index conformance: {headline(report.verdict)}", "", _about(report), ""]
    lines += [f"> ⚠ {text(line)}" for line in report.cut_off]
    lines += [f"> ⚠ not compared: {text(line)}" for line in report.missing]
    lines += [f"> ⚠ {text(line)}" for line in report.failures]
    lines += [f"> ✗ stale: {text(line)}" for line in report.stale]
    if lines[-1]:
        lines.append("")
    header = [
        "implementation",
        "release",
        *(f"{VERDICT_SYMBOLS[verdict]} {VERDICT_LABELS[verdict]}" for verdict in VERDICTS_BY_SEVERITY),
    ]
    rows = []
    for implementation in report.implementations:
        for release in report.tested(implementation):
            counts = report.count(implementation, release)
            rows.append(
                [code(implementation), text(release), *(str(counts[verdict]) for verdict in VERDICTS_BY_SEVERITY)]
            )
    lines += table(header, rows, numbers=2)
    lines += ["", text(_WORDS)]
    lines += _divergences(report)
    lines += _clauses(report)
    for name, measured in report.figures.items():
        lines += ["", f"### {text(name)}", "", *_measured(measured)]
    lines += ["", "<details><summary>Examples and speed</summary>", "", *_pace(report), "", "</details>"]
    return "\n".join(lines) + "\n"


def _about(report: CombinedReport) -> str:
    headers = report.headers
    facts = {
        "profile": ", ".join(dict.fromkeys(header.profile for header in headers)),
        "level": ", ".join(dict.fromkeys(header.basis for header in headers)),
        "seed": ", ".join(dict.fromkeys(format_seed(header.seed, header.seed_source) for header in headers)),
    }
    text_of_facts = " · ".join(f"{name} {value}" for name, value in facts.items())
    return f"{report.steps} steps in {report.seconds:.1f} s · {text(text_of_facts)}"


def _divergences(report: CombinedReport) -> list[str]:
    if not report.divergences:
        return []
    lines = ["", f"### {len(report.divergences)} divergences"]
    for divergence in report.divergences[:_SHOWN]:
        failure = divergence.failure
        ids, who = ", ".join(failure["clauses"]) or "no clause", html(failure["participant"])
        lines += [
            "",
            f"<details><summary>{who}, {html(divergence.machine)} machine: {html(ids)}</summary>",
            "",
            "<pre>",
            *(f"    {html(line)}" for line in format_divergence(divergence).split("\n")),
            "</pre>",
            "",
            "</details>",
        ]
    if len(report.divergences) > _SHOWN:
        lines += ["", f"… and {len(report.divergences) - _SHOWN} more, in the HTML page."]
    return lines


def _clauses(report: CombinedReport) -> list[str]:
    """Return the clauses that diverge, with their releases."""
    rows = []
    for name in report.implementations:
        for clause in report.rows(name):
            wrong = [each for each in report.tested(name) if report.verdict_of(name, each, clause) == "diverges"]
            if wrong:
                where = wrong[0] if len(wrong) == 1 else f"{wrong[0]} … {wrong[-1]} ({len(wrong)})"
                rows.append([code(name), text(clause.id), text(clause.level), text(clause.title), text(where)])
    if not rows:
        return []
    return [
        "",
        "### Clauses that diverge",
        "",
        *table(["implementation", "clause", "level", "", "releases"], rows, numbers=5),
    ]


def _measured(rows: list[Measured]) -> list[str]:
    columns = list(dict.fromkeys(name for row in rows for name in row.figures))
    sign = {True: "✓", False: "✗", None: ""}
    cells = ([row.name, sign[row.passed], *(str(row.figures.get(name, "")) for name in columns)] for row in rows)
    return table(["", "passed", *map(text, columns)], (list(map(text, row)) for row in cells), numbers=2)


def _pace(report: CombinedReport) -> list[str]:
    rows = []
    for pace in report.pace:
        rates = [f"{n / pace.seconds:.0f}" if pace.seconds else "" for n in (pace.steps, pace.checks)]
        rows.append([text(pace.label), str(pace.examples), str(pace.steps), f"{pace.seconds:.1f}", *rates])
    return table(["machine", "examples", "steps", "seconds", "steps/s", "checks/s"], rows, numbers=1)
