"""The result of checking an adapter, as text and as a document."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, Literal, NamedTuple

if TYPE_CHECKING:
    from conformance.operations import Json

Verdict = Literal["passed", "failed", "not-run"]


class Check(NamedTuple):
    """One thing that was looked at.

    Attributes:
        name: what must hold, as a sentence without a subject.
        verdict: ``"not-run"`` if something before it failed, or if there is nothing to judge by.
        sent: the last request, and ``came``: what came back; empty if it passed.
        hint: what to look at; empty if it passed.
    """

    name: str
    verdict: Verdict
    sent: str = ""
    came: str = ""
    hint: str = ""


@dataclass
class SmokeReport:
    """The results of all checks.

    Attributes:
        implementation: the IMPL.
        release: the release it was told to be.
        about: what it says of itself.
        checks: in the order in which they were made.
        started: whether the program answered ``start``.
    """

    implementation: str
    release: str
    about: str = ""
    checks: list[Check] = field(default_factory=list)
    started: bool = True

    @property
    def sane(self) -> bool:
        """Whether nothing failed."""
        return self.started and not any(check.verdict == "failed" for check in self.checks)

    @property
    def exit_code(self) -> int:
        """0 sane, 1 not sane, 2 could not be started."""
        if not self.started:
            return 2
        return 0 if self.sane else 1

    def to_json(self) -> Json:
        """The document of ``--json``."""
        return {
            "implementation": self.implementation,
            "release": self.release,
            "about": self.about,
            "verdict": "sane" if self.sane else "broken" if self.started else "not-started",
            "checks": [check._asdict() for check in self.checks],
        }

    def lines(self) -> Iterator[str]:
        """The report as text."""
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
