"""Items of the plug-in: one test for each machine and each clause that it can exercise, evaluated from an event stream.

The run of a machine starts with the first of its tests, and writes its events like any other run. With pytest-xdist,
the workers share a directory. The first worker that needs a machine runs it, and the others read the events. With
``--dist loadscope`` the tests of a machine are on one worker, so no worker waits.
"""

from __future__ import annotations

import contextlib
import fcntl
import tempfile
from collections import Counter
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import pytest

from conformance.attribution.tables import clauses_for
from conformance.clauses import load_chapters, load_clauses
from conformance.clauses.editions import load_edition, use_edition
from conformance.clauses.machines import MACHINES
from conformance.commands.options import resolve_machines, resolve_releases
from conformance.errors import NotDrivenError, NothingComparedError, ToolError
from conformance.implementations.forms import is_server, machine_of
from conformance.implementations.process import ProcessIndex
from conformance.implementations.python.objects import load_factory
from conformance.implementations.spec import parse_spec
from conformance.report.divergence import contradicted_first, format_divergence
from conformance.report.stream import NAME, NdjsonWriter, read_stream
from conformance.runs.completeness import compared_in
from conformance.runs.profiles import PROFILES, parse_seed
from conformance.scratch import state_directory
from conformance.verdict import VERDICT_LABELS
from kidx.printable import counted

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from conformance.clauses import Clause
    from conformance.events import Diverged, Verdict
    from conformance.report.stream import Stream

ROOT: Final = "conformance"
"""First part of the node ids."""
BROKER: Final = "broker"
"""Name of the implementation, and of the machine that tests only brokers."""
COMPARED: Final = frozenset({"conforms", "tolerated", "expected-divergence", "diverges"})
"""Verdicts on clauses that were compared."""
_REASONS: Final[dict[Verdict, str]] = {
    "could-not-run": "could not run: the implementation had failed before, or rejected what it declares",
    "unsupported": "does not apply: the implementation lacks a capability that the clause needs",
}
"""Why a clause was not compared."""
_UNCOVERED_ITEM: Final = "everything else"
"""Name of the test of all steps that no clause covers."""
# Names of user properties of a test's report, by which xdist workers send verdicts and divergences.
_REPORTED_KEY: Final = "conformance verdicts"
_DIVERGENCES_KEY: Final = "conformance divergences"
_COMPARED_KEY: Final = "conformance compared"


class DivergedError(Exception):
    """Divergence of the implementation, with the text that a run prints."""


