"""Frame of studies: a study lists cases and checks each; the frame searches, shrinks, saves, replays and counts.

A study never parses options, starts workers or decides an exit code: :mod:`conformance.commands.study` derives its
command.
"""

from __future__ import annotations

import multiprocessing
import time
import tomllib
from collections.abc import Callable, Iterator, Mapping, Sequence
from fnmatch import fnmatchcase
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Generic, NamedTuple, TypeVar

import msgspec

from conformance.clauses import load_clauses
from conformance.errors import ToolError
from conformance.experiments.json_file import save_json
from kidx.workers import WorkerPool

if TYPE_CHECKING:
    from conformance.kafka.jar_fetch import Progress
    from conformance.operations import Json

Bench = TypeVar("Bench")
Case = TypeVar("Case")
Seen = TypeVar("Seen")
File = TypeVar("File", bound=msgspec.Struct)
Sameness = Mapping[str, str | bool]


class Request(NamedTuple):
    """Options of a search.

    Attributes:
        machines: what is searched, of :attr:`Study.machines`.
        seed: random seed.
        examples: number of examples of each machine.
        seconds: time for each release after which no new case begins; None for no limit.
        directory: directory for a file of each finding; None writes none, and then nothing is shrunk.
    """

    machines: tuple[str, ...]
    seed: int = 0
    examples: int = 1
    seconds: float | None = None
    directory: Path | None = None


class PlantedDefect(NamedTuple):
    """Defect in Kafka's classes that a study has to find.

    Attributes:
        machine: machine that shows the defect.
        title: description of the defect.
        change: function that plants the defect in a class file.
    """

    machine: str
    title: str
    change: Callable[[Any], bool]


class Searched(NamedTuple):
    """Result for a release.

    Attributes:
        release: the release.
        same: the first release with the same classes, whose results these are.
        rows: JSON results.
        is_cut: True if the time limit ended the search early.
    """

    release: str
    same: str
    rows: list[Json]
    is_cut: bool


class PlantedSearch(NamedTuple):
    """Result of a search for a planted defect.

    Attributes:
        name: name of the defect.
        seed: random seed.
        looked: number of results that the search has examined.
        found: the first wrong result that is not known of the unchanged release, as a text; None without one.
    """

    name: str
    seed: int
    looked: int
    found: str | None


class Study(Generic[Bench, Case, Seen, File]):
    """Base class of a study: a value that lists cases, and checks each."""

    name: ClassVar[str]
    """Name of the command."""
    help: ClassVar[str]
    """Text of the command's help."""
    machines: ClassVar[tuple[str, ...]]
    on_request: ClassVar[tuple[str, ...]] = ()
    """Machines that only ``--machine`` selects."""
    example: ClassVar[str] = "Examples"
    unit: ClassVar[str] = "cases"
    defect: ClassVar[str] = "defect"
    file_stem: ClassVar[str] = "finding"
    """Words for an example, for what is counted, for a planted defect, and for a finding; files begin with the last."""
    file: type[File]
    """Structure of the file of a finding, with members ``release`` and ``machine``."""
    planted: ClassVar[Mapping[str, PlantedDefect]] = {}
    planted_release: ClassVar[str] = "4.3.1"
    """Release whose classes are changed, if the user names no other."""
    planted_examples: ClassVar[int] = 3
    """Number of examples from each seed in the search for a planted defect."""
    export: Callable[[File, Path], str] | None = None
    """Function that returns a program that shows a finding; None if ``--replay`` has no ``--export``."""

    def open(
        self, release: str, scratch: Path, progress: Progress | None = None, change: Callable[[Any], bool] | None = None
    ) -> Bench:
        """Return what executes the cases of a release, whose classes a planted defect may change."""
        raise NotImplementedError

    def digest(self, release: str, request: Request, progress: Progress | None) -> str:
        """Return a text that is equal for releases with equal results."""
        raise NotImplementedError

    def cases(self, bench: Bench, request: Request) -> Iterator[Case]:
        """Yield the cases: listed, or drawn from the seed."""
        raise NotImplementedError

    def look(self, bench: Bench, case: Case) -> Iterator[Seen]:
        """Execute a case, and yield each result, right or wrong."""
        raise NotImplementedError

    def sameness(self, seen: Seen) -> Sameness | None:
        """Return the properties by which a wrong result is known; None if nothing is wrong."""
        raise NotImplementedError

    def fails(self, bench: Bench, case: Case) -> bool:
        """Return True if something is wrong in a case; a study may end earlier than :meth:`look` does."""
        return any(self.sameness(seen) is not None for seen in self.look(bench, case))

    def smaller(self, case: Case) -> Iterator[Case]:  # noqa: ARG002 -- a study that shrinks uses it
        """Yield simpler cases; none if cases are not shrunk."""
        yield from ()

    def document(self, bench: Bench, seen: Seen, clause: str | None) -> File:
        """Return the content of the file of a wrong result; :func:`shrunk` finds the smallest case."""
        raise NotImplementedError

    def row(self, release: str, seen: Seen, clause: str | None) -> Json:
        """Return the JSON result, with members ``machine`` and ``clause``."""
        raise NotImplementedError

    def count(self, row: Json) -> int:
        """Return how many results were compared for a row."""
        raise NotImplementedError

    def is_wrong(self, row: Json) -> bool:
        """Return True if a row has a wrong result."""
        raise NotImplementedError

    def named(self, seen: Seen) -> str:
        """Return a wrong result as a few words."""
        raise NotImplementedError

    def shown(self, release: str, rows: Sequence[Json]) -> Iterator[str]:
        """Yield the results of a release as lines for people."""
        raise NotImplementedError

    def page(self, rows: Sequence[Json], command: str) -> str:
        """Return a Markdown page of all releases."""
        raise NotImplementedError

    def verdict(self, new: int, count: int) -> str:
        """Return the last line: how many of the results are wrong and not known."""
        raise NotImplementedError

    def replayed(self, bench: Bench, content: File) -> tuple[bool, Json, str]:
        """Execute the case of a file again, and return True if it is wrong, with the answer as JSON and as a text."""
        raise NotImplementedError

    def search(self, request: Request, release: str, scratch: Path) -> tuple[list[Json], bool]:
        """Return the JSON results of a release, and True if the time limit ended the search early.

        Raises:
            ToolError: Java or a jar is missing, or the study cannot trust its results.
        """
        bench, known = self.open(release, scratch), KnownCauses(self)
        end = None if request.seconds is None else time.monotonic() + request.seconds
        results, cut = list[Seen](), False
        for case in self.cases(bench, request):
            cut = end is not None and time.monotonic() > end
            if cut:
                break
            results += self.look(bench, case)
        rows = []
        for seen in results:
            sameness = self.sameness(seen)
            clause = known.clause_of(sameness, release) if sameness is not None else None
            row = self.row(release, seen, clause)
            if sameness is not None and request.directory is not None:
                content = msgspec.to_builtins(self.document(bench, seen, clause))
                row["trace"] = str(save_json(content, request.directory, self.file_stem, self.file_stem))
            rows.append(row)
        return rows, cut

    def search_planted(
        self, names: Sequence[str], seeds: Sequence[int], release: str, scratch: Path
    ) -> Iterator[PlantedSearch]:
        """Yield the result of a search for each planted defect and seed.

        Raises:
            ToolError: the release does not have the code that a defect changes.
        """
        for name in names:
            bench = self.open(release, scratch / name, change=self.planted[name].change)
            for seed in seeds:
                yield self._search_planted(name, seed, release, bench)

    def _search_planted(self, name: str, seed: int, release: str, bench: Bench) -> PlantedSearch:
        known, count = KnownCauses(self), 0
        for case in self.cases(bench, Request((self.planted[name].machine,), seed, self.planted_examples)):
            for seen in self.look(bench, case):
                count += 1
                sameness = self.sameness(seen)
                if sameness is not None and known.clause_of(sameness, release) is None:
                    return PlantedSearch(name, seed, count, self.named(seen))
        return PlantedSearch(name, seed, count, None)


