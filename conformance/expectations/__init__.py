"""Known divergences as data: each with the violated clause, the implementation, a reason and a link.

One file per topic, ``<topic>.toml``, in this package or in the user's directory; a file with no entry is valid::

    [[expectation]]
    clause = "OI-22"                # the violated clause; an id without letter covers all its letters
    machine = "offset"
    implementation = "my-index*"    # name of the implementation, with * and ? as in a shell; case counts
    releases = ">=2.4.0"            # of Kafka, see conformance.clauses.release_range
    reason = "wraps at 64 bits; fix planned for 2.0"
    link = "https://example.org/my-index/issues/7"

A divergence in a step that no clause covers is identified by its signature, which reports contain. Then ``signature``
replaces ``clause``, as in ``signature = "append: outcome ok -> full"``; it may also have * and ?. A log's signature
may have the detail that reports show: ``signature = "truncate_log: state of end_offset"``.

An expectation must be removed once it is no longer true. It is stale if the implementation exercised its clause without
a divergence, and :meth:`ExpectationTracker.stale` returns it. In the user's directory that is an error: the entry must
be removed, so that the divergence cannot return unnoticed. An entry whose clause was not exercised is not stale. The
package's entries for third-party implementations are about locked versions: that a run has not generated the divergence
is reported, but is not an error.
"""

from __future__ import annotations

import tomllib
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from fnmatch import fnmatchcase
from importlib.resources import files
from importlib.resources.abc import Traversable
from pathlib import Path
from string import ascii_lowercase
from typing import Final

from msgspec import ValidationError, convert

from conformance.clauses import load_clauses
from conformance.clauses.machines import MACHINES
from conformance.errors import ToolError
from conformance.events import renamed
from kidx.dialect.release_range import ReleaseRange, ReleaseRangeError

_KEYS: Final = ("machine", "implementation", "releases", "reason", "link")
_SUBJECTS: Final = ("clause", "signature")


class ExpectationError(ToolError):
    """Malformed file of expectations; the message names the file and the entry."""


@dataclass(frozen=True, slots=True)
class Expectation:
    """Known divergence; the attributes are the keys of its entry, ``origin`` is the file and number of the entry."""

    clause: str
    machine: str
    implementation: str
    releases: ReleaseRange
    reason: str
    link: str
    origin: str
    signature: str = ""

    def applies_to(self, machine: str, implementation: str, release: str) -> bool:
        """Return True if it is about this implementation on this release, tested by this machine."""
        return machine == self.machine and fnmatchcase(implementation, self.implementation) and release in self.releases

    def covers_clause(self, clause: str) -> bool:
        """Return True if ``clause`` is its clause, or a lettered variant of it."""
        own = self.clause
        return bool(own) and (clause == own or (own[-1].isdigit() and clause.rstrip(ascii_lowercase) == own))

    def matches(self, clauses: Iterable[str], signature: str, detail: str = "") -> bool:
        """Return True if it names a divergence, by a clause or by the signature with or without detail."""
        if not self.signature:
            return any(map(self.covers_clause, clauses))
        return any(fnmatchcase(each, self.signature) for each in (signature, signature + detail))

    def must_not_be_stale(self, *, own: bool) -> bool:
        """Return True if it is an error that nothing matches it; an ``own`` one is not part of this package."""
        return own or not self.implementation.startswith("subject:")

    def __str__(self) -> str:
        what = self.clause or self.signature
        return f"{self.origin}: {what}, {self.machine} machine, {self.implementation} on {self.releases}"


class StaleExpectationError(ToolError):
    """Expectations that no divergence matches any more, although their clauses were exercised."""

    def __init__(self, stale: Iterable[Expectation]) -> None:
        self.stale = tuple(stale)
        text = "; ".join(map(str, self.stale))
        super().__init__(f"a stale expectation, which no divergence matches any more: {text}")


