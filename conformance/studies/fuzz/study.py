"""Study of corrupt files: do kidx and implementations open and query them with the same results?"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import msgspec

from conformance.errors import ToolError
from conformance.events import Measured
from conformance.implementations.forms import is_server
from conformance.implementations.jvm.virtual_machine import enable_c2_compiler
from conformance.implementations.spec import parse_spec
from conformance.report.markdown_escape import table
from conformance.scratch import state_directory
from conformance.studies.fuzz.coverage_guided import Options, fuzz_guided, has_atheris
from conformance.studies.study import Request, Search, Study
from conformance.verdict import VERDICT_LABELS, Comparison, combined

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from conformance.events import Event
    from conformance.kafka.jar_fetch import Progress
    from conformance.operations import Json

_LONG_RUN_S: Final = 60.0
"""Shortest run in seconds that uses Java's second compiler, whose compilation takes time."""
_LEGEND: Final = """\
*cases*: corrupted files that Kafka's classes read; releases that must have the same result had it, unless there are
findings. *compared*: cases with the same result as kidx: every flipped bit, every file with a new kind of outcome or
new code, and one in 64 of the others. *corpus*: files that reached new code or had a new result; *new*: files that
this run has added. CPU time is the time of all threads from the start on, compilers included: a longer run has higher
rates. Code that runs only when an index is created, resized, renamed or deleted is not reached; the machines execute
it.
"""


class Fuzz(Study[Any, str, "Json", Any]):
    """Mutated files of each format; the formats share the time."""

    name = "fuzz"
    help = """Mutate valid index and log files, and compare the outcomes of opening and querying them.

    The command first flips every bit of a small file of each format, and counts the outcomes. Then it mutates files at
    random: some mutations use the format, others do not. Inputs that produce a new outcome, or reach new code in Kafka,
    are added to the corpus and mutated further, in this run and in the next. Exit code 0: no divergence, crash or hang,
    1: a finding, with its trace, 2: could not run, or compared nothing, 3: the time ended before the flipped bits,
    the corpus or the requested inputs.

    Example: conformance fuzz --kafka 3.9.2 --format time --max-time 120
    """
    machines, machine = ("offset", "time", "txn", "log"), "format"
    options, together, report, title = Options, True, "fuzz", "Fuzzing"
    examples, least, seconds, saves_with_json, continues = None, 0, 60.0, True, False
    example, limited = "Inputs of each format, in addition to every flipped bit.", "Seconds for the whole run."
    takes = (
        *("kafka", "implementation", "machine", "seed", "max_examples", "max_time", "report", "step_timeout"),
        *("shrink_time", "allow_incomplete", "as_json", "quiet"),
    )

    def chosen(self, implementations: Sequence[str]) -> tuple[str, ...]:
        """Return the formats: only Kafka's classes open logs."""
        only_kafka = all(parse_spec(text).form == "jvm" for text in implementations)
        return self.machines if only_kafka else self.machines[:-1]

    def check(self, request: Request, earlier: Sequence[Json] | None) -> None:
        for text in request.implementations:
            parse_spec(text)
            if is_server(text):
                raise ToolError("a broker cannot open a given file: use jvm, exec:COMMAND or python:MODULE:FACTORY")
        if request.options.coverage_guided and not has_atheris():
            raise ToolError("--coverage-guided requires atheris; install with pip install atheris")

    def search(self, request: Request, release: str, scratch: Path, progress: Progress | None = None) -> Search:
        from conformance.studies.fuzz.runner import fuzz  # noqa: PLC0415 -- with NumPy

        if request.examples is None and (request.seconds or 0) >= _LONG_RUN_S:
            enable_c2_compiler()
        options = request.options
        corpus = options.corpus or state_directory() / "fuzz"
        request = request._replace(options=msgspec.structs.replace(options, corpus=corpus))
        results = fuzz_guided(request) if options.coverage_guided else fuzz(request, progress)
        return [result.to_json() for result in results], False

    def comparison(self, rows: Sequence[Json]) -> Comparison:
        return combined(
            Comparison(row["compared"], len(row["findings"]), tuple(row["missing"]), idle=tuple(row["idle"]))
            for row in rows
        )

    def events(self, release: str, rows: Sequence[Json], seconds: float) -> Iterator[Event]:
        for row in rows:
            yield Measured("fuzzing", row["format"], not row["findings"], {"cases": row["cases"]})

    def shown(self, release: str, rows: Sequence[Json]) -> Iterator[str]:
        """Yield a table of the formats, then the coverage of Kafka's classes and the effect of flipped bits."""
        cells = _cells(rows)
        widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
        yield from ("  ".join(map(str.rjust, line, widths)) for line in cells)
        for row in rows:
            for name, classes in row["coverage"].items():
                sums = [sum(counts) for counts in zip(*(each[1:] for each in classes), strict=True)]
                reached = f"{sums[0]} of {sums[1]} lines, {sums[2]} of {sums[3]} branches" if sums else "nothing"
                yield f"{row['format']}, coverage of {name}: {reached}"
            yield f"{row['format']}, every bit of {sum(row['flips'].values()) // 8} bytes flipped:"
            yield from (f"  {count:>6,}  {what}" for what, count in row["flips"].items())

    def page(self, rows: Sequence[Json], command: str) -> str:
        """Return a table of the formats, and the coverage of Kafka's classes for each."""
        head, *cells = _cells(rows)
        lines = [_LEGEND, *table(head, cells, numbers=1)]
        for row in rows:
            lines += (f"\n- {row['format']}: {kind}: `{path}`" for kind, path in row["findings"].items())
            for name, classes in row["coverage"].items():
                lines.append(f"\n## {row['format']}: the classes of {name}\n")
                counted = [[f"`{each}`", *map(str, counts)] for each, *counts in classes]
                lines += table(["class", "lines", "of", "branches", "of"], counted, numbers=1)
        return "\n".join(lines) + "\n"

    def conclusion(self, rows: Sequence[Json]) -> str:
        compared = self.comparison(rows)
        words = {"conforms": "no finding", "diverges": f"findings: {compared.differences}"}
        return words.get(compared.conclusion, f"no finding, but {VERDICT_LABELS[compared.conclusion]}") + "\n"


def _cells(rows: Sequence[Json]) -> list[list[str]]:
    """Return a table of the formats, beginning with its head."""
    lines = [["format", "cases", "compared", "cases/s", "cases/s of CPU time", "corpus", "new", "memory", "findings"]]
    for row in rows:
        rates = [row["cases"] / max(row[name], 0.001) for name in ("seconds", "processor_seconds")]
        numbers = [row["cases"], row["compared"], *rates, row["kept"], row["new"]]
        memory, found = f"{row['peak_bytes'] >> 20} MiB", str(len(row["findings"]))
        lines.append([row["format"], *(f"{number:,.0f}" for number in numbers), memory, found])
    return lines


FUZZ: Final = Fuzz()
