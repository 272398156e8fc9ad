"""Aims find the number that they name, in a file that is open, closed, empty, or not there at all."""

from __future__ import annotations

import pytest

from conformance.lockstep import Lockstep
from conformance.operations import Operation
from conformance.strategies.index_probe import AnchoredNumber, IndexProbe
from kidx.java_values import INT_MAX, LONG_MAX, LONG_MIN


@pytest.fixture
def probe_of(tmp_path):
    """Return the probe of an index of some kind after some operations."""
    lockstep = Lockstep([], tmp_path, releases=["4.4.0"])
    lockstep.begin()

    def make(kind, base_offset, max_index_size, *operations) -> IndexProbe:
        probe = IndexProbe(lockstep, kind)
        probe.base_offset, probe.max_index_size = base_offset, max_index_size
        lockstep.perform(Operation("open", (kind, "0.index", base_offset, max_index_size, True)))
        for name, *arguments in operations:
            lockstep.perform(Operation(name, tuple(arguments)))
        return probe

    yield make
    lockstep.end()


def test_an_offset_index_is_seen_with_absolute_offsets(probe_of):
    probe = probe_of("offset", 1000, 83, ("bulk_append", 1007, 50, 10, 100, 5))
    assert (probe.entries, probe.length, probe.entry_size, probe.warm_entries) == (5, 80, 8, 1024)
    assert probe.entry(0) == (1007, 50)
    assert probe.entry(4) == (1047, 450)
    assert probe.entry(5) == (1000, 0), "a slot after the entries, still in the file"
    assert probe.entry(10) is None
    assert probe.entry(-1) is None
    keys = {
        anchor: probe.column(AnchoredNumber(anchor, 0), 0) for anchor in ("first", "middle", "last", "warm", "base")
    }
    assert keys == {"first": 1007, "middle": 1027, "last": 1047, "warm": 1007, "base": 1000}
    assert probe.column(AnchoredNumber("last", 2), 0) == 1049
    assert probe.column(AnchoredNumber("last", -2), 1) == 448
    assert probe.offset(AnchoredNumber("last", 0)) == 1047
    assert probe.column(AnchoredNumber("last_relative", 1), 0) == 1000 + INT_MAX + 1


def test_a_time_index_is_seen_with_its_timestamps_first(probe_of):
    probe = probe_of("time", 1000, 60, ("maybe_append", 5, 1001, False), ("maybe_append", 9, 1004, False))
    assert probe.entry(1) == (9, 1004)
    assert probe.column(AnchoredNumber("last", 0), 0) == 9
    assert probe.offset(AnchoredNumber("last", 0)) == 1004
    assert probe.offset(AnchoredNumber("first", -1)) == 1000


def test_a_transaction_is_seen_from_its_last_offset(probe_of):
    probe = probe_of("transaction", 0, 0, ("append_aborted", 7, 10, 19, 20))
    assert probe.entry(0) == (19, 10)
    assert (probe.entries, probe.length) == (1, 34)


def test_the_warm_anchor_is_the_first_slot_of_the_warm_section(probe_of):
    probe = probe_of("offset", 0, 1100 * 8, ("bulk_append", 0, 0, 1, 1, 1030))
    assert probe.slot("warm") == 1030 - 1 - 1024
    assert probe.column(AnchoredNumber("warm", 0), 0) == 5
    assert probe.count(AnchoredNumber("warm", 1)) == 6


def test_sizes_and_slots_are_counted_in_entries(probe_of):
    probe = probe_of("offset", 0, 83, ("bulk_append", 1, 0, 1, 1, 4))
    sizes = {anchor: probe.size(AnchoredNumber(anchor, 0)) for anchor in ("used", "half", "length", "max", "nothing")}
    assert sizes == {"used": 32, "half": 16, "length": 80, "max": 80, "nothing": 0}
    assert probe.size(AnchoredNumber("used", 3)) == 35
    assert probe.size(AnchoredNumber("nothing", -24)) == -24
    assert probe.count(AnchoredNumber("used", -1)) == 3
    assert probe.count(AnchoredNumber("int_min", 0)) == -INT_MAX - 1
    assert probe.count(AnchoredNumber("wrap", 1)) * 8 & 0xFFFFFFFF == 8


@pytest.mark.parametrize(
    ("anchor", "value"),
    [("zero", 0), ("int_max", INT_MAX), ("long_max", LONG_MAX), ("long_min", LONG_MIN), ("unsigned_max", 0xFFFFFFFF)],
)
def test_fixed_anchors_and_wrapping_around_as_java_does(probe_of, anchor, value):
    probe = probe_of("offset", 0, 80)
    assert probe.column(AnchoredNumber(anchor, 0), 0) == value
    assert probe.column(AnchoredNumber("long_max", 1), 0) == LONG_MIN
    assert probe.column(AnchoredNumber("long_min", -1), 0) == LONG_MAX


def test_in_an_empty_index_every_anchor_is_the_base(probe_of):
    probe = probe_of("offset", 1000, 80, ("trim",))
    assert {probe.column(AnchoredNumber(anchor, 0), 0) for anchor in ("first", "last", "middle", "warm")} == {1000}


def test_without_any_party_every_anchor_is_the_base(tmp_path):
    probe = IndexProbe(Lockstep([], tmp_path), "time")
    probe.base_offset = 7
    assert (probe.entries, probe.length, probe.entry(0)) == (0, 0, None)
    assert probe.column(AnchoredNumber("last", 1), 0) == 8
