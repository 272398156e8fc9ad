"""Known divergences as data: each with the violated clause, the implementation, a reason and a link.

One file per topic, ``<topic>.toml``, in this package or in the user's directory; a file with no entry is valid::

    [[expectation]]
    clause = "OI-22"                # the violated clause; an id without letter covers all its letters
    machine = "offset"
    implementation = "my-index*"    # name of the implementation, with * and ? as in a shell; case counts
    releases = ">=2.4.0"            # of Kafka, see kidx.dialect.release_range
    reason = "wraps at 64 bits; fix planned for 2.0"
    link = "https://example.org/my-index/issues/7"

A divergence in a step that no clause covers is identified by its signature, which reports contain. Then the key is
``signature`` instead of ``clause``, as in ``signature = "append: outcome ok -> full"``, with ``*`` and ``?`` if needed.
The signature of a log's divergence may include the detail that reports show: ``signature = "truncate_log: state of
end_offset"``.

An expectation must be removed once it is no longer true. It is stale if the implementation exercised its clause without
a divergence; :meth:`ExpectationTracker.stale` returns it. A stale entry of the user's directory is an error: the entry
must be removed, so that the divergence cannot return unnoticed. An entry whose clause was not exercised is not stale. A
stale entry of this package about a third-party implementation is only reported. The locked version of the
implementation does not change, so the run has merely not generated the divergence.
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
_EITHER: Final = ("clause", "signature")
"""Keys of which an entry has exactly one."""


class ExpectationError(ToolError):
    """File of expectations that is malformed; the message contains the file and the entry."""


@dataclass(frozen=True, slots=True)
class Expectation:
    """Known divergence.

    The attributes are the keys of its entry; ``origin`` is the file and the number of the entry.
    """

    clause: str
    machine: str
    implementation: str
    releases: ReleaseRange
    reason: str
    link: str
    origin: str
    signature: str = ""

    def applies_to(self, machine: str, implementation: str, release: str) -> bool:
        """Return True if the expectation is about this machine, implementation and release."""
        return machine == self.machine and fnmatchcase(implementation, self.implementation) and release in self.releases

    def covers_clause(self, clause: str) -> bool:
        """Return True if ``clause`` is the clause of the expectation, or a lettered variant of it."""
        own = self.clause
        return bool(own) and (clause == own or (own[-1].isdigit() and clause.rstrip(ascii_lowercase) == own))

    def matches(self, clauses: Iterable[str], signature: str, detail: str = "") -> bool:
        """Return True if the expectation names one of the clauses, or the signature with or without its detail."""
        if not self.signature:
            return any(map(self.covers_clause, clauses))
        return any(fnmatchcase(each, self.signature) for each in (signature, signature + detail))

    def must_not_be_stale(self, *, own: bool) -> bool:
        """Return True if it is an error that no divergence matches the expectation.

        Args:
            own: True if the expectation is not part of this package.
        """
        return own or not self.implementation.startswith("subject:")

    def __str__(self) -> str:
        what = self.clause or self.signature
        return f"{self.origin}: {what}, {self.machine} machine, {self.implementation} on {self.releases}"


class StaleExpectationError(ToolError):
    """Expectations that no divergence matches any more, although their clauses were exercised."""

    def __init__(self, stale: Iterable[Expectation]) -> None:
        self.stale = tuple(stale)
        text = "; ".join(map(str, self.stale))
        super().__init__(f"an expectation is stale: no divergence matches it any more; remove its entry: {text}")


class ExpectationTracker:
    """Expectations of one run, and which of them divergences have matched; a number is an index of ``expectations``."""

    def __init__(self, expectations: Iterable[Expectation]) -> None:
        self.expectations = tuple(expectations)
        self._matched: set[Expectation] = set()

    def match(self, clauses: Iterable[str], machine: str, implementation: str, release: str) -> Expectation | None:
        """Return the first expectation that a divergence matches, or None, and mark as matched all that it matches.

        Args:
            clauses: clauses that the diverging step exercised.
            implementation: name of the implementation that diverged.
            release: Kafka release with which the implementation was compared.
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
            implementation: name of the implementation that diverged.
            release: Kafka release with which the implementation was compared.
            detail: text that may follow the signature in an expectation.
        """
        ids = tuple(clauses)
        found = tuple(
            number
            for number, each in enumerate(self.expectations)
            if each.applies_to(machine, implementation, release) and each.matches(ids, signature, detail)
        )
        self.mark_matched(found)
        return found

    @property
    def matched(self) -> tuple[Expectation, ...]:
        """The expectations that divergences have matched, in their order."""
        return tuple(each for each in self.expectations if each in self._matched)

    def mark_matched(self, numbers: Iterable[int]) -> None:
        """Mark expectations as matched that another process has matched."""
        self._matched.update(self.expectations[number] for number in numbers)

    def stale(
        self,
        exercised: Mapping[tuple[str, str, str], Collection[str]],
        executed: Mapping[str, Collection[str]] | None = None,
    ) -> tuple[Expectation, ...]:
        """Return the expectations that no divergence has matched although their clause was exercised.

        Args:
            exercised: clauses that the steps exercised, by machine, implementation and release.
            executed: executed operations of each machine, without and with their correct outcome, such as ``append``
                and ``append: outcome ok``. An expectation with the signature ``append: outcome ok -> full`` is stale
                if they include its beginning.
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
        ExpectationError: the text is not TOML, or an entry is malformed or names a clause that does not exist.
    """
    try:
        table = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise ExpectationError(f"{origin} is not TOML: {error}") from None
    if unknown := sorted(set(table) - {"expectation"}):
        raise ExpectationError(
            f"{origin} has {', '.join(unknown)}; a file of expectations has only [[expectation]] entries"
        )
    try:
        found = convert(table.get("expectation", []), list[dict[str, str]])
    except ValidationError as error:
        raise ExpectationError(f"{origin}: {error}; all values of an [[expectation]] must be texts") from None
    entries = enumerate(found, start=1)
    return tuple(_read_expectation(f"{origin}, entry {number}", entry) for number, entry in entries)


def _read_expectation(where: str, entry: Mapping[str, str]) -> Expectation:
    entry = renamed(entry, {"shape": "signature"})  # the name until 0.2
    if missing := [key for key in _KEYS if not entry.get(key)]:
        raise ExpectationError(f"{where} has no {', '.join(missing)}")
    named = [key for key in _EITHER if entry.get(key)]
    if len(named) != 1:
        raise ExpectationError(
            f"{where} has {'both clause and signature' if named else 'neither clause nor signature'}; give one of them"
        )
    if unknown := sorted(set(entry) - {*_KEYS, *_EITHER}):
        raise ExpectationError(f"{where} has {', '.join(unknown)}, which is not a key of an expectation")
    if entry["machine"] not in MACHINES:
        raise ExpectationError(f"{where}: unknown machine {entry['machine']!r}; choose from {', '.join(MACHINES)}")
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
        raise ExpectationError(f"{where}: unknown clause {entry['clause']!r}; `conformance clauses` lists all")
    return expectation
