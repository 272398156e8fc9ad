"""What a lockstep finds: a difference, the error that carries it, and a count of what was done."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from conformance.attribution import DivergentParts, counts_at_level, noticed_facets
from conformance.implementations.replies import FAILURE, OUT_OF_MEMORY, STDERR_SAYS
from conformance.operations import Json, Operation, Outcome

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from conformance.lockstep.file_differences import FileDifference
    from conformance.lockstep.generator_coverage import Kind


_OF_THE_MOMENT: Final = re.compile(r"0x[0-9a-fA-F]+|\(\d+\)|(?<=goroutine )\d+")
"""Addresses, and ids of processes and threads as Rust and Go write them."""


@dataclass(frozen=True, slots=True)
class Divergence:
    """One difference: of which implementation, at which step, in which aspects.

    Attributes:
        step: 0-based index into the trace.
        operation: the operation of that step.
        participant: name of the implementation that differs, e.g. ``"jvm 3.9.2"``.
        release: the release whose dialect it was held to.
        against: ``"kidx"``, or ``"model"`` if it is the reference that differs.
        aspects: which of ``"outcome"``, ``"text"``, ``"state"`` and ``"bytes"`` differ, in this order.
        expected: what the other side says of the first of them, and ``actual``: what the implementation says.
        clauses: ids of the clauses that the step exercises.
        fields: names of the state's fields that differ, also where another aspect comes first.
        files: the files that differ, and in what, also where another aspect comes first.
        promised: whether a broker may come to such a step; else it breaks no promise.
    """

    step: int
    operation: Operation
    participant: str
    release: str
    against: str
    aspects: tuple[str, ...]
    expected: Any
    actual: Any
    clauses: tuple[str, ...]
    fields: tuple[str, ...] = ()
    files: tuple[FileDifference, ...] = ()
    promised: bool = True

    @property
    def is_failure(self) -> bool:
        """Whether the implementation crashed, was late or answered nonsense: no expectation excuses that."""
        return isinstance(self.actual, Outcome) and self.actual.error == FAILURE

    @property
    def observed_only(self) -> bool:
        """Whether no promise is broken: only that differs which no implementation has to copy (``--level must``)."""
        return not self._breaks("must")

    @property
    def is_unnoticed(self) -> bool:
        """Whether only that differs which callers of Kafka's classes alone notice, and nothing follows from it."""
        return not self.is_failure and not noticed_facets(self._difference)

    @property
    def _difference(self) -> DivergentParts:
        kinds = self.aspects[0] == "outcome" and bool(error_of(self.expected)) and bool(error_of(self.actual))
        return DivergentParts(self.clauses, self.aspects, self.fields, self.files, kinds)

    def counts(self, level: str) -> bool:
        """Whether the verdict counts it at a level of ``--level``: a failure and a wrong reference always do."""
        if level == "observed" or self.is_failure or self.against != "kidx":
            return True
        return self._breaks(level)

    def _breaks(self, level: str) -> bool:
        return (self.promised or level != "must") and counts_at_level(self._difference, level)


class DivergenceError(AssertionError):
    """Raised at the first difference that counts; carries it, and the trace up to it.

    Attributes:
        shrinking: how far the trace was shrunk, in words; empty if it was not.
    """

    def __init__(self, divergence: Divergence, operations: Sequence[Operation]) -> None:
        super().__init__(f"{divergence.participant} diverges at step {divergence.step + 1}, {divergence.operation}")
        self.divergence = divergence
        self.operations = tuple(operations)
        self.shrinking = ""


@dataclass(slots=True)
class Statistics:
    """What a lockstep has done since it was made.

    Attributes:
        key: a name for what makes releases alike, from a release; clauses are counted under it.
    """

    key: Callable[[str], str]
    examples: int = 0
    steps: int = 0
    clauses: dict[str, Counter[str]] = field(default_factory=dict)
    """For each key (X1 … for index files): how many steps exercised a clause."""
    dropped: Counter[tuple[str, str]] = field(default_factory=Counter)
    """(participant, clause): divergences that were expected, or left out of the verdict."""
    unsupported: Counter[tuple[str, str]] = field(default_factory=Counter)
    """(participant, operation): what an implementation does not have."""
    out_of_memory: Counter[tuple[str, str]] = field(default_factory=Counter)
    """(participant, operation): steps for which an implementation had no memory, so that it has not performed them."""
    kinds: Counter[Kind] = field(default_factory=Counter)
    """The steps that the newest dialect's reference went through."""

    def note_left(self, name: str, operation: str, error: str | None) -> bool:
        """Counts a step that an implementation has not performed, and so leaves the example; False if it has."""
        if error == "unsupported":
            self.unsupported[name, operation] += 1
        elif error == OUT_OF_MEMORY:
            self.out_of_memory[name, operation] += 1
        else:
            return False
        return True

    def exercised(self, release: str) -> Counter[str]:
        """How many steps exercised each clause, in the dialect of a release."""
        return self.clauses.get(self.key(release), Counter())


def failure_json(divergence: Divergence) -> Json:
    """A difference as a trace and a report carry it; bytes are hexadecimal."""
    return {
        "step": divergence.step,
        "party": divergence.participant,
        "release": divergence.release,
        "against": divergence.against,
        "aspects": list(divergence.aspects),
        "expected": plain(divergence.expected),
        "actual": plain(divergence.actual),
        "clauses": list(divergence.clauses),
    }


def plain(value: Any) -> Any:
    """A value of an observation as JSON."""
    if isinstance(value, bytes | bytearray):
        return bytes(value).hex()
    if isinstance(value, tuple | list):
        return [plain(item) for item in value]
    return value


def error_of(outcome: object) -> str | None:
    """The kind of a refusal, of an outcome or of the first two parts of one; None for what was performed."""
    error = outcome.error if isinstance(outcome, Outcome) else outcome[0] if isinstance(outcome, tuple) else None
    return str(error) if error else None


def last_words(divergence: Divergence) -> str:
    """Return what a program wrote on stderr before it crashed, without addresses and process ids; else empty text."""
    if not divergence.is_failure:
        return ""
    how, _, words = (divergence.actual.text or "").partition(STDERR_SAYS)
    return _OF_THE_MOMENT.sub("", words) if how.startswith("ended") else ""
