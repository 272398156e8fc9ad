"""Commands of ``docs/builds.md`` and the gates, which are run so that they cannot drift."""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from broken_kafka import broken
from kafka_builds import build_at
from kafka_changes import BROKEN, RELEASE
from pages import the_block
from thorough_params import thorough_param
from typer.main import get_command

from conformance.cli import app
from conformance.operations import Operation
from conformance.operations.trace import Trace
from kidx.dialect import NEWEST

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "builds.md").read_text("utf-8")
BLOCKS = re.findall(r"```(\w+)\n(.*?)```", PAGE, flags=re.DOTALL)
COMMANDS = [line for language, body in BLOCKS if language == "console" for line in body.splitlines()]
KAFKA = [line for line in COMMANDS if line.startswith("conformance kafka")]
"""Commands that load a release: tests/jvm/test_user_locks.py and tests/jvm/test_propose.py run them."""
COMMANDS = [line for line in COMMANDS if line not in KAFKA]
(MEANT,) = (body for language, body in BLOCKS if language == "toml")
(BISECT,) = (body for language, body in BLOCKS if language == "sh")
CI_PAGE = (ROOT / "docs" / "ci.md").read_text("utf-8")
GATE = (ROOT / "docs" / "kafka-gate.yml").read_text("utf-8")
FEW = {"run": ["--max-examples", "5", "-j", "1"], "diff": ["--max-examples", "60", "--machine", "offset"], "replay": []}
ENDS = dict.fromkeys(COMMANDS, 1) | {COMMANDS[0]: 0, COMMANDS[3]: 0}
"""The build is 4.4.0 in place of 4.3.1, so that everything differs that is not meant."""

STEPS = (
    Operation("open", ("offset", "0.index", 0, 64, True)),
    Operation("append", (1, 0)),
    Operation("close"),
)


@pytest.fixture(scope="module")
def work(tmp_path_factory):
    """Make the inputs of the page: builds, a trace, the expected differences."""
    work = tmp_path_factory.mktemp("builds")
    for name, release in (("build", "4.4.0"), ("before", "4.3.1"), ("after", "4.4.0")):
        build_at(work / name, release)
    trace = Trace("offset", "4.3.1", STEPS, None, "close no longer trims")
    shutil.copy(trace.save(work / "traces"), work / "trace.json")
    (work / "meant.toml").write_text(MEANT + MEANT.replace("AI-42", "AI-19"), "utf-8")
    return work


def environment(work):
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    return os.environ | {"PATH": path, "XDG_STATE_HOME": str(work / "state"), "COLUMNS": "200"}


@pytest.mark.thorough
@pytest.mark.jvm
@pytest.mark.parametrize(
    "command",
    [line if " replay " in line or line == COMMANDS[1] else thorough_param(line) for line in COMMANDS],
    ids=lambda command: "-".join(command.split()[1:4]),
)
def test_every_command_of_the_page(command, work, in_process):
    words = shlex.split(command)
    done = in_process(*words, *FEW[words[1]], work=work, environment={"XDG_STATE_HOME": str(work / "state")})
    assert done.returncode == ENDS[command], done.stdout + done.stderr
    assert done.stderr == ""


@pytest.mark.jvm
@pytest.mark.thorough
def test_git_bisect_finds_the_commit(work, tmp_path):
    """Every commit of a repository is a build; the fifth of eight is the first that is 4.4.0."""
    checkout = tmp_path / "checkout"
    checkout.mkdir()
    shutil.copy(work / "trace.json", tmp_path)
    git = ("git", "-C", str(checkout), "-c", "user.name=n", "-c", "user.email=e@example.org")

    def run(*words, **options):
        return subprocess.run(words, check=True, capture_output=True, text=True, **options).stdout

    run("git", "init", "-q", str(checkout))
    gradlew = checkout / "gradlew"
    for number in range(8):
        origin = work / ("after" if number >= 5 else "before")
        gradlew.write_text(f"#!/bin/sh\n# {number}\nrm -rf libs && cp -R {shlex.quote(str(origin))} libs\n", "utf-8")
        gradlew.chmod(0o755)
        run(*git, "add", "gradlew")
        run(*git, "commit", "-q", "-m", f"number {number}")
    variables = environment(work) | {"PATH": conformance_in(tmp_path / "bin")}
    script = BISECT.replace("BAD", "HEAD").replace("GOOD", "HEAD~7")
    said = run("sh", "-c", script, cwd=checkout, env=variables)
    assert re.search(r"is the first bad commit.*number 5", said, re.DOTALL), said


