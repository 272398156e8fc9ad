"""Events of a run: one stream, from which all reports are written.

A stream starts with :class:`RunStarted` and ends with :class:`RunFinished`. Without ``RunFinished`` it is incomplete.
Each event is a JSON object with the name of its class in ``event``.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Annotated, Any, Final, Literal, TypedDict

from msgspec import Meta, ValidationError, convert

Json = dict[str, Any]

FORMAT: Final = "kidx-events"
VERSION: Final = 2
"""Version of the events that are written."""
READABLE: Final = (1, 2)
"""Versions that :func:`event_from_json` reads."""

Verdict = Literal["conforms", "diverges", "expected-divergence", "tolerated", "could-not-run", "unsupported", "not-run"]
"""Verdict on a clause: three of them say why nothing was compared, see :data:`conformance.verdict.VERDICT_LABELS`.

``expected-divergence``: an entry of the expectations excuses it. ``tolerated``: the level of the run leaves it open.
"""


@dataclass(frozen=True)
class Event:
    """Base class of the events."""

    def to_json(self) -> Json:
        """Return the event as one JSON object."""
        return {"event": type(self).__name__} | dataclasses.asdict(self)


@dataclass(frozen=True)
class RunStarted(Event):
    """Header: implementations, releases and machines of the run, and the versions of all software.

    ``profile`` names the size of the run (``dev``, ``ci``, …), ``level`` the clauses that count for the verdict (see
    :mod:`conformance.clauses`), and ``started`` the time of the start.
    ``seed_source`` is ``"given"``, ``"fixed"`` (by the profile) or ``"drawn"``; empty in old streams.
    ``command`` is the command that repeats the run; empty in old streams, or if no command can repeat the run.
    ``edition`` is the edition whose clauses alone count; empty for the whole catalogue.
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
    edition: str = ""

    @property
    def basis(self) -> str:
        """The level, and the edition if there is one, as text."""
        return self.level + (f" of edition {self.edition}" if self.edition else "")


@dataclass(frozen=True)
class Progressed(Event):
    """Progress of a machine, after each round of examples; ``examples`` and ``steps`` count from the run's start."""

    machine: str
    examples: int
    steps: int
    fraction_done: float


class _Failure(TypedDict):
    """Divergence of ``participant`` from ``against`` (the reference or the model) at a step, as in a trace.

    ``expected`` and ``actual`` belong to the first of the differing ``aspects``: outcome, text, state or bytes.
    """

    step: int
    participant: str
    release: str
    against: str
    aspects: Annotated[list[str], Meta(min_length=1)]
    expected: Any
    actual: Any
    clauses: list[str]


class _Related(TypedDict):
    """Related divergence: another symptom of the same root cause."""

    signature: str
    clause: str
    clauses: list[str]
    occurrences: int
    trace: str
    reason: str


class _Objects(TypedDict):
    """Objects in a :class:`Diverged`; :func:`event_from_json` checks that they have the fields that reports need."""

    failure: _Failure
    related: list[_Related]


