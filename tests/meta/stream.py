"""Recorder of the harness's events in a few runs: ``python -m tests.meta.stream`` rewrites ``stream.ndjson``.

Fixed seeds, no shrinking, and events without times: a change of the harness that should change nothing leaves the file
byte-identical. A commit that changes a line says why.
"""

from __future__ import annotations

import hashlib
import json
import shlex
import sys
import tempfile
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from typing import Any, Final

from typer.main import get_command

from conformance.cli import app
from conformance.events import Event, Measured, Progressed
from conformance.runs.profiles import PROFILES
from conformance.runs.runner import Plan, run

STREAM: Final = Path(__file__).with_suffix(".ndjson")
ADAPTERS: Final = Path(__file__).parents[1] / "adapters"
_TIMES: Final = ("seconds", "started", "versions", "details", "command")


@dataclass(frozen=True)
class Case:
    """One run."""

    implementation: str
    machine: str
    examples: int = 20
    releases: tuple[str, ...] = ("4.4.0",)
    thorough: bool = False


def _exec(*words: str) -> str:
    return f"exec:{shlex.join([sys.executable, *words])}"


_OFF_BY_ONE: Final = "python:tests.adapters.python_index:open_off_by_one"
CASES: Final = {
    "reference": Case("mutant:always-resizes", "offset", releases=("4.4.0", "2.4.1")),
    "times": Case("mutant:accepts-duplicate-timestamps", "time"),
    "transactions": Case("mutant:takes-equal-last-offsets", "transaction"),
    "segment": Case("mutant:latest-batch-owns-the-maximum", "segment", 10),
    "program": Case(_exec(str(ADAPTERS / "line_index.py")), "offset", 5, ("3.9.2",), thorough=True),
    "log program": Case(
        _exec(str(ADAPTERS / "line_log.py"), "4.4.0", "--defect", "answers-the-target"), "log", 5, thorough=True
    ),
    "Python": Case(_OFF_BY_ONE, "offset"),
    "Kafka": Case("jvm", "offset", releases=("2.4.1", "3.9.1", "4.4.0")),
    **{
        f"Kafka {machine}": Case("jvm", machine, releases=("2.4.1", "3.9.1", "4.4.0"), thorough=True)
        for machine in ("time", "transaction", "segment", "log", "cleaned")
    },
}


def events_of(name: str) -> list[str]:
    """Return the events of a run, a line each."""
    case = CASES[name]
    events: list[Event] = []
    with tempfile.TemporaryDirectory() as directory:
        traces = Path(directory) / "traces"
        subjects, machines = (case.implementation,), (case.machine,)
        plan = Plan(
            case.releases,
            subjects,
            machines,
            PROFILES["ci"],
            traces,
            0,
            case.examples,
            replays=False,
            shrink_time=0.0,
        )
        run(plan, events.append)
        return [_line(name, event, directory) for event in events if not isinstance(event, Progressed | Measured)]


def _line(name: str, event: Event, directory: str) -> str:
    document = {key: value for key, value in event.to_json().items() if key not in _TIMES}
    text = json.dumps({"run": name} | document)
    for place, word in ((directory, "DIR"), (str(ADAPTERS), "ADAPTERS"), (sys.executable, "PYTHON")):
        text = text.replace(place, word)
    return text


def texts() -> dict[str, str]:
    """Return the beginning of the SHA-256 of what commands and schemas say, by name."""
    found = {each.name: each.read_text("utf-8") for each in (files("conformance") / "schemas").iterdir()}
    commands: dict[str, Any] = get_command(app).commands
    for name, one in commands.items():
        found[f"{name} --help"] = json.dumps(
            [one.help, [(each.opts, getattr(each, "help", "")) for each in one.params]]
        )
    return {name: hashlib.sha256(text.encode()).hexdigest()[:16] for name, text in sorted(found.items())}


def recorded() -> dict[str, Any]:
    """Return the lines of the file by run, and the texts."""
    runs: dict[str, Any] = {name: [] for name in CASES}
    for line in STREAM.read_text("utf-8").splitlines():
        document = json.loads(line)
        if "texts" in document:
            runs["texts"] = document["texts"]
        else:
            runs[document["run"]].append(line)
    return runs


if __name__ == "__main__":
    lines = [line for name in CASES for line in events_of(name)]
    STREAM.write_text("\n".join([*lines, json.dumps({"texts": texts()})]) + "\n", "utf-8")
