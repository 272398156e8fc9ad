"""The page about watching brokers: its script, its units and its commands are executed, as far as one machine can."""

import configparser
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs/watching.md").read_text("utf-8")
COLLECTOR, DATA, LOOK = "/var/lib/node_exporter", "/var/lib/kafka/data", "/usr/local/bin/kidx-look"


def blocks(language):
    return re.findall(rf"```{language}\n(.*?)```", PAGE, re.DOTALL)


@pytest.fixture
def place(tmp_path):
    """Make a host with kidx, a log directory and the directory of the collector."""
    for name in ("bin", "collector"):
        (tmp_path / name).mkdir()
    shutil.copytree(ROOT / "tests/golden/3.9.2", tmp_path / "data")
    program = tmp_path / "bin" / "kidx"
    program.write_text(f'#!/bin/sh\nexec {sys.executable} -m kidx "$@"\n')
    look = tmp_path / "bin" / "kidx-look"
    look.write_text(local(blocks("sh")[0], tmp_path))
    for path in (program, look):
        path.chmod(0o755)
    return tmp_path


def local(text, place):
    replaced = {COLLECTOR: place / "collector", DATA: place / "data", LOOK: place / "bin" / "kidx-look"}
    for name, path in replaced.items():
        text = text.replace(name, str(path))
    return text


def run(*command, place, **environment):
    path = f"{place / 'bin'}:{os.environ['PATH']}"
    return subprocess.run(
        command, env={**os.environ, "PATH": path, **environment}, capture_output=True, text=True, check=False, cwd=place
    )


@pytest.mark.thorough
def test_the_script_replaces_the_file_and_keeps_it_if_nothing_could_be_read(place):
    command = re.search(r"\* \* root (.*)", PAGE)[1]
    done = run("sh", "-c", local(command, place), place=place)
    assert (done.returncode, done.stderr) == (0, "")
    (file,) = (place / "collector").iterdir()
    written = file.read_text()
    assert (file.name, "kidx_start_safe 1\n" in written) == ("kidx.prom", True)
    for metric in re.findall(r"`?(kidx_\w+)", PAGE):
        assert metric in written, metric
    shutil.rmtree(place / "data")
    assert run("kidx-look", place=place).returncode == 2
    assert [each.read_text() for each in (place / "collector").iterdir()] == [written]


@pytest.mark.thorough
@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="systemd is not installed")
def test_the_units_are_valid_and_run_the_script(place):
    service, timer = (local(text, place) for text in blocks("ini"))
    for name, text in (("kidx-look.service", service), ("kidx-look.timer", timer)):
        (place / name).write_text(text)
    done = run("systemd-analyze", "verify", str(place / "kidx-look.timer"), place=place)
    assert "kidx-look" not in done.stderr, done.stderr
    unit = configparser.ConfigParser(interpolation=None)
    unit.optionxform = str
    unit.read_string(service)
    assert run(unit["Service"]["ExecStart"], place=place).returncode == 0


@pytest.mark.thorough
def test_commands_for_other_hosts_are_right_where_they_run(place):
    remote = re.findall(r"^ssh broker-1 '(.*)'$", PAGE, re.MULTILINE)
    assert len(remote) == 2
    shutil.copytree(ROOT / "kidx", place / "kidx-host" / "kidx", ignore=shutil.ignore_patterns("__pycache__"))
    python = place / "bin" / "python3"
    python.write_text(f'#!/bin/sh\nexec {sys.executable} "$@"\n')
    python.chmod(0o755)
    for command in remote:
        done = run("sh", "-c", local(command, place), place=place)
        assert (done.returncode, done.stdout.splitlines()[-1]) == (0, "may I start the broker? yes"), done.stderr
