"""Verdict of a program, by what it has compared: the only place that decides it.

Each program that gives a verdict counts its comparisons as a :class:`Comparison`. Green has to be earned: without a
comparison there is no verdict, and with fewer comparisons than requested it is incomplete.

Three words tell why a clause or an example has no comparison, and :data:`VERDICT_LABELS` has them for people:
*does not apply* (the implementation does not declare it, or the release does not have it), *not run* (the run was too
short), and *could not run* (it applies and was tried, and the participant did not get there).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final, Literal

from conformance.errors import IncompleteError, NothingComparedError

Conclusion = Literal["conforms", "diverges", "incomplete", "nothing-compared"]

ALLOW_INCOMPLETE: Final = "--allow-incomplete"
"""Option with which an incomplete program without a difference ends with 0."""

VERDICT_LABELS: Final[Mapping[str, str]] = {
    "conforms": "conforms",
    "diverges": "diverges",
    "expected-divergence": "expected divergence",
    "could-not-run": "could not run",
    "unsupported": "does not apply",
    "not-run": "not run",
    "incomplete": "incomplete",
    "nothing-compared": "nothing compared",
}
"""Words for verdicts on clauses and runs, which have other names in JSON."""


@dataclass(frozen=True)
class Comparison:
    """Summary of what a program has compared.

    Attributes:
        count: The number of compared results, with an answer of each participant.
        differences: The number of differences that count.
        gaps: What was requested and not compared, each with the reason, such as ``"199 of 200 examples of the offset
            machine were not run (--max-time)"``.
        idle: What compared nothing at all although something was requested, each with the reason.
    """

    count: int
    differences: int = 0
    gaps: tuple[str, ...] = ()
    idle: tuple[str, ...] = ()

    @property
    def conclusion(self) -> Conclusion:
        """The verdict; a difference counts most, then a participant without any comparison."""
        if self.differences:
            return "diverges"
        if self.idle or not self.count:
            return "nothing-compared"
        return "incomplete" if self.gaps else "conforms"

    @property
    def reasons(self) -> tuple[str, ...]:
        """Why the verdict is not ``conforms`` although there is no difference; the most severe first."""
        return (*self.idle, *self.gaps)

    def exit_code(self, *, allow_incomplete: bool = False) -> int:
        """Return the exit code of the program: 0 conforms, 1 diverges, 2 nothing was compared, 3 incomplete."""
        codes: dict[Conclusion, int] = {"conforms": 0, "diverges": 1, "nothing-compared": 2, "incomplete": 3}
        code = codes[self.conclusion]
        return 0 if code == IncompleteError.exit_code and allow_incomplete else code

    def settle(self, *, allow_incomplete: bool = False) -> int:
        """Return the exit code 0 or 1 of a program that has compared enough.

        Args:
            allow_incomplete: True to accept a program without a difference that has compared less than requested.

        Raises:
            NothingComparedError: Nothing was compared.
            IncompleteError: Something was not compared, and that is not allowed.
        """
        code = self.exit_code(allow_incomplete=allow_incomplete)
        if code == NothingComparedError.exit_code:
            raise NothingComparedError(f"nothing was compared: {listed(self.reasons) or 'no case applies'}")
        if code == IncompleteError.exit_code:
            raise IncompleteError(f"incomplete: {listed(self.gaps)}; {ALLOW_INCOMPLETE} accepts this")
        return code


def combined(parts: Iterable[Comparison]) -> Comparison:
    """Return what several parts of a program have compared together."""
    parts = tuple(parts)
    return Comparison(
        sum(each.count for each in parts),
        sum(each.differences for each in parts),
        tuple(dict.fromkeys(gap for each in parts for gap in each.gaps)),
        tuple(dict.fromkeys(idle for each in parts for idle in each.idle)),
    )


def listed(reasons: Iterable[str], most: int = 3) -> str:
    """Return reasons as a text; of many only the first and the number of the others."""
    reasons = tuple(reasons)
    rest = len(reasons) - most
    return "; ".join((*reasons[:most], *((f"and {rest} more",) if rest > 0 else ())))
