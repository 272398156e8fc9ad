"""Page of a long run: ``python -m tests.bench.run_page DIR PAGE``, with the ``--report DIR`` of ``conformance run``.

It has the command, the numbers of examples and steps, and for each clause the steps that exercised it in the newest
release of the run that has the clause.
"""

from __future__ import annotations

import sys
from pathlib import Path

from conformance.report.stream import read_streams
from kidx.dialect import version_of
from tests.bench.frame import machine, write_page
from tests.bench.long_fuzz import commit

TITLES = {"cache": "Cache of remote index files", "tiered": "Log of two tiers"}


def main(directory: Path, page: Path) -> None:
    """Write the page."""
    (stream,) = read_streams([directory])
    results = [result for result in stream.results if not result.unsupported]
    by_age = sorted(results, key=lambda result: version_of(result.release))
    newest = by_age[-1]
    assert stream.footer is not None
    introduction = f"""Made by `{stream.header.command} --report {directory}`, then
`python3 bootstrap.py python -m tests.bench.run_page {directory} {page}`.

{len(results)} releases: {", ".join(result.release for result in results)}.

{sum(result.steps for result in results):,} steps in all ({newest.steps:,} in each release) of {newest.examples:,}
examples; {stream.footer.seconds:,.0f} seconds; commit {commit()}. Unique divergences: {len(stream.divergences)}.

{machine("hypothesis", "jpype1")}."""
    heads = ("clause", "newest release with it", "steps that exercised it")
    found = {clause: result for result in by_age for clause in result.clauses}
    rows = [(clause, result.release, f"{result.clauses[clause]:,}") for clause, result in sorted(found.items())]
    write_page(page, TITLES[newest.machine], introduction, heads, rows)


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
