"""Frame of studies: a study lists cases and checks each; the frame searches, shrinks, saves, replays and counts.

A study has :meth:`Study.open`, :meth:`Study.cases`, :meth:`Study.look` and :meth:`Study.sameness`, and
:meth:`Study.smaller` if its cases can be shrunk. Its results are structures of msgspec with members ``machine`` and
``case``: rows of JSON, files, replay and pages follow from them. A study with its own format overrides more. It
never parses options, starts workers or decides an exit code: :mod:`conformance.commands.study` derives its command.
"""

from __future__ import annotations

import hashlib
import json
import multiprocessing
import time
import tomllib
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from fnmatch import fnmatchcase
from functools import cached_property
from importlib.metadata import version
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Generic, Literal, NamedTuple, Protocol, TypeVar

import msgspec

from conformance.clauses import load_clauses
from conformance.errors import ToolError
from conformance.events import Measured
from conformance.experiments.output_files import save_json
from conformance.operations import Json
from conformance.report.markdown_escape import table
from conformance.studies.kept import ResultFile, ResultFormat
from conformance.verdict import Comparison
from kidx.workers import WorkerPool

if TYPE_CHECKING:
    from conformance.events import Event
    from conformance.kafka.jar_fetch import Progress


class OpenRelease(Protocol):
    """Executor of the cases of a release."""

    @property
    def release(self) -> str:
        """The release."""


Bench = TypeVar("Bench", bound=OpenRelease)
Case = TypeVar("Case")
Seen = TypeVar("Seen")
File = TypeVar("File", bound=msgspec.Struct)
Sameness = Mapping[str, Any]


class Finding(msgspec.Struct, Generic[Seen], frozen=True, kw_only=True):
    """Content of the file of a wrong result.

    Attributes:
        clause: clause that states the result; None if none does.
        seen: the result, with its case.
    """

    format: Literal["kidx-study"] = "kidx-study"
    version: Literal[1] = 1
    release: str
    clause: str | None
    seen: Seen


class NoOptions(msgspec.Struct, frozen=True):
    """Options of a study without options."""


def _silent(line: str) -> None:
    """Ignore a line of text."""


class Request(NamedTuple):
    """Options of a search.

    Attributes:
        machines: what is searched, of :attr:`Study.machines`.
        examples: number of examples of each machine; None for the study's own number.
        seconds: time for each release after which no new case begins; None for no limit.
        directory: directory for a file of each finding; None writes none, and then nothing is shrunk.
        options: the study's own options, see :attr:`Study.options`.
        broker: place where brokers run, as ``--broker`` names it.
        show: callback that receives a line of text for each activity of a study that takes long.
        found: callback that receives a text for each wrong result of a study that takes long.
        releases: all releases, for a study that compares them together.
        implementations: what a study compares in lockstep, as ``-i`` names it.
        unfinished: directory for the results of a release until it is complete; None keeps them in memory only.
    """

    machines: tuple[str, ...]
    seed: int = 0
    examples: int | None = 1
    seconds: float | None = None
    directory: Path | None = None
    options: Any = NoOptions()
    broker: Literal["auto", "container", "local"] = "auto"
    show: Callable[[str], None] = _silent
    found: Callable[[str], None] = _silent
    releases: tuple[str, ...] = ()
    implementations: tuple[str, ...] = ("jvm",)
    unfinished: Path | None = None


class Group(msgspec.Struct, frozen=True):
    """Results of a group of cases, which are written together.

    Attributes:
        name: the group, see :meth:`Study.groups`.
        rows: the JSON results.
    """

    name: str
    rows: list[Any]


class SearchHeader(msgspec.Struct, frozen=True):
    """First line of a file of groups: what they depend on.

    Attributes:
        study: name of the study, with the version of kidx.
        release: the release.
        machines: see :class:`Request`, as the other members.
    """

    study: str
    release: str
    machines: tuple[str, ...]
    seed: int
    examples: int | None
    options: str
    releases: tuple[str, ...]
    implementations: tuple[str, ...]
    format: Literal["kidx-unfinished"] = "kidx-unfinished"


class PlantedDefect(NamedTuple):
    """Defect in Kafka's classes that a study has to find.

    Attributes:
        machine: machine that shows the defect.
        title: description of the defect.
        change: function that plants the defect, in a class file or in what the classes have done.
    """

    machine: str
    title: str
    change: Callable[[Any], Any]


