"""How much is done, in which order, and by which worker; ``conformance.plugin`` looks after the tiers (``--require``).

Without ``--thorough`` the property tests do the same few cases every time, and tests marked ``thorough`` wait for CI,
which passes it for them. With it property tests do three times as many cases, and the same every time, too; with
``--hypothesis-seed N`` they do those of that seed.
"""

from __future__ import annotations

import os
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import HealthCheck, settings

if TYPE_CHECKING:
    from collections.abc import Callable

# Also where an editable installation is older than the entry point.
pytest_plugins = ["conformance.plugin"]

# Hypothesis loads a profile of its own where it sees a CI machine; ours are the same everywhere, without a database.
COMMON = settings(deadline=None, database=None, suppress_health_check=[HealthCheck.too_slow])
settings.register_profile("kidx", COMMON, derandomize=True, max_examples=30)
settings.register_profile("kidx-thorough", COMMON, derandomize=True, max_examples=100, print_blob=True)
settings.register_profile("kidx-drawn", COMMON, max_examples=30, print_blob=True)
settings.register_profile("kidx-thorough-drawn", COMMON, max_examples=100, print_blob=True)
settings.load_profile("kidx")

LEFT: pytest.StashKey[dict[str, str]] = pytest.StashKey()
"""What is said in the end of tests that were left out."""

HERE = Path(__file__).resolve().parent
ALL_RELEASES = ("all_releases", "damaged_records", "dump", "log_machine", "records_jvm", "segment_machine")
FIRST = (
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
"""What takes long comes first: the others fill up what is left of the time."""
TOGETHER = ({"spark"}, {f"jvm/test_{name}.py" for name in ALL_RELEASES})
"""Folders and files that share what is made once a session: Spark's session, the classes of 26 releases."""


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--thorough", action="store_true", help="tests marked thorough, too, and more cases (CI)")


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "thorough: takes long, and what it shows is shown by less; --thorough runs it")
    config.addinivalue_line("markers", "more: does more with --thorough; set for tests that use its fixture")
    drawn = "" if config.getoption("--hypothesis-seed") is None else "-drawn"
    settings.load_profile(f"kidx{'-thorough' if config.getoption('--thorough') else ''}{drawn}")


@pytest.fixture(scope="session")
def thorough(pytestconfig: pytest.Config) -> bool:
    """Whether to do all that CI does."""
    return bool(pytestconfig.getoption("--thorough"))


def pytest_itemcollected(item: pytest.Item) -> None:
    """Marks the tests that do more with ``--thorough``: CI does them again."""
    if "thorough" in getattr(item, "fixturenames", ()):
        item.add_marker("more")


@pytest.hookimpl(tryfirst=True)
def pytest_collection(session: pytest.Session) -> None:
    """Every worker begins with another folder: what one has compiled, the others find when they come to it."""
    config = session.config
    if [Path(name).resolve() for name in config.args] == [HERE] and (worker := getattr(config, "workerinput", None)):
        ignored = {Path(name).resolve() for name in config.getoption("ignore") or ()}
        folders = sorted({path.parent for path in HERE.glob("*/test_*.py")} - ignored)
        first = {"gw0": "broker", "gw1": "unit"}.get(worker["workerid"], "jvm")
        number = next((number for number, folder in enumerate(folders) if folder.name == first), 0)
        config.args = [*map(str, folders[number:]), *map(str, folders[:number])]


def place_of(nodeid: str) -> str:
    """The path of a test's file below ``tests/``."""
    return nodeid.partition("::")[0].removeprefix("tests/")


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leaves out what is for CI, and sorts by how long it takes; within a file nothing is moved."""
    if not config.getoption("--thorough"):
        waiting = [item for item in items if item.get_closest_marker("thorough") is not None]
        if waiting:
            config.hook.pytest_deselected(items=waiting)
            items[:] = [item for item in items if item.get_closest_marker("thorough") is None]
            left = [
                tier
                for tier in config.getini("conformance_tiers")
                if any(map(has(tier), waiting)) and not any(map(has(tier), items))
            ]
            told = getattr(config, "workeroutput", config.stash.setdefault(LEFT, {}))
            told["waiting"] = f"{len(waiting)} tests wait for --thorough, which CI passes"
            if left:
                told["waiting"] += f"; among them all of the tiers {', '.join(left)}"

    def rank(item: pytest.Item) -> tuple[int, str]:
        place = place_of(item.nodeid)
        return next((number for number, first in enumerate(FIRST) if place.startswith(first)), len(FIRST)), place

    items.sort(key=rank)


def has(marker: str) -> Callable[[pytest.Item], bool]:
    return lambda item: item.get_closest_marker(marker) is not None


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node: Any) -> None:
    """Every worker collects the same: what one has left out is what all have."""
    node.config.stash.setdefault(LEFT, {}).update(getattr(node, "workeroutput", {}))


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    if said := config.stash.get(LEFT, {}).get("waiting"):
        terminalreporter.write_sep("!", said, yellow=True, bold=True)


def pytest_xdist_auto_num_workers() -> int:
    """One more than processors: a test that talks to a broker waits for most of the time."""
    return (os.cpu_count() or 1) + 1


def pytest_xdist_make_scheduler(config: pytest.Config, log: object) -> object:
    """A file is one worker's: what a module makes once is made once. So is what ``TOGETHER`` has in one set."""
    from xdist.scheduler import LoadScopeScheduling

    class InTheirOrder(LoadScopeScheduling):
        def _split_scope(self, nodeid: str) -> str:
            place = place_of(nodeid)
            names = {place, place.partition("/")[0]}
            return next((min(shared) for shared in TOGETHER if shared & names), place)

    if config.getoption("dist") != "loadfile":
        return None
    config.option.loadscopereorder = False
    return InTheirOrder(config, log)


# -- the command lines -------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Finished:
    """What a command line ended with; the names are those of :class:`subprocess.CompletedProcess`."""

    returncode: int
    stdout: str
    stderr: str


@pytest.fixture
def in_process(capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Callable[..., Finished]:
    """Performs a command line of ours in this process, where Java runs already and everything is imported.

    Takes the words, the directory it runs in, and changes of the environment. What it imports from that directory is
    forgotten again.
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
            patch.setattr(sys.modules["__main__"], "__package__", "")  # a usage line names argv[0]
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