class ExpectationTracker:
    """Expectations of one run, and which of them have been matched."""

    def __init__(self, expectations: Iterable[Expectation]) -> None:
        self.expectations = tuple(expectations)
        self._matched: set[Expectation] = set()

    def match(self, clauses: Iterable[str], machine: str, implementation: str, release: str) -> Expectation | None:
        """Return the first expectation that a divergence matches, or None, and mark it as matched.

        Args:
            clauses: clauses that the diverging step exercised.
            machine: name of the machine.
            implementation: name of the implementation that diverged.
            release: Kafka release that the implementation was compared with.
        """
        number = self.find(clauses, "", machine, implementation, release)
        return None if number is None else self.expectations[number]

    def find(
        self, clauses: Iterable[str], signature: str, machine: str, implementation: str, release: str, detail: str = ""
    ) -> int | None:
        """Return the number of the first expectation that a divergence matches, or None; see :meth:`match_all`."""
        return next(iter(self.match_all(clauses, signature, machine, implementation, release, detail)), None)

    def match_all(
        self, clauses: Iterable[str], signature: str, machine: str, implementation: str, release: str, detail: str = ""
    ) -> tuple[int, ...]:
        """Return the numbers of the expectations that a divergence matches, and mark all of them as matched.

        Args:
            clauses: clauses that the diverging step exercised.
            signature: signature of the divergence, see :mod:`conformance.runs.divergences.signatures`.
            machine: name of the machine.
            implementation: name of the implementation that diverged.
            release: Kafka release that the implementation was compared with.
            detail: detail that may follow the signature.
        """
        ids = tuple(clauses)
        found = tuple(
            number
            for number, each in enumerate(self.expectations)
            if each.applies_to(machine, implementation, release) and each.matches(ids, signature, detail)
        )
        self.mark_matched(found)
        return found

    def mark_matched(self, numbers: Iterable[int]) -> None:
        """Mark expectations as matched, for instance in another process."""
        self._matched.update(self.expectations[number] for number in numbers)

    def stale(
        self,
        exercised: Mapping[tuple[str, str, str], Collection[str]],
        executed: Mapping[str, Collection[str]] | None = None,
    ) -> tuple[Expectation, ...]:
        """Return the expectations that nothing has matched although their clause was exercised where they apply.

        Args:
            exercised: clauses that the steps exercised, by machine, implementation and release.
            executed: Used for expectations with a signature: the executed operations of each machine, and their
                correct outcomes, as the parts of a signature before the colon and before the arrow.
        """
        operations = executed or {}
        return tuple(
            expectation
            for expectation in self.expectations
            if expectation not in self._matched
            and any(
                expectation.applies_to(*where)
                and (
                    _is_executed(expectation.signature, operations.get(expectation.machine, ()))
                    if expectation.signature
                    else any(map(expectation.covers_clause, clauses))
                )
                for where, clauses in exercised.items()
            )
        )


def _is_executed(signature: str, executed: Collection[str]) -> bool:
    operation, answered = signature.partition(":")[0], signature.partition(" -> ")[0]
    return any(fnmatchcase(each, answered if ":" in each else operation) for each in executed)


def expectation_files(directory: Path | None = None) -> list[Traversable]:
    """Return the files of expectations in a directory, by name; by default the package's files.

    Raises:
        ExpectationError: the directory does not exist, or cannot be read.
    """
    root: Traversable = files(__package__) if directory is None else directory
    try:
        return sorted((e for e in root.iterdir() if e.name.endswith(".toml")), key=lambda entry: entry.name)
    except OSError as error:
        raise ExpectationError(f"cannot read expectations from {root}: {error.strerror or error}") from None


def load_expectations(directory: Path | None = None) -> tuple[Expectation, ...]:
    """Return all expectations of a directory; by default the packaged directory.

    Raises:
        ExpectationError: a file cannot be read or is malformed.
    """
    found: list[Expectation] = []
    for entry in expectation_files(directory):
        try:
            text = entry.read_text("utf-8")
        except (OSError, UnicodeDecodeError) as error:
            reason = (error.strerror if isinstance(error, OSError) else None) or error
            raise ExpectationError(f"cannot read expectations from {entry}: {reason}") from None
        found += read_expectations(entry.name, text)
    return tuple(found)


def read_expectations(origin: str, text: str) -> tuple[Expectation, ...]:
    """Return the expectations of one file.

    Args:
        origin: name of the file, for messages.
        text: content of the file.

    Raises:
        ExpectationError: it is not TOML, or an entry is malformed or names a clause that does not exist.
    """
    try:
        table = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise ExpectationError(f"{origin} is not TOML: {error}") from None
    if unknown := sorted(set(table) - {"expectation"}):
        raise ExpectationError(f"{origin} has {', '.join(unknown)}; it may have [[expectation]] entries only")
    try:
        found = convert(table.get("expectation", []), list[dict[str, str]])
    except ValidationError as error:
        raise ExpectationError(f"{origin}: {error}; it may have [[expectation]] entries of texts only") from None
    entries = enumerate(found, start=1)
    return tuple(_read_expectation(f"{origin}, entry {number}", entry) for number, entry in entries)


def _read_expectation(where: str, entry: Mapping[str, str]) -> Expectation:
    entry = renamed(entry, {"shape": "signature"})  # the name until 0.2
    if missing := [key for key in _KEYS if not entry.get(key)]:
        raise ExpectationError(f"{where} has no {', '.join(missing)}")
    named = [key for key in _SUBJECTS if entry.get(key)]
    if len(named) != 1:
        raise ExpectationError(
            f"{where} has {'both clause and signature' if named else 'no clause'}; it names one of them"
        )
    if unknown := sorted(set(entry) - {*_KEYS, *_SUBJECTS}):
        raise ExpectationError(f"{where} has {', '.join(unknown)}, which no expectation has")
    if entry["machine"] not in MACHINES:
        raise ExpectationError(f"{where}: machine {entry['machine']!r} is unknown; choose from {', '.join(MACHINES)}")
    try:
        releases = ReleaseRange.parse(entry["releases"])
    except ReleaseRangeError as error:
        raise ExpectationError(f"{where}: {error}") from None
    expectation = Expectation(
        entry.get("clause", ""),
        entry["machine"],
        entry["implementation"],
        releases,
        entry["reason"],
        entry["link"],
        where,
        entry.get("signature", ""),
    )
    if expectation.clause and not any(expectation.covers_clause(clause) for clause in load_clauses()):
        raise ExpectationError(f"{where}: there is no clause {entry['clause']}")
    return expectation
