"""Metrics of a fuzzing run as Markdown."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from conformance.experiments.fuzz.plan import FuzzResult


def markdown(results: Sequence[FuzzResult]) -> str:
    """Return a table of the formats, and the coverage of Kafka's classes for each."""
    return "\n".join(_lines(results)) + "\n"


def _lines(results: Sequence[FuzzResult]) -> Iterator[str]:
    yield "| format | cases | cases/s | cases/s of CPU time | corpus | new | findings |"
    yield "|---|--:|--:|--:|--:|--:|--:|"
    for result in results:
        wall, own = (result.cases / max(seconds, 0.001) for seconds in (result.seconds, result.processor_seconds))
        yield (
            f"| {result.format} | {result.cases:,} | {wall:,.0f} | {own:,.0f} | {result.kept:,} | {result.new:,}"
            f" | {len(result.findings)} |"
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
