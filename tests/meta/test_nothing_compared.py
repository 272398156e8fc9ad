"""Green is earned: no program is green over nothing.

Each program that gives a verdict is called with an implementation that has nothing, with a filter that matches nothing,
with no time, and with a release that lacks what is tested. It has to end with 2 (nothing compared) or 3 (incomplete).
"""

from __future__ import annotations

import json
import re
import shlex
import sys
from xml.etree import ElementTree as ET

import pytest
from typer.main import get_command

from conformance.cli import app

PROGRAM = """
import json, sys
for line in sys.stdin:
    request = json.loads(line)
    reply = {"unsupported": True}
    if request["op"] == "start":
        reply = {"ok": {"protocol": request["protocol"], "name": "idle", "version": "1", "language": "Python",
                        "kinds": [sys.argv[1]], "capabilities": []}}
    if request["op"] == "stop":
        break
    print(json.dumps(reply), flush=True)
"""
FACTORY = """
def open_index(kind, path, base_offset, max_index_size, writable):
    raise NotImplementedError
"""
SOUND = """
from kidx import OffsetIndex

def open_index(kind, path, base_offset, max_index_size, writable):
    if kind != "offset":
        raise NotImplementedError
    return OffsetIndex(path, base_offset, max_index_size, writable)
"""
IDLE, IDLE_LOG, IDLE_PYTHON = "IDLE", "IDLE_LOG", "python:idle_index:open_index"
GOOD = "python:sound_index:open_index"
TRACE = "042af9bb9713"  # opens an offset index

# By command: what is called with nothing to compare.
EMPTY = {
    "run": [
        ("-i", IDLE, "--machine", "offset", "--level", "must", "--max-examples", "2"),
        ("-i", IDLE_LOG, "--machine", "log", "--max-examples", "2"),
        ("-i", IDLE_PYTHON, "--machine", "offset", "--max-examples", "2"),
        ("-i", IDLE_PYTHON, "-i", GOOD, "--machine", "offset", "--max-examples", "2"),
        ("-i", GOOD, "--machine", "transaction", "--max-examples", "2"),
        ("-i", GOOD, "--machine", "offset", "--max-time", "0.1"),
        ("-i", GOOD, "--machine", "offset", "--max-time", "0.1", "--json"),
        ("-i", GOOD, "--machine", "offset", "--operation", "append", "--max-examples", "2"),
        ("-i", GOOD, "--machine", "offset", "--edition", "wire-2026.1", "--max-examples", "2"),
        ("--machine", "cache", "--kafka", "2.4.1"),
        ("-i", "wire:127.0.0.1:1", "--max-time", "0.1"),
        ("-i", "exec:false", "--machine", "offset"),
    ],
    "replay": [(TRACE, "-i", IDLE), (TRACE, "-i", IDLE_PYTHON), ("no-such-trace",)],
    "exhaustive": [
        ("-i", IDLE_PYTHON, "--machine", "offset", "--length", "1"),
        ("-i", IDLE, "--machine", "offset", "--length", "1"),
        ("--machine", "nothing"),
    ],
    "fuzz": [
        ("-i", IDLE_PYTHON, "--format", "offset", "--max-examples", "0", "--max-time", "5"),
        ("-i", GOOD, "--format", "offset", "--max-examples", "100000000", "--max-time", "1"),
        ("-i", GOOD, "--format", "time", "--max-examples", "0", "--max-time", "1"),
    ],
    "mutate": [("--mutant", "no-such-*"), ("--machine", "offset", "--mutant", "log-*")],
    "mutate-kafka": [("--kafka", "4.3.1", "--class", "NoSuchClass"), ("-i", "exec:true"), ("--operator", "nothing")],
    "known-bugs": [("KAFKA-0",)],
    "diff": [("2.4.1", "4.3.1", "--machine", "cache"), ("4.2.2", "4.3.1", "--machine", "offset", "--max-time", "0.1")],
    "interleave": [
        ("--planted", "no-such-*"),
        ("--planted", "resize-without-lock", "--kafka", "2.4.1"),
        ("--machine", "cache", "--kafka", "2.4.1"),
        ("--kafka", "4.3.1", "--max-time", "0.1"),
    ],
    "power-loss": [
        ("--planted", "no-such-*"),
        ("--machine", "cache", "--kafka", "2.4.1"),
        ("--kafka", "4.3.1", "--max-time", "0.1"),
    ],
    "damage": [("--only", "no such case"), ("--kafka", "2.4.1")],
    "corrupt": [("--kafka", "0.0.1")],
    "tiers": [("--only", "no such case"), ("--kafka", "2.4.1")],
    "cluster": [("--kafka", "0.0.1")],
    "vectors": [("--check", "."), ("--check", "vectors")],
    "record-golden": [("--kafka", "0.0.1", "--out", "golden")],
    "kafka infer-dialect": [("2.4.1", "--machine", "cache")],
    "report": [("out",), ("out", "--junit", "x.xml", "--badge", "b.json", "--html", "p.html"), ("none",)],
    "scoreboard": [("out",), (IDLE_PYTHON, "--machine", "offset", "--max-examples", "2")],
}
NO_VERDICT = {"init", "smoke", "site", "clauses", "man", "kafka", "implementations"}
JAVA = {"diff", "interleave", "mutate-kafka", "power-loss", "kafka infer-dialect"}
"""Commands some of whose calls load classes of Kafka."""
SLOW = (
    ("4.2.2", "4.3.1", "--machine", "offset", "--max-time", "0.1"),
    ("--kafka", "4.3.1", "--max-time", "0.1"),
    ("-i", GOOD, "--format", "offset", "--max-examples", "100000000", "--max-time", "1"),
)
"""Calls that begin their work before the time is over."""


