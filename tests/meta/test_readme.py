"""The README cannot drift: its commands are executed, and what it shows of their output is compared."""

import doctest
import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text("utf-8")
BLOCKS = re.findall(r"```(\w+)\n(.*?)```", README, flags=re.DOTALL)
CONSOLE = [body for language, body in BLOCKS if language == "console" and body.startswith("$ ")]
PYTHON = [body for language, body in BLOCKS if language == "python"]
LIBRARY = [body for body in PYTHON if "from kidx" in body]
ADAPTER = next(body for body in PYTHON if "sys.stdin" in body)
FLAGS = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE


def environment(tmp_path):
    bin_directory = Path(sys.executable).parent
    path = f"{bin_directory}{os.pathsep}{os.environ['PATH']}"
    return os.environ | {"PATH": path, "XDG_STATE_HOME": str(tmp_path), "COLUMNS": "200"}


@pytest.mark.jvm
@pytest.mark.parametrize("block", CONSOLE, ids=lambda block: block.splitlines()[0][2:40])
def test_what_the_readme_shows_is_what_is_printed(block, tmp_path):
    """Every command runs, and prints what the README says."""
    command, _, expected = block.removeprefix("$ ").partition("\n")
    done = subprocess.run(
        shlex.split(command), cwd=ROOT, env=environment(tmp_path), capture_output=True, text=True, check=False
    )
    assert done.stderr == "" or "fetch" in done.stderr
    assert done.returncode == (1 if "DIVERGES" in expected else 0)
    assert doctest.OutputChecker().check_output(expected, done.stdout, FLAGS), done.stdout


@pytest.mark.parametrize("block", LIBRARY, ids=lambda block: block.splitlines()[0])
def test_the_library_example_runs(block, tmp_path, capsys):
    """The Python in the README does what its comments say."""
    exec(block.replace("/tmp/", f"{tmp_path}/"), {})  # noqa: S102, S108
    said = re.findall(r"# ([A-Z]\w+\(.*\))", block)
    printed = capsys.readouterr().out
    assert said
    assert all(line in printed for line in said)


def test_the_adapter_is_sane_and_its_defect_is_found(tmp_path):
    """Ten minutes from nothing to a verdict: smoke passes, and the run finds what the README says."""
    (tmp_path / "my_index.py").write_text(ADAPTER, "utf-8")
    implementation = f"exec:{sys.executable} my_index.py"

    def conformance(*arguments):
        command = ["conformance", *arguments, "-i", implementation]
        return subprocess.run(
            command, cwd=tmp_path, env=environment(tmp_path), capture_output=True, text=True, check=False
        )

    assert conformance("smoke").returncode == 0
    found = conformance("run", "--machine", "offset", "--level", "must", "--seed", "1")
    assert found.returncode == 1, found.stderr
    assert "OI-3" in found.stdout
    assert "conformance replay" in found.stdout


def test_the_two_commands_are_what_ci_runs():
    """CI goes through the README's own door."""
    ci = (ROOT / ".ci" / "run").read_text("utf-8")
    for command in ("python3 bootstrap.py conformance run", "python3 bootstrap.py pytest"):
        assert command in README
        assert command in ci


def test_pictures_are_there():
    """Every picture that the README shows is in the repository, and asks no server for anything."""
    pictures = re.findall(r"!\[.*?\]\((.*?)\)", README)
    assert pictures
    for picture in pictures:
        assert not re.search(r"url\((?!#)", (ROOT / picture).read_text("utf-8"))
