"""Check that the stages of ``.ci/run`` cover every test.

Bash evaluates the part of the script that runs pytest, with stubs for the functions of the script.
"""

from __future__ import annotations

import re
import subprocess
from pathlib import Path
from typing import NamedTuple

import pytest

from conformance.pytest_plugin.tiers import TIERS

ROOT = Path(__file__).parents[2]
TESTS = ROOT / "tests"
FOLDERS = {path.parent.name for path in TESTS.glob("*/test_*.py")}
SCRIPT = (ROOT / ".ci" / "run").read_text("utf-8")
STAGES = SCRIPT[SCRIPT.index("counted=(") : SCRIPT.index("step 'every release in lockstep'")]
"""Lines of the script that run pytest: from the definition of ``counted`` (folders with measured coverage) on."""


def stages() -> list[list[str]]:
    """Return the arguments of each call of pytest, on a machine with Go and Maven.

    The script's own function for pytest runs a command and continues after a failure; here it prints the arguments.
    The functions that begin a stage, join one in the background, and find Go and Maven only succeed here.
    """
    script = f"""
        seed=1
        step() {{ :; }}
        join_background() {{ :; }}
        command() {{ :; }}
        check() {{ printf '%s\\n' "$@" end; }}
        {STAGES}
    """
    done = subprocess.run(["bash", "-euc", script], capture_output=True, text=True, check=True)
    return [block.splitlines() for block in done.stdout.split("\nend\n") if block.strip()]


def folders_of(words: list[str]) -> set[str]:
    ignored = {word.removeprefix("--ignore=tests/") for word in words if word.startswith("--ignore=")}
    named = {word.removeprefix("tests/") for word in words if word.startswith("tests/")}
    return (named or FOLDERS) - ignored


THOROUGH = [words for words in stages() if "--thorough" in words]
QUICK = [words for words in stages() if "--thorough" not in words]


@pytest.mark.parametrize("some", [QUICK, THOROUGH], ids=["quick", "thorough"])
def test_every_folder_is_run_once(some):
    """Every test folder is run by exactly one quick and one thorough stage; tests/docker has a separate stage.

    No test in tests/docker needs ``--thorough``, which that stage does not pass.
    """
    folders = [folder for words in some for folder in folders_of(words)]
    assert sorted(folders) == sorted(FOLDERS - {"docker"})
    assert not [path for path in (TESTS / "docker").glob("*.py") if "thorough" in path.read_text("utf-8")]


def test_a_thorough_stage_selects_all_that_depends_on_thorough_or_the_seed():
    """``thorough`` tests need that option, ``more`` tests have more cases with it, ``hypothesis`` ones use the seed."""
    for words in THOROUGH:
        assert words[words.index("-m") + 1] == "thorough or more or hypothesis"


class Collected(NamedTuple):
    """Test, with what the selection depends on."""

    nodeid: str
    family: str = ""

    def get_closest_marker(self, name):
        return getattr(pytest.mark, name)(5, of=self.family).mark if self.family else None


def test_each_file_of_slow_tests_has_one_turn(pytestconfig):
    """Files of a family have their own turns, and are not thinned twice."""
    waiting_files = next(
        plugin.waiting_files for plugin in pytestconfig.pluginmanager.get_plugins() if hasattr(plugin, "waiting_files")
    )
    tests = [Collected(f"tests/jvm/test_{number}.py::test_{name}") for number in range(7) for name in "ab"]
    others = [
        Collected("tests/jvm/test_go.py::test_a", "builds"),
        Collected("tests/jvm/test_rust.py::test_a", "builds"),
    ]
    runs = [{*tests, *others} - waiting_files([*tests, *others], 3, seed) for seed in range(3)]
    assert sorted(test.nodeid for run in runs for test in run - {*others}) == sorted(test.nodeid for test in tests)
    assert all({*others} <= run for run in runs)
    assert {len(run) for run in runs} == {6, 8}  # two or three files
    assert waiting_files(tests, 1, 2) == set()


def test_no_tier_is_skipped():
    """Each tier that a test needs is required by the stage that runs its folder."""
    for words in (*QUICK, *THOROUGH):
        text = "".join(
            path.read_text("utf-8") for folder in folders_of(words) for path in (TESTS / folder).glob("test_*.py")
        )
        needed = set(re.findall(rf"mark\.({'|'.join(TIERS)})\b", text))
        assert needed <= set(words[words.index("--require") + 1].split(",")), words


CHECK = SCRIPT[SCRIPT.index("verdict=0 failed=") : SCRIPT.index("step 'an environment from nothing'")]
"""Lines of the script that define the function for a command whose failure does not end the script."""


def test_a_stage_with_many_errors_does_not_end_the_script(tmp_path):
    script = f"""
        place={tmp_path} stage=tests
        run() {{ seq -f 'E  error %.0f' 100000; return 3; }}
        {CHECK}
        check pytest
        echo "verdict $verdict of $failed"
    """
    done = subprocess.run(["bash", "-euo", "pipefail", "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "verdict 3 of tests"
    assert (tmp_path / "failures.log").read_text("utf-8").splitlines()[-1] == "E  error 80"


def test_every_tier_is_listed(pytestconfig):
    """A test whose tier is not registered would not be skipped where its environment is missing."""
    assert set(pytestconfig.getini("conformance_tiers")) == set(TIERS)
