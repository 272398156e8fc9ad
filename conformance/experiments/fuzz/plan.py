"""What a fuzzing run is told, and what it tells."""

from __future__ import annotations

import resource
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pathlib import Path


@dataclass(frozen=True)
class FuzzPlan:
    """What a run does.

    Attributes:
        formats: of ``--format``.
        releases: whose dialects and classes.
        implementations: as ``-i`` takes them.
        corpus: where contents are kept, a directory for each format.
        findings: where traces are written.
        seed: of the mutations.
        max_time: seconds for everything.
        max_cases: contents of one format, besides every flipped bit; as many as the time allows if None.
    """

    formats: tuple[str, ...]
    releases: tuple[str, ...]
    implementations: tuple[str, ...]
    corpus: Path
    findings: Path
    seed: int
    max_time: float
    max_cases: int | None = None


@dataclass
class FuzzResult:
    """The result for one format.

    Attributes:
        format: its name.
        flips: how every flipped bit of the small seed file ended: ``accepted, same answers``, ``accepted, different
            answers``, or ``refused: KIND by OPERATION``.
        cases: contents examined, the flips included.
        kept: contents in the corpus, the seeds included.
        new: of them, added by this run.
        findings: traces of differences and of crashes, by their paths; one of each kind.
        seconds: that it took.
        peak_bytes: resident memory at the worst.
        processor_seconds: likewise, of this process's threads.
        settled: contents that differed when performed with many others and agree step by step: a defect of the fuzzer.
        coverage: what of Kafka's classes has been reached, by implementation: the class, lines reached and all,
            branches reached and all.
    """

    format: str
    flips: Counter[str] = field(default_factory=Counter)
    cases: int = 0
    kept: int = 0
    new: int = 0
    findings: dict[str, str] = field(default_factory=dict)
    seconds: float = 0.0
    peak_bytes: int = 0
    processor_seconds: float = 0.0
    settled: int = 0
    coverage: dict[str, list[tuple[str, int, int, int, int]]] = field(default_factory=dict)

    def to_json(self) -> dict[str, Any]:
        """As ``--json`` prints it."""
        return dict(
            self.__dict__,
            flips=dict(self.flips.most_common()),
            seconds=round(self.seconds, 1),
            processor_seconds=round(self.processor_seconds, 1),
        )


Tell = Callable[[str], None]
"""Called with a line for the user."""


def peak_bytes() -> int:
    """Resident memory of this process at the worst."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
