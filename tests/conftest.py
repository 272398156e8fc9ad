"""Selection and order of the tests, and their distribution to workers.

Without ``--thorough`` the property tests run the same few cases every time, and tests marked ``thorough`` are
deselected. With it, as in CI, property tests run three times as many cases, again the same every time. With
``--hypothesis-seed N`` the cases depend on that seed.

Cases marked ``in_turn(n)`` are similar and slow. With ``--thorough``, one in ``n`` of them runs; the seed decides
which. With ``of=NAME``, files take turns; those with the same ``build=NAME`` run together. ``--every-case`` runs all.
With ``--files-in-turn N``, one in ``N`` of all other files runs.
:mod:`conformance.plugin` has the option ``--require``.
"""

from __future__ import annotations

import os
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any
from zlib import crc32

import pytest
from golden_archives import unpack_golden
from hypothesis import HealthCheck, settings

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

# The entry point may be missing in an older editable installation.
pytest_plugins = ["conformance.plugin"]

# Hypothesis loads its CI profile on a CI machine. These profiles are the same everywhere, and have no database.
COMMON = settings(deadline=None, database=None, suppress_health_check=[HealthCheck.too_slow])
settings.register_profile("kidx", COMMON, derandomize=True, max_examples=30)
settings.register_profile("kidx-thorough", COMMON, derandomize=True, max_examples=100, print_blob=True)
settings.register_profile("kidx-drawn", COMMON, max_examples=30, print_blob=True)
settings.register_profile("kidx-thorough-drawn", COMMON, max_examples=100, print_blob=True)
settings.load_profile("kidx")

DESELECTED_KEY: pytest.StashKey[dict[str, str]] = pytest.StashKey()
"""Key of the message about deselected tests."""

HERE = Path(__file__).resolve().parent
ALL_RELEASES = ("all_releases", "damaged_records", "dump", "log_machine", "records_jvm", "segment_machine")
SLOWEST_FIRST = (
    "spark",
    *(f"jvm/test_{name}.py" for name in ALL_RELEASES),
    "broker/test_broker_machine.py",
    "broker/test_first_broker.py",
    "jvm/test_diff.py",
    "jvm/test_scripts.py",
    "jvm",
    "broker",
    "cli",
    "golden",
    "meta",
)
"""Folders and files in the order of their duration, so that short files fill the remaining time of the workers."""
SAME_WORKER = ({"spark"}, {f"jvm/test_{name}.py" for name in ALL_RELEASES})
"""Folders and files that share a session fixture: Spark's session, the classes of 26 releases."""


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--thorough", action="store_true", help="tests marked thorough, too, and more cases (CI)")
    parser.addoption("--every-case", action="store_true", help="with --thorough: also each case marked in_turn")
    parser.addoption(
        "--files-in-turn", type=int, default=1, help="with --thorough: one in N of the files; the seed decides"
    )


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "thorough: slow, and a cheaper test covers the same; --thorough runs it")
    config.addinivalue_line(
        "markers", "more: runs more cases with --thorough; set automatically for tests with the fixture thorough"
    )
    if not hasattr(config, "workerinput"):
        unpack_golden()
    config.addinivalue_line("markers", "in_turn(n, of=NAME, build=NAME): --thorough runs one in n of them")
    drawn = "" if config.getoption("--hypothesis-seed") is None else "-drawn"
    settings.load_profile(f"kidx{'-thorough' if config.getoption('--thorough') else ''}{drawn}")


@pytest.fixture(scope="session")
def thorough(pytestconfig: pytest.Config) -> bool:
    """Return True if the tests run with ``--thorough``."""
    return bool(pytestconfig.getoption("--thorough"))


def pytest_itemcollected(item: pytest.Item) -> None:
    """Mark the tests that run more cases with ``--thorough``."""
    if "thorough" in getattr(item, "fixturenames", ()):
        item.add_marker("more")


@pytest.hookimpl(tryfirst=True)
def pytest_collection(session: pytest.Session) -> None:
    """Start every worker with a different folder, so that a worker finds the kernels that others have compiled."""
    config = session.config
    if [Path(name).resolve() for name in config.args] == [HERE] and (worker := getattr(config, "workerinput", None)):
        ignored = {Path(name).resolve() for name in config.getoption("ignore") or ()}
        folders = sorted({path.parent for path in HERE.glob("*/test_*.py")} - ignored)
        first = {"gw0": "broker", "gw1": "unit"}.get(worker["workerid"], "jvm")
        number = next((number for number, folder in enumerate(folders) if folder.name == first), 0)
        config.args = [*map(str, folders[number:]), *map(str, folders[:number])]


