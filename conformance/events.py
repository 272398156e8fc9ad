"""Events of a run, as one stream that many writers consume.

A run starts with :class:`RunStarted` and ends with :class:`RunFinished`; a stream without the latter is incomplete.
Each event is a JSON object with the name of its class in ``event``.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Annotated, Any, Final, Literal, TypedDict

from msgspec import Meta, ValidationError, convert

Json = dict[str, Any]

FORMAT: Final = "kidx-events"
VERSION: Final = 1

Verdict = Literal["conforms", "diverges", "expected-divergence", "unsupported", "not-run"]


@dataclass(frozen=True)
class Event:
    """Base class of the events."""

    def to_json(self) -> Json:
        """Return the event as one JSON object."""
        return {"event": type(self).__name__} | dataclasses.asdict(self)


@dataclass(frozen=True)
class RunStarted(Event):
    """Header: implementations, releases and machines of the run, and the versions of all software.

    ``seed_source`` is ``"given"``, ``"fixed"`` (by the profile) or ``"drawn"``; empty in streams without it.
    ``command`` repeats the run; it is empty in streams without it, or if no command line can repeat the run.
    """

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
    seed_source: str = ""
    command: str = ""


@dataclass(frozen=True)
class Progressed(Event):
    """Completed round of a machine. ``examples`` and ``steps`` count from the machine's start."""

    machine: str
    examples: int
    steps: int
    share: float


class _Failure(TypedDict):
    """Divergence, as in a trace."""

    step: int
    party: str
    release: str
    against: str
    aspects: Annotated[list[str], Meta(min_length=1)]
    expected: Any
    actual: Any
    clauses: list[str]


class _Related(TypedDict):
    """Related divergence: another symptom of the same root cause."""

    shape: str
    clause: str
    clauses: list[str]
    times: int
    trace: str
    because: str


class _Objects(TypedDict):
    """Fields that the writers of reports read in the objects of a :class:`Diverged`."""

    failure: _Failure
    also: list[_Related]


@dataclass(frozen=True)
class Diverged(Event):
    """Divergence that counts for the verdict, shrunk.

    Attributes:
        failure: The divergence, as in a trace.
        requirements: The id, level and statement of each implicated clause.
        steps: The shrunk operations, as text.
        trace: The path of the trace.
        replay: The command that replays the trace.
        implementation: The implementation as given on the command line, such as ``"jvm"``; empty for the reference.
        shrinking: The result of shrinking, such as ``"minimal"``; empty if the trace was not shrunk.
        releases: All releases with the same divergence, the newest first; ``failure`` belongs to that one.
        machines: All machines that found it; ``machine`` comes first.
        clause: The failing clause among the implicated ones; empty if no clause covers the step.
        shape: The signature, which identifies a divergence without a clause.
        detail: A suffix that distinguishes equal signatures: ``" of end_offset"``; usually empty.
        times: The number of occurrences.
        also: The related divergences: objects with ``shape``, ``clause``, ``clauses``, ``times``, ``trace`` and
            ``because``, which states the common root cause.
        note: A problem in reporting it, such as a trace that could not be written; usually empty.
    """

    machine: str
    failure: Json
    requirements: tuple[tuple[str, str, str], ...]
    steps: tuple[str, ...]
    trace: str
    replay: str
    implementation: str = ""
    shrinking: str = ""
    releases: tuple[str, ...] = ()
    machines: tuple[str, ...] = ()
    clause: str = ""
    shape: str = ""
    times: int = 1
    also: tuple[Json, ...] = ()
    detail: str = ""
    note: str = ""

    @property
    def clauses(self) -> tuple[str, ...]:
        """Ids of the implicated clauses, including the clauses of related divergences."""
        also = (clause for each in self.also for clause in each["clauses"])
        return tuple(dict.fromkeys((*self.failure["clauses"], *also)))

    def is_about(self, machine: str, implementation: str, release: str) -> bool:
        """Return True if the divergence occurred with this machine, implementation and release."""
        releases, machines = self.releases or (self.failure["release"],), self.machines or (self.machine,)
        return machine in machines and implementation == self.implementation and release in releases


@dataclass(frozen=True)
class Replayed(Event):
    """Replay of a machine's regression traces, before new examples are tried.

    ``traces`` are their ids, ``diverged`` the ids of those that ended in a divergence that counts.
    """

    machine: str
    traces: tuple[str, ...]
    diverged: tuple[str, ...]


@dataclass(frozen=True)
class Measured(Event):
    """Metric of the harness itself, one row of a table.

    Attributes:
        table: The name of the table, e.g. ``"mutants"``.
        name: The measured thing, e.g. the mutant.
        holds: True if the metric meets its target; None for a metric without a target.
        figures: The columns, e.g. ``{"examples to kill": 12}``.
    """

    table: str
    name: str
    holds: bool | None
    figures: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Result(Event):
    """Result of one implementation on one machine in one release's dialect.

    ``details`` has ``cut_by_time`` if ``--max-time`` ended the machine early, and in ``not_executed`` the numbers of
    regression traces and examples: those that were not executed, and all.
    """

    machine: str
    implementation: str
    release: str
    examples: int
    steps: int
    seconds: float
    divergences: int
    clauses: dict[str, int]
    """Number of steps that exercised each clause that this machine can exercise in this release."""
    verdicts: dict[str, Verdict]
    details: dict[str, Any] = field(default_factory=dict)

    @property
    def unsupported(self) -> bool:
        """True if the implementation has nothing that the machine could drive."""
        return not self.steps and bool(self.verdicts) and self.count("unsupported") == len(self.verdicts)

    def count(self, verdict: Verdict) -> int:
        """Return the number of clauses with a verdict."""
        return sum(1 for value in self.verdicts.values() if value == verdict)


@dataclass(frozen=True)
class RunFinished(Event):
    """Footer of the stream.

    ``verdict`` is ``"conforms"``, ``"diverges"``, or ``"stale"`` if there is no divergence but stale expectations.
    ``details`` lists them under "stale", and under "not seen" the expectations that the run could not check.
    """

    verdict: str
    steps: int
    seconds: float
    details: dict[str, Any] = field(default_factory=dict)


Sink = Callable[[Event], None]

KINDS: Final = {
    kind.__name__: kind for kind in (RunStarted, Progressed, Diverged, Replayed, Measured, Result, RunFinished)
}
"""All classes of events by name."""


def event_from_json(document: Json) -> Event | None:
    """Return an event from its JSON object, or None for a kind of event that this version does not know.

    Raises:
        ValueError: The object is no event, lacks a field, or has a field of another type.
    """
    name = document.get("event")
    if not isinstance(name, str):
        raise ValueError(f"{document!r:.80} is not an event")  # noqa: TRY004 -- json.loads raises ValueError, too
    kind = KINDS.get(name)
    try:
        event: Event | None = None if kind is None else convert(document, kind)
        if isinstance(event, Diverged):
            convert({"failure": event.failure, "also": list(event.also)}, _Objects)
    except ValidationError as error:
        raise ValueError(str(error)) from None
    return event