def cases() -> list:
    found = []
    for command, calls in EMPTY.items():
        for call in calls:
            java = command in JAVA and call[:2] != ("--planted", "no-such-*")
            marks = [pytest.mark.jvm] if java else []
            if call in SLOW:
                marks.append(pytest.mark.thorough)
            found.append(pytest.param(command, call, id=f"{command} {' '.join(call)}", marks=marks))
    return found


@pytest.fixture
def call(in_process, tmp_path, monkeypatch):
    """Return a function that runs a command of conformance in a directory with implementations that have nothing."""
    (tmp_path / "idle.py").write_text(PROGRAM)
    (tmp_path / "idle_index.py").write_text(FACTORY)
    (tmp_path / "sound_index.py").write_text(SOUND)
    (tmp_path / "vectors" / "4.3.1").mkdir(parents=True)
    document = {"format": "kidx-vectors", "version": 1, "release": "4.3.1", "vectors": []}
    (tmp_path / "vectors" / "4.3.1" / "vectors.json").write_text(json.dumps(document))
    for table in ("queries.tsv", "sound.tsv"):
        (tmp_path / "vectors" / "4.3.1" / table).write_text("")
    monkeypatch.syspath_prepend(str(tmp_path))
    for name in ("idle_index", "sound_index"):
        sys.modules.pop(name, None)
    program = [sys.executable, str(tmp_path / "idle.py")]
    names = {IDLE: f"exec:{shlex.join([*program, 'offset'])}", IDLE_LOG: f"exec:{shlex.join([*program, 'log'])}"}

    def run(*words):
        environment = {"XDG_STATE_HOME": str(tmp_path / "state")}
        chosen = [names.get(word, word) for word in words]
        return in_process("conformance", *chosen, work=tmp_path, environment=environment)

    return run


def test_every_program_with_a_verdict_is_called():
    commands = get_command(app).commands
    assert set(commands) == {name.partition(" ")[0] for name in EMPTY} | NO_VERDICT


@pytest.mark.thorough
@pytest.mark.parametrize(("command", "words"), cases())
def test_no_program_is_green_over_nothing(call, command, words):
    if "out" in words:
        assert (
            call("run", "-i", IDLE_PYTHON, "--machine", "offset", "--max-examples", "2", "--report", "out").returncode
            == 2
        )
    done = call(*command.split(), *words)
    assert done.returncode in (2, 3), done.stdout + done.stderr
    lines = [line for line in done.stderr.splitlines() if line.startswith("conformance: ")]
    assert len(lines) == 1, done.stderr
    assert "this is a bug" not in done.stderr
    if done.returncode == 3:
        assert call(*command.split(), *words, "--allow-incomplete").returncode == 0


def test_smoke_fails_what_rejects_everything(call):
    for name in (IDLE, IDLE_LOG, IDLE_PYTHON):
        assert call("smoke", "-i", name).returncode == 1


@pytest.mark.thorough
def test_reports_of_nothing_are_not_green(call, tmp_path):
    call("run", "-i", IDLE, "--machine", "offset", "--max-examples", "2", "--report", "out")
    files = ("--html", "page.html", "--junit", "x.xml", "--badge", "badge.json", "--markdown", "page.md")
    done = call("report", "out", "out", *files)  # named twice, counted once
    assert (done.returncode, done.stdout.count("nothing compared")) == (2, 1)
    page, markdown = ((tmp_path / name).read_text("utf-8") for name in ("page.html", "page.md"))
    assert "<strong>⚠ nothing compared</strong>" in page
    assert "✓ conforms" not in page.partition("</header>")[0].partition("legend")[0]
    assert markdown.startswith("## Log index conformance: ⚠ nothing compared")
    badge = json.loads((tmp_path / "badge.json").read_text("utf-8"))
    assert (badge["isError"], badge["color"]) == (True, "orange")
    suites = ET.parse(tmp_path / "x.xml").getroot()  # noqa: S314 -- written by this test
    assert int(suites.get("errors", "0")) > 10
    assert suites.get("failures") == "0"
    document = json.loads(call("report", "out", "--json").stdout)
    assert document["verdict"] == "nothing-compared"
    assert document["missing"]


def test_an_incomplete_run_says_how_many_of_how_many(call):
    done = call("run", "-i", GOOD, "--machine", "offset", "--max-time", "0.1", "--report", "out")
    assert done.returncode == 3
    assert re.search(r"\b1\d\d of 200 examples of the offset machine not run \(--max-time\)", done.stdout)
    assert done.stdout.splitlines()[-1].startswith("INCOMPLETE: no divergence, but ")
    assert call("report", "out", "--junit", "x.xml").returncode == 3
    assert call("report", "out", "--junit", "x.xml", "--allow-incomplete").returncode == 0