def relative_path(nodeid: str) -> str:
    """Return the path of a test's file below ``tests/``."""
    return nodeid.partition("::")[0].removeprefix("tests/")


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Deselect the tests that need ``--thorough``, and put slow files first; the order in a file does not change."""
    if not config.getoption("--thorough"):
        waiting = [item for item in items if item.get_closest_marker("thorough") is not None]
        if waiting:
            config.hook.pytest_deselected(items=waiting)
            items[:] = [item for item in items if item.get_closest_marker("thorough") is None]
            tiers = [
                tier
                for tier in config.getini("conformance_tiers")
                if any(map(has(tier), waiting)) and not any(map(has(tier), items))
            ]
            output = getattr(config, "workeroutput", config.stash.setdefault(DESELECTED_KEY, {}))
            output["waiting"] = f"{len(waiting)} tests wait for --thorough, which CI passes"
            if tiers:
                output["waiting"] += f"; among them all of the tiers {', '.join(tiers)}"

    elif not config.getoption("--every-case"):
        turns = config.getoption("--files-in-turn")
        # Two independent draws, so that each case of each file is selected by some seed.
        case, file = divmod(int(config.getoption("--hypothesis-seed") or 0), turns)
        waiting = waiting_for_their_turn(items, case) | waiting_files(items, turns, file)
        config.hook.pytest_deselected(items=waiting)
        items[:] = [item for item in items if item not in waiting]

    def rank(item: pytest.Item) -> tuple[int, str]:
        path = relative_path(item.nodeid)
        position = next((number for number, slow in enumerate(SLOWEST_FIRST) if path.startswith(slow)), None)
        return len(SLOWEST_FIRST) if position is None else position, path

    items.sort(key=rank)


def waiting_for_their_turn(items: list[pytest.Item], seed: int) -> set[pytest.Item]:
    """Return the cases that do not run this time. The cases of a test take turns.

    The turns of different files begin at different cases. Tests of one file may share what is set up for a case.
    With ``of=NAME``, the files with that name take turns, each with all of its tests. Files with the same
    ``build=NAME`` have one turn, so that what they share is compiled once.
    """
    cases: dict[str, list[pytest.Item]] = {}
    files: dict[str, dict[str, list[pytest.Item]]] = {}
    for item in items:
        if (marker := item.get_closest_marker("in_turn")) is not None and "of" in marker.kwargs:
            turn = marker.kwargs.get("build", relative_path(item.nodeid))
            files.setdefault(marker.kwargs["of"], {}).setdefault(turn, []).append(item)
        elif marker is not None:
            cases.setdefault(item.nodeid.partition("[")[0], []).append(item)
    waiting = set[pytest.Item]()
    for members in files.values():
        waiting.update(not_in_turn([its for _, its in sorted(members.items())], seed))
    for test, its in cases.items():
        waiting.update(not_in_turn([[item] for item in its], crc32(test.partition("::")[0].encode()) + seed))
    return waiting


def waiting_files(items: list[pytest.Item], turns: int, seed: int) -> set[pytest.Item]:
    """Return the tests of the files that do not run this time; files that take turns among themselves are exempt."""
    files: dict[str, set[pytest.Item]] = {}
    for item in items:
        marker = item.get_closest_marker("in_turn")
        if marker is None or "of" not in marker.kwargs:
            files.setdefault(relative_path(item.nodeid), set()).add(item)
    return set().union(*(files[name] for number, name in enumerate(sorted(files), seed) if number % turns))


def not_in_turn(members: list[list[pytest.Item]], start: int) -> Iterator[pytest.Item]:
    """Yield the items that do not run this time. One in n of the members runs, each with all of its items."""
    for number, its in enumerate(members, start):
        marker = its[0].get_closest_marker("in_turn")
        assert marker is not None
        if number % marker.args[0]:
            yield from its


def has(marker: str) -> Callable[[pytest.Item], bool]:
    return lambda item: item.get_closest_marker(marker) is not None


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node: Any) -> None:
    """Store the deselected tests of a worker; all workers deselect the same tests."""
    node.config.stash.setdefault(DESELECTED_KEY, {}).update(getattr(node, "workeroutput", {}))


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    if message := config.stash.get(DESELECTED_KEY, {}).get("waiting"):
        terminalreporter.write_sep("!", message, yellow=True, bold=True)


def pytest_xdist_auto_num_workers() -> int:
    """Return one more than the number of processors, because a test of a broker mostly waits."""
    return (os.cpu_count() or 1) + 1


def pytest_xdist_make_scheduler(config: pytest.Config, log: object) -> object:
    """Keep each file, and each set of ``SAME_WORKER``, on one worker, so that module fixtures are made once."""
    from xdist.scheduler import LoadScopeScheduling

    class InTheirOrder(LoadScopeScheduling):
        def _split_scope(self, nodeid: str) -> str:
            path = relative_path(nodeid)
            names = {path, path.partition("/")[0]}
            return next((min(shared) for shared in SAME_WORKER if shared & names), path)

    if config.getoption("dist") != "loadfile":
        return None
    config.option.loadscopereorder = False
    return InTheirOrder(config, log)


# -- the command lines -------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Finished:
    """Result of a command line; the attributes have the names of :class:`subprocess.CompletedProcess`."""

    returncode: int
    stdout: str
    stderr: str


@pytest.fixture
def in_process(capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Callable[..., Finished]:
    """Return a function that runs a command line in this process, where Java runs and all modules are imported.

    The function takes the arguments, the working directory, and changes of the environment. Modules that were imported
    from that directory are unloaded afterwards.
    """

    def run(*words: object, work: Path, environment: dict[str, str] | None = None) -> Finished:
        name, *arguments = map(str, words)
        if name == "kidx":
            from kidx.cli import main
        else:
            from conformance.cli import main
        capfd.readouterr()
        modules, path = dict(sys.modules), list(sys.path)
        with monkeypatch.context() as patch:
            patch.chdir(work)
            patch.setattr(sys, "argv", [name, *arguments])
            patch.setattr(sys, "dont_write_bytecode", True)
            patch.setattr(sys.modules["__main__"], "__package__", "")  # a usage line contains argv[0]
            for key, value in (environment or {}).items():
                patch.setenv(key, value)
            try:
                with pytest.raises(SystemExit) as ended:
                    main()
            finally:
                sys.path[:] = path
                for new in sys.modules.keys() - modules.keys():
                    file = str(getattr(sys.modules[new], "__file__", None))
                    # The environment may lie in the directory; numba cannot be imported twice.
                    if file.startswith(str(work)) and not file.startswith(sys.prefix):
                        del sys.modules[new]
        out, err = capfd.readouterr()
        return Finished(int(ended.value.code or 0), out, err)

    return run
