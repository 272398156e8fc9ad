"""Several runs as one report: what each implementation came to in each clause and release.

Shards of one campaign, one machine each or one release each, are put together here. What happened in any of them
counts: a clause diverges if it diverged anywhere, and conforms only if a step exercised it.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Final, NamedTuple

from conformance.clauses import load_clauses
from conformance.implementations.forms import is_server, machine_of
from conformance.kafka.releases import RELEASES

if TYPE_CHECKING:
    from collections.abc import Sequence

    from conformance.clauses import Clause
    from conformance.events import Diverged, Measured, Result, RunStarted, Verdict
    from conformance.report.stream import Stream

STRONGEST_FIRST: Final[tuple[Verdict, ...]] = (
    "diverges",
    "expected-divergence",
    "conforms",
    "unsupported",
    "not-run",
)
"""What is said of a clause that several machines or shards say something about."""


class Place(NamedTuple):
    """A cell of the matrix."""

    implementation: str
    release: str
    clause: str


class Pace(NamedTuple):
    """What a machine did: of one lockstep's participants, or of one broker."""

    machine: str
    examples: int
    steps: int
    checks: int
    """Steps times the implementations that performed each."""
    seconds: float
    cut: bool = False
    """Whether ``--max-time`` ended it before its last example."""

    @property
    def label(self) -> str:
        """The machine, and whether it was cut."""
        return f"{self.machine} (cut by --max-time)" if self.cut else self.machine


@dataclass
class Combined:
    """Some runs, put together.

    Attributes:
        streams: the runs.
        verdicts: of every clause that a machine of some run is said to exercise; the others are ``not-run``.
        exercised: how many steps exercised it.
    """

    streams: Sequence[Stream]
    verdicts: dict[Place, Verdict] = field(default_factory=dict)
    exercised: Counter[Place] = field(default_factory=Counter)

    def __post_init__(self) -> None:
        for result in self.results:
            for clause, verdict in result.verdicts.items():
                place = Place(result.implementation, result.release, clause)
                known = self.verdicts.get(place, "not-run")
                self.verdicts[place] = min(known, verdict, key=STRONGEST_FIRST.index)
                self.exercised[place] += result.clauses.get(clause, 0)

    # -- implementations and machines --------------------------------------------------------------------------

    @property
    def headers(self) -> list[RunStarted]:
        """How each run was asked for."""
        return [stream.header for stream in self.streams]

    @cached_property
    def results(self) -> list[Result]:
        """The rows of all runs."""
        return [result for stream in self.streams for result in stream.results]

    @cached_property
    def divergences(self) -> list[Diverged]:
        """The differences of all runs."""
        return [divergence for stream in self.streams for divergence in stream.divergences]

    @cached_property
    def measured(self) -> dict[str, list[Measured]]:
        """Figures about the harness, by table."""
        tables: dict[str, list[Measured]] = {}
        for stream in self.streams:
            for row in stream.measured:
                tables.setdefault(row.table, []).append(row)
        return tables

    @cached_property
    def releases(self) -> tuple[str, ...]:
        """Every release of some run, oldest first; releases that this version does not know come last."""
        found = {release for header in self.headers for release in header.releases}
        return (*(r for r in RELEASES if r in found), *sorted(found.difference(RELEASES)))

    @cached_property
    def implementations(self) -> tuple[str, ...]:
        """Every implementation, in the order they were asked for."""
        return tuple(dict.fromkeys(name for header in self.headers for name in header.implementations))

    # -- verdicts ----------------------------------------------------------------------------------------------

    @property
    def cut_off(self) -> list[str]:
        """Which runs are not whole, in words."""
        return [stream.cut_off for stream in self.streams if stream.cut_off]

    @property
    def stale(self) -> list[str]:
        """Expectations that nothing has met although their clause was exercised."""
        return [line for stream in self.streams if stream.footer for line in stream.footer.details.get("stale", ())]

    @property
    def failing(self) -> list[Measured]:
        """Figures about the harness that are not what they have to be."""
        return [row for rows in self.measured.values() for row in rows if row.holds is False]

    @property
    def verdict(self) -> str:
        """``diverges``, else ``incomplete`` if a run was cut off, else ``conforms``."""
        footers = [stream.footer for stream in self.streams if stream.footer]
        if self.divergences or self.stale or self.failing or any(f.verdict != "conforms" for f in footers):
            return "diverges"
        return "incomplete" if self.cut_off else "conforms"

    def verdict_of(self, implementation: str, release: str, clause: Clause) -> Verdict | None:
        """A cell of the matrix; None where the clause says nothing about the release."""
        found = self.verdicts.get(Place(implementation, release, clause.id))
        if found is not None:
            return found
        return "not-run" if clause.applies_to(release) else None

    def rows(self, implementation: str) -> list[Clause]:
        """The clauses of an implementation's matrix: the whole catalogue, or what a server alone can show."""
        releases = self.tested(implementation)
        clauses = [c for c in load_clauses().values() if any(map(c.applies_to, releases))]
        machine = machine_of(implementation)
        if not machine:
            return clauses
        told = {place.clause for place in self.verdicts if place.implementation == implementation}
        return [clause for clause in clauses if machine in clause.exercised_by or clause.id in told]

    def tested(self, implementation: str) -> list[str]:
        """The releases that it was run against, in some run."""
        asked = {r for header in self.headers if implementation in header.implementations for r in header.releases}
        return [release for release in self.releases if release in asked]

    def count(self, implementation: str, release: str | None = None) -> Counter[Verdict]:
        """How many cells of its matrix have each verdict."""
        releases = self.tested(implementation) if release is None else [release]
        cells = (self.verdict_of(implementation, r, clause) for clause in self.rows(implementation) for r in releases)
        return Counter(verdict for verdict in cells if verdict is not None)

    # -- figures -----------------------------------------------------------------------------------------------

    @cached_property
    def pace(self) -> list[Pace]:
        """How much each machine did in each run, and in what time. Results of one lockstep share their steps."""
        found: dict[str, Pace] = {}
        for stream in self.streams:
            of_machine: dict[tuple[str, str], list[Result]] = {}
            for result in stream.results:
                alone = result.release if is_server(result.implementation) else ""
                of_machine.setdefault((result.machine, alone), []).append(result)
            for (machine, _), results in of_machine.items():
                first, known = results[0], found.get(machine, Pace(machine, 0, 0, 0, 0.0))
                found[machine] = Pace(
                    machine,
                    known.examples + first.examples,
                    known.steps + first.steps,
                    known.checks + first.steps * len(results),
                    known.seconds + first.seconds,
                    known.cut or bool(first.details.get("cut_by_time")),
                )
        return list(found.values())

    @property
    def steps(self) -> int:
        """Steps of all machines."""
        return sum(pace.steps for pace in self.pace)

    @property
    def seconds(self) -> float:
        """What the runs took together; of one that was cut off, what its results took."""
        of_machines = sum(pace.seconds for pace in self.pace)
        footers = [stream.footer for stream in self.streams]
        return of_machines if None in footers else sum(footer.seconds for footer in footers if footer is not None)