class Searched(NamedTuple):
    """Result for a release.

    Attributes:
        release: the release; empty for all of them together.
        same: the first release with the same classes, whose results these are.
        is_cut: True if the time limit ended the search early.
    """

    release: str
    same: str
    rows: list[Json]
    is_cut: bool


class PlantedSearch(NamedTuple):
    """Result of a search for a planted defect.

    Attributes:
        looked: number of results that the search has examined.
        found: the first wrong result that is not known of the unchanged release, as a text; None without one.
    """

    name: str
    seed: int
    looked: int
    found: str | None


Search = tuple[list[Json], bool]
"""JSON results of a release, and True if the time limit ended the search early."""


class Study(Generic[Bench, Case, Seen, File]):
    """Base class of a study: a value that lists cases, and checks each."""

    name: ClassVar[str]
    """Name of the command."""
    help: ClassVar[str]
    """Text of the command's help."""
    machines: ClassVar[tuple[str, ...]]
    machine: ClassVar[str] = "machine"
    """Word for a machine: the option that selects it, and the member of a row."""
    on_request: ClassVar[tuple[str, ...]] = ()
    """Machines that only ``--machine`` selects."""
    options: ClassVar[type[msgspec.Struct]] = NoOptions
    """The study's own options: each field has a default, and has its help and limits as ``msgspec.Meta``."""
    takes: ClassVar[Sequence[str]] = (
        *("kafka", "machine", "seed", "max_examples", "max_time", "planted", "replay", "export", "report", "markdown"),
        *("jobs", "allow_incomplete", "as_json"),
    )
    """Options of the frame that the command has: a broker's study has ``broker`` and ``quiet``, and no ``jobs``."""
    examples: ClassVar[int | None] = 1
    """Default of ``--max-examples``; None if each machine has its own number."""
    least: ClassVar[int] = 1
    """Smallest value of ``--max-examples``."""
    seconds: ClassVar[float | None] = None
    """Default of ``--max-time``."""
    example: ClassVar[str] = "Examples of each machine."
    limited: ClassVar[str] = "Seconds for each release."
    """Helps of ``--max-examples`` and ``--max-time``."""
    unit: ClassVar[str] = "cases"
    looked: ClassVar[str] = "cases"
    defect: ClassVar[str] = "defect"
    file_stem: ClassVar[str] = "finding"
    """Words for what is counted, for what is counted until a planted defect is found, for such a
    defect, and for a finding; files begin with the last."""
    file: Any = Finding[Any]
    """Structure of the file of a finding, with a member ``release``."""
    saves_with_json: ClassVar[bool] = False
    """True to write files even if only JSON is requested, because shrinking takes no long."""
    planted: ClassVar[Mapping[str, PlantedDefect]] = {}
    planted_release: ClassVar[str] = "4.3.1"
    """Release whose classes are changed, if the user names no other."""
    planted_examples: ClassVar[int] = 3
    """Number of examples from each seed in the search for a planted defect."""
    report: ClassVar[str] = ""
    """Stem of the page and the JSON that ``--report`` writes, next to events; empty for files of findings only."""
    title: ClassVar[str] = ""
    """Title of the page."""
    rows_name: ClassVar[str] = ""
    """Name of the results in JSON, next to the verdict; empty if the document is the list of results."""
    implementation: ClassVar[str] = "jvm"
    """Name of the implementation that executes the cases, in events."""
    profile: ClassVar[str] = ""
    """Profile in the events of a study that measures the harness: they name neither implementations nor releases."""
    releases: ClassVar[tuple[str, ...]] = ()
    """Releases without ``--kafka``; empty for the newest one."""
    seed: ClassVar[int | None] = 0
    """Default of ``--seed``; None draws it."""
    jobs: ClassVar[int] = 1
    """Number of worker processes of a command without ``--jobs``."""
    merges: ClassVar[bool] = False
    """True if a report keeps rows of an earlier one: each row then names its command as ``provenance``."""
    prints_page: ClassVar[bool] = False
    """True if the command prints the page of all releases, and no lines about each."""
    continues: ClassVar[bool] = True
    """False if the study's own :meth:`search` does not keep the results of an interrupted run."""
    together: ClassVar[bool] = False
    """True if one bench compares all releases, and each row names its own."""
    export: Callable[[File, Path], str] | None = None
    """Function that returns a program that shows a finding; None if ``--replay`` has no ``--export``."""

    def open(
        self, release: str, scratch: Path, progress: Progress | None = None, change: Callable[[Any], Any] | None = None
    ) -> Bench:
        """Return what executes the cases of a release, whose classes a planted defect may change."""
        raise NotImplementedError

    def digest(self, release: str, request: Request, progress: Progress | None) -> str:  # noqa: ARG002 -- overridden
        """Return a text that is equal for releases with equal results."""
        return release

    def chosen(self, implementations: Sequence[str]) -> tuple[str, ...]:  # noqa: ARG002 -- overridden
        """Return what is searched if the user selects no machine."""
        return tuple(name for name in self.machines if name not in self.on_request)

    def check(self, request: Request, earlier: Sequence[Json] | None) -> None:
        """Check a request before the search; ``earlier`` has the rows of an earlier report if one is written.

        Raises:
            ToolError: the study cannot search this.
        """

    def merged(self, earlier: Sequence[Json], rows: Sequence[Json], request: Request) -> list[Json]:
        """Return the rows of a report: the new ones, and the earlier ones that they do not replace."""
        raise NotImplementedError

    def cases(self, bench: Bench, request: Request) -> Iterator[Case]:
        """Yield the cases: listed, or drawn from the seed."""
        raise NotImplementedError

    def groups(
        self, bench: Bench, request: Request, done: Mapping[str, Sequence[Json]]
    ) -> Iterator[tuple[str, Iterable[Case]]]:
        """Yield groups of cases with their names: the results of a group are written when it is complete.

        Each case is a group. A study whose results need several cases overrides it.

        Args:
            done: the results of complete groups by name, from an earlier run that ended early; they are not yielded.
        """
        for number, case in enumerate(self.cases(bench, request)):
            if str(number) not in done:
                yield str(number), (case,)

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

    def covers(self, row: Mapping[str, Any], sameness: Sameness) -> bool:
        """Return True if a row of ``known.toml`` covers a wrong result.

        A member of a row that is a list matches any of its patterns. A property that is true has to be named.
        """
        return all(_matches(row.get(name, False), value) for name, value in sameness.items())

    @cached_property
    def known(self) -> KnownCauses:
        """Causes that ``known.toml`` lists: next to ``study.py``, or named like the module of the study."""
        return KnownCauses(self)

    def clause_of(self, seen: Seen, release: str) -> str | None:
        """Return the clause that states a wrong result; None if no clause does, or nothing is wrong."""
        sameness = self.sameness(seen)
        return None if sameness is None else self.known.clause_of(sameness, release)

    def document(self, bench: Bench, seen: Seen, clause: str | None) -> Any:
        """Return the content of the file of a wrong result; :func:`shrunk` finds the smallest case."""
        case = shrunk(self, bench, _case(seen))
        wrong = (each for each in self.look(bench, case) if self.sameness(each) is not None)
        return Finding(release=bench.release, clause=clause, seen=next(wrong))

    def row(self, release: str, seen: Seen, clause: str | None) -> Json:
        """Return the JSON result, with members ``machine`` and ``clause``."""
        told: Json = msgspec.to_builtins(seen)
        wrong = self.sameness(seen) is not None
        return {"release": release, "clause": clause, "wrong": wrong, "cause": self.named(seen)} | told

    def rows(self, bench: Bench, request: Request, results: Sequence[Seen]) -> Iterator[Json]:
        """Yield the JSON results of a release, and write a file for each that is wrong."""
        for seen in results:
            clause = self.clause_of(seen, bench.release)
            row = self.row(bench.release, seen, clause)
            if request.directory is not None and self.sameness(seen) is not None:
                row["trace"] = str(self.save(self.document(bench, seen, clause), request.directory))
            yield row

    def save(self, content: File, directory: Path) -> Path:
        """Write the file of a finding, and return its path."""
        return save_json(msgspec.to_builtins(content), directory, self.file_stem, self.file_stem)

    def count(self, row: Json) -> int:  # noqa: ARG002 -- a study with larger rows uses it
        """Return how many results were compared for a row."""
        return 1

    def wrong(self, row: Json) -> list[str | None]:
        """Return the clause of each wrong result of a row; None for one that no clause states."""
        return [row["clause"]] if row["wrong"] else []

    def named(self, seen: Seen) -> str:
        """Return a wrong result as a few words."""
        return ", ".join(f"{name} {value}" for name, value in (self.sameness(seen) or {}).items())

    def shown(self, release: str, rows: Sequence[Json]) -> Iterator[str]:
        """Yield the results of a release as lines for people: each cause once, with its smallest file."""
        yield f"Kafka {release}: {sum(map(self.count, rows))} {self.unit}"
        causes: dict[tuple[str, str], list[Json]] = {}
        for row in rows:
            for clause in self.wrong(row):
                causes.setdefault((clause or "NEW", row["cause"]), []).append(row)
        for (clause, cause), found in causes.items():
            yield f"\n{clause}  {cause} ({len(found)} of {len(rows)} {self.unit})"
            path = min((Path(row["trace"]) for row in found), key=lambda each: (each.stat().st_size, each))
            content: Any = load(self, path)
            for name, value in msgspec.to_builtins(content.seen).items():
                yield f"  {name:12} {json.dumps(value)}"
            yield f"  replay       conformance {self.name} --replay {path}"

    def page(self, rows: Sequence[Json], command: str) -> str:
        """Return a Markdown page of all releases: a line for each cause, with the number of wrong results."""
        clauses, releases = load_clauses(), list(dict.fromkeys(row["release"] for row in rows))[::-1]
        numbers = Counter((row["machine"], clause, row["release"]) for row in rows for clause in self.wrong(row))
        lines = []
        for machine, clause in dict.fromkeys(key[:2] for key in numbers):
            title = clauses[clause].title if clause else "no clause states it"
            cells = [str(numbers[machine, clause, release] or "") for release in releases]
            lines.append([machine, clause or "new", title, *cells])
        head = ["", "clause", "", *releases]
        head_of_page = [f"# conformance {self.name}", "", f"`{command}` prints this page.", ""]
        return "\n".join([*head_of_page, *table(head, lines, numbers=3)]) + "\n"

    def total(self, rows: Sequence[Json]) -> int:
        """Return the number of which :meth:`verdict` says how many are new."""
        return len(rows)

    def verdict(self, new: int, count: int) -> str:
        """Return the last line: how many of the results are wrong and not known."""
        return f"{'NEW' if new else 'nothing new'}: {new} of {count} {self.unit} are wrong and not known"

    def conclusion(self, rows: Sequence[Json]) -> str:
        """Return the last text: the verdict about all releases."""
        wrong = [clause for row in rows for clause in self.wrong(row)]
        return self.verdict(wrong.count(None), self.total(rows)) + "\n"

    def comparison(self, rows: Sequence[Json]) -> Comparison:
        """Return what was compared; the frame adds what the time limit or ``--machine`` excluded."""
        return Comparison(sum(map(self.count, rows)), [each for row in rows for each in self.wrong(row)].count(None))

    def events(
        self,
        release: str,
        rows: Sequence[Json],
        seconds: float,  # noqa: ARG002 -- of a result
    ) -> Iterator[Event]:
        """Yield the events of a release, for the stream in the directory of ``--report``."""
        new = any(clause is None for row in rows for clause in self.wrong(row))
        yield Measured(self.title, release, not new, {self.unit: sum(map(self.count, rows))})

    def replayed(self, bench: Bench, content: File) -> tuple[bool, Json, str]:
        """Execute the case of a file again, and return True if it is wrong, with the answer as JSON and as a text."""
        results = list(self.look(bench, _case(content.seen)))  # type: ignore[attr-defined]  # of Finding
        wrong = [each for each in results if self.sameness(each) is not None]
        told: Json = {"wrong": bool(wrong), "seen": msgspec.to_builtins(results)}
        return bool(wrong), told, f"FAILED · {self.named(wrong[0])}" if wrong else "HOLDS"

    def search(self, request: Request, release: str, scratch: Path, progress: Progress | None = None) -> Search:
        """Return the JSON results of a release, and True if the time limit ended the search early.

        Raises:
            ToolError: Java or a jar is missing, or the study cannot trust its results.
        """
        bench, cut = self.open(release, scratch, progress), False
        end = None if request.seconds is None else time.monotonic() + request.seconds
        with self._unfinished(request, release) as file:
            done = {} if file is None else {each.name: each.rows for each in file.known}
            if done:
                request.show(f"{release}: {sum(map(len, done.values()))} results of an earlier run that ended early")
            for name, cases in self.groups(bench, request, done.copy()):
                results: list[Seen] = []
                for case in cases:
                    cut = end is not None and time.monotonic() > end
                    if cut:
                        break
                    results += self.look(bench, case)
                done[name] = list(self.rows(bench, request, results))
                if cut:
                    break
                if file is not None:
                    file.add(Group(name, done[name]))
        return [row for rows in done.values() for row in rows], cut

    def _unfinished(
        self, request: Request, release: str
    ) -> AbstractContextManager[ResultFile[SearchHeader, Group] | None]:
        """Return the file of complete groups, which another request does not continue; None keeps no file."""
        if request.unfinished is None:
            return nullcontext()
        header = SearchHeader(
            f"{self.name} {version('kidx')}",
            release,
            *request[:3],
            msgspec.json.encode(request.options).decode(),
            request.releases if self.together else (),
            request.implementations,
        )
        digest = hashlib.sha256(msgspec.json.encode(header)).hexdigest()[:12]
        path = request.unfinished / f"{self.name}-{release}-{digest}.ndjson"
        return ResultFile(path, header, ResultFormat(SearchHeader, Group, "results", self.name))

    def search_planted(
        self, names: Sequence[str], seeds: Sequence[int], release: str, scratch: Path, examples: int | None = None
    ) -> Iterator[PlantedSearch]:
        """Yield the result of a search for each planted defect and seed.

        Args:
            release: release whose classes are changed.
            scratch: an empty directory.
            examples: number of examples from each seed; None for :attr:`planted_examples`.

        Raises:
            ToolError: the release does not have the code that a defect changes.
        """
        for name in names:
            bench = self.open(release, scratch / name, change=self.planted[name].change)
            for seed in seeds:
                yield self._search_planted(name, seed, bench, examples or self.planted_examples)

    def _search_planted(self, name: str, seed: int, bench: Bench, examples: int) -> PlantedSearch:
        count = 0
        for case in self.cases(bench, Request((self.planted[name].machine,), seed, examples)):
            for seen in self.look(bench, case):
                count += 1
                if self.sameness(seen) is not None and self.clause_of(seen, bench.release) is None:
                    return PlantedSearch(name, seed, count, self.named(seen))
        return PlantedSearch(name, seed, count, None)


