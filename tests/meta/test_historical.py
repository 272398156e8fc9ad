"""The bugs of Kafka's past are found, each within seconds and with a trace of a few steps."""

from __future__ import annotations

import re

import pytest
from thorough_params import thorough_param

from conformance.experiments.mutation.historical import load_bugs
from conformance.experiments.mutation.measuring import search_kill
from conformance.runs.replay import load_regression_traces

LONG = {"KAFKA-748": 6, "KAFKA-5752": 6, "KAFKA-6388": 7, "KAFKA-15401": 7}
"""Bugs whose finding from seed 0 needs more than five operations.

They need a log or an index opened again, two files, a file renamed before it exists, or a segment whose index is full.
"""
FEW = ("KAFKA-748", "KAFKA-6388", "KAFKA-6492", "KAFKA-7866")
"""Found soon; CI hunts all of them."""


def test_the_catalogue_has_nineteen_tickets_at_least():
    tickets = [bug.ticket for bug in load_bugs()]
    assert len(tickets) >= 19
    assert len(set(tickets)) == len(tickets)
    assert all(re.fullmatch(r"KAFKA-\d+", ticket) for ticket in tickets)
    assert tickets == sorted(tickets, key=lambda ticket: int(ticket[6:])), "in the order of the tickets"
    assert all(bug.link.endswith(bug.ticket) for bug in load_bugs())


def test_each_ticket_says_how_it_was_verified_and_whether_it_is_the_bug_itself():
    for bug in load_bugs():
        assert bug.is_the_bug or bug.recreation.startswith("analogy: "), bug.ticket
        assert bool(bug.read) != bool(bug.doubt), bug.ticket
    assert sum(bug.verified != "not verified" for bug in load_bugs()) >= 19


@pytest.mark.parametrize(
    ("bug", "name"), [pytest.param(bug, name, id=name) for bug in load_bugs() for name in bug.shown]
)
def test_bugs_shown_in_releases_are_in_the_corpus(bug, name):
    machine, _, id_ = name.partition("/")
    (trace,) = (trace for trace in load_regression_traces(machine) if f"{machine}-{trace.id}" == id_)
    assert bug.ticket in trace.title


@pytest.mark.thorough
@pytest.mark.parametrize(
    "bug",
    # All are found by ``conformance known-bugs``, which CI runs, too.
    [bug if bug.ticket in FEW else thorough_param(bug, marks_too=pytest.mark.in_turn(4)) for bug in load_bugs()],
    ids=lambda bug: bug.ticket,
)
def test_a_bug_of_the_past_is_found_with_a_few_steps(bug):
    found = search_kill(bug.planted, seed=0, shrink=True)
    assert found.examples is not None
    assert 0 < len(found.steps) <= LONG.get(bug.ticket, 5), found.steps
