"""States by field, bytes by entry, and the harness's own steps in words."""

from __future__ import annotations

import pytest

from conformance.events import Diverged
from conformance.operations import FILE_OPERATIONS, Operation
from conformance.operations.log import LogState
from conformance.operations.segment import IndexState, SegmentState
from conformance.report.decoded import first_differing_entry, stands_for, state_table
from conformance.report.divergence import describe
from kidx.layout import ABORTED_TXN, OFFSET_INDEX, TIME_INDEX


def as_lists(value):
    return [as_lists(item) for item in value] if isinstance(value, tuple) else value


def test_the_fields_of_a_state_are_named_and_those_that_differ_are_marked():
    expected = as_lists(LogState(1, 3, 3, 3, 1, ((0, 146),)))
    actual = as_lists(LogState(1, 3, 3, 2, 1, ((0, 146),)))
    header, *rows = state_table("log", expected, actual)
    assert header.split() == ["field", "expected", "actual"]
    assert [row.split()[0] for row in rows if not row.startswith("*")] == [
        *("start_offset", "end_offset", "high_watermark", "recovery_point", "segments"),
        *("producers_end", "ongoing", "unreplicated", "producers"),
    ]
    assert [row.split() for row in rows if row.startswith("*")] == [["*", "last_stable_offset", "3", "2"]]


def test_the_fields_of_an_index_within_a_segment_are_named_too():
    index = IndexState(1, 12, 96, (5,))
    one = SegmentState(70, 0, 10, None, None, index, None, None)
    other = one._replace(offset_index=index._replace(entries=2))
    (row,) = [row for row in state_table("segment", as_lists(one), as_lists(other)) if row.startswith("*")]
    assert row.split() == ["*", "offset_index.entries", "1", "2"]


def test_a_state_that_one_side_does_not_have():
    failure = {
        "step": 0,
        "party": "jvm 4.4.0",
        "release": "4.4.0",
        "against": "kidx",
        "aspects": ["state"],
        "expected": None,
        "actual": as_lists(LogState(0, 1, 0, 0, 1, ())),
        "clauses": [],
    }
    text = describe(Diverged("log", failure, (), ("close_log(prepared=True)",), "t", "r", "jvm", "not minimal: 1 s"))
    assert "expected     no state: nothing is open" in text
    assert "* end_offset" in text
    assert "  shrinking    not minimal: 1 s" in text


def test_what_is_no_state_has_no_table():
    assert state_table("log", ["an invariant"], 3) == []


@pytest.mark.parametrize(
    ("machine", "layout", "entry", "other", "words"),
    [
        ("offset", OFFSET_INDEX, (7, 120), (7, -1), "relative_offset=7 position=-1"),
        ("time", TIME_INDEX, (1000, 3), (-1, 3), "timestamp=-1 relative_offset=3"),
        ("transaction", ABORTED_TXN, (0, 1, 2, 3, 4), (0, 1, 2, 3, 9), "last_stable_offset=9"),
    ],
)
def test_the_first_entry_that_differs_is_decoded_on_both_sides(machine, layout, entry, other, words):
    first = layout.struct.pack(*entry)
    mine, theirs = first + first, first + layout.struct.pack(*other)
    title, expected, actual = first_differing_entry(machine, mine.hex(), theirs.hex())
    assert f"in the entry 1 from byte {layout.size}" in title
    assert expected.split()[:2] == ["expected", f"{layout.size:08x}"]
    assert words in actual
    assert words not in expected
    assert bytes.fromhex("".join(actual.split()[2 : 2 + len(layout.fields)])) == layout.struct.pack(*other)
    named = [["00000000000000000000" + layout.name + ".deleted", side.hex()] for side in (mine, theirs)]
    assert first_differing_entry("log", [named[0]], [named[1]])[1:] == [expected, actual]


def test_a_file_that_ends_early_is_missing_or_has_no_layout():
    assert "(end of file)" in first_differing_entry("offset", "00" * 8, "00" * 16)[1]
    assert first_differing_entry("offset", "00" * 8, "00" * 11)[2].endswith("00 00 00")
    assert first_differing_entry("offset", None, "00" * 8) == ["no file expected, 8 bytes on the other side"]
    row = first_differing_entry("log", [["0.log", "00" * 40]], [["0.log", "00" * 20 + "01" + "00" * 19]])
    assert row[0].startswith("0.log: first difference at byte 20, in the row from byte 16")
    assert first_differing_entry("offset", ["a", "b"], ["a"]) == []


def test_the_harness_own_steps_are_told_as_what_they_stand_for():
    appended = str(Operation("bulk_append", (10, 0, 2, 100, 5)))
    assert stands_for(appended) == "5 times append: offset from 10 to 18 by 2, position from 0 to 400 by 100"
    assert "8 bytes 0x00" in stands_for("pad_file(count=8, byte=0)")
    damage = Operation("damage_log_file", ("00000000000000000000.index", "cut_file", [3]))
    assert stands_for(str(damage)) == "00000000000000000000.index: the closed file is cut to 3 bytes, if it is longer"
    samples = {
        "flip_bit": (1, 2),
        "cut_file": (1,),
        "pad_file": (1, 2),
        "zero_range": (1, 2),
        "swap_ranges": (0, 1, 8),
        "write_file": ("00",),
        "remove_file": (),
    }
    assert set(samples) == FILE_OPERATIONS
    assert all(stands_for(str(Operation(name, arguments))) for name, arguments in samples.items())


@pytest.mark.parametrize("step", ["append(offset=1, position=2)", "pad_file(", "pad_file(count=__import__('os'))", "?"])
def test_other_steps_and_what_is_no_step_stay_as_they_are(step):
    assert stands_for(step) == ""
