"""What the plug-in collects: a test for each machine × clause of the catalogue, all judged from one event stream.

The campaign of a machine runs once, when the first of its tests does, and writes its events like any other run. With
pytest-xdist the workers share a directory: the first one runs a machine's campaign, and the others read its
events, however the tests were distributed (``--dist loadscope`` keeps those of a machine together, so no worker waits).
"""

from __future__ import annotations

import fcntl
import tempfile
from collections import Counter
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import pytest

from conformance.clauses import clauses_for, load_chapters, load_clauses
from conformance.commands.options import chosen_machines, chosen_releases, state_directory
from conformance.errors import NotDrivenError, ToolError
from conformance.implementations.forms import is_server
from conformance.implementations.spec import parse_spec
from conformance.implementations.wire.opening import is_wire
from conformance.report.divergence import describe
from conformance.report.ndjson import NAME, NdjsonWriter
from conformance.report.stream import read_stream
from conformance.runs.profiles import PROFILES
from conformance.runs.seeds import read_seed

if TYPE_CHECKING:
    from collections.abc import Iterator

    from conformance.clauses import Clause
    from conformance.events import Diverged
    from conformance.report.stream import Stream

ROOT: Final = "conformance"
BROKER: Final = "broker"
"""The implementation, and the machine that drives nothing else."""
_ELSE: Final = "everything else"
_TOLD: Final = "conformance verdicts"


class DivergedError(Exception):
    """The implementation differs; the text is that of a run."""


class Campaigns:
    """Runs the campaign of a machine once for all processes of a session.

    Args:
        config: the session's; its options are those of ``conformance run``.

    Raises:
        ToolError: an option has a value that makes no sense.
    """

    def __init__(self, config: pytest.Config) -> None:
        option = config.getoption
        self.releases = chosen_releases(option("--kafka"))
        self.implementations: tuple[str, ...] = tuple(dict.fromkeys(option("--conformance-impl") or ["jvm"]))
        for specification in self.implementations:
            parse_spec(specification)
        self.machines = chosen_machines(option("--conformance-machine"), self.implementations)
        self.driven = tuple(name for name in self.implementations if not is_server(name))
        if option("--conformance-profile") not in PROFILES:
            raise ToolError(f"there is no profile {option('--conformance-profile')!r}; there are {', '.join(PROFILES)}")
        if option("--conformance-level") not in ("must", "observed"):
            raise ToolError(f"--conformance-level is must or observed, not {option('--conformance-level')!r}")
        try:
            wish = option("--conformance-seed")
            self._seed = None if wish is None else read_seed(wish)
        except ValueError as error:
            raise ToolError(f"--conformance-seed: {error}") from None
        self._option = option
        self._report = option("--conformance-report")
        self._streams: dict[str, Stream] = {}
        self._shared = getattr(config, "workerinput", {}).get("conformance_shared", "")

    @cached_property
    def _scratch(self) -> tempfile.TemporaryDirectory[str]:
        return tempfile.TemporaryDirectory(prefix="conformance-")

    @property
    def session_directory(self) -> str:
        """The directory that all processes of the session share, and no other process."""
        return self._shared or self._scratch.name

    def close(self) -> None:
        """Removes the session's directory, in the process that made it."""
        if not self._shared:
            self._scratch.cleanup()

    def stream(self, machine: str) -> Stream:
        """The events of a machine's campaign, which is run if it has not been.

        Raises:
            ToolError: it cannot be run.
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

    def names_for(self, machine: str) -> tuple[str, ...]:
        """The implementations that a machine drives."""
        if machine == "wire":
            return tuple(filter(is_wire, self.implementations))
        return (BROKER,) if machine == BROKER else self.driven

    def _run(self, machine: str, place: Path) -> str:
        """The kind of error and one line if it could not be done; nothing otherwise."""
        from conformance.runs.campaign import Plan, run  # noqa: PLC0415 -- Hypothesis, only once it is needed

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
        )
        try:
            with NdjsonWriter(place) as writer:
                run(plan, writer)
        except NotDrivenError as error:
            (place / NAME).unlink()  # nothing was asked, so there is nothing to report
            return f"{NotDrivenError.__name__}: {error}"
        except ToolError as error:
            return f"{ToolError.__name__}: {error}"
        return ""


class MachineNode(pytest.Collector):
    """One machine; its children are the clauses that it can exercise."""

    def __init__(self, *, campaigns: Campaigns, **rest: Any) -> None:
        super().__init__(**rest)
        self.campaigns = campaigns

    def collect(self) -> Iterator[ClauseItem]:
        """The tests, in the catalogue's order, the same in every process."""
        releases = self.campaigns.releases
        mine = {clause.id for release in releases for clause in clauses_for(self.name, release)}
        for clause in load_clauses().values():
            if clause.id in mine:
                yield ClauseItem.from_parent(self, name=f"{clause.id} {clause.title}", clause=clause)
        yield ClauseItem.from_parent(self, name=_ELSE, elsewhere=frozenset(mine))