def test_the_commands_about_releases_exist():
    commands = get_command(app).commands["kafka"].commands
    assert [line.split()[2] for line in KAFKA] == ["lock", "infer-dialect"]
    for line in KAFKA:
        _, _, name, *words = shlex.split(line)
        known = {option for parameter in commands[name].params for option in parameter.opts}
        assert {word for word in words if word.startswith("-")} <= known


@pytest.mark.parametrize("gate", [GATE, CI_PAGE], ids=["kafka", "ci"])
def test_the_gates_use_existing_options(gate):
    commands = get_command(app).commands
    lines = re.findall(r"^ +(?:- run: )?conformance (.*?)(?: \|\| .*)?$", gate, re.MULTILINE)
    assert lines
    for line in lines:
        name, *words = shlex.split(line)
        known = {option for parameter in commands[name].params for option in parameter.opts}
        assert {word for word in words if word.startswith("-")} <= known


def steps_of(workflow):
    """Yield condition and script of each step that runs a script, in order."""
    pattern = r"^      - (?:if: (?P<when>.*)\n        )?run: (?P<script>\|\n(?: {10}.*\n)+|.*\n)"
    for when, script in re.findall(pattern, workflow, re.MULTILINE):
        yield (
            when,
            "".join(line.removeprefix(" " * 10) for line in script.removeprefix("|\n").splitlines(keepends=True)),
        )


LITTLE = "--machine offset --machine time --machine transaction --max-examples 5 --allow-incomplete --max-shrink-time 0"
GATE_STEPS = list(steps_of(the_block("yaml", page="docs/ci.md", containing="jobs:")))


def conformance_in(directory):
    """Make a directory for the PATH with the command line of this tree."""
    directory.mkdir(parents=True)
    command = directory / "conformance"
    code = "from conformance.cli import main; main()"
    command.write_text(f'#!/bin/sh\nexec {shlex.quote(sys.executable)} -c "{code}" "$@"\n', "utf-8")
    command.chmod(0o755)
    return f"{directory}{os.pathsep}{os.environ['PATH']}"


def built_with_go(directory, sources):
    """Build a program of these sources."""
    program = directory / "built"
    variables = os.environ | {"GOTOOLCHAIN": "local", "GOFLAGS": "-mod=mod", "GOWORK": "off", "CGO_ENABLED": "0"}
    subprocess.run(["go", "build", "-o", str(program), "."], cwd=sources, env=variables, check=True)
    return program


def the_template(directory):
    """Build the adapter that `conformance init --lang go` writes."""
    command = [sys.executable, "-c", "from conformance.cli import main; main()", "init", "--lang", "go", "template"]
    subprocess.run(command, cwd=directory, check=True, capture_output=True)
    return built_with_go(directory, directory / "template")


def unfinished(directory):
    """Build the index of docs/testing-an-implementation.md: it appends to a full one."""
    code = the_block("python", containing="def answer(op, r)")
    program = directory / "my_index.py"
    program.write_text(code, "utf-8")
    return program


