"""Strategies: every value is drawn, the probe knows every anchor, and the simplest value comes first."""

from __future__ import annotations

import pytest
from hypothesis import find, given, settings
from hypothesis import strategies as st
from thorough_params import thorough_param

from conformance.lockstep import Lockstep
from conformance.machines import MACHINES
from conformance.operations import FILE_OPERATIONS, Operation
from conformance.operations.index_steps import has_valid_arguments
from conformance.strategies import index as strategies
from conformance.strategies.index import Start
from conformance.strategies.index_probe import _COUNTS, _FIXED, AnchoredNumber, IndexProbe
from kidx.java_values import INT_MAX, INT_MIN, LONG_MAX, LONG_MIN

KEYS = {"first", "middle", "warm", "last", "base", "last_relative", *_FIXED}
SIZES = {"nothing", *_COUNTS}


def drawn(strategy, examples=1500):
    """Return the values of a strategy that this number of examples shows."""
    values = []

    @settings(max_examples=examples, derandomize=True, database=None)
    @given(strategy)
    def draw(value):
        values.append(value)

    draw()
    return values


def simplest(strategy):
    return find(strategy, lambda _: True, settings=settings(database=None, derandomize=True))


@pytest.mark.parametrize(
    ("strategy", "anchors"),
    [
        (
            strategies.targets(),
            {"last", "first", "warm", "middle", "base", "last_relative", "zero", "int_max", "long_max", "long_min"},
        ),
        (strategies.anchored_offsets(), {"last", "base", "last_relative", *_FIXED}),
        (strategies.cut_points(), {"last", "middle", "first", "warm", "base", "last_relative", "long_min", "long_max"}),
    ],
    ids=["targets", "anchored_offsets", "cut_points"],
)
def test_every_anchor_of_a_key_is_reached_with_its_neighbours(strategy, anchors):
    numbers = set(drawn(strategy))
    assert {number.anchor for number in numbers} == anchors
    assert anchors <= KEYS
    assert {number.delta for number in numbers if number.anchor == "last"} == set(strategies.NEAR)
    assert simplest(strategy) == AnchoredNumber("last", 0)


@pytest.mark.parametrize(
    ("strategy", "anchors"),
    [
        (strategies.sizes(), {"used", "max", "length", "half", "nothing"}),
        (strategies.slots(), {"used", "nothing", "half", "warm", "wrap", "int_min"}),
    ],
    ids=["sizes", "slots"],
)
def test_every_anchor_of_a_size_is_reached(strategy, anchors):
    assert {number.anchor for number in drawn(strategy)} == anchors
    assert anchors <= SIZES
    assert simplest(strategy) == AnchoredNumber("used", 0)


@pytest.mark.parametrize("anchor", sorted(KEYS | SIZES))
def test_the_view_knows_every_anchor(tmp_path, anchor):
    """An anchor that it does not know would silently be the last entry, or nothing."""
    lockstep = Lockstep([], tmp_path, releases=["4.4.0"])
    lockstep.begin()
    probe = IndexProbe(lockstep, "offset")
    probe.base_offset, probe.max_index_size = 1000, 88
    lockstep.perform(Operation("open", ("offset", "0.index", 1000, 88, True)))
    lockstep.perform(Operation("bulk_append", (1010, 5, 3, 7, 7)))
    if anchor in KEYS:
        last = probe.column(AnchoredNumber("last", 0), 0)
        assert (probe.column(AnchoredNumber(anchor, 0), 0) == last) == (anchor == "last")
    else:
        assert (probe._entries(anchor) == 0) == (anchor in ("nothing", "warm"))
    lockstep.end()


