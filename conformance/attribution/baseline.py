"""Wire baseline: the MUST clauses that any Kafka-compatible broker can be checked against over the protocol."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from conformance.attribution.tables import clauses_for

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from conformance.clauses import Clause
    from conformance.events import Verdict

NAME: Final = "Wire baseline"
MACHINE: Final = "wire"
"""The machine that tests brokers only through Kafka's protocol."""


class Score(NamedTuple):
    """Result of an implementation for the clauses of the baseline that apply to its release.

    Attributes:
        conforms: The number of clauses that conform.
        diverges: The number of clauses that diverge, known divergences included.
        clauses: The number of all clauses, including clauses that were not exercised or are unsupported.
    """

    conforms: int
    diverges: int
    clauses: int

    def __str__(self) -> str:
        """Return the score in a few words."""
        return f"{self.conforms} of {self.clauses}" + (f", {self.diverges} diverge" if self.diverges else "")


def baseline_clauses(release: str) -> tuple[Clause, ...]:
    """Return the clauses of the baseline that apply to a release, in the catalogue's order."""
    return tuple(clause for clause in clauses_for(MACHINE, release) if clause.level == "MUST")


def score(verdicts: Sequence[Mapping[str, Verdict]], release: str) -> Score:
    """Return the score of one or more results of the wire machine.

    Args:
        verdicts: The verdicts of each result, by clause; a divergence in any of them counts.
        release: The release that the implementation is compared with.
    """
    found = [{each[clause.id] for each in verdicts if clause.id in each} for clause in baseline_clauses(release)]
    diverges = [bool(each & {"diverges", "expected-divergence", "tolerated"}) for each in found]
    conforms = ["conforms" in each and not differs for each, differs in zip(found, diverges, strict=True)]
    return Score(sum(conforms), sum(diverges), len(found))
