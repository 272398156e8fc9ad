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
from itertools import chain
from typing import Final, Literal

from conformance.errors import IncompleteError, NothingComparedError

Conclusion = Literal["conforms", "diverges", "incomplete", "nothing-compared"]

ALLOW_INCOMPLETE: Final = "--allow-incomplete"
"""Option with which a program without a difference ends with 0 although a part was *not run*, as with a time limit.

It does not accept what *could not run*: a crash, an operation in which nothing was compared, a lost connection.
"""

VERDICT_LABELS: Final[Mapping[str, str]] = {
    "conforms": "conforms",
    "diverges": "diverges",
    "expected-divergence": "expected divergence",
    "tolerated": "tolerated at this level",
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
        gaps: What was requested and not run, each with the reason, such as ``"199 of 200 examples of the offset
            machine not run (--max-time)"``.
        failures: What was tried and could not be compared, each with the reason, such as a crash.
        idle: What compared nothing at all although something was requested, each with the reason.
    """

    count: int
    differences: int = 0
    gaps: tuple[str, ...] = ()
    failures: tuple[str, ...] = ()
    idle: tuple[str, ...] = ()

    @property
    def conclusion(self) -> Conclusion:
        """The verdict; a difference counts most, then a participant without any comparison."""
        if self.differences:
            return "diverges"
        if self.idle or not self.count:
            return "nothing-compared"
        return "incomplete" if self.failures or self.gaps else "conforms"

    @property
    def reasons(self) -> tuple[str, ...]:
        """Why the verdict is not ``conforms`` although there is no difference; the most severe first."""
        return (*self.idle, *self.failures, *self.gaps)

    def exit_code(self, *, allow_incomplete: bool = False) -> int:
        """Return the exit code of the program: 0 conforms, 1 diverges, 2 nothing was compared, 3 incomplete."""
        codes: dict[Conclusion, int] = {"conforms": 0, "diverges": 1, "nothing-compared": 2, "incomplete": 3}
        code = codes[self.conclusion]
        return 0 if allow_incomplete and self.is_only_short else code

    @property
    def is_only_short(self) -> bool:
        """True if nothing diverged and nothing failed, but a part was not run (:data:`ALLOW_INCOMPLETE`)."""
        return self.conclusion == "incomplete" and not self.failures

    def settle(self, *, allow_incomplete: bool = False) -> int:
        """Return the exit code 0 or 1 of a program that has compared enough.

        Args:
            allow_incomplete: True to accept a program without a difference that was too short.

        Raises:
            NothingComparedError: Nothing was compared.
            IncompleteError: Something was not compared, and that is not allowed.
        """
        code = self.exit_code(allow_incomplete=allow_incomplete)
        if code == NothingComparedError.exit_code:
            raise NothingComparedError(f"nothing was compared: {listed(self.reasons) or 'no case applies'}")
        if code == IncompleteError.exit_code:
            accepted = f"; {ALLOW_INCOMPLETE} accepts this" if self.is_only_short else ""
            raise IncompleteError(f"incomplete: {listed(self.reasons)}{accepted}")
        return code


def combined(parts: Iterable[Comparison]) -> Comparison:
    """Return what several parts of a program have compared together."""
    parts = tuple(parts)
    return Comparison(
        sum(each.count for each in parts),
        sum(each.differences for each in parts),
        *(
            tuple(dict.fromkeys(chain.from_iterable(each)))
            for each in (
                [each.gaps for each in parts],
                [each.failures for each in parts],
                [each.idle for each in parts],
            )
        ),
    )


def listed(reasons: Iterable[str], most: int = 3) -> str:
    """Return reasons as a text; of many only the first and the number of the others."""
    reasons = tuple(reasons)
    rest = len(reasons) - most
    return "; ".join((*reasons[:most], *((f"and {rest} more",) if rest > 0 else ())))