class BrokerRelease(NamedTuple):
    """A release, whose broker a study starts when its cases are executed."""

    release: str
    progress: Progress | None


class BrokerStudy(Study[Bench, Case, Seen, Any]):
    """Base class of a study of brokers.

    A result says by ``as_predicted`` whether the prediction was correct; the command prints the page.
    """

    machines, implementation, prints_page = ("broker",), "broker", True

    def sameness(self, seen: Any) -> Sameness | None:
        """Return None if the prediction was correct."""
        return None if seen.as_predicted else {}

    def row(self, release: str, seen: Any, clause: str | None) -> Json:  # noqa: ARG002
        """Return the result with its release."""
        told: Json = msgspec.to_builtins(seen)
        return {"release": release} | told | {"as_predicted": seen.as_predicted}

    def wrong(self, row: Json) -> list[str | None]:
        """Return one wrong result without a clause if the prediction was wrong."""
        return [] if row["as_predicted"] else [None]


class OneBrokerStudy(BrokerStudy[BrokerRelease, Request, Seen]):
    """Base class of a study whose cases share the starts of a broker: :meth:`Study.look` executes a whole request."""

    def open(
        self,
        release: str,
        scratch: Path,  # noqa: ARG002
        progress: Progress | None = None,
        change: Callable[[Any], Any] | None = None,  # noqa: ARG002
    ) -> BrokerRelease:
        """Return the release: :meth:`Study.look` starts its broker."""
        return BrokerRelease(release, progress)

    def cases(self, bench: BrokerRelease, request: Request) -> Iterator[Request]:  # noqa: ARG002
        """Yield the request, whose cases share the starts of a broker."""
        yield request


