"""The hands of a run's machines, as helpers take them ahead of the run."""

from __future__ import annotations

import time

from conformance.runs.dealt import Dealt
from conformance.runs.hands import hands_of
from conformance.runs.tables import Table, Tables


def hands(machine, examples=20):
    return list(hands_of(machine, examples, 0))


def taken(tables):
    found = tables.take()
    return None if found is None else (found[0].machine, found[1].number)


def test_helpers_go_on_with_the_next_machine_and_the_run_finds_what_they_did():
    tables = Tables(Table(name, hands(name), None) for name in ("offset", "time"))
    assert taken(tables) == ("offset", 0)  # before the run has come to it
    offset = tables.come_to("offset", hands("offset"), None)
    assert [hand.number for hand in (offset.take(), tables.take()[1]) if hand] == [1, 0]
    assert offset.take() is None
    time_table, hand = tables.take()
    assert (time_table.machine, hand.number) == ("time", 1)
    time_table.put(hand, Dealt(1))
    assert tables.come_to("time", hands("time"), None) is time_table
    assert time_table.is_dealt(time_table.hands[1])
    assert time_table.wait(time_table.hands[1]).number == 1
    assert tables.take() is None


def test_what_is_left_of_a_machine_that_the_run_has_left_is_not_dealt():
    tables = Tables(Table(name, hands(name), None) for name in ("offset", "segment", "time"))
    offset = tables.come_to("offset", hands("offset"), None)
    tables.come_to("time", hands("time"), None)
    assert offset.take() is None
    assert taken(tables) == ("time", 0)


def test_a_machine_that_cannot_be_begun_before_its_time_is_dealt_from_its_own_hands():
    tables = Tables(())
    assert tables.take() is None
    late = tables.come_to("time", hands("time", 10), time.monotonic() - 1)
    assert late.is_late()
    assert taken(tables) == ("time", 0)
    assert tables.take() is None
