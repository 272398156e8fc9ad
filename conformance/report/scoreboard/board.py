"""What the scoreboard shows: implementations, areas, and in each cell a verdict with everything behind it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, Literal

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from conformance.events import Diverged, Verdict

State = Literal["conforms", "differs", "excused", "unsupported", "not-run"]

MEANINGS: Final[Mapping[State, str]] = {
    "conforms": "was exercised, and every answer was Kafka's",
    "differs": "so many distinct differences, each with the steps that show it",
    "excused": "differed as is known, in a run that leaves out what is known: no steps are kept",
    "unsupported": "the implementation does not have the operations",
    "not-run": "nothing exercised it, so nothing is said",
}
SIGNS: Final[Mapping[State, str]] = dict(zip(MEANINGS, "✓✗≈–○", strict=True))


@dataclass(frozen=True, slots=True)
class Excuse:
    """Why a difference is known: what its entry among the expectations says."""

    reason: str
    link: str


@dataclass(frozen=True)
class Fault:
    """One distinct difference.

    Attributes:
        event: as it was told.
        means: for a consumer, in one sentence.
        text: requirement, both sides and steps, in words.
        trace: the document that replays it; empty if it is gone.
        known: where an expectation names it.
    """

    event: Diverged
    means: str
    text: str
    trace: str
    known: Excuse | None = None


@dataclass
class Cell:
    """What an implementation came to in an area.

    Attributes:
        area: its name.
        why: why nothing was run, or is supported, in words; empty where that needs none.
        faults: the distinct differences.
        clauses: how often each clause was exercised.
        excused: clauses that differed as is known, in runs that leave that out.
        lacking: clauses whose operations the implementation does not have.
    """

    area: str
    why: str = ""
    faults: list[Fault] = field(default_factory=list)
    clauses: dict[str, int] = field(default_factory=dict)
    excused: set[str] = field(default_factory=set)
    lacking: set[str] = field(default_factory=set)

    def take(self, clause: str, steps: int, verdict: Verdict) -> None:
        """Adds what a run says of a clause."""
        self.clauses[clause] = self.clauses.get(clause, 0) + steps
        if verdict == "expected-divergence":
            self.excused.add(clause)
        elif verdict == "unsupported":
            self.lacking.add(clause)

    def leave_out(self, feature: str) -> None:
        """The runs were made without what the area is about: what they show of it besides is no conformance."""
        self.lacking.update(self.clauses)
        self.clauses.clear()
        self.why = f"the runs were made without {feature}"

    @property
    def state(self) -> State:
        """The worst that is known."""
        if self.faults:
            return "differs"
        if self.excused:
            return "excused"
        if any(self.clauses.values()):
            return "conforms"
        return "unsupported" if self.lacking else "not-run"

    @property
    def said(self) -> str:
        """The verdict in words."""
        if self.state == "differs":
            return f"{len(self.faults)} difference{'s' if len(self.faults) > 1 else ''}"
        return {"not-run": "not run", "excused": "known differences"}.get(self.state, self.state)

    @property
    def short(self) -> str:
        """The verdict as a sign, with a number where there is one."""
        return f"{SIGNS[self.state]} {len(self.faults)}" if self.faults else SIGNS[self.state]


@dataclass(frozen=True)
class Made:
    """One run that a row is made of: when, by which command, with which versions, how much, and what was excused."""

    implementation: str
    started: str
    command: str
    versions: Mapping[str, str]
    level: str
    machines: tuple[str, ...]
    examples: int
    steps: int
    facts: tuple[str, ...] = ()
    excused: tuple[str, ...] = ()
    cut_off: str = ""


@dataclass
class Row:
    """An implementation held to a release.

    Attributes:
        label: what it is called.
        release: of Kafka, whose answers it is held to.
        version: its own; empty if the runs do not tell.
        about: what it is, and where it is at home.
        cells: one for each area.
        made: the runs.
    """

    label: str
    release: str
    version: str
    about: str
    cells: Sequence[Cell]
    made: Sequence[Made]

    @property
    def faults(self) -> list[Fault]:
        """All distinct differences; one may stand in several cells."""
        return list({id(fault): fault for cell in self.cells for fault in cell.faults}.values())


@dataclass(frozen=True)
class Board:
    """The scoreboard."""

    areas: Sequence[tuple[str, str]]
    """Name of each area, and what a difference there means."""
    rows: Sequence[Row]

    @property
    def cut_off(self) -> list[str]:
        """Which runs are not whole, in words."""
        return list(dict.fromkeys(made.cut_off for row in self.rows for made in row.made if made.cut_off))

    @property
    def verdict(self) -> str:
        """``diverges`` if a cell has a difference, else ``incomplete`` if a run was cut off, else ``conforms``."""
        if any(cell.state in ("differs", "excused") for row in self.rows for cell in row.cells):
            return "diverges"
        return "incomplete" if self.cut_off else "conforms"
