"""The bugs of Kafka's past are found, each within seconds and with a trace of a few steps."""

from __future__ import annotations

import re

import pytest

from conformance.power.historical import load_bugs
from conformance.power.hunting import hunt

LONG = {"KAFKA-4497": 10, "KAFKA-5752": 6, "KAFKA-15401": 6}
"""Where a difference needs more than five operations: two entries that are due, or two files."""


def test_the_catalogue_has_nineteen_tickets_at_least():
    tickets = [bug.ticket for bug in load_bugs()]
    assert len(tickets) >= 19
    assert len(set(tickets)) == len(tickets)
    assert all(re.fullmatch(r"KAFKA-\d+", ticket) for ticket in tickets)
    assert tickets == sorted(tickets, key=lambda ticket: int(ticket[6:])), "in the order of the tickets"
    assert all(bug.link.endswith(bug.ticket) for bug in load_bugs())


@pytest.mark.parametrize("bug", load_bugs(), ids=lambda bug: bug.ticket)
def test_a_bug_of_the_past_is_found_with_a_few_steps(bug):
    found = hunt(bug.planted, seed=0, shrink=True)
    assert found.examples is not None
    assert 0 < len(found.steps) <= LONG.get(bug.ticket, 5), found.steps
