"""Study of corrupt index files: what a starting broker does with them, as predicted or not, and a consumer's cost.

One broker starts three times for all cases (:mod:`conformance.studies.index_corruption.experiment`). kidx opens a copy
of the corrupt files in the dialect of the release and predicts every result.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

from conformance.events import Diverged, Measured, Result
from conformance.report.markdown_escape import table
from conformance.studies.index_corruption.cases import CASES, Case
from conformance.studies.study import BrokerRelease, OneBrokerStudy, Request

if TYPE_CHECKING:
    from conformance.events import Event
    from conformance.operations import Json
    from conformance.studies.index_corruption.experiment import CaseResult

MACHINE: Final = "hands"
"""Name in reports and events, which keep the name that the command had up to 0.1."""
_CLAUSES: Final = ["SEG-35", "SEG-36", "SEG-30", "LO-6"]
"""Clauses about the index files that a starting broker trusts or rewrites, and about lookups in them."""
_HEADINGS: Final = ("shutdown", "segment", "file", "corruption")
"""Headings of the columns for a case's shutdown, place, suffix and corruption."""
_LEGEND: Final = """\
A cell states what the broker does with the file (*kept* unchanged, *rebuilt* from the log, re-created but *emptied*,
*gone*), or that it *does not start*. What the worst lookup costs the consumer follows: records that it never reads
after `offsetsForTimes` (*missed*), records before the correct position (*reread*), offsets at which a fetch returns
something other than the next record (*bad fetches*). No cost: every response was correct. *appends* is the error that a
producer gets. *Sealed*: an inactive segment. **Bold**: kidx had not predicted it.
"""


class IndexCorruption(OneBrokerStudy["CaseResult"]):
    """Index files are corrupted while a broker is stopped; each result is compared with kidx's prediction."""

    name = "corrupt"
    help = """Delete, rename, truncate, overwrite or falsify index files of a stopped broker, then start and query the broker.

    For every case, the command shows what the broker did with the file, how many records a consumer would miss or read
    again after `offsetsForTimes`, and whether kidx predicted this. Exit code 0: all as predicted, 1: not.

    Example: `conformance corrupt --kafka 2.4.1 --kafka 4.4.0 --report out/corrupt`
    """  # noqa: E501 -- the first line of the help is one line
    machines, takes = (MACHINE,), ("kafka", "broker", "report", "as_json", "quiet")
    report, title, rows_name = "corrupt", "Index corruption", "cases"

    def look(self, bench: BrokerRelease, case: Request) -> Iterator[CaseResult]:
        from conformance.kafka.broker import new_broker  # noqa: PLC0415 -- part of an extra
        from conformance.studies.index_corruption.experiment import run_corruption_cases  # noqa: PLC0415

        with new_broker(bench.release, case.broker, progress=bench.progress) as running:
            yield from run_corruption_cases(running, CASES, case.show)

    def events(self, release: str, rows: Sequence[Json], seconds: float) -> Iterator[Event]:
        """Yield a divergence for each case that kidx did not predict, a metric, and the result."""
        differing = [row for row in rows if not row["as_predicted"]]
        for row in differing:
            failure = {
                "step": 0,
                "participant": f"broker {release}",
                "release": release,
                "against": "kidx",
                "aspects": ["outcome"],
                "expected": "as kidx predicts",
                "actual": "; ".join(row["differences"]),
                "clauses": _CLAUSES,
            }
            case = Case(*_case_of(row))
            replay = f"conformance corrupt --kafka {release}"
            yield Diverged(MACHINE, failure, (), (str(case),), "", replay, "broker")
        cost = {name: max(row[name] for row in rows) for name in ("missed", "reread")}
        details = {"cases": len(rows), "wrong": _answered_wrong(rows), **cost}
        yield Measured("hands on the files", release, not differing, details)
        lookups = sum(row["lookups"] for row in rows)
        yield Result(MACHINE, "broker", release, len(rows), lookups, seconds, len(differing), {}, {}, details)

    def page(self, rows: Sequence[Json], command: str) -> str:
        return markdown(rows)


def markdown(rows: Sequence[Json]) -> str:
    """Return a summary of each release, and a row for each case with a column for each set of releases that agree."""
    by_release: dict[str, list[Json]] = {}
    cases: dict[tuple[str, ...], dict[str, Json]] = {}
    for row in rows:
        by_release.setdefault(row["release"], []).append(row)
        cases.setdefault(_case_of(row), {})[row["release"]] = row
    columns: dict[tuple[str, ...], list[str]] = {}
    for release in by_release:
        columns.setdefault(tuple(_cell(found.get(release)) for found in cases.values()), []).append(release)
    headings = [*_HEADINGS, *map(", ".join, columns.values())]
    lines = (
        [shutdown, place, f"`{suffix}`", damage, *cells]
        for (shutdown, place, suffix, damage), cells in zip(cases, zip(*columns, strict=True), strict=True)
    )
    return "\n".join([_LEGEND, *_summary(by_release), "", *table(headings, lines, numbers=len(headings))]) + "\n"


def _case_of(row: Json) -> tuple[Any, ...]:
    return row["shutdown"], row["place"], row["suffix"], row["damage"]


def _answered_wrong(rows: Iterable[Json]) -> int:
    """Return the number of cases with a wrong answer."""
    return sum(row["wrong"] > 0 or row["bad_fetches"] > 0 for row in rows)


def _summary(by_release: Mapping[str, Sequence[Json]]) -> list[str]:
    header = ["release", "cases", "broker starts", "wrong lookups", "max missed", "max reread", "predicted"]
    lines = []
    for release, rows in by_release.items():
        starts, predicted = (sum(row[name] for row in rows) for name in ("broker_starts", "as_predicted"))
        missed, reread = (max(row[name] for row in rows) for name in ("missed", "reread"))
        numbers = map(str, (len(rows), starts, _answered_wrong(rows), missed, reread))
        lines.append([release, *numbers, f"{predicted}/{len(rows)}"])
    return table(header, lines, numbers=len(header))


def format_result(row: Json) -> str:
    """Format what a broker has done, and what it costs."""
    if not row["broker_starts"]:
        return "does not start"
    costs = {"missed": row["missed"], "reread": row["reread"], "bad fetches": row["bad_fetches"]}
    parts = [row["repair"], *(f"{what} {count}" for what, count in costs.items() if count)]
    if row["appends"] != "ok":
        parts.append(f"appends: {row['appends']}")
    return ", ".join(parts)


def _cell(row: Json | None) -> str:
    if row is None:
        return ""
    return format_result(row) if row["as_predicted"] else f"**{format_result(row)}**"


CORRUPT: Final = IndexCorruption()