@dataclass(frozen=True)
class Diverged(Event):
    """Divergence that counts for the verdict, shrunk.

    Attributes:
        failure: The divergence, as in a trace.
        requirements: The id, level and statement of each implicated clause (each that the step may have violated).
        steps: The shrunk operations, as text.
        trace: The path of the trace.
        replay: The command that replays the trace.
        implementation: The implementation as given on the command line, such as ``"jvm"``; empty for the reference.
        shrinking: The result of shrinking, such as ``"minimal"``; empty if the trace was not shrunk.
        releases: All releases with the same divergence, the newest first; ``failure`` was observed in the newest.
        machines: All machines that found the divergence; ``machine`` comes first.
        clause: The failing clause among the implicated ones; empty if no clause covers the step.
        signature: The signature, which identifies a divergence without a clause.
        signature_detail: A suffix that distinguishes equal signatures: ``" of end_offset"``; usually empty.
        occurrences: The number of occurrences.
        related: The related divergences: objects with ``signature``, ``clause``, ``clauses``, ``occurrences``,
            ``trace`` and ``reason``, which states the common root cause.
        note: A problem in reporting the divergence, such as a trace that could not be written; usually empty.
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
    signature: str = ""
    occurrences: int = 1
    related: tuple[Json, ...] = ()
    signature_detail: str = ""
    note: str = ""

    @property
    def clauses(self) -> tuple[str, ...]:
        """Ids of the implicated clauses, including the clauses of related divergences."""
        related = (clause for each in self.related for clause in each["clauses"])
        return tuple(dict.fromkeys((*self.failure["clauses"], *related)))

    def is_about(self, machine: str, implementation: str, release: str) -> bool:
        """Return True if the divergence occurred with this machine, implementation and release."""
        releases, machines = self.releases or (self.failure["release"],), self.machines or (self.machine,)
        return machine in machines and implementation == self.implementation and release in releases


@dataclass(frozen=True)
class Replayed(Event):
    """Replay of a machine's regression traces, before new examples are tried.

    ``traces`` contains the ids of all traces, ``diverged`` the ids of traces with a divergence that counts.
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
        passed: True if the metric meets its target; None for a metric without a target.
        figures: The columns, e.g. ``{"examples to kill": 12}``.
    """

    table: str
    name: str
    passed: bool | None
    figures: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Result(Event):
    """Result of one implementation on one machine in one release's dialect.

    If ``--max-time`` ended the machine early, ``details`` has ``cut_by_time``, and ``not_executed``: for regression
    traces and for examples, the number that was not executed and the total.
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
    operations: dict[str, int] = field(default_factory=dict)
    """Number of compared steps of each operation that the run reached and the implementation has, 0 included; empty in
    old streams."""

    @property
    def unsupported(self) -> bool:
        """True if the machine cannot drive the implementation."""
        tried = self.steps or not (self.verdicts or "why" in self.details)
        return not tried and self.count("unsupported") == len(self.verdicts)

    def count(self, verdict: Verdict) -> int:
        """Return the number of clauses with a verdict."""
        return sum(1 for value in self.verdicts.values() if value == verdict)


@dataclass(frozen=True)
class RunFinished(Event):
    """Footer of the stream.

    ``verdict`` is a :data:`conformance.verdict.Conclusion`, or ``"stale"`` if there is no divergence but stale
    expectations. ``details`` lists them under "stale", under "not seen" the expectations that the run could not check,
    under "edition" what is newer, reworded or moved since its edition, and under "missing" what was not compared
    although it was requested.
    """

    verdict: str
    steps: int
    seconds: float
    details: dict[str, Any] = field(default_factory=dict)


Sink = Callable[[Event], None]
"""Receiver of all events, such as the writer of a report."""

_RENAMED: Final[dict[str, dict[str, str]]] = {
    "Progressed": {"share": "fraction_done"},
    "Measured": {"holds": "passed"},
    "Diverged": {"shape": "signature", "detail": "signature_detail", "times": "occurrences", "also": "related"},
}
_RENAMED_FAILURE: Final = {"party": "participant"}
_RENAMED_RELATED: Final = {"shape": "signature", "times": "occurrences", "because": "reason"}
"""Fields of version 1, and their names since version 2."""

KINDS: Final = {
    kind.__name__: kind for kind in (RunStarted, Progressed, Diverged, Replayed, Measured, Result, RunFinished)
}
"""All classes of events by name."""


def event_from_json(document: Json) -> Event | None:
    """Return an event from its JSON object, of a version in :data:`READABLE`; None for an unknown kind of event.

    Raises:
        ValueError: The object is no event, lacks a field, or has a field of another type.
    """
    name = document.get("event")
    if not isinstance(name, str):
        raise ValueError(f"{document!r:.80} is not an event")  # noqa: TRY004 -- json.loads raises ValueError, too
    kind = KINDS.get(name)
    try:
        event: Event | None = None if kind is None else convert(_of_version_2(document), kind)
        if isinstance(event, Diverged):
            convert({"failure": event.failure, "related": list(event.related)}, _Objects)
    except ValidationError as error:
        raise ValueError(str(error)) from None
    return event


def _of_version_2(document: Json) -> Json:
    document = with_renamed_failure(renamed(document, _RENAMED.get(document["event"], {})))
    if isinstance(document.get("related"), list):
        document["related"] = [
            renamed(each, _RENAMED_RELATED) if isinstance(each, dict) else each for each in document["related"]
        ]
    return document


def with_renamed_failure(document: Json) -> Json:
    """Return the object of an event or a trace; the fields of its failure, if any, have their names of version 2."""
    failure = document.get("failure")
    return document | {"failure": renamed(failure, _RENAMED_FAILURE)} if isinstance(failure, dict) else document


def renamed(document: Mapping[str, Any], names: Mapping[str, str]) -> Json:
    """Return an object whose fields are renamed; ``names`` maps old names to new names."""
    return {names.get(name, name): value for name, value in document.items()}
