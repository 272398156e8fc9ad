"""Machines that an implementation lacks are unsupported, and none of their metrics are shown."""

from __future__ import annotations

import sys
from types import SimpleNamespace

import pytest

from conformance.attribution.tables import clauses_for, operations_for
from conformance.errors import NotDrivenError
from conformance.events import Event, Progressed, Result
from conformance.runs.plan import Plan
from conformance.runs.profiles import PROFILES
from conformance.runs.runner import run
from conformance.runs.verdicts import _lacks

OFFSET_ONLY = "python:tests.adapters.python_index:open_small"
OPENS = """
import json, sys
REPLIES = {"open": {"ok": None}, "close": {"ok": None}, "start": {
    "ok": {"name": "opens", "version": "1", "language": "python", "kinds": ["offset"]}}}
for line in sys.stdin:
    print(json.dumps(REPLIES.get(json.loads(line)["op"], {"unsupported": True})), flush=True)
"""
"""A program with an offset index that can be opened and closed, and nothing else."""


@pytest.fixture
def program(tmp_path):
    (tmp_path / "opens.py").write_text(OPENS)
    return f"exec:{sys.executable} {tmp_path / 'opens.py'}"


def carried_out(implementation, directory, *machines):
    events: list[Event] = []
    plan = Plan(
        ("4.4.0",), (implementation,), machines, PROFILES["dev"], directory, max_examples=2, kept=False, shrink_time=0
    )
    run(plan, events.append)
    return events


@pytest.mark.parametrize("is_program", [False, True])
def test_a_machine_of_another_kind_is_unsupported(is_program, program, tmp_path):
    events = carried_out(program if is_program else OFFSET_ONLY, tmp_path, "offset", "transaction")
    offset, transaction = (event for event in events if isinstance(event, Result))
    assert not offset.unsupported
    assert transaction.unsupported
    assert (transaction.examples, transaction.steps, transaction.divergences) == (0, 0, 0)


@pytest.mark.thorough
def test_a_kind_that_a_program_does_not_name_is_not_driven(program, tmp_path):
    events = carried_out(program, tmp_path, "offset", "time")
    assert {event.machine for event in events if isinstance(event, Progressed)} == {"offset"}
    with pytest.raises(NotDrivenError, match="has no time index: its reply to start names offset"):
        carried_out(program, tmp_path, "time")


@pytest.mark.parametrize(
    ("machine", "clause", "operation"),
    [("offset", "OI-8a", "entry"), ("segment", "SEG-20", "should_roll"), ("log", "LG-40", "expire_producers")],
)
def test_a_clause_of_missing_operations_is_unsupported(machine, clause, operation):
    """Of segments and logs as well as of index files."""
    wanted = operations_for(machine, clause)
    assert operation in wanted
    subject = SimpleNamespace(supports=lambda name: name not in wanted)
    assert _lacks(machine, subject, clause, set())
    everything = SimpleNamespace(supports=lambda _: True)
    assert not _lacks(machine, everything, clause, set())
    assert _lacks(machine, everything, clause, set(wanted))


def test_every_machine_of_files_has_a_table():
    for machine in ("offset", "time", "transaction", "segment", "log", "cleaned"):
        with_operations = [clause for clause in clauses_for(machine, "4.4.0") if operations_for(machine, clause.id)]
        assert len(with_operations) > 10, machine
