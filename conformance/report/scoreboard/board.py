"""Content of the scoreboard: implementations, areas (groups of clauses), and in each cell a verdict with evidence."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING, Final, Literal

from conformance.verdict import VERDICT_LABELS, Comparison, combined

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from conformance.attribution.baseline import Score
    from conformance.events import Diverged, Verdict
    from conformance.verdict import Conclusion

State = Literal["conforms", "differs", "excused", "failed", "unsupported", "absent", "not-run"]
"""State of a cell; :data:`STATE_LEGEND` explains each."""

STATE_LEGEND: Final[Mapping[State, str]] = {
    "conforms": "was exercised, and every result equals Kafka's result",
    "differs": "number of unique divergences, each with its steps",
    "excused": "diverged as expected, in a run that skips known divergences: no steps are recorded",
    "failed": "was tried, and the implementation had failed before, or rejected what it declares",
    "unsupported": "the implementation does not have the operations",
    "absent": "the implementation's interface does not include it, so no run could check it",
    "not-run": "nothing exercised it, so nothing is known",
}
STATE_LABELS: Final[Mapping[State, str]] = {
    "conforms": "conforms",
    "differs": "differs",
    "excused": "known divergences",
    "failed": VERDICT_LABELS["could-not-run"],
    "unsupported": VERDICT_LABELS["unsupported"],
    "absent": VERDICT_LABELS["unsupported"],
    "not-run": VERDICT_LABELS["not-run"],
}
STATE_SYMBOLS: Final[Mapping[State, str]] = dict(zip(STATE_LEGEND, "✓✗≈⊘–·○", strict=True))


@dataclass(frozen=True, slots=True)
class KnownReason:
    """Reason and link of the expectation that a divergence matches."""

    reason: str
    link: str


@dataclass(frozen=True)
class BoardDivergence:
    """Unique divergence on the scoreboard.

    Attributes:
        means: consequence for a consumer, in one sentence.
        text: the divergence as text, as a run prints it.
        trace: content of the trace file; empty if the file is missing.
        known: reason from the matching expectation, or None without one.
    """

    event: Diverged
    means: str
    text: str
    trace: str
    known: KnownReason | None = None


@dataclass
class Cell:
    """Verdict about an implementation in an area.

    Attributes:
        why: reason why the area was not run or is unsupported; otherwise empty.
        faults: the unique divergences.
        clauses: number of steps that exercised each clause.
        excused: clauses that diverged as expected, in runs that skip known divergences.
        lacking: clauses whose operations the implementation does not have.
        failed: clauses that could not run.
        absent: True if the implementation's interface does not include the area.
    """

    area: str
    why: str = ""
    faults: list[BoardDivergence] = field(default_factory=list)
    clauses: dict[str, int] = field(default_factory=dict)
    excused: set[str] = field(default_factory=set)
    lacking: set[str] = field(default_factory=set)
    failed: set[str] = field(default_factory=set)
    absent: bool = False

    def add_clause(self, clause: str, steps: int, verdict: Verdict) -> None:
        """Add the result of a run for a clause."""
        self.clauses[clause] = self.clauses.get(clause, 0) + steps
        if verdict == "expected-divergence":
            self.excused.add(clause)
        elif verdict == "unsupported":
            self.lacking.add(clause)
        elif verdict == "could-not-run":
            self.failed.add(clause)

    def mark_skipped(self, feature: str) -> None:
        """Mark the area as skipped, because its runs skipped a feature that it needs."""
        self.lacking.update(self.clauses)
        self.clauses.clear()
        self.why = f"the runs were made without {feature}"

    @property
    def state(self) -> State:
        """State of the area; a divergence counts most."""
        if self.faults:
            return "differs"
        if self.excused:
            return "excused"
        if any(self.clauses.values()):
            return "conforms"
        if self.failed:
            return "failed"
        if self.lacking:
            return "unsupported"
        return "absent" if self.absent else "not-run"

    @property
    def label(self) -> str:
        """Verdict as text."""
        if self.state == "differs":
            return f"{len(self.faults)} divergence{'s' if len(self.faults) > 1 else ''}"
        return STATE_LABELS[self.state]

    @property
    def symbol(self) -> str:
        """Verdict as a symbol, followed by the number of divergences if there are any."""
        return f"{STATE_SYMBOLS[self.state]} {len(self.faults)}" if self.faults else STATE_SYMBOLS[self.state]


@dataclass(frozen=True)
class RunProvenance:
    """Provenance of a row's results: time, command, versions and size of one run.

    Attributes:
        facts: further statements about the size of the run.
        excused: the tolerated differences.
        cut_off: reason why the run has no end; otherwise empty.
        comparison: what the run has compared.
    """

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
    comparison: Comparison = field(default_factory=partial(Comparison, 0))


@dataclass
class Row:
    """Implementation compared with a release.

    Attributes:
        label: name of the implementation.
        release: release of Kafka that it is compared with.
        version: version of the implementation; empty if unknown.
        about: description and home page of the implementation.
        cells: one cell for each area.
        made: provenance of each run.
        baseline: score for the wire baseline (the MUST clauses that any broker can be tested for over the
            protocol of Kafka); None if no run used the protocol.
    """

    label: str
    release: str
    version: str
    about: str
    cells: Sequence[Cell]
    made: Sequence[RunProvenance]
    baseline: Score | None = None

    @property
    def faults(self) -> list[BoardDivergence]:
        """All unique divergences, each once even if it is in several cells."""
        return list({id(fault): fault for cell in self.cells for fault in cell.faults}.values())


@dataclass(frozen=True)
class Board:
    """Content of the scoreboard."""

    areas: Sequence[tuple[str, str]]
    """Name of each area, and the meaning of a divergence in it."""
    rows: Sequence[Row]

    @property
    def cut_off(self) -> list[str]:
        """Sentences about the runs that are incomplete."""
        return list(dict.fromkeys(made.cut_off for row in self.rows for made in row.made if made.cut_off))

    @property
    def comparison(self) -> Comparison:
        """Summary of what all runs have compared."""
        differences = sum(cell.state in ("differs", "excused") for row in self.rows for cell in row.cells)
        compared = combined(made.comparison for row in self.rows for made in row.made)
        return replace(compared, differences=differences, gaps=(*self.cut_off, *compared.gaps))

    @property
    def verdict(self) -> Conclusion:
        """Verdict of all rows together."""
        return self.comparison.conclusion
