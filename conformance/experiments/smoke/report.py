"""Result of an adapter's smoke test, as text and as JSON."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, Literal, NamedTuple

if TYPE_CHECKING:
    from conformance.operations import Json

Verdict = Literal["passed", "failed", "not-run"]


class Check(NamedTuple):
    """Result of one check.

    Attributes:
        name: expected property, as a sentence without a subject.
        verdict: ``"not-run"`` if an earlier check failed, or if the check cannot be evaluated.
        sent: last request; empty if the check passed.
        came: reply to the last request; empty if the check passed.
        hint: possible cause, or a remark on a check that passed.
    """

    name: str
    verdict: Verdict
    sent: str = ""
    came: str = ""
    hint: str = ""


@dataclass
class SmokeReport:
    """Results of all checks.

    Attributes:
        implementation: the implementation, as for ``-i``.
        release: release passed to the program.
        about: the program's description of itself.
        checks: results in the order of the checks.
        started: True if the program replied to ``start``.
    """

    implementation: str
    release: str
    about: str = ""
    checks: list[Check] = field(default_factory=list)
    started: bool = True

    @property
    def sane(self) -> bool:
        """True if no check failed."""
        return self.started and not any(check.verdict == "failed" for check in self.checks)

    @property
    def exit_code(self) -> int:
        """Exit code: 0 if no check failed, 1 if a check failed, 2 if the program did not reply to ``start``."""
        if not self.started:
            return 2
        return 0 if self.sane else 1

    def to_json(self) -> Json:
        """Return the document of ``--json``."""
        return {
            "implementation": self.implementation,
            "release": self.release,
            "about": self.about,
            "verdict": "sane" if self.sane else "broken" if self.started else "not-started",
            "checks": [check._asdict() for check in self.checks],
        }

    def lines(self) -> Iterator[str]:
        """Yield the report as text."""
        for check in self.checks:
            yield f"{_MARKS[check.verdict]} {check.name}"
            for label in ("sent", "came", "hint"):
                if text := getattr(check, label):
                    yield from _indented(f"{label}: ", text)


_MARKS: Final[dict[Verdict, str]] = {"passed": "ok     ", "failed": "FAILED ", "not-run": "not run"}


def _indented(label: str, text: str) -> Iterator[str]:
    first, *more = text.splitlines() or [""]
    yield f"          {label}{first}"
    for line in more:
        yield " " * (10 + len(label)) + line
