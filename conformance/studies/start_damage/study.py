"""Study of corrupt log directories: whether a broker starts with them, and how its partitions end, as predicted."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Annotated, Any, Final

import msgspec

from conformance.errors import ToolError
from conformance.report.markdown_escape import table
from conformance.studies.study import BrokerStudy, Request
from kidx.dialect import version_of

if TYPE_CHECKING:
    from pathlib import Path

    from conformance.kafka.jar_fetch import Progress
    from conformance.operations import Json
    from conformance.studies.start_damage.cases import Case
    from conformance.studies.start_damage.experiment import Experiment, Shared, StartResult

_LEGEND: Final = """\
A broker was stopped, its directories were corrupted, `kidx verify` predicted the next start, and the broker started.
*end N*: the end of the partition after the start; before, it was 48 after a clean stop and 84 after `kill -9`. Segments
are named by their base offsets; a killed broker had not flushed the segments from 48 on. A cell in bold was not
predicted. *New records cannot be read*: a producer's first batches were rejected, or acknowledged and not found by a
consumer. Retention was checked every second. *Sealed*: of an inactive segment. Cases that share a start share its
answer: no, as soon as one of them loses records.
"""


class Options(msgspec.Struct, frozen=True):
    """Options of the study.

    Attributes:
        only: text in the names of the cases.
        follow_advice: True to follow the printed advice before each start.
    """

    only: Annotated[
        str | None,
        msgspec.Meta(
            title="TEXT",
            description="Only cases whose names contain TEXT; DIR/damage.json keeps the results of the others.",
        ),
    ] = None
    follow_advice: Annotated[
        bool,
        msgspec.Meta(
            description="Execute the commands that `kidx verify` prints before each start; omit cases without any."
        ),
    ] = False


class StartDamage(BrokerStudy["Experiment", "Shared", "StartResult"]):
    """Log directories are corrupted while a broker is stopped; each start is compared with a prediction."""

    name = "damage"
    help = """Corrupt log directories of a stopped broker, let `kidx verify` predict the next start, and start the broker.

    Each case corrupts the files of a real broker that was stopped cleanly or killed. The command shows whether the
    broker starts, which log directory goes offline, and where the partition ends. A release with ZooKeeper has no cases
    of KRaft's own log. Exit code 0: all as predicted, 1: not.

    Example: `conformance damage --kafka 3.9.2 --kafka 4.3.1 --report out/damage`
    """  # noqa: E501 -- the first line of the help is one line
    takes, options = ("kafka", "report", "as_json", "quiet"), Options
    report, title, rows_name = "damage", "Corruption and the next start", "cases"
    merges, jobs = True, 2  # a starting broker mostly waits

    def check(self, request: Request, earlier: Sequence[Json] | None) -> None:
        if not _chosen(request):
            raise ToolError(f"no case has {request.options.only!r} in its name")
        if any((row.get("followed", 0) > 0) != request.options.follow_advice for row in earlier or ()):
            raise ToolError("the report has starts with and without --follow-advice; choose another directory")

    def open(
        self, release: str, scratch: Path, progress: Progress | None = None, change: Callable[[Any], Any] | None = None
    ) -> Experiment:
        from conformance.studies.start_damage.experiment import Experiment  # noqa: PLC0415 -- part of an extra

        return Experiment(release, scratch)

    def groups(
        self, bench: Experiment, request: Request, done: Mapping[str, Sequence[Json]]
    ) -> Iterator[tuple[str, Iterable[Shared]]]:
        """Yield the cases that share a start, without those that have a result or that are done alone."""
        bench.report, bench.follows = request.show, request.options.follow_advice
        known = {_case(row) for rows in done.values() for row in rows}
        left = [case for case in _chosen(request) if case[:2] not in known and str(case) not in done]
        yield from ((str(shared), (shared,)) for shared in bench.starts(left))

    def look(self, bench: Experiment, case: Shared) -> Iterator[StartResult]:
        yield from bench.start(case)

    def merged(self, earlier: Sequence[Json], rows: Sequence[Json], request: Request) -> list[Json]:
        from conformance.studies.start_damage.cases import CASES  # noqa: PLC0415 -- part of an extra

        places: dict[tuple[str, str], int] = {case[:2]: number for number, case in enumerate(CASES)}
        kept = earlier if request.options.only is not None else ()
        known = {(*_case(row), row["release"]): row for row in kept if _case(row) in places}
        found = known | {(*_case(row), row["release"]): row for row in rows}
        return sorted(found.values(), key=lambda row: (places[_case(row)], version_of(row["release"])))

    def page(self, rows: Sequence[Json], command: str) -> str:
        cases: dict[tuple[str, str], dict[str, Json]] = {}
        for row in rows:
            cases.setdefault(_case(row), {})[row["release"]] = row
        releases = sorted({row["release"] for row in rows}, key=version_of, reverse=True)
        summary = []
        for release in releases:
            some = [row for row in rows if row["release"] == release]
            dead = sum(row["happened"] == "does not start" for row in some)
            harmed = sum(row["answer"] == "no" and row["happened"] != "does not start" for row in some)
            right = sum(row["as_predicted"] for row in some)
            summary.append([release, str(len(some)), str(dead), str(harmed), f"{right}/{len(some)}"])
        header = ["release", "cases", "do not start", "start, though the answer was no", "predicted"]
        lines = [
            [shutdown, name.replace("|", "\\|"), *(_cell(by_release.get(release)) for release in releases)]
            for (name, shutdown), by_release in cases.items()
        ]
        tables = _table(header, summary), _table(["broker", "corruption", *releases], lines)
        return "\n".join([_LEGEND, *tables[0], "", *tables[1]]) + "\n"


def _chosen(request: Request) -> list[Case]:
    from conformance.studies.start_damage.cases import CASES  # noqa: PLC0415 -- part of an extra

    return [case for case in CASES if request.options.only is None or request.options.only in str(case)]


def _case(row: Json) -> tuple[str, str]:
    return row["damage"], row["shutdown"]


def _table(header: list[str], rows: Iterable[list[str]]) -> list[str]:
    return table(header, rows, numbers=len(header))


def _cell(row: Json | None) -> str:
    if row is None:
        return ""
    return str(row["happened"]) if row["as_predicted"] else f"**{row['happened']}** (predicted: {row['predicted']})"


DAMAGE: Final = StartDamage()