def shrunk(study: Study[Bench, Case, Seen, File], bench: Bench, case: Case) -> Case:
    """Return the smallest case with which something is still wrong: the first simpler one, as long as there is one."""
    while True:
        found = next((each for each in study.smaller(case) if study.fails(bench, each)), None)
        if found is None:
            return case
        case = found


class KnownCauses:
    """Causes that a study's ``known.toml`` lists, each with its clause.

    A member of a row that is a list matches any of its patterns. A property that is true has to be named by the row.
    """

    def __init__(self, study: Study[Any, Any, Any, Any]) -> None:
        package = type(study).__module__.rpartition(".")[0]
        self._rows = tomllib.loads((files(package) / "known.toml").read_text("utf-8"))["known"]
        self._clauses = load_clauses()

    def clause_of(self, sameness: Sameness, release: str) -> str | None:
        """Return the clause that states a wrong result in a release; None if no clause states it."""
        return next(
            (
                row["clause"]
                for row in self._rows
                if all(_matches(row.get(name, False), value) for name, value in sameness.items())
                and self._clauses[row["clause"]].applies_to(release)
            ),
            None,
        )


def _matches(wanted: Any, value: str | bool) -> bool:
    if isinstance(value, bool):
        return wanted is value
    return any(fnmatchcase(value, pattern) for pattern in ([wanted] if isinstance(wanted, str) else wanted or ()))


def load(study: Study[Bench, Case, Seen, File], path: Path) -> File:
    """Return the content of a finding's file.

    Raises:
        ToolError: the file cannot be read, or is no finding of this study.
    """
    try:
        return msgspec.json.decode(path.read_bytes(), type=study.file)
    except OSError as error:
        raise ToolError(f"cannot read {path}: {error.strerror or error}") from error
    except (ValueError, RecursionError) as error:  # errors of msgspec are ValueErrors
        raise ToolError(f"cannot read {path}: not a file of conformance {study.name}: {error}") from error


def search_releases(
    study: Study[Any, Any, Any, Any],
    request: Request,
    releases: Sequence[str],
    scratch: Path,
    jobs: int,
    progress: Progress | None = None,
) -> Iterator[Searched]:
    """Yield the results of each release; releases with the same digest are searched once.

    Args:
        study: the study.
        request: its options.
        releases: the releases.
        scratch: an empty directory.
        jobs: maximum number of worker processes; this process searches if one is enough.
        progress: called while jars are fetched.

    Raises:
        ToolError: see :meth:`Study.search`.
    """
    digests = {release: study.digest(release, request, progress) for release in releases}
    first: dict[str, str] = {}
    for release, digest in digests.items():
        first.setdefault(digest, release)
    workers = min(jobs, len(first))
    if workers == 1:
        done: dict[str, tuple[list[Json], bool]] = {}
        for release, digest in digests.items():
            if digest not in done:
                done[digest] = study.search(request, release, scratch / release)
            yield Searched(release, first[digest], *done[digest])
        return
    # The workers must not inherit this process's virtual machine.
    with WorkerPool(workers, multiprocessing.get_context("spawn")) as pool:
        found = {digest: pool.submit(study.search, request, name, scratch / name) for digest, name in first.items()}
        for release, digest in digests.items():
            yield Searched(release, first[digest], *found[digest].result())
