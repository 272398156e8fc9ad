"""Markdown report of a fuzzing run."""

from __future__ import annotations

import shlex
from importlib.metadata import version
from typing import TYPE_CHECKING, Final

from conformance.report.markdown_escape import code

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from conformance.experiments.fuzz.plan import FuzzPlan, FuzzResult

_LEGEND: Final = """\
*cases*: corrupted files that Kafka's classes read; releases that must have the same result had it, unless there are
findings. *compared*: cases with the same result as kidx: every flipped bit, every file with a new kind of outcome or
new code, and one in 64 of the others. *corpus*: files that reached new code or had a new result; *new*: files that
this run has added. CPU time is the time of all threads from the start on, compilers included: a longer run has higher
rates. Code that runs only when an index is created, resized, renamed or deleted is not reached; the machines execute
it.
"""


def markdown(plan: FuzzPlan, results: Sequence[FuzzResult]) -> str:
    """Return a table of the formats, and the coverage of Kafka's classes for each."""
    words = ["conformance", "fuzz", *(word for release in plan.releases for word in ("--kafka", release))]
    words += [word for each in plan.implementations for word in ("-i", each)]
    words += [word for name in plan.formats for word in ("--format", name)]
    words += ["--seed", str(plan.seed), "--max-time", f"{plan.max_time:g}"]
    words += [] if plan.max_cases is None else ["--max-examples", str(plan.max_cases)]
    made_by = f"Made by {code(shlex.join(words))} with kidx {version('kidx')}."
    return "\n".join(["# Fuzzing", "", made_by, "", _LEGEND, *_lines(results)]) + "\n"


def _lines(results: Sequence[FuzzResult]) -> Iterator[str]:
    yield "| format | cases | compared | cases/s | cases/s of CPU time | corpus | new | findings |"
    yield "|---|--:|--:|--:|--:|--:|--:|--:|"
    for result in results:
        wall, own = (result.cases / max(seconds, 0.001) for seconds in (result.seconds, result.processor_seconds))
        yield (
            f"| {result.format} | {result.cases:,} | {result.compared:,} | {wall:,.0f} | {own:,.0f} | {result.kept:,}"
            f" | {result.new:,} | {len(result.findings)} |"
        )
    for result in results:
        for kind, path in result.findings.items():
            yield f"\n- {result.format}: {kind}: `{path}`"
        for name, classes in result.coverage.items():
            yield f"\n## {result.format}: the classes of {name}\n"
            yield "| class | lines | of | branches | of |"
            yield "|---|--:|--:|--:|--:|"
            for class_name, *counts in classes:
                yield f"| `{class_name}` | {' | '.join(map(str, counts))} |"
