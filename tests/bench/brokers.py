"""Writer of ``reports/brokers.md``: ``python -m tests.bench.brokers [--run DIR] [--kill-cycles DIR]``.

The directories are reports of the two runs that the page names, or of the same runs with some releases. The results of
their releases replace the earlier ones in the tables of the page; without directories, it is written from these.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from conformance.report import markdown_escape
from conformance.report.stream import read_stream
from conformance.runs.broker_table import measured
from kidx.dialect import version_of

PAGE = Path(__file__).parents[2] / "reports/brokers.md"
TEXT = """\
# Real brokers

Written by `python3 bootstrap.py python -m tests.bench.brokers --run DIR --kill-cycles DIR`.

## All locked releases

`conformance run -i broker --kafka all --broker local --seed 26 --report DIR` runs every locked release as a broker:
with ZooKeeper before 3.3, with KRaft from then on. Each has several topics and a restart or a kill between
steps. At the end come a `kill -9`, a start, one more batch, and a clean stop. These {releases} releases have executed
{steps:,} steps. Of {answers:,} responses and {segments:,} segments, {unexplained} are unexplained.

After every step all lookups are made (-1 to -8, the smallest number, a grid around the timestamps, both isolation
levels), and every file of the running broker is compared. The column of segments counts only segments of stopped
brokers. *rejected* counts starts that broker and kidx both reject (LG-19). *acknowledged* counts batches; every
later stop has preserved them.

{run}
## Twenty kills in a row

`conformance run -i broker --kafka 2.4.1 --kafka 4.3.1 --broker local --kill-cycles 20 --seed 20 --report DIR`: in
every cycle three topics receive batches that all replicas acknowledge and `flush.messages=1` writes to the disk.
Transactions begin and end, and the broker is killed while forty more batches are sent. Every acknowledged batch is
at its offset. Of the other batches the log contains the first ones, in order. The twenty-first kill is the kill at
the end of every run.

{kill_cycles}
[Finding 6](../findings/06-full-time-index-prevents-recovery.md) describes a kill after which a broker does not
start, as kidx predicts.
"""


def results_of(directory: Path) -> list[dict[str, Any]]:
    """Return the row of each release in a report."""
    results = read_stream(directory / "events.ndjson").results
    return [{"release": row.name} | row.figures for result in results for row in measured(result)]


def table(results: list[dict[str, Any]]) -> str:
    """Return the rows in Markdown."""
    rows = [[*map(str, each.values())] for each in results]
    return "".join(f"{line}\n" for line in markdown_escape.table([*results[0]], rows, numbers=3))


def read(page: str) -> dict[str, list[dict[str, Any]]]:
    """Return the results in the tables of a page."""
    tables = ([line for line in part.splitlines() if line.startswith("|")] for part in page.split("\n\n"))
    rows = [[line.strip("| ").split(" | ") for line in lines if "---" not in line] for lines in tables if lines]
    return {
        name: [dict(zip(header, row, strict=True)) for row in some]
        for name, (header, *some) in zip(("run", "kill_cycles"), rows, strict=True)
    }


def page(results: dict[str, list[dict[str, Any]]]) -> str:
    """Return the page of the results of both runs."""
    sums = {"answers": "answers compared", "segments": "segments compared"}
    totals = {
        name: sum(int(each[sums.get(name, name)]) for each in results["run"])
        for name in ("steps", "answers", "segments", "unexplained")
    }
    return TEXT.format(releases=len(results["run"]), **totals, **{name: table(its) for name, its in results.items()})


def main() -> None:
    """Write the results and the page."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for name in ("--run", "--kill-cycles"):
        parser.add_argument(name, type=Path, metavar="DIR", help="report of this run")
    results = read(PAGE.read_text("utf-8"))
    for name, path in vars(parser.parse_args()).items():
        if path is not None:
            rows = {row["release"]: row for row in (*results[name], *results_of(path))}
            results[name] = sorted(rows.values(), key=lambda row: version_of(row["release"]))
    PAGE.write_text(page(results), "utf-8")


if __name__ == "__main__":
    main()