def _case(seen: Any) -> Any:
    return seen.case


def shrunk(study: Study[Bench, Case, Seen, File], bench: Bench, case: Case) -> Case:
    """Return the smallest case with which something is still wrong: the first simpler one, as long as there is one."""
    while True:
        found = next((each for each in study.smaller(case) if study.fails(bench, each)), None)
        if found is None:
            return case
        case = found


class KnownCauses:
    """Causes that a study knows, each with its clause; the first one that covers a wrong result is its cause."""

    def __init__(self, study: Study[Any, Any, Any, Any]) -> None:
        package, _, module = type(study).__module__.rpartition(".")
        path = files(package) / ("known.toml" if module == "study" else f"{module}.toml")
        self._study, self._clauses = study, load_clauses()
        self._rows = tomllib.loads(path.read_text("utf-8"))["known"] if path.is_file() else []
        if unknown := {row["clause"] for row in self._rows} - self._clauses.keys():
            raise ToolError(f"{path.name}: no clause is called {', '.join(sorted(unknown))}")

    def clause_of(self, sameness: Sameness, release: str) -> str | None:
        """Return the clause that states a wrong result in a release; None if no clause states it."""
        return next(
            (
                row["clause"]
                for row in self._rows
                if self._study.covers(row, sameness) and self._clauses[row["clause"]].applies_to(release)
            ),
            None,
        )


