"""Results of a lockstep: a divergence, its error, and statistics."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from conformance.attribution import DivergentParts, counts_at_level, noticed_facets
from conformance.attribution.history import MAY_BE_EMPTY
from conformance.attribution.verdict_levels import OF_THE_FILE
from conformance.clauses import load_clauses
from conformance.implementations.process.line_process import STDERR_SAYS
from conformance.lockstep.file_reader import UnreadableFile
from conformance.operations import Json, Operation, Outcome
from conformance.operations.outcomes import FAILURE, OUT_OF_MEMORY

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from conformance.lockstep.file_differences import FileDifference
    from conformance.lockstep.generator_coverage import Kind


_RUN_SPECIFIC: Final = re.compile(r"0x[0-9a-fA-F]+|\(\d+\)|(?<=goroutine )\d+")
"""Parts of a crash message that differ from run to run: addresses, and ids of processes, threads and goroutines."""


CRASH_ASPECT: Final = "failure"
"""The aspect of an implementation that has crashed, timed out or sent a malformed reply."""


@dataclass(frozen=True, slots=True)
class Divergence:
    """Divergence of one participant at one step, in one or more aspects.

    Attributes:
        step: The 0-based index into the trace.
        operation: The operation of that step.
        participant: The name of the implementation that diverges, e.g. ``"jvm 3.9.2"``.
        release: The release whose dialect the implementation is compared with.
        against: ``"kidx"``, or ``"model"`` if the reference diverges from the model.
        aspects: The differing aspects: ``"outcome"``, ``"text"``, ``"state"`` and ``"bytes"``, in this order.
        expected: The expected value of the first aspect; ``actual``: the implementation's value.
        clauses: The ids of the clauses that the step exercises.
        fields: The names of the differing fields of the state, even if the first aspect is another.
        files: The differing files, even if the first aspect is another.
        promised: True if a broker can execute such a step; otherwise no guarantee is broken.
        rests_on: The ids of clauses below MUST by which the state came about that the difference depends on.
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
    rests_on: tuple[str, ...] = ()

    @property
    def is_failure(self) -> bool:
        """True if the implementation crashed, timed out or sent a malformed reply; no expectation can match this."""
        return isinstance(self.actual, Outcome) and self.actual.error == FAILURE

    @property
    def aspect(self) -> str:
        """The first aspect, or :data:`CRASH_ASPECT`."""
        return CRASH_ASPECT if self.is_failure else self.aspects[0]

    @property
    def is_unnoticed(self) -> bool:
        """True if only callers of Kafka's classes can notice the divergence, and it has no consequences."""
        return not self.is_failure and not noticed_facets(self._difference)

    @property
    def is_of_length(self) -> bool:
        """True if only the length of files, and the fields of the state that depend on it, differ."""
        return (
            not self.is_failure
            and {"state", "bytes"} >= set(self.aspects) - {"text"}
            and set(self.fields) <= OF_THE_FILE
            and all(not how.isdisjoint(("room", "empty")) for _, how in self.files)
        )

    @property
    def creates_other_files(self) -> bool:
        """True if a file exists on one side only, except for an empty one that need not exist."""
        if not MAY_BE_EMPTY.isdisjoint((*self.clauses, *self.rests_on)) and all(
            "empty" in how for _, how in self.files
        ):
            return False
        return any(word.startswith("absent") for _, how in self.files for word in how)

    @property
    def _difference(self) -> DivergentParts:
        kinds = self.aspects[0] == "outcome" and bool(error_of(self.expected)) and bool(error_of(self.actual))
        return DivergentParts(self.clauses, self.aspects, self.fields, self.files, kinds)

    def counts(self, level: str) -> bool:
        """Return True if the divergence counts at a level; failures and errors of the reference always count."""
        if level == "observed" or self.is_failure or self.against != "kidx":
            return True
        if not all(load_clauses()[clause].counts(level) for clause in self.rests_on):
            return False
        return (self.promised or level != "must") and counts_at_level(self._difference, level)


class DivergenceError(AssertionError):
    """First divergence that counts, with the operations up to it.

    Attributes:
        shrinking: The result of shrinking, such as ``"minimal"``; empty if the trace was not shrunk.
    """

    def __init__(self, divergence: Divergence, operations: Sequence[Operation]) -> None:
        super().__init__(f"{divergence.participant} diverges at step {divergence.step + 1}, {divergence.operation}")
        self.divergence = divergence
        self.operations = tuple(operations)
        self.shrinking = ""


@dataclass(slots=True)
class Statistics:
    """Statistics of a lockstep since it was created.

    Attributes:
        key: A function from a release to a name that it shares with releases that behave alike. Exercised clauses are
            counted under that name.
    """

    key: Callable[[str], str]
    examples: int = 0
    steps: int = 0
    clauses: dict[str, Counter[str]] = field(default_factory=dict)
    """For each name that ``key`` returns: the number of steps that exercised a clause."""
    dropped: Counter[tuple[str, str]] = field(default_factory=Counter)
    """(participant, clause): the number of divergences that were expected or do not count for the verdict."""
    unsupported: Counter[tuple[str, str]] = field(default_factory=Counter)
    """(participant, operation): the number of steps with an operation that an implementation does not have."""
    out_of_memory: Counter[tuple[str, str]] = field(default_factory=Counter)
    """(participant, operation): the number of steps that failed because an implementation ran out of memory."""
    kinds: Counter[Kind] = field(default_factory=Counter)
    """The number of steps of the newest dialect's reference, by operation, error kind and exercised clauses."""

    def record_dropout(self, name: str, operation: str, error: str | None) -> bool:
        """Count a step after which an implementation drops out of the example; return False if it does not drop out."""
        if error == "unsupported":
            self.unsupported[name, operation] += 1
        elif error == OUT_OF_MEMORY:
            self.out_of_memory[name, operation] += 1
        else:
            return False
        return True

    def exercised(self, release: str) -> Counter[str]:
        """Return the number of steps that exercised each clause, in the dialect of a release."""
        return self.clauses.get(self.key(release), Counter())


def failure_json(divergence: Divergence) -> Json:
    """Return a divergence as in a trace or a report; bytes are hexadecimal."""
    return {
        "step": divergence.step,
        "participant": divergence.participant,
        "release": divergence.release,
        "against": divergence.against,
        "aspects": list(divergence.aspects),
        "expected": plain(divergence.expected),
        "actual": plain(divergence.actual),
        "clauses": list(divergence.clauses),
    }


def plain(value: Any) -> Any:
    """Return a value of an observation as JSON."""
    if isinstance(value, UnreadableFile):
        return value.decode()
    if isinstance(value, bytes | bytearray):
        return bytes(value).hex()
    if isinstance(value, tuple | list):
        return [plain(item) for item in value]
    return value


def error_of(outcome: object) -> str | None:
    """Return the error kind of an outcome, or of a tuple of its first fields; None for success."""
    error = outcome.error if isinstance(outcome, Outcome) else outcome[0] if isinstance(outcome, tuple) else None
    return str(error) if error else None


def last_words(divergence: Divergence) -> str:
    """Return the stderr output of a crashed program, without addresses and ids; empty if no program crashed."""
    if not divergence.is_failure:
        return ""
    how, _, words = (divergence.actual.text or "").partition(STDERR_SAYS)
    return _RUN_SPECIFIC.sub("", words) if how.startswith("ended") else ""