@pytest.mark.thorough
@pytest.mark.in_turn(3)
@pytest.mark.parametrize(
    ("index", "red"),
    [
        thorough_param("the example in Go", [], marks_too=pytest.mark.go),
        thorough_param("a template", [], marks_too=pytest.mark.go),
        ("a program that sends malformed replies", ["conformance smoke"]),
        thorough_param("the unfinished one of the docs", ["conformance run"]),
    ],
)
def test_the_workflow_of_the_docs_has_one_red_step(tmp_path, index, red):
    """It runs the steps as a runner does: each in bash -e, those after a red one only if they allow it.

    All releases take part, and the profile is ci, unchanged; only the examples are few, of indexes, so that
    some releases do not get every operation.
    """
    adapter = tmp_path / "my-index"
    example = ROOT / "tests" / "adapters" / "go"
    sources = {
        "the example in Go": lambda: f'exec {built_with_go(tmp_path, example)} --release "$1"',
        "a template": lambda: f'exec {the_template(tmp_path)} "$1"',
        "a program that sends malformed replies": lambda: "echo nonsense",
        "the unfinished one of the docs": lambda: f"exec {sys.executable} {unfinished(tmp_path)}",
    }
    adapter.write_text(f"#!/bin/sh\n{sources[index]()}\n", "utf-8")
    adapter.chmod(0o755)
    variables = environment(tmp_path) | {
        "PATH": conformance_in(tmp_path / "bin"),
        "PYTHON": sys.executable,
        "PYTHONPATH": f"{tmp_path}{os.pathsep}{ROOT}",
        "INDEX": re.search(r"INDEX: (\S+ \S+)", CI_PAGE)[1],
        "GITHUB_STEP_SUMMARY": str(tmp_path / "summary"),
    }
    failed = []
    for when, script in GATE_STEPS:
        text = script
        if "pip install" in text:
            continue
        if failed and not when.startswith("always()"):
            continue
        if "hashFiles" in when and not (tmp_path / "out" / "events.ndjson").exists():
            continue
        text = text.replace("--report out", f"--report out {LITTLE}")
        assert ("--kafka all --profile ci --level must" in text) is ("conformance run" in text)
        done = subprocess.run(
            ["bash", "-e", "-c", text], cwd=tmp_path, env=variables, capture_output=True, text=True, check=False
        )
        if done.returncode:
            failed.append(" ".join(text.split()[:2]))
            assert "Traceback" not in done.stderr, done.stderr
    assert failed == red
    if "conformance smoke" not in red:
        events = (tmp_path / "out" / "events.ndjson").read_text("utf-8").splitlines()
        assert json.loads(events[-1])["event"] == "RunFinished"
        assert len(json.loads(events[0])["releases"]) > 20


GITHUB_ALONE = ("pip install", "gh pr comment")
"""Steps of the gate for Kafka that are not run here: fetching this project, and writing into a pull request."""


def gradle_has_built(checkout, jars):
    """Put jars where `./gradlew core:jar` puts them."""
    for kind in ("libs", "dependant-libs-2.13.18"):
        (checkout / "core" / "build" / kind).mkdir(parents=True)
    for jar in jars.glob("*.jar"):
        kind = "libs" if jar.name.startswith("kafka_") else "dependant-libs-2.13.18"
        (checkout / "core" / "build" / kind / jar.name).symlink_to(jar.resolve())


@pytest.mark.in_turn(2)
@pytest.mark.jvm
@pytest.mark.thorough
@pytest.mark.parametrize("name", ["sound", "rolls-when-just-full"])
def test_the_gate_for_kafka_is_red_where_a_build_differs(name, tmp_path):
    """Its scripts run in a checkout as Gradle leaves it; the build itself is made of a release's jars."""
    assert f"RELEASE: {NEWEST} " in GATE
    build = build_at(tmp_path / "jars", RELEASE)
    if name != "sound":
        build = broken(build, BROKEN[name].change, tmp_path / "broken")
    checkout = tmp_path / "kafka"
    checkout.mkdir()
    variables = environment(tmp_path) | {
        "PATH": conformance_in(tmp_path / "bin"),
        "PYTHONPATH": str(ROOT),
        "RELEASE": RELEASE,
        "GITHUB_STEP_SUMMARY": str(tmp_path / "summary"),
    }
    failed, performed = [], 0
    for when, script in steps_of(GATE):
        if failed and not when.startswith("always()"):
            continue
        text = "".join(line for line in script.splitlines(keepends=True) if not line.startswith(GITHUB_ALONE))
        if text.startswith("./gradlew"):
            gradle_has_built(checkout, build)
            continue
        if "hashFiles" in when and not (checkout / "comment.md").exists():
            continue
        performed += bool(text)
        # One machine is enough, and a number of examples, not a time, finds the difference on a busy machine, too.
        text = text.replace("--max-time 900", "--machine segment --max-examples 150")
        done = subprocess.run(
            ["bash", "-e", "-c", text], cwd=checkout, env=variables, capture_output=True, text=True, check=False
        )
        if done.returncode:
            failed.append(done.returncode)
            assert done.stderr == "", done.stderr
    assert performed == 2
    comment = (checkout / "comment.md").read_text("utf-8")
    assert comment == (tmp_path / "summary").read_text("utf-8")
    assert (checkout / "out" / "events.ndjson").exists()
    assert failed == ([] if name == "sound" else [1]), comment
    assert ("| new | segment |" in comment) is (name != "sound")