class ClauseItem(pytest.Item):
    """One clause, as far as a machine exercises it; or everything that no clause speaks of."""

    parent: MachineNode

    def __init__(self, *, clause: Clause | None = None, elsewhere: frozenset[str] = frozenset(), **rest: Any) -> None:
        super().__init__(**rest)
        self.clause = clause
        self.elsewhere = elsewhere
        if clause is not None:
            # Also by the whole section, as "-k OffsetIndex" would have it.
            self.extra_keyword_matches.update((clause.id, clause.section, load_chapters()[clause.chapter]))
        self.add_marker("conformance")
        names = self.parent.campaigns.names_for(self.parent.name)
        for tier in ("jvm", BROKER):
            if tier in names:
                self.add_marker(tier)

    def runtest(self) -> None:
        """Judges the campaign's events.

        Raises:
            DivergedError: the implementation, or the reference, differs in the clause.
        """
        try:
            stream = self.parent.campaigns.stream(self.parent.name)
        except NotDrivenError as error:
            pytest.skip(str(error))
        verdicts = Counter(
            verdict
            for result in stream.results
            for clause, verdict in result.verdicts.items()
            if self.clause is None or clause == self.clause.id
        )
        if self.clause is not None:
            self.user_properties.append((_TOLD, dict(verdicts)))
        if found := [event for event in stream.divergences if self._is_mine(event)]:
            raise DivergedError("\n\n\n".join(map(describe, found)))
        if self.clause is not None and verdicts["diverges"]:
            raise DivergedError("\n\n\n".join(map(describe, stream.divergences)))
        if not verdicts.keys() & {"conforms", "expected-divergence", "diverges"}:
            pytest.skip("the implementation does not have the operations" if verdicts["unsupported"] else "not run")
        if verdicts["not-run"]:
            self.add_report_section("call", "not run", "nothing exercised it in some of the releases")

    def _is_mine(self, event: Diverged) -> bool:
        if self.clause is not None:
            return self.clause.id in event.clauses
        return not any(clause in self.elsewhere for clause in event.clauses)

    def repr_failure(self, excinfo: pytest.ExceptionInfo[BaseException], style: Any = None) -> Any:
        """The text of the difference, or one line for what could not be done; no traceback through the harness."""
        if isinstance(excinfo.value, DivergedError | ToolError):
            return str(excinfo.value)
        return super().repr_failure(excinfo, style)

    def reportinfo(self) -> tuple[Path, None, str]:
        """Where a test runner says it is."""
        return self.path, None, f"{self.parent.name} machine, {self.name}"


class ConformancePlugin:
    """Adds the tests to a session that asked for them.

    Raises:
        UsageError: an option has a value that makes no sense.
    """

    def __init__(self, config: pytest.Config) -> None:
        try:
            self.campaigns = Campaigns(config)
        except ToolError as error:
            raise pytest.UsageError(str(error)) from error
        self._told: Counter[str] = Counter()

    @pytest.hookimpl(tryfirst=True)
    def pytest_collection_modifyitems(self, session: pytest.Session, items: list[pytest.Item]) -> None:
        """Ours come behind the repository's own; -k and -m select among them like among any."""
        for name in self.campaigns.machines:
            node = MachineNode.from_parent(session, name=name, nodeid=f"{ROOT}::{name}", campaigns=self.campaigns)
            collected = node.ihook.pytest_make_collect_report(collector=node)
            node.ihook.pytest_collectreport(report=collected)  # so that they are counted
            items += collected.result

    @pytest.hookimpl(optionalhook=True)
    def pytest_configure_node(self, node: Any) -> None:
        """Tells an xdist worker where the events are."""
        node.workerinput["conformance_shared"] = self.campaigns.session_directory

    def pytest_unconfigure(self) -> None:
        """Leaves nothing behind."""
        self.campaigns.close()

    def pytest_report_header(self) -> str:
        """What is held against what."""
        implementations, releases = ", ".join(self.campaigns.implementations), ", ".join(self.campaigns.releases)
        return f"conformance: {implementations} against kidx, Kafka {releases}"

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Counts the verdicts."""
        if report.when == "call":
            told: list[tuple[str, Any]] = report.user_properties
            for counts in (value for name, value in told if name == _TOLD):
                self._told.update(counts)

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        """A clause that no step exercised is not green, so the summary names it."""
        if self._told:
            said = ", ".join(f"{count} {verdict}" for verdict, count in sorted(self._told.items()))
            terminalreporter.write_line(f"conformance: of the clauses that passed or were skipped, {said}")
