"""Known divergences, as data: each with the clause it violates, where, why and a link.

One file a topic, ``<topic>.toml``, in this package or in a directory of one's own; a file with no entry is fine::

    [[expectation]]
    clause = "OI-22"                # the clause that does not hold; an id without letter stands for all its letters
    machine = "offset"
    implementation = "my-index*"    # name of the implementation, with * and ? as in a shell; case counts
    releases = ">=2.4.0"            # of Kafka, see conformance.clauses.release_range
    reason = "wraps at 64 bits; fix planned for 2.0"
    link = "https://example.org/my-index/issues/7"

A difference in a step that no clause speaks of is known by its shape, which reports tell; then ``shape`` stands in the
place of ``clause``, as in ``shape = "append: outcome ok -> full"``; it may have * and ?, too. Of a log's shape it may
say more, as reports do: ``shape = "truncate_log: state of end_offset"``.

An expectation is a debt. One whose clause was exercised by the implementation it names without a divergence is paid,
and :meth:`Ledger.stale` reports it. In a directory of one's own that is an error: the entry has to go, so that the
divergence cannot come back unnoticed. One whose clause was not exercised says nothing either way. What this package
knows of the catalogue's subjects is about versions that are locked: that a run has not drawn it is told, and no error.
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

from conformance.clauses import MACHINES, load_clauses
from conformance.clauses.release_range import ReleaseRange, ReleaseRangeError
from conformance.errors import ToolError

_KEYS: Final = ("machine", "implementation", "releases", "reason", "link")
_SUBJECTS: Final = ("clause", "shape")


class ExpectationError(ToolError):
    """A file of expectations is malformed; the message names the file and the entry."""


@dataclass(frozen=True, slots=True)
class Expectation:
    """One known divergence; the attributes are the keys of its entry, ``origin`` is where it stands."""

    clause: str
    machine: str
    implementation: str
    releases: ReleaseRange
    reason: str
    link: str
    origin: str
    shape: str = ""

    def concerns(self, machine: str, implementation: str, release: str) -> bool:
        """Whether it is about this implementation on this release, as driven by this machine."""
        return machine == self.machine and fnmatchcase(implementation, self.implementation) and release in self.releases

    def names(self, clause: str) -> bool:
        """Whether ``clause`` is its clause, or a lettered variant of it."""
        mine = self.clause
        return bool(mine) and (clause == mine or (mine[-1].isdigit() and clause.rstrip(ascii_lowercase) == mine))

    def is_about(self, clauses: Iterable[str], shape: str, detail: str = "") -> bool:
        """Whether a difference is the one that it names, with or without what tells it from others of its shape."""
        if not self.shape:
            return any(map(self.names, clauses))
        return any(fnmatchcase(each, self.shape) for each in (shape, shape + detail))

    def is_owed(self, *, own: bool) -> bool:
        """Whether it has to go if nothing has met it; an ``own`` one does not come with this package."""
        return own or not self.implementation.startswith("subject:")

    def __str__(self) -> str:
        what = self.clause or self.shape
        return f"{self.origin}: {what}, {self.machine} machine, {self.implementation} on {self.releases}"


class StaleExpectationError(ToolError):
    """Nothing diverges any more as some expectations say, although their clauses were exercised."""

    def __init__(self, stale: Iterable[Expectation]) -> None:
        self.stale = tuple(stale)
        said = "; ".join(map(str, self.stale))
        super().__init__(f"a stale expectation, which nothing diverges from any more: {said}")


class Ledger:
    """The expectations of one run, and which of them it has met."""

    def __init__(self, expectations: Iterable[Expectation]) -> None:
        self.expectations = tuple(expectations)
        self._met: set[Expectation] = set()

    def match(self, clauses: Iterable[str], machine: str, implementation: str, release: str) -> Expectation | None:
        """The first expectation that a divergence meets, or None; it counts as met from then on.

        Args:
            clauses: the clauses that the diverging step exercised.
            machine: the machine that drove it.
            implementation: name of the implementation that diverged.
            release: the Kafka release it had to follow.
        """
        number = self.find(clauses, "", machine, implementation, release)
        return None if number is None else self.expectations[number]

    def find(
        self, clauses: Iterable[str], shape: str, machine: str, implementation: str, release: str, detail: str = ""
    ) -> int | None:
        """The number of the first expectation that a divergence meets, or None; see :meth:`find_all`."""
        return next(iter(self.find_all(clauses, shape, machine, implementation, release, detail)), None)

    def find_all(
        self, clauses: Iterable[str], shape: str, machine: str, implementation: str, release: str, detail: str = ""
    ) -> tuple[int, ...]:
        """The numbers of the expectations that a divergence meets; all of them count as met from then on.

        Args:
            clauses: the clauses that the diverging step exercised.
            shape: of the divergence, see :mod:`conformance.runs.differences.shapes`.
            machine: the machine that drove it.
            implementation: name of the implementation that diverged.
            release: the Kafka release it had to follow.
            detail: what may come behind the shape.
        """
        ids = tuple(clauses)
        found = tuple(
            number
            for number, each in enumerate(self.expectations)
            if each.concerns(machine, implementation, release) and each.is_about(ids, shape, detail)
        )
        self.meet(found)
        return found

    def meet(self, numbers: Iterable[int]) -> None:
        """These expectations have been met, in another process for instance."""
        self._met.update(self.expectations[number] for number in numbers)

    def stale(
        self,
        exercised: Mapping[tuple[str, str, str], Collection[str]],
        performed: Mapping[str, Collection[str]] | None = None,
    ) -> tuple[Expectation, ...]:
        """The expectations that nothing has met although their clause was exercised where they apply.

        Args:
            exercised: for machine, implementation and release, the clauses that its steps exercised.
            performed: for each machine what stands before the colon of a shape, or before its arrow: the operations
                that it performed, and what was answered rightly; for expectations that name a shape.
        """
        operations = performed or {}
        return tuple(
            expectation
            for expectation in self.expectations
            if expectation not in self._met
            and any(
                expectation.concerns(*where)
                and (
                    _is_performed(expectation.shape, operations.get(expectation.machine, ()))
                    if expectation.shape
                    else any(map(expectation.names, clauses))
                )
                for where, clauses in exercised.items()
            )
        )


def _is_performed(shape: str, performed: Collection[str]) -> bool:
    operation, answered = shape.partition(":")[0], shape.partition(" -> ")[0]
    return any(fnmatchcase(each, answered if ":" in each else operation) for each in performed)


def expectation_files(directory: Path | None = None) -> list[Traversable]:
    """The files of a directory that hold expectations, by name; by default those that the package ships.

    Raises:
        ExpectationError: it is no directory, or cannot be read.
    """
    root: Traversable = files(__package__) if directory is None else directory
    try:
        return sorted((e for e in root.iterdir() if e.name.endswith(".toml")), key=lambda entry: entry.name)
    except OSError as error:
        raise ExpectationError(f"cannot read expectations from {root}: {error}") from None


def load_expectations(directory: Path | None = None) -> tuple[Expectation, ...]:
    """All expectations of a directory; by default those that the package ships.

    Raises:
        ExpectationError: a file cannot be read or is malformed.
    """
    found: list[Expectation] = []
    for entry in expectation_files(directory):
        try:
            text = entry.read_text("utf-8")
        except (OSError, UnicodeDecodeError) as error:
            raise ExpectationError(f"cannot read expectations from {entry}: {error}") from None
        found += read_expectations(entry.name, text)
    return tuple(found)


def read_expectations(origin: str, text: str) -> tuple[Expectation, ...]:
    """The expectations of one file.

    Args:
        origin: the file's name, for messages.
        text: its content.

    Raises:
        ExpectationError: it is no TOML, or an entry is malformed or names a clause that does not exist.
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
    if missing := [key for key in _KEYS if not entry.get(key)]:
        raise ExpectationError(f"{where} has no {', '.join(missing)}")
    named = [key for key in _SUBJECTS if entry.get(key)]
    if len(named) != 1:
        raise ExpectationError(f"{where} has {'both clause and shape' if named else 'no clause'}; it names one of them")
    if unknown := sorted(set(entry) - {*_KEYS, *_SUBJECTS}):
        raise ExpectationError(f"{where} has {', '.join(unknown)}, which no expectation has")
    if entry["machine"] not in MACHINES:
        raise ExpectationError(f"{where}: machine {entry['machine']!r} is none of {', '.join(MACHINES)}")
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
        entry.get("shape", ""),
    )
    if expectation.clause and not any(expectation.names(clause) for clause in load_clauses()):
        raise ExpectationError(f"{where}: there is no clause {entry['clause']}")
    return expectation