class SessionRuns:
    """Runs of machines. Each machine is run once for all processes of a session.

    Args:
        config: pytest configuration, with the options of ``conformance run``.

    Raises:
        ToolError: an option has an invalid value.
    """

    def __init__(self, config: pytest.Config) -> None:
        option = config.getoption
        self.releases = resolve_releases(option("--kafka"))
        self.implementations: tuple[str, ...] = tuple(dict.fromkeys(option("--conformance-impl") or ["jvm"]))
        for specification in self.implementations:
            parse_spec(specification)
        self.machines = resolve_machines(option("--conformance-machine"), self.implementations)
        self.driven = tuple(name for name in self.implementations if not is_server(name))
        if option("--conformance-profile") not in PROFILES:
            raise ToolError(f"unknown profile {option('--conformance-profile')!r}; choose from {', '.join(PROFILES)}")
        if option("--conformance-level") not in ("must", "api", "observed"):
            raise ToolError(f"--conformance-level must be must, api or observed, not {option('--conformance-level')!r}")
        try:
            seed = option("--conformance-seed")
            self._seed = None if seed is None else parse_seed(seed)
        except ValueError as error:
            raise ToolError(f"--conformance-seed: {error}") from None
        self.edition: str = option("--conformance-edition")
        if self.edition:
            load_edition(self.edition)
        self._option = option
        self._report = option("--conformance-report")
        self._streams: dict[str, Stream] = {}
        self._shared = getattr(config, "workerinput", {}).get("conformance_shared", "")
        if not self._shared and not option("collectonly"):
            self._check_programs()

    def _check_programs(self) -> None:
        """Start each program once, so that an unusable program is one error instead of one per test.

        Raises:
            ToolError: a program cannot be used.
        """
        for text in self.driven:
            form, words = parse_spec(text)
            if form == "exec":
                with contextlib.suppress(NotDrivenError):
                    ProcessIndex(words, self.releases[-1]).close()
            elif form == "python":
                load_factory(*words)

    @cached_property
    def _scratch(self) -> tempfile.TemporaryDirectory[str]:
        return tempfile.TemporaryDirectory(prefix="conformance-")

    @property
    def session_directory(self) -> str:
        """Directory that all processes of the session share, and no other session uses."""
        return self._shared or self._scratch.name

    def close(self) -> None:
        """Remove the session's directory if this process created it."""
        if not self._shared:
            self._scratch.cleanup()

    def stream(self, machine: str) -> Stream:
        """Return the events of a machine's run; start the run if no process has done so.

        Raises:
            ToolError: the machine cannot be run.
        """
        if machine not in self._streams:
            self._streams[machine] = self._run_once(machine)
        return self._streams[machine]

    def _run_once(self, machine: str) -> Stream:
        session = Path(self.session_directory)
        done = session / f"{machine}.done"
        place = Path(self._report or session).absolute() / machine
        with (session / f"{machine}.lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            if not done.exists():
                done.write_text(self._run(machine, place), "utf-8")
        kind, _, problem = done.read_text("utf-8").partition(": ")
        if problem:
            raise NotDrivenError(problem) if kind == NotDrivenError.__name__ else ToolError(problem)
        return read_stream(place / NAME)

    def check_completeness(self, stream: Stream) -> None:
        """Check that a machine has compared everything that was requested.

        Operations that an implementation does not have at all are checked at the end of the session, because it may
        have them for another machine.

        Raises:
            IncompleteError: Less was compared, and that is not allowed.
            NothingComparedError: The implementation rejected what it declares.
        """
        applying = [result for result in stream.results if not result.unsupported]
        if applying:
            compared_in(applying, 0).settle(allow_incomplete=self._option("--conformance-allow-incomplete"))

    def names_for(self, machine: str) -> tuple[str, ...]:
        """Return the implementations that a machine tests."""
        of_server = machine if MACHINES[machine].server else ""
        return tuple(name for name in self.implementations if machine_of(name) == of_server)

    def _run(self, machine: str, place: Path) -> str:
        """Run a machine. Return an empty text, or after an error its kind and its message in one line."""
        from conformance.runs.runner import Plan, run  # noqa: PLC0415 -- Hypothesis, only once it is needed

        option = self._option
        plan = Plan(
            self.releases,
            self.names_for(machine),
            (machine,),
            PROFILES[option("--conformance-profile")],
            (place if self._report else state_directory()) / "traces",
            self._seed,
            option("--conformance-max-examples"),
            option("--conformance-max-time"),
            option("--conformance-level"),
            expectations=None
            if option("--conformance-expectations") is None
            else Path(option("--conformance-expectations")),
            edition=self.edition,
        )
        try:
            with NdjsonWriter(place) as writer:
                run(plan, writer)
        except NotDrivenError as error:
            (place / NAME).unlink()  # nothing was run, so there is nothing to report
            return f"{NotDrivenError.__name__}: {error}"
        except ToolError as error:
            return f"{ToolError.__name__}: {error}"
        return ""


class MachineNode(pytest.Collector):
    """Machine, with a child for each clause that it can exercise."""

    def __init__(self, *, runs: SessionRuns, **rest: Any) -> None:
        super().__init__(**rest)
        self.runs = runs

    def collect(self) -> Iterator[ClauseItem]:
        """Yield the tests in the catalogue's order, which is the same in every process."""
        releases = self.runs.releases
        with use_edition(self.runs.edition):
            mine = {clause.id for release in releases for clause in clauses_for(self.name, release)}
        for clause in load_clauses().values():
            if clause.id in mine:
                yield ClauseItem.from_parent(self, name=f"{clause.id} {clause.title}", clause=clause)
        yield ClauseItem.from_parent(self, name=_UNCOVERED_ITEM, elsewhere=frozenset(mine))


class ClauseItem(pytest.Item):
    """Test of one clause with one machine, or of all steps that no clause covers.

    Args:
        clause: the clause; None for the steps that no clause covers.
        elsewhere: ids of the clauses that have their own tests.
        rest: arguments of ``pytest.Item``.
    """

    parent: MachineNode

    def __init__(self, *, clause: Clause | None = None, elsewhere: frozenset[str] = frozenset(), **rest: Any) -> None:
        super().__init__(**rest)
        self.clause = clause
        self.elsewhere = elsewhere
        if clause is not None:
            # The section is a keyword too, so that "-k OffsetIndex" selects it.
            self.extra_keyword_matches.update((clause.id, clause.section, load_chapters()[clause.chapter]))
        self.add_marker("conformance")
        names = self.parent.runs.names_for(self.parent.name)
        for tier in ("jvm", BROKER):
            if tier in names:
                self.add_marker(tier)

    def runtest(self) -> None:
        """Evaluate the events of the run.

        A divergence fails one test: the test of the clause that it violates. The tests of the other implicated clauses
        are skipped and name that test. If that test is not selected, the next one fails instead.

        Raises:
            DivergedError: the implementation, or the reference, diverges in a step that exercises the clause.
        """
        try:
            stream = self.parent.runs.stream(self.parent.name)
        except NotDrivenError as error:
            pytest.skip(str(error))
        verdicts = Counter(
            verdict
            for result in stream.results
            for clause, verdict in result.verdicts.items()
            if self.clause is None or clause == self.clause.id
        )
        if self.clause is not None:
            self.user_properties.append((_REPORTED_KEY, dict(verdicts)))
            names = {
                result.implementation for result in stream.results if result.verdicts.get(self.clause.id) in COMPARED
            }
            self.user_properties.append((_COMPARED_KEY, sorted(names)))
        elif not stream.divergences:
            self.parent.runs.check_completeness(stream)
        found = {number: event for number, event in enumerate(stream.divergences) if self._is_mine(event)}
        if not found and self.clause is not None and verdicts["diverges"]:
            found = dict(enumerate(stream.divergences))
        if found:
            self._fail_or_skip(found)
        if not verdicts.keys() & COMPARED:
            if verdicts["could-not-run"] and not stream.divergences:
                raise NothingComparedError(_REASONS["could-not-run"])
            pytest.skip(next((reason for verdict, reason in _REASONS.items() if verdicts[verdict]), "not run"))
        if verdicts["not-run"]:
            self.add_report_section("call", "not run", "no step exercised the clause in some of the releases")

    def _is_mine(self, event: Diverged) -> bool:
        if self.clause is not None:
            return self.clause.id in event.clauses
        return not any(clause in self.elsewhere for clause in event.clauses)

    def _fail_or_skip(self, found: dict[int, Diverged]) -> None:
        """Fail with the divergences that this test reports; skip it if other selected tests report all of them.

        Raises:
            DivergedError: this test reports a divergence.
        """
        tests = {
            item.clause.id: item
            for item in self.session.items
            if isinstance(item, ClauseItem) and item.parent is self.parent and item.clause is not None
        }
        reporters = {number: _reporter(event, tests) for number, event in found.items()}
        mine = [number for number, item in reporters.items() if item in (self, None)]
        if mine:
            self.user_properties.append((_DIVERGENCES_KEY, [f"{self.parent.name} {number}" for number in mine]))
            raise DivergedError("\n\n\n".join(format_divergence(found[number]) for number in mine))
        others = dict.fromkeys(item.name.partition(" ")[0] for item in reporters.values() if item is not None)
        pytest.skip(f"also implicated in a divergence that another test reports: {', '.join(others)}")

    def repr_failure(self, excinfo: pytest.ExceptionInfo[BaseException], style: Any = None) -> Any:
        """Return the text of the divergence, or one line for another error, without a traceback through the harness."""
        if isinstance(excinfo.value, DivergedError | ToolError):
            return str(excinfo.value)
        return super().repr_failure(excinfo, style)

    def reportinfo(self) -> tuple[Path, None, str]:
        """Return the location that a test runner reports."""
        return self.path, None, f"{self.parent.name} machine, {self.name}"


def _reporter(event: Diverged, tests: Mapping[str, ClauseItem]) -> ClauseItem | None:
    """Return the test that fails because of a divergence; None if no test has one of its clauses."""
    ranked = (clause for clause, _, _ in contradicted_first(event))
    return next((tests[clause] for clause in (*ranked, *event.clauses) if clause in tests), None)


class ConformancePlugin:
    """Plug-in that adds the tests to a session that requests them.

    Raises:
        UsageError: an option has an invalid value.
    """

    def __init__(self, config: pytest.Config) -> None:
        try:
            self.runs = SessionRuns(config)
        except ToolError as error:
            raise pytest.UsageError(str(error)) from error
        self._verdicts: Counter[str] = Counter()
        self._divergences: set[str] = set()
        self._compared: set[str] = set()
        self._is_run = False

    @pytest.hookimpl(tryfirst=True)
    def pytest_collection_modifyitems(self, session: pytest.Session, items: list[pytest.Item]) -> None:
        """Add the tests after the repository's own tests; -k and -m select among them, too."""
        for name in self.runs.machines:
            node = MachineNode.from_parent(session, name=name, nodeid=f"{ROOT}::{name}", runs=self.runs)
            collected = node.ihook.pytest_make_collect_report(collector=node)
            node.ihook.pytest_collectreport(report=collected)  # so that they are counted
            items += collected.result

    @pytest.hookimpl(optionalhook=True)
    def pytest_configure_node(self, node: Any) -> None:
        """Pass the directory of the events to an xdist worker."""
        node.workerinput["conformance_shared"] = self.runs.session_directory

    def pytest_unconfigure(self) -> None:
        """Remove all temporary files."""
        self.runs.close()

    def pytest_report_header(self) -> str:
        """Return the header lines: the implementations, and the releases with which they are compared."""
        implementations, releases = ", ".join(self.runs.implementations), ", ".join(self.runs.releases)
        return f"conformance: {implementations} against kidx, Kafka {releases}"

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Count the verdicts and the divergences."""
        self._is_run |= report.nodeid.startswith(f"{ROOT}::")
        if report.when == "call":
            properties: list[tuple[str, Any]] = report.user_properties
            for name, value in properties:
                if name == _REPORTED_KEY:
                    self._verdicts.update(value)
                elif name == _DIVERGENCES_KEY:
                    self._divergences.update(value)
                elif name == _COMPARED_KEY:
                    self._compared.update(value)

    @property
    def _idle(self) -> list[str]:
        """The implementations that no test has compared in anything, if a test of any implementation has run."""
        return [name for name in self.runs.implementations if self._is_run and name not in self._compared]

    @pytest.hookimpl(tryfirst=True)
    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        """End with exit code 2 instead of 0 if nothing was compared, because skipped tests are no verdict."""
        if self._idle and not hasattr(session.config, "workerinput") and session.exitstatus == pytest.ExitCode.OK:
            session.exitstatus = pytest.ExitCode.INTERRUPTED

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        """Print the number of clauses with each verdict, because a clause that no step exercised has not passed."""
        if self._verdicts:
            count = len(self._divergences)
            text = ", ".join(f"{number} {VERDICT_LABELS[name]}" for name, number in sorted(self._verdicts.items()))
            found = counted(count, "unique divergence")
            terminalreporter.write_line(f"conformance: {found}; clauses: {text}")
        for name in self._idle:
            terminalreporter.write_line(f"conformance: nothing was compared: {name}", red=True)