@pytest.mark.parametrize(
    ("strategy", "first", "extremes"),
    [
        (strategies.gaps(), 1, {INT_MAX // 2}),
        (strategies.timestamp_gaps(), 1, {0, -1, LONG_MAX // 2}),
        (strategies.offset_gaps_of_times(), 1, {0, -1, INT_MAX // 2}),
        (strategies.positions(), 100, {0, -1, INT_MAX}),
        (strategies.fetch_sizes(), 0, {-1, INT_MAX, INT_MIN}),
        (strategies.base_offsets(), 0, {-5, 5_000_000_000, INT_MAX, LONG_MAX - 10}),
        (strategies.bulk_counts(), 2, {41, 700}),
        (strategies.producers(), 1, {-1, LONG_MAX}),
        (strategies.limits(8), None, {-1, -16}),
    ],
    ids=[
        "gaps",
        "timestamp_gaps",
        "offset_gaps",
        "positions",
        "fetch_sizes",
        "base_offsets",
        "counts",
        "producers",
        "limits",
    ],
)
def test_extremes_are_reached_and_the_simplest_comes_first(strategy, first, extremes):
    assert simplest(strategy) == first
    assert extremes <= set(drawn(strategy, 400))


@pytest.mark.parametrize("entry_size", [8, 12])
def test_indexes_start_small_or_past_the_warm_section(entry_size):
    starts = drawn(strategies.starts(entry_size), 3000)
    warm = 8192 // entry_size
    large = [start for start in starts if start.prefill >= warm - 1]
    small = [start for start in starts if start not in large]
    assert 0.05 < len(large) / len(starts) < 0.4
    assert {start.prefill for start in large} == {warm - 1, warm, warm + 1, warm + 2, 2 * warm}
    sizes = {0, -1, -2 * entry_size, entry_size, entry_size + 3, 8 * entry_size + 7}
    assert sizes <= {start.max_index_size for start in small}
    assert sum(start.prefill > 0 for start in small) > len(small) / 3
    assert all(start.max_index_size <= 40 * entry_size + 7 for start in small)


@pytest.mark.parametrize("entry_size", [thorough_param(8), 12])
def test_a_start_that_may_be_any_is_small(entry_size):
    assert simplest(strategies.starts(entry_size)) == strategies.Start(8 * entry_size, 0, 1)
    for entries in (1, 3):
        found = find(
            strategies.starts(entry_size),
            lambda start, least=entries: start.prefill >= least,
            settings=settings(database=None, derandomize=True),
        )
        assert found.max_index_size == 8 * entry_size
        assert found.prefill <= 7


@pytest.mark.thorough
@pytest.mark.parametrize("entry_size", [8, 12, 34])
def test_every_damage_is_done(entry_size):
    damages = drawn(strategies.damages(entry_size))
    assert {operation.name for operation in damages} == FILE_OPERATIONS - {"write_file"}  # the fuzzer makes whole files
    positions = {operation.args[0] for operation in damages if operation.name == "flip_bit"}
    assert {0, entry_size - 1, -entry_size, -1} <= positions
    assert {operation.args[2] for operation in damages if operation.name == "swap_ranges"} == {entry_size}
    assert all(LONG_MIN <= argument <= LONG_MAX for operation in damages for argument in operation.args)


def test_values_are_within_the_types_of_java():
    assert all(INT_MIN <= size <= INT_MAX for size in drawn(strategies.fetch_sizes(), 200))
    assert all(
        isinstance(number, AnchoredNumber) for number in drawn(st.one_of(strategies.sizes(), strategies.slots()), 200)
    )


@pytest.mark.parametrize("name", ["offset", "time"])
def test_an_index_of_level_must_begins_with_offsets_that_fit(name, tmp_path):
    """The file does not always get the base offset that was drawn: no broker has such files."""
    lockstep = MACHINES[name].lockstep_type([], tmp_path, releases=["4.4.0"])
    lockstep.count_at("must")
    for base_offset in (LONG_MAX - 10, -5):
        lockstep.begin()
        machine = MACHINES[name].bind(lockstep)()
        machine.begin(base_offset, Start(8688, 684, 1), 1)
        assert all(map(has_valid_arguments, lockstep.operations))
        assert machine.state.entries == 684
        lockstep.end()
