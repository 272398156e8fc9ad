"""Scoreboard of all implementations: ``python3 bootstrap.py python -m tests.bench.scoreboard``.

It runs every implementation without expectations, writes ``reports/scoreboard.md`` and ``out/scoreboard.html``,
and stores the traces of the divergences in ``reports/scoreboard.ndjson``. It needs Go, cargo, Maven and pip for the
first builds, and takes about 20 minutes on two cores. The same command continues where it was stopped.
"""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

from conformance.kafka.broker import LocalBroker
from conformance.kafka.broker.ports import HOST
from conformance.operations.trace import Trace
from conformance.operations.trace_file import save_traces

ROOT = Path(__file__).parents[2]
DIRECTORY = Path("out/scoreboard")
PAGE, TRACES = Path("reports/scoreboard.md"), Path("reports/scoreboard.ndjson")
EMPTY = Path("out/no-expectations")
GO_INDEX = Path("out/go-index")
INDEXES = "--machine offset --machine time --machine transaction"
IN_PYTHON, IN_GO = "kidx over the line protocol, in Python", "Indexes over the line protocol, in Go"


class Run(NamedTuple):
    """One run: its directory, the options of ``conformance run``, and the label of its row if it has no own name."""

    name: str
    options: str
    label: str = ""


RUNS = (
    Run("jvm", f"-i jvm --kafka 2.8.2 --kafka 3.9.2 --kafka 4.3.1 {INDEXES} --machine segment --machine log --seed 0"
        " --max-examples 30 --max-time 240"),
    Run("kfake", "-i subject:kfake --kafka 4.3.1 --seed 3 --max-examples 30 --max-time 240"),
    Run("kfake-unstopped", "-i subject:kfake --kafka 4.3.1 --seed 3 --max-examples 40 --max-time 240"
        " --skip-feature restarts"),
    Run("tansu", "-i subject:tansu --kafka 4.3.1 --seed 4 --max-examples 6 --max-time 90"),
    Run("librdkafka", "-i subject:librdkafka --kafka 4.3.1 --seed 1 --max-examples 120 --max-time 60"),
    Run("fluss", "-i subject:fluss --kafka 3.6.2 --kafka 4.3.1 --machine offset --machine time --seed 2"
        " --max-examples 200 --max-time 60"),
    Run("krabka-log", "-i subject:krabka-log --kafka 4.3.1 --machine log --seed 2 --max-examples 600 --max-time 200"),
    Run("python-index", f"-i 'exec:python tests/adapters/line_index.py --release {{release}}' --kafka 4.3.1 {INDEXES}"
        " --seed 0 --max-examples 60 --max-time 25", IN_PYTHON),
    Run("python-log", "-i 'exec:python tests/adapters/line_log.py {release}' --kafka 4.3.1 --machine log --seed 0"
        " --max-examples 2000 --max-time 90", IN_PYTHON),
    Run("go-index", f"-i 'exec:{GO_INDEX} --release {{release}}' --kafka 4.3.1 {INDEXES} --seed 0 --max-examples 60"
        " --max-time 25", IN_GO),
)  # fmt: skip
BROKERS = {
    release: Run(f"broker-{release}", "--seed 1 --max-examples 3 --max-time 40", "Apache Kafka")
    for release in ("3.9.2", "4.3.1")
}


def conformance(*words: str | Path) -> None:
    """Run ``conformance``; divergences are expected."""
    code = subprocess.run([sys.executable, "-m", "conformance", *words], check=False).returncode
    if code not in (0, 1):
        raise SystemExit(f"conformance {shlex.join(map(str, words))} ended with exit code {code}")


def perform(run: Run, words: list[str]) -> None:
    """Execute a run; an unfinished one is replaced."""
    shutil.rmtree(DIRECTORY / run.name, ignore_errors=True)
    conformance(
        "run",
        "--profile",
        "ci",
        *words,
        "--allow-incomplete",
        "--expectations",
        EMPTY,
        "--report",
        DIRECTORY / run.name,
        "--quiet",
    )


def is_finished(run: Run) -> bool:
    """Return True if an earlier call has finished this run."""
    events = DIRECTORY / run.name / "events.ndjson"
    return events.exists() and '"RunFinished"' in events.read_text("utf-8")


def main() -> None:
    """Execute the runs, and write the scoreboard."""
    os.chdir(ROOT)
    EMPTY.mkdir(parents=True, exist_ok=True)
    go = {**os.environ, "GOTOOLCHAIN": "local", "GOFLAGS": "-mod=mod", "GOWORK": "off", "CGO_ENABLED": "0"}
    subprocess.run(["go", "build", "-o", ROOT / GO_INDEX, "."], cwd=ROOT / "tests/adapters/go", env=go, check=True)
    for run in RUNS:
        if not is_finished(run):
            perform(run, shlex.split(run.options))
    for release, run in BROKERS.items():
        if not is_finished(run):
            with LocalBroker(release) as broker:
                perform(run, ["-i", f"wire:{HOST}:{broker.port}", "--kafka", release, *run.options.split()])
    names = [f"{run.label}={DIRECTORY / run.name}".lstrip("=") for run in (RUNS[0], *BROKERS.values(), *RUNS[1:])]
    conformance(
        "scoreboard",
        *names,
        "--allow-incomplete",
        "--html",
        "out/scoreboard.html",
        "--markdown",
        PAGE,
    )
    text, file = PAGE.read_text("utf-8"), re.compile(rf"{DIRECTORY}/[\w.-]+/traces/\w+-(\w+)\.json")
    traces = {trace.id: trace for trace in map(Trace.load, (Path(match[0]) for match in file.finditer(text)))}
    save_traces(TRACES, traces.values())
    PAGE.write_text(file.sub(rf"{TRACES}#\1", text), "utf-8")


if __name__ == "__main__":
    main()
