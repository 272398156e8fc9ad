"""Parquet tables of a campaign: one for each of results, clauses and divergences, from the event streams of its cells.

A cell is the test run of one release and state machine with one seed. Every row begins with these three.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa
from pyarrow import parquet

from kidx.files import replacing

if TYPE_CHECKING:
    from conformance.report.combined import CombinedReport
    from conformance.report.stream import Stream

_KEY: Final = [
    ("release", pa.string()),
    ("machine", pa.string()),
    ("seed", pa.int64()),
    ("implementation", pa.string()),
]

RESULTS: Final = pa.schema([
    *_KEY,
    ("examples", pa.int64()),
    ("steps", pa.int64()),
    ("seconds", pa.float64()),
    ("divergences", pa.int64()),
    ("verdict", pa.string()),
    ("cut", pa.bool_()),  # True if the time limit ended the cell early; a later attempt repeats it
])  # fmt: skip
CLAUSES: Final = pa.schema([
    *_KEY,
    ("clause", pa.string()),
    ("verdict", pa.string()),
    ("steps", pa.int64()),  # number of steps that exercised the clause
])  # fmt: skip
DIVERGENCES: Final = pa.schema([
    *_KEY,
    ("clauses", pa.list_(pa.string())),
    ("failure", pa.string()),  # JSON, as in the trace
    ("steps", pa.list_(pa.string())),
    ("trace", pa.string()),  # the whole trace, so that a row can be replayed without files
    ("replay", pa.string()),
])  # fmt: skip

Row = dict[str, Any]


def write_tables(directory: Path, report: CombinedReport) -> None:
    """Write ``results.parquet``, ``clauses.parquet`` and ``divergences.parquet``, each atomically."""
    directory.mkdir(parents=True, exist_ok=True)
    for name, schema, rows in (
        ("results", RESULTS, _results),
        ("clauses", CLAUSES, _clauses),
        ("divergences", DIVERGENCES, _divergences),
    ):
        table = pa.Table.from_pylist([row for stream in report.streams for row in rows(stream)], schema=schema)
        with replacing(directory / f"{name}.parquet") as partial:
            parquet.write_table(table, partial)


def _results(stream: Stream) -> Iterator[Row]:
    for result in stream.results:
        yield {
            "release": result.release,
            "machine": result.machine,
            "seed": stream.header.seed,
            "implementation": result.implementation,
            "examples": result.examples,
            "steps": result.steps,
            "seconds": result.seconds,
            "divergences": result.divergences,
            "verdict": "diverges" if result.divergences else "conforms",
            "cut": bool(result.details.get("cut_by_time")),
        }


def _clauses(stream: Stream) -> Iterator[Row]:
    for result in stream.results:
        for clause, verdict in result.verdicts.items():
            yield {
                "release": result.release,
                "machine": result.machine,
                "seed": stream.header.seed,
                "implementation": result.implementation,
                "clause": clause,
                "verdict": verdict,
                "steps": result.clauses.get(clause, 0),
            }


def _divergences(stream: Stream) -> Iterator[Row]:
    for divergence in stream.divergences:
        path = Path(divergence.trace)
        yield {
            "release": stream.header.releases[0],
            "machine": divergence.machine,
            "seed": stream.header.seed,
            "implementation": divergence.implementation,
            "clauses": [clause for clause, _, _ in divergence.requirements],
            "failure": json.dumps(divergence.failure),
            "steps": list(divergence.steps),
            "trace": path.read_text("utf-8") if path.exists() else None,
            "replay": divergence.replay,
        }
