"""What happens during a run, as one stream of events that many writers consume.

A run starts with :class:`RunStarted` and ends with :class:`RunFinished`; a stream without the latter was cut off. Each
event is a JSON object with the name of its class in ``event``.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, Literal

if TYPE_CHECKING:
    from conformance.operations import Json

FORMAT: Final = "kidx-events"
VERSION: Final = 1

Verdict = Literal["conforms", "diverges", "expected-divergence", "unsupported", "not-run"]


@dataclass(frozen=True)
class Event:
    """Something that happened."""

    def to_json(self) -> Json:
        """The event as one JSON object."""
        return {"event": type(self).__name__} | dataclasses.asdict(self)


@dataclass(frozen=True)
class RunStarted(Event):
    """The header: what is run against what, with which versions of everything."""

    releases: tuple[str, ...]
    implementations: tuple[str, ...]
    machines: tuple[str, ...]
    profile: str
    level: str
    seed: int
    versions: dict[str, str]
    started: str
    format: str = FORMAT
    version: int = VERSION


@dataclass(frozen=True)
class Progressed(Event):
    """A round of a machine is done. ``examples`` and ``steps`` count from the machine's start."""

    machine: str
    examples: int
    steps: int
    share: float


@dataclass(frozen=True)
class Diverged(Event):
    """A difference that counts, shrunk.

    Attributes:
        failure: as in a trace.
        requirements: (id, level, statement) of the clauses at stake.
        steps: the shrunk operations, in words.
        trace: path of the trace.
        replay: the command that replays it.
    """

    machine: str
    failure: Json
    requirements: tuple[tuple[str, str, str], ...]
    steps: tuple[str, ...]
    trace: str
    replay: str


@dataclass(frozen=True)
class Result(Event):
    """What one implementation did on one machine in one release's dialect."""

    machine: str
    implementation: str
    release: str
    examples: int
    steps: int
    seconds: float
    divergences: int
    clauses: dict[str, int]
    """How many steps exercised each clause that this machine is said to exercise in this release."""
    verdicts: dict[str, Verdict]
    details: dict[str, Any] = field(default_factory=dict)

    def count(self, verdict: Verdict) -> int:
        """How many clauses have a verdict."""
        return sum(1 for value in self.verdicts.values() if value == verdict)


@dataclass(frozen=True)
class RunFinished(Event):
    """The footer. ``verdict`` is ``"conforms"`` or ``"diverges"``."""

    verdict: str
    steps: int
    seconds: float
    details: dict[str, Any] = field(default_factory=dict)


Sink = Callable[[Event], None]
