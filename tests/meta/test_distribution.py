"""Published distributions: source distribution and wheel are checked, and install the same files."""

import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

import kidx

ROOT = Path(__file__).parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]


def run(*words, cwd=ROOT):
    done = subprocess.run(
        [sys.executable, "-m", *map(str, words)], cwd=cwd, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_the_version_and_its_date_stand_in_the_changelog():
    assert PROJECT["version"] == kidx.__version__
    assert re.search(
        rf"^## \[{re.escape(PROJECT['version'])}\] - \d{{4}}-\d\d-\d\d$",
        (ROOT / "CHANGELOG.md").read_text("utf-8"),
        re.MULTILINE,
    )


@pytest.mark.thorough
def test_both_distributions_are_sound_and_install_the_same_files(tmp_path):
    run("hatchling", "build", "-d", tmp_path / "dist")
    wheel, source = sorted((tmp_path / "dist").iterdir(), key=lambda path: path.suffix != ".whl")
    assert (wheel.suffix, source.suffixes[-2:]) == (".whl", [".tar", ".gz"])
    assert run("twine", "check", "--strict", wheel, source).count("PASSED") == 2
    trees = {}
    for distribution in (wheel, source):
        target = tmp_path / distribution.suffix
        run("pip", "install", "--quiet", "--no-deps", "--target", target, distribution)
        trees[distribution.suffix] = {
            str(path.relative_to(target)) for path in target.rglob("*") if path.is_file() and path.suffix != ".pyc"
        }
        done = run("kidx", "--version", cwd=target)
        assert PROJECT["version"] in done
    ours = [{name for name in tree if not re.search(r"dist-info/(RECORD|direct_url)", name)} for tree in trees.values()]
    assert ours[0] == ours[1]
    assert {"kidx/py.typed", "conformance/schemas/protocol.json", "conformance/docker/Dockerfile"} <= ours[0]
