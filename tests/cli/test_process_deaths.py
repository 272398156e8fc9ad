"""Steps that kill their process: a divergence with its steps, if a worker process executes them."""

from __future__ import annotations

import json
import os

import pytest

from conformance.operations.trace import Trace

DEADLY = """
import multiprocessing, os, signal
from kidx import OffsetIndex

class Deadly(OffsetIndex):
    def lookup(self, target):
        if target > 5000 and multiprocessing.parent_process() is not None:
            os.kill(os.getpid(), signal.SIGSEGV)
        return super().lookup(target)

def open_index(kind, path, base_offset, max_index_size, writable):
    return Deadly(path, base_offset, max_index_size, writable)
"""


@pytest.fixture
def done(typed):
    (typed.work / "deadly.py").write_text(DEADLY)
    path = f"{typed.work}:{os.environ.get('PYTHONPATH', '')}"

    def carry_out(*more):
        command = ("run", "-i", "python:deadly:open_index", "--machine", "offset", "--report", "out", "-j", 2)
        return typed.apart(*command, *more, PYTHONPATH=path)

    return carry_out


@pytest.mark.thorough
def test_the_step_that_kills_a_process_is_a_difference(typed, done):
    ended = done("--max-shrink-time", 20)
    assert ended.returncode == 1, ended.stdout + ended.stderr
    events = [json.loads(line) for line in (typed.work / "out" / "events.ndjson").read_text().splitlines()]
    assert events[-1]["verdict"] == "diverges"
    (told,) = (event for event in events if event["event"] == "Diverged")
    assert told["signature"] == "process died"
    assert told["failure"]["actual"] == "the process died of SIGSEGV"
    trace = Trace.load(typed.work / told["trace"])
    names = [operation.name for operation in trace.operations]
    assert names[0] == "open"
    assert names[-1] == "lookup"
    assert len(names) <= 4
    assert trace.operations[-1].args[0] > 5000
    assert told["replay"] in ended.stdout
