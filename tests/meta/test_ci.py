"""Stages of CI, which run the tests that the default suite omits; ``.ci/run`` is read as bash reads it."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest

from conformance.pytest_plugin.tiers import TIERS

ROOT = Path(__file__).parents[2]
TESTS = ROOT / "tests"
FOLDERS = {path.parent.name for path in TESTS.glob("*/test_*.py")}
LINES = (ROOT / ".ci" / "run").read_text("utf-8")
STAGES = LINES[LINES.index("counted=(") : LINES.index("step 'every release in lockstep'")]


def stages() -> list[list[str]]:
    """Return the arguments of each call of pytest, on a machine with Go and Maven."""
    script = f"""
        seed=1
        step() {{ :; }}
        beside() {{ :; }}
        command() {{ :; }}
        judge() {{ printf '%s\\n' "$@" end; }}
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
def test_every_folder_is_performed_once(some):
    """The folder of the containers has its own stage next to the others, and none of its tests is deselected."""
    performed = [folder for words in some for folder in folders_of(words)]
    assert sorted(performed) == sorted(FOLDERS - {"docker"})
    assert not [path for path in (TESTS / "docker").glob("*.py") if "thorough" in path.read_text("utf-8")]


def test_all_that_waits_is_selected():
    for words in THOROUGH:
        assert words[words.index("-m") + 1] == "thorough or more or hypothesis"


def test_no_tier_is_skipped():
    """Each tier that a test needs is required by the stage that runs its folder."""
    for words in (*QUICK, *THOROUGH):
        text = "".join(
            path.read_text("utf-8") for folder in folders_of(words) for path in (TESTS / folder).glob("test_*.py")
        )
        needed = set(re.findall(rf"mark\.({'|'.join(TIERS)})\b", text))
        assert needed <= set(words[words.index("--require") + 1].split(",")), words


def test_every_tier_is_listed(pytestconfig):
    """A tier that is not in the list would run where it cannot."""
    assert set(pytestconfig.getini("conformance_tiers")) == set(TIERS)
