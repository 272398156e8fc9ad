"""Study of interleavings: which operations of Kafka's indexes, segments, caches and logs are not atomic."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Final

import msgspec

from conformance.errors import ToolError
from conformance.implementations.jvm.interruptible import interruptible_digest
from conformance.studies.interleave import page, trace
from conformance.studies.interleave.interrupter import Interrupter, Pair, Result
from conformance.studies.interleave.java_test import interleaving_test
from conformance.studies.interleave.planted import PLANTED
from conformance.studies.interleave.scenarios import KINDS, LOGS, Case
from conformance.studies.interleave.trace import Interleaving
from conformance.studies.study import Request, Sameness, Study, load, shrunk

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from typing import Any

    from conformance.kafka.jar_fetch import Progress
    from conformance.operations import Json

_UNMAPPED: Final = "Unmapped"
"""Part of the result of an operation that has accessed memory after it was unmapped."""


class Interleave(Study[Interrupter, Case, Pair, Interleaving]):
    """Every operation of a scenario is interrupted at every point, and others run there."""

    name = "interleave"
    help = """Interrupt every operation at every access to a field, buffer or file, and execute other operations there.

    Kafka looks up indexes without a lock while another thread truncates and appends. A pair of operations is torn if
    no order of whole operations gives the same results. With `--machine log` two threads execute the operations of
    Kafka's own log; the name of a read says whether its offset is below or above the high watermark.

    Exit code 0: only known pairs (`conformance clauses IV-1`) are torn, 1: another pair is torn, 2: could not run, no
    pair was interrupted, or a planted race was not found, 3: --max-time ended the search early.

    Example: `conformance interleave --kafka 4.3.1 --machine offset`
    """
    machines, on_request = KINDS, LOGS
    example = "Scenarios of each machine."
    unit, looked, defect = "pairs", "pairs", "race"
    file, file_stem = Interleaving, "interleaving"
    planted = PLANTED
    export = staticmethod(interleaving_test)

    def open(
        self, release: str, scratch: Path, progress: Progress | None = None, change: Callable[[Any], bool] | None = None
    ) -> Interrupter:
        return Interrupter(release, scratch, progress, change=change)

    def digest(self, release: str, request: Request, progress: Progress | None) -> str:
        return interruptible_digest(release, progress, logs=not set(request.machines).isdisjoint(LOGS))

    def cases(self, bench: Interrupter, request: Request) -> Iterator[Case]:
        return bench.cases(request.machines, request.seed, request.examples or 1)

    def look(self, bench: Interrupter, case: Case) -> Iterator[Pair]:
        yield bench.interrupt(case)

    def fails(self, bench: Interrupter, case: Case) -> bool:
        return bool(bench.interrupt(case, stop_at_first=True).violations)

    def sameness(self, seen: Pair) -> Sameness | None:
        if not seen.violations:
            return None
        first, others = seen.case.names
        unmapped = any(_UNMAPPED in each.seen.first + each.seen.others for each in seen.violations)
        return {"index": seen.case.kind, "first": first, "others": others, "unmapped": unmapped}

    def smaller(self, case: Case) -> Iterator[Case]:
        """Yield the cases with one operation less before the interrupted operation, or one less in its middle."""
        for number in range(len(case.setup)):
            yield case._replace(setup=case.setup[:number] + case.setup[number + 1 :])
        others = case.others.split(";")
        if len(others) > 1:
            for number in range(len(others)):
                yield case._replace(others=";".join(others[:number] + others[number + 1 :]))

    def document(self, bench: Interrupter, seen: Pair, clause: str | None) -> Interleaving:
        """Return a violation by the fewest operations, executed by two threads.

        Raises:
            ToolError: two threads show no violation.
        """
        pair = bench.interrupt(case := shrunk(self, bench, seen.case))
        for violation in pair.violations:
            where, _, result = bench.perform(case, violation.schedule)
            if where == violation.where and result not in pair.orders:
                return Interleaving(
                    release=bench.release,
                    clause=clause,
                    machine=case.kind,
                    setup=case.setup,
                    first=case.first,
                    others=case.others,
                    **violation.schedule._asdict(),
                    where=where,
                    result=result,
                    orders=tuple(sorted(pair.orders)),
                    points=tuple(bench.points(case.kind)),
                )
        operations = f"{seen.case.first} with {seen.case.others}"
        raise ToolError(f"cannot reproduce with two threads that {operations} is not atomic in Kafka {bench.release}")

    def row(self, release: str, seen: Pair, clause: str | None) -> Json:
        return {
            "release": release,
            "machine": seen.case.kind,
            "index": seen.case.kind,
            "names": list(seen.case.names),
            "first": seen.case.first,
            "others": seen.case.others,
            "points": seen.points,
            "waits": seen.waits,
            "torn": len(seen.violations),
            "clause": clause,
            "where": sorted({violation.where for violation in seen.violations}),
        }

    def count(self, row: Json) -> int:
        return int(row["points"])

    def wrong(self, row: Json) -> list[str | None]:
        return [row["clause"]] if row["torn"] else []

    def named(self, seen: Pair) -> str:
        return f"{seen.case.first}, interrupted by {seen.case.others}"

    def shown(self, release: str, rows: Sequence[Json]) -> Iterator[str]:
        """Yield the torn pairs of a release, each with its shortest interleaving."""
        points, torn = sum(row["points"] for row in rows), [row for row in rows if row["torn"]]
        yield f"Kafka {release}: {len(rows)} pairs, {points} interruptions; {len(rows) - len(torn)} pairs are atomic"
        for row in torn:
            content = load(self, Path(row["trace"]))
            named = f"{content.machine}: {content.first}, interrupted by {content.others}"
            yield f"\n{content.clause or 'NEW'}  {named}"
            yield f"  torn at      {row['torn']} of {row['points']} points"
            yield f"  before       {', '.join(content.setup) or 'nothing'}"
            for line in trace.readable(content):
                yield f"  {line}"
            yield f"  result       {_text(content.result)}"
            for order in content.orders:
                yield f"  in order     {_text(order)}"
            yield f"  replay       conformance interleave --replay {row['trace']}"

    def page(self, rows: Sequence[Json], command: str) -> str:
        return page.table(rows, command)

    def verdict(self, new: int, count: int) -> str:
        return f"{'NEW TORN PAIRS' if new else 'no new torn pair'}: {new} of {count} pairs are torn and not known"

    def replayed(self, bench: Interrupter, content: Interleaving) -> tuple[bool, Json, str]:
        case, schedule = trace.case_of(content)
        orders = bench.orders(case)
        where, _, seen = bench.perform(case, schedule)
        torn, same = seen not in orders, (where, seen) == (content.where, content.result)
        told: Json = {"torn": torn, "same": same, "where": where, "result": msgspec.to_builtins(seen)}
        verdict = "FAILED" if torn else "HOLDS"
        return torn, told, f"{verdict} · {_text(seen)} · {'as recorded' if same else 'not as recorded'}"


def _text(result: Result) -> str:
    return f"{result.first} · {result.others} · {result.state}"


INTERLEAVE: Final = Interleave()