def _matches(wanted: Any, value: str | bool) -> bool:
    if isinstance(value, bool):
        return wanted is value
    return any(fnmatchcase(value, pattern) for pattern in ([wanted] if isinstance(wanted, str) else wanted or ()))


def planted_page(study: Study[Any, Any, Any, Any], rows: Sequence[Json], command: str) -> str:
    """Return a page of the searches for planted defects: a line for each defect, and a column for each seed."""
    seeds, names = (list(dict.fromkeys(row[of] for row in rows)) for of in ("seed", "name"))
    cells = {(row["name"], row["seed"]): str(row[study.looked]) if row["found"] else "not found" for row in rows}
    lines = [[f"`{name}`", study.planted[name].title, *(cells[name, seed] for seed in seeds)] for name in names]
    found = sum(row["found"] is not None for row in rows)
    text = [
        f"# Planted {study.defect}s that `conformance {study.name}` finds",
        "",
        f"`{command}` prints this page. A number is how many",
        f"{study.looked} the search needed to find the {study.defect}. {found} of {len(rows)} searches found theirs.",
        "",
        *table(["", "", *(f"seed {seed}" for seed in seeds)], lines, numbers=2),
    ]
    return "\n".join(text) + "\n"


def load(study: Study[Bench, Case, Seen, File], path: Path) -> File:
    """Return the content of a finding's file.

    Raises:
        ToolError: the file cannot be read, or is no finding of this study.
    """
    try:
        content: File = msgspec.json.decode(path.read_bytes(), type=study.file)
    except OSError as error:
        raise ToolError(f"cannot read {path}: {error.strerror or error}") from error
    except (ValueError, RecursionError) as error:  # errors of msgspec are ValueErrors
        raise ToolError(f"cannot read {path}: not a file of conformance {study.name}: {error}") from error
    return content


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
        scratch: an empty directory.
        jobs: maximum number of worker processes; this process searches if one is enough.
        progress: called while jars are fetched.

    Raises:
        ToolError: see :meth:`Study.search`.
    """
    if study.together:
        yield Searched("", "", *study.search(request, releases[-1], scratch, progress))
        return
    digests = {release: study.digest(release, request, progress) for release in releases}
    first: dict[str, str] = {}
    for release, digest in digests.items():
        first.setdefault(digest, release)
    workers = min(jobs, len(first))
    if workers == 1:
        done: dict[str, Search] = {}
        for release, digest in digests.items():
            if digest not in done:
                done[digest] = study.search(request, release, scratch / release, progress)
            yield Searched(release, first[digest], *done[digest])
        return
    # The workers must not inherit this process's virtual machine.
    with WorkerPool(workers, multiprocessing.get_context("spawn")) as pool:
        found = {digest: pool.submit(study.search, request, name, scratch / name) for digest, name in first.items()}
        for release, digest in digests.items():
            yield Searched(release, first[digest], *found[digest].result())
