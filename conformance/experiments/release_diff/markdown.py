"""Markdown report of a comparison of two Kafka releases, for a comment on a pull request."""

from __future__ import annotations

from typing import TYPE_CHECKING

from conformance.experiments.release_diff.error_texts import TextChange
from conformance.experiments.release_diff.expected import signature_text
from conformance.experiments.release_diff.text_report import describe, headline
from kidx.printable import printable, printable_lines

if TYPE_CHECKING:
    from conformance.experiments.release_diff.comparison import Comparison
    from conformance.experiments.release_diff.difference import Difference
    from conformance.experiments.release_diff.expected import ClassifiedDifferences

_MAX_LENGTH = 200
"""Maximum number of characters in a cell of the table."""


def to_markdown(comparison: Comparison, classified: ClassifiedDifferences | None) -> str:
    """Return the verdict, a table with a row for each difference, and the steps of each, which are folded.

    Args:
        comparison: The result of the comparison.
        classified: The expected differences, or None without expectations.
    """
    old, new = (side.label for side in comparison.plan.sides)
    lines = [f"### conformance diff: {_cell(old)} → {_cell(new)}", "", _verdict(comparison, classified), ""]
    if comparison.all:
        expected = () if classified is None else classified.expected
        lines += ["| | machine | difference | clauses or signature |", "| --- | --- | --- | --- |"]
        lines += [_row(one, "expected" if any(one is other for other in expected) else "new") for one in comparison.all]
        lines.append("")
    if classified is not None and classified.stale:
        lines += ["Entries that no difference matches:", "", *(f"* {_cell(str(e))}" for e in classified.stale), ""]
    for difference in comparison.differences:
        text = printable_lines(describe(difference)).replace("```", "'''")
        folded = f"<details><summary>{_cell(headline(difference))}</summary>"
        lines += [folded, "", "```text", text, "```", "</details>", ""]
    lines.append(f"seed {comparison.plan.seed} · {comparison.examples} examples, {comparison.steps} steps")
    return "\n".join([*lines, ""])


def _verdict(comparison: Comparison, classified: ClassifiedDifferences | None) -> str:
    if classified is None:
        return f"**{len(comparison.all)} differences**" if comparison.all else "**Nothing differs**"
    if not classified.new and not classified.stale:
        return f"**All expected**: {len(classified.expected)} differences, each with its entry"
    return f"**{len(classified.new)} new, {len(classified.stale)} stale**, {len(classified.expected)} expected"


def _row(one: Difference | TextChange, state: str) -> str:
    what = f"{one.wording.old} → {one.wording.new}" if isinstance(one, TextChange) else headline(one)
    known = ", ".join(sorted({*one.implicated.old, *one.implicated.new})) or signature_text(one)
    return f"| {state} | {one.machine} | {_cell(what)} | {_cell(known)} |"


def _cell(text: str) -> str:
    """Escape text that would end a cell or begin markup."""
    text = printable(text)
    short = text if len(text) <= _MAX_LENGTH else f"{text[:_MAX_LENGTH]}…"
    for special in "\\|<>[]*_`#@":
        short = short.replace(special, f"&#{ord(special)};")
    return short
