"""Plan of a fuzzing run, and its result."""

from __future__ import annotations

import resource
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from conformance.verdict import Comparison

if TYPE_CHECKING:
    from pathlib import Path


@dataclass(frozen=True)
class FuzzPlan:
    """Plan of a run.

    Attributes:
        formats: The formats of ``--format``.
        releases: The Kafka releases.
        implementations: The implementations as for ``-i``.
        corpus: The corpus directory, with a directory for each format.
        findings: The directory of the traces.
        seed: The seed of the mutations.
        max_time: The time limit in seconds.
        max_cases: The maximum number of mutated contents of each format; None for no limit.
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
    """Result for one format.

    Attributes:
        format: The name of the format.
        flips: The number of bits of the small seed file whose flipping has each result: ``accepted, same answers``,
            ``accepted, different answers``, ``rejected: KIND by OPERATION``, or ``implementations differ``.
        cases: The number of executed contents, including the flips.
        compared: The number of contents whose results were compared with kidx. The other contents were only compared
            between releases that must have the same results.
        kept: The number of contents in the corpus, including the seed files.
        new: The number of contents that this run added to the corpus.
        findings: The path of a trace for each kind of divergence or crash.
        seconds: The duration.
        peak_bytes: The peak of the resident memory.
        processor_seconds: The CPU time of this process's threads.
        settled: The number of contents that differed in a batch, but not in the lockstep, which tolerates differences
            such as exhausted memory.
        missing: What was not executed before the time limit although it was requested.
        idle: The implementations that were compared in nothing, each with the reason.
        coverage: The coverage of Kafka's classes by implementation, as (class, reached lines, all lines, reached
            branches, all branches).
    """

    format: str
    flips: Counter[str] = field(default_factory=Counter)
    cases: int = 0
    compared: int = 0
    kept: int = 0
    new: int = 0
    findings: dict[str, str] = field(default_factory=dict)
    seconds: float = 0.0
    peak_bytes: int = 0
    processor_seconds: float = 0.0
    settled: int = 0
    missing: list[str] = field(default_factory=list)
    idle: list[str] = field(default_factory=list)
    coverage: dict[str, list[tuple[str, int, int, int, int]]] = field(default_factory=dict)

    @property
    def comparison(self) -> Comparison:
        """Summary of what was compared."""
        return Comparison(self.compared, len(self.findings), tuple(self.missing), idle=tuple(self.idle))

    def to_json(self) -> dict[str, Any]:
        """Return the object that ``--json`` prints."""
        return dict(
            self.__dict__,
            flips=dict(self.flips.most_common()),
            seconds=round(self.seconds, 1),
            processor_seconds=round(self.processor_seconds, 1),
        )


FindingCallback = Callable[[str], None]
"""Callback that receives the description of a finding."""


def peak_bytes() -> int:
    """Return the peak of this process's resident memory."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
