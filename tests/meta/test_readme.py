"""The README cannot drift: its commands are executed, and what it shows of their output is compared."""

import doctest
import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest
from in_ci import in_ci
from typer.main import get_command

from conformance.cli import app

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
@pytest.mark.parametrize(
    "block",
    [in_ci(block) if block.startswith("$ conformance run") else block for block in CONSOLE],
    ids=lambda block: block.splitlines()[0][2:40],
)
def test_what_the_readme_shows_is_what_is_printed(block, tmp_path, in_process):
    """Every command runs, and prints what the README says."""
    command, _, expected = block.removeprefix("$ ").partition("\n")
    done = in_process(*shlex.split(command), work=ROOT, environment={"XDG_STATE_HOME": str(tmp_path), "COLUMNS": "200"})
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


TYPED = [line for language, body in BLOCKS if language == "console" for line in body.splitlines()]
GATE = next(body for language, body in BLOCKS if language == "yaml")


@pytest.mark.thorough
def test_ten_minutes_from_nothing_to_a_verdict(tmp_path):
    """The steps of the README in their order: smoke passes, the run finds the defect, and once mended it is FIXED."""
    adapter = tmp_path / "my_index.py"
    adapter.write_text(ADAPTER, "utf-8")

    def typed(beginning, *more):
        (line,) = {line for line in TYPED if line.startswith(beginning)}
        command = shlex.split(line.replace("exec:python ", f"exec:{sys.executable} "))
        return subprocess.run(
            [*command, *more], cwd=tmp_path, env=environment(tmp_path), capture_output=True, text=True, check=False
        )

    assert typed("conformance smoke").returncode == 0
    found = typed('conformance run -i "exec:python my_index.py"', "--seed", "1", "--report", "out/ci")
    assert found.returncode == 1, found.stderr
    assert "OI-3" in found.stdout
    replay = shlex.split(re.search(r"replay +(conformance replay .*)", found.stdout)[1])

    def replayed():
        return subprocess.run(
            replay, cwd=tmp_path, env=environment(tmp_path), capture_output=True, text=True, check=False
        )

    assert typed("conformance report").returncode == 1
    assert {path.name for path in tmp_path.iterdir()} >= {"report.html", "report.xml", "summary.md", "badge.json"}
    refusal = (
        '    elif op == "append" and 8 * len(index["entries"]) == os.fstat(index["file"]).st_size:\n'
        '        return {"error": "invalid_argument", "message": "full"}\n    elif op == "append":\n'
    )
    mended = ADAPTER.replace('    elif op == "append":\n', refusal)
    answer = 'else {"ok": found}'
    mended = mended.replace(answer, 'else found if isinstance(found, dict) and "error" in found else {"ok": found}')
    adapter.write_text(mended, "utf-8")
    done = replayed()
    assert (done.returncode, done.stdout.splitlines()[-1][:5]) == (0, "FIXED")


@pytest.mark.thorough
def test_a_log_of_your_own_in_three_lines(tmp_path):
    """What the README types writes an adapter, finds it sane, and finds no difference."""
    (block,) = [body for language, body in BLOCKS if language == "sh" and "conformance init" in body]
    said = [
        subprocess.run(
            shlex.split(line), cwd=tmp_path, env=environment(tmp_path), capture_output=True, text=True, check=False
        )
        for line in block.splitlines()
    ]
    assert [done.returncode for done in said] == [0, 0, 0], said
    assert "excused in" in said[-1].stdout
    assert "segments and files are not compared" in said[-1].stdout


def test_the_gate_uses_options_that_there_are():
    """The workflow is text to GitHub and to us; at least its commands and options exist."""
    commands = get_command(app).commands
    lines = re.findall(r"^ +(?:- run: )?conformance (.*)$", GATE, re.MULTILINE)
    assert len(lines) == 3
    for line in lines:
        name, *words = shlex.split(line)
        known = {option for parameter in commands[name].params for option in parameter.opts}
        assert {word for word in words if word.startswith("-")} <= known


def test_the_plug_in_is_called_as_pytest_knows_it(tmp_path):
    (line,) = {line for line in TYPED if line.startswith("pytest --kafka")}
    done = subprocess.run(
        [*shlex.split(line), "--collect-only", "-q"],
        cwd=tmp_path,
        env=environment(tmp_path),
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert "conformance::offset::OI-7 " in done.stdout


def test_the_two_commands_are_what_ci_runs():
    """CI goes through the README's own door."""
    ci = (ROOT / ".ci" / "run").read_text("utf-8")
    assert 'run() { python3 bootstrap.py "$@"' in ci
    assert 'judge() { run conformance "$@"' in ci
    for command, step in (("conformance run", "\njudge run "), ("pytest", "\nrun pytest ")):
        assert f"python3 bootstrap.py {command}" in README
        assert step in ci


def test_pictures_are_there():
    """Every picture that the README shows is in the repository, and asks no server for anything."""
    pictures = re.findall(r"!\[.*?\]\((.*?)\)", README)
    assert pictures
    for picture in pictures:
        assert not re.search(r"url\((?!#)", (ROOT / picture).read_text("utf-8"))
