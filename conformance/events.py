"""What happens during a run, as one stream of events that many writers consume.

A run starts with :class:`RunStarted` and ends with :class:`RunFinished`; a stream without the latter was cut off. Each
event is a JSON object with the name of its class in ``event``.
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
    """Something that happened."""

    def to_json(self) -> Json:
        """The event as one JSON object."""
        return {"event": type(self).__name__} | dataclasses.asdict(self)


@dataclass(frozen=True)
class RunStarted(Event):
    """The header: what is run against what, with which versions of everything.

    ``seed_source`` is ``"given"``, ``"fixed"`` (by the profile) or ``"drawn"``; empty in streams that do not tell.
    ``command`` does the same once more; empty in streams that do not tell, or where no command line does it.
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
    """A round of a machine is done. ``examples`` and ``steps`` count from the machine's start."""

    machine: str
    examples: int
    steps: int
    share: float


class _Failure(TypedDict):
    """A difference, as a trace has it."""

    step: int
    party: str
    release: str
    against: str
    aspects: Annotated[list[str], Meta(min_length=1)]
    expected: Any
    actual: Any
    clauses: list[str]


class _Sight(TypedDict):
    """Another sight of a difference."""

    shape: str
    clause: str
    clauses: list[str]
    times: int
    trace: str
    because: str


class _Objects(TypedDict):
    """What the writers of reports read in the objects of a :class:`Diverged`."""

    failure: _Failure
    also: list[_Sight]


@dataclass(frozen=True)
class Diverged(Event):
    """A difference that counts, shrunk.

    Attributes:
        failure: as in a trace.
        requirements: (id, level, statement) of the clauses at stake.
        steps: the shrunk operations, in words.
        trace: path of the trace.
        replay: the command that replays it.
        implementation: how it was asked for, such as ``"jvm"``; empty for the reference itself.
        shrinking: how far the trace was shrunk, such as ``"minimal"``; empty if it was not.
        releases: all in which the same difference shows, the newest first; ``failure`` is about that one.
        machines: all in which it shows; ``machine`` comes first.
        clause: the one of the clauses at stake that fails; empty if none speaks of the step.
        shape: what a difference without a clause is known by.
        detail: what comes behind the shape to tell it from others: ``" of end_offset"``; mostly empty.
        times: how often it was seen.
        also: other sights of the same difference: objects with ``shape``, ``clause``, ``clauses``, ``times``, ``trace``
            and ``because``, which says in words why it is no difference of its own.
        note: what could not be done for it, in words, such as writing its trace; mostly empty.
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
        """Ids of the clauses at stake, in its other sights as well."""
        also = (clause for sight in self.also for clause in sight["clauses"])
        return tuple(dict.fromkeys((*self.failure["clauses"], *also)))

    def is_about(self, machine: str, implementation: str, release: str) -> bool:
        """Whether it shows there."""
        releases, machines = self.releases or (self.failure["release"],), self.machines or (self.machine,)
        return machine in machines and implementation == self.implementation and release in releases


@dataclass(frozen=True)
class Replayed(Event):
    """The traces that the package keeps of a machine have been performed, before anything new is tried.

    ``traces`` are their ids, ``diverged`` those of them that ended in a difference that counts.
    """

    machine: str
    traces: tuple[str, ...]
    diverged: tuple[str, ...]


@dataclass(frozen=True)
class Measured(Event):
    """A figure about the harness itself, one row of a table.

    Attributes:
        table: what was measured, e.g. ``"mutants"``.
        name: of what, e.g. the mutant.
        holds: whether it is what it has to be; None for a figure that nothing is demanded of.
        figures: the columns, e.g. ``{"examples to kill": 12}``.
    """

    table: str
    name: str
    holds: bool | None
    figures: dict[str, Any] = field(default_factory=dict)


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

    @property
    def unsupported(self) -> bool:
        """Whether the implementation has nothing that the machine could drive."""
        return not self.steps and bool(self.verdicts) and self.count("unsupported") == len(self.verdicts)

    def count(self, verdict: Verdict) -> int:
        """How many clauses have a verdict."""
        return sum(1 for value in self.verdicts.values() if value == verdict)


@dataclass(frozen=True)
class RunFinished(Event):
    """The footer.

    ``verdict`` is ``"conforms"``, ``"diverges"``, or ``"stale"`` if nothing differs but expectations have not been met,
    which ``details`` names; as "not seen" it names those that the run says nothing about.
    """

    verdict: str
    steps: int
    seconds: float
    details: dict[str, Any] = field(default_factory=dict)


Sink = Callable[[Event], None]

KINDS: Final = {
    kind.__name__: kind for kind in (RunStarted, Progressed, Diverged, Replayed, Measured, Result, RunFinished)
}
"""Every kind of event by its name."""


def event_from_json(document: Json) -> Event | None:
    """An event from its JSON object; None for a kind of event that this version does not know.

    Raises:
        ValueError: it is no event, or lacks a field that this version needs, or a field is of another type.
    """
    name = document.get("event")
    if not isinstance(name, str):
        raise ValueError(f"{document!r:.80} is not an event")  # noqa: TRY004 -- as json.loads says it
    kind = KINDS.get(name)
    try:
        event: Event | None = None if kind is None else convert(document, kind)
        if isinstance(event, Diverged):
            convert({"failure": event.failure, "also": list(event.also)}, _Objects)
    except ValidationError as error:
        raise ValueError(str(error)) from None
    return event
