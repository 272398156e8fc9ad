"""Runs against implementations made in the test itself: nothing is registered anywhere."""

from __future__ import annotations

import importlib.util
import sys
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from hypothesis import Phase, settings

from conformance.events import Diverged, Event, Result, RunFinished
from conformance.machines.index import IndexMachine
from conformance.runs.profiles import PROFILES, Profile
from conformance.runs.runner import Plan, run

RELEASE = "4.4.0"


class Unshrunk(Profile):
    """Hypothesis finds, and only the harness itself leaves steps out: what shrinks numbers takes most of the time."""

    def settings(self, examples):
        return settings(super().settings(examples), phases=[Phase.generate])


UNSHRUNK = Unshrunk("dev", PROFILES["dev"].examples, PROFILES["dev"].steps, None)


@dataclass
class RunResult:
    """Result of a run."""

    conforms: bool
    divergences: list[Diverged] = field(default_factory=list)
    results: list[Result] = field(default_factory=list)
    verdict: str = ""
    events: list[Event] = field(default_factory=list)


@pytest.fixture(scope="session")
def kills():
    """Return ``kills.py``, loaded as a program."""
    specification = importlib.util.spec_from_file_location("kills", Path(__file__).with_name("kills.py"))
    module = sys.modules["kills"] = importlib.util.module_from_spec(specification)
    specification.loader.exec_module(module)
    return module


@pytest.fixture
def implementations(monkeypatch):
    """Return a function that defines ``-i NAME`` in this test: a function from the release to an implementation."""
    made = {}

    def subject(_machine, specification, release, _progress=None):
        implementation = made[specification](release)
        implementation.name = f"{specification} {release}"
        return implementation

    monkeypatch.setattr(IndexMachine, "subject", classmethod(subject))
    return made


@pytest.fixture
def run_machine(implementations, tmp_path):
    """Run the machine against implementations given by name."""

    def carry_out(
        machine,
        *,
        releases=(RELEASE,),
        examples=200,
        seed=1,
        level="observed",
        profile=UNSHRUNK,
        replays=False,
        stop_at_first=False,
        **subjects,
    ) -> RunResult:
        implementations.update(subjects)
        events = []
        names, traces = tuple(subjects), tmp_path / "traces"
        # Without regression traces: the machines must find a defect unaided.
        plan = Plan(
            releases,
            names,
            (machine,),
            profile,
            traces,
            seed,
            examples,
            level=level,
            replays=replays,
            stop_at_first=stop_at_first,
        )
        conforms = run(plan, events.append)
        divergences = [event for event in events if isinstance(event, Diverged)]
        results = [event for event in events if isinstance(event, Result)]
        assert isinstance(events[-1], RunFinished)
        return RunResult(conforms, divergences, results, events[-1].verdict, events)

    return carry_out
