"""Combination of several runs into one report, with a verdict for each implementation, clause and release.

The runs may be shards of one campaign, by machine or by release. A clause diverges if it diverged in one of the runs.
It conforms only if a step exercised it.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Final, NamedTuple

from conformance.attribution.tables import machines_of
from conformance.clauses import load_clauses
from conformance.implementations.forms import is_server, machine_of
from conformance.kafka.releases import RELEASES
from conformance.lockstep.generator_coverage import is_coverage
from conformance.report.remarks import describe_failures, stopped_by_time
from conformance.runs.completeness import compared_in

if TYPE_CHECKING:
    from collections.abc import Sequence

    from conformance.clauses import Clause
    from conformance.events import Diverged, Measured, Result, RunStarted, Verdict
    from conformance.report.stream import Stream
    from conformance.verdict import Comparison, Conclusion

VERDICTS_BY_SEVERITY: Final[tuple[Verdict, ...]] = (
    "diverges",
    "expected-divergence",
    "tolerated",
    "conforms",
    "could-not-run",
    "unsupported",
    "not-run",
)
"""Verdicts, the most severe first: it counts if machines or shards have different verdicts on a clause."""


class Place(NamedTuple):
    """Key of a cell in the matrix of verdicts: an ``-i`` argument, a release, and the id of a clause."""

    implementation: str
    release: str
    clause: str


class Throughput(NamedTuple):
    """Work and time of a machine."""

    machine: str
    examples: int
    steps: int
    checks: int
    """Sum of the steps of all implementations."""
    seconds: float
    cut: str = ""
    """Remark about a machine that ``--max-time`` ended before its last example; otherwise empty."""

    @property
    def label(self) -> str:
        """Name of the machine, with a remark if it was cut."""
        return f"{self.machine} ({self.cut})" if self.cut else self.machine


@dataclass
class CombinedReport:
    """Several runs, combined.

    Attributes:
        streams: event streams of the runs.
        verdicts: verdict of every clause that a machine of some run can exercise; other clauses are ``not-run``.
        exercised: number of steps that exercised each clause.
        allow_incomplete: True if it is no error that less was compared than requested.
    """

    streams: Sequence[Stream]
    verdicts: dict[Place, Verdict] = field(default_factory=dict)
    exercised: Counter[Place] = field(default_factory=Counter)
    allow_incomplete: bool = False

    def __post_init__(self) -> None:
        for result in self.results:
            for clause, verdict in result.verdicts.items():
                place = Place(result.implementation, result.release, clause)
                known = self.verdicts.get(place, "not-run")
                self.verdicts[place] = min(known, verdict, key=VERDICTS_BY_SEVERITY.index)
                self.exercised[place] += result.clauses.get(clause, 0)

    # -- implementations and machines --------------------------------------------------------------------------

    @property
    def headers(self) -> list[RunStarted]:
        """Header of each run."""
        return [stream.header for stream in self.streams]

    @cached_property
    def results(self) -> list[Result]:
        """Results of all runs."""
        return [result for stream in self.streams for result in stream.results]

    @cached_property
    def divergences(self) -> list[Diverged]:
        """Divergences of all runs."""
        return [divergence for stream in self.streams for divergence in stream.divergences]

    @cached_property
    def measured(self) -> dict[str, list[Measured]]:
        """Metrics of the harness, by table."""
        tables: dict[str, list[Measured]] = {}
        for stream in self.streams:
            for row in stream.measured:
                tables.setdefault(row.table, []).append(row)
        return tables

    @property
    def figures(self) -> dict[str, list[Measured]]:
        """Metrics about implementations, by table."""
        return {table: rows for table, rows in self.measured.items() if not is_coverage(table)}

    @property
    def coverage(self) -> dict[str, list[Measured]]:
        """Metrics of generator coverage, by table; for the harness's developers."""
        return {table: rows for table, rows in self.measured.items() if is_coverage(table)}

    @cached_property
    def releases(self) -> tuple[str, ...]:
        """Releases of all runs, oldest first; releases unknown to this version come last."""
        found = {release for header in self.headers for release in header.releases}
        return (*(r for r in RELEASES if r in found), *sorted(found.difference(RELEASES)))

    @cached_property
    def implementations(self) -> tuple[str, ...]:
        """Implementations of all runs, in the order of their ``-i`` arguments."""
        return tuple(dict.fromkeys(name for header in self.headers for name in header.implementations))

    @property
    def editions(self) -> tuple[str, ...]:
        """Editions whose clauses alone count in runs, as text; empty if all clauses count in every run."""
        return tuple(dict.fromkeys(f"edition {header.edition}" for header in self.headers if header.edition))

    # -- verdicts ----------------------------------------------------------------------------------------------

    @property
    def cut_off(self) -> list[str]:
        """Sentences about the runs that are incomplete."""
        return [stream.cut_off for stream in self.streams if stream.cut_off]

    @property
    def failures(self) -> list[str]:
        """Sentences about programs that failed during examples."""
        results = (result for stream in self.streams for result in stream.results)
        return [line for line in map(describe_failures, results) if line]

    @property
    def stale(self) -> list[str]:
        """Expectations that no divergence matched although their clause was exercised."""
        return [line for stream in self.streams if stream.footer for line in stream.footer.details.get("stale", ())]

    @property
    def failing(self) -> list[Measured]:
        """Failed metrics of the harness; coverage that an incomplete run has not reached does not count."""
        return [
            row
            for stream in self.streams
            for row in stream.measured
            if row.passed is False and not (stream.cut_off and is_coverage(row.table))
        ]

    @cached_property
    def comparison(self) -> Comparison:
        """Summary of what all runs have compared together; metrics of the harness count, too."""
        diverges = any(stream.footer.verdict in ("diverges", "stale") for stream in self.streams if stream.footer)
        differences = len(self.divergences) + len(self.stale) + len(self.failing)
        compared = compared_in(self.results, differences or int(diverges))
        return replace(compared, count=compared.count + len(self.measured), gaps=(*self.cut_off, *compared.gaps))

    @property
    def verdict(self) -> Conclusion:
        """Verdict of all runs together."""
        return self.comparison.conclusion

    @property
    def missing(self) -> tuple[str, ...]:
        """Sentences about what was not compared although it was requested, except in runs that were cut off."""
        return tuple(reason for reason in self.comparison.reasons if reason not in self.cut_off)

    def verdict_of(self, implementation: str, release: str, clause: Clause) -> Verdict | None:
        """Return the verdict in a cell of the matrix; None if the clause does not apply to the release."""
        found = self.verdicts.get(Place(implementation, release, clause.id))
        if found is not None:
            return found
        return "not-run" if clause.applies_to(release) else None

    def rows(self, implementation: str) -> list[Clause]:
        """Return the clauses in an implementation's matrix: all, only an edition, or only the machine of a server."""
        releases = self.tested(implementation)
        clauses = [c for c in load_clauses().values() if any(map(c.applies_to, releases))]
        machine = machine_of(implementation)
        if not machine and not all(header.edition for header in self.headers):
            return clauses
        with_verdict = {place.clause for place in self.verdicts if place.implementation == implementation}
        return [
            clause
            for clause in clauses
            if clause.id in with_verdict or (machine in machines_of(clause.id) and not self.editions)
        ]

    def tested(self, implementation: str) -> list[str]:
        """Return the releases that an implementation was compared with, in any run."""
        requested = {r for header in self.headers if implementation in header.implementations for r in header.releases}
        return [release for release in self.releases if release in requested]

    def count(self, implementation: str, release: str | None = None) -> Counter[Verdict]:
        """Return the number of cells with each verdict in an implementation's matrix, or in a release's column."""
        releases = self.tested(implementation) if release is None else [release]
        cells = (self.verdict_of(implementation, r, clause) for clause in self.rows(implementation) for r in releases)
        return Counter(verdict for verdict in cells if verdict is not None)

    # -- metrics -----------------------------------------------------------------------------------------------

    @cached_property
    def pace(self) -> list[Throughput]:
        """Work and time of each machine in all runs."""
        found: dict[str, Throughput] = {}
        for stream in self.streams:
            # Implementations in one lockstep execute the same steps. Each release of a server has its own lockstep.
            locksteps: dict[tuple[str, str], list[Result]] = {}
            for result in stream.results:
                server_release = result.release if is_server(result.implementation) else ""
                locksteps.setdefault((result.machine, server_release), []).append(result)
            for (machine, _), results in locksteps.items():
                # An implementation that has dropped out of the run has fewer steps.
                first = max(results, key=lambda result: result.steps)
                known = found.get(machine, Throughput(machine, 0, 0, 0, 0.0))
                found[machine] = Throughput(
                    machine,
                    known.examples + first.examples,
                    known.steps + first.steps,
                    known.checks + sum(result.steps for result in results),
                    known.seconds + first.seconds,
                    known.cut or stopped_by_time(first),
                )
        return list(found.values())

    @property
    def steps(self) -> int:
        """Total steps of all machines."""
        return sum(pace.steps for pace in self.pace)

    @property
    def seconds(self) -> float:
        """Total time of the runs; if a run was cut off, the total time of all machines."""
        of_machines = sum(pace.seconds for pace in self.pace)
        footers = [stream.footer for stream in self.streams]
        return of_machines if None in footers else sum(footer.seconds for footer in footers if footer is not None)
