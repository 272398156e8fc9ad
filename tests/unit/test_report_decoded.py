"""Decoded reports: states by field, bytes by entry, and the harness's steps as text."""

from __future__ import annotations

import pytest

from conformance.operations import FILE_OPERATIONS, Operation
from conformance.operations.batches import encode, first_batch
from conformance.operations.log import LogState
from conformance.operations.segment import IndexState, SegmentState
from conformance.report.divergence import describe_harness_step, sides
from conformance.report.fields import differing, fields_of_state, fields_of_value, is_closed
from conformance.report.file_entries import first_difference
from kidx.layout import ABORTED_TXN, OFFSET_INDEX, TIME_INDEX


def as_lists(value):
    return [as_lists(item) for item in value] if isinstance(value, tuple) else value


def test_state_fields_are_named_and_only_different_ones_are_shown():
    expected = as_lists(LogState(1, 3, 3, 3, 1, ((0, 146),)))
    actual = as_lists(LogState(1, 3, 3, 2, 1, ((0, 147),)))
    what, header, *rows, rest = sides("log", ["open_log()", "roll_log()"], ["state"], expected, actual)
    assert what == "differs in   state: last_stable_offset, segments[0].size"
    assert header.split() == ["field", "expected", "actual"]
    assert [row.split() for row in rows] == [
        ["*", "last_stable_offset", "3", "2"],
        ["*", "segments[0].size", "146", "147"],
    ]
    assert rest.strip() == "(10 other fields are equal)"


def test_the_fields_of_an_index_within_a_segment_are_named_too():
    index = IndexState(1, 12, 96, (5,))
    one = SegmentState(70, 0, 10, None, None, index, None, None)
    other = one._replace(offset_index=index._replace(last=(6,)))
    assert differing(*(fields_of_state("segment", as_lists(each)) for each in (one, other))) == [
        "offset_index.last.offset"
    ]


def test_the_state_of_a_closed_index_is_called_that():
    states = [2, 0, True, 16, [1]], [2, 8, False, 16, [1]]
    what, *_ = sides("offset", ["open(kind='offset')", "close()"], ["state"], *states)
    assert what == "differs in   state: max_entries, full (after closing, when the state need not be reported)"
    lines = sides("offset", ["open(kind='offset')", "close()"], ["state"], None, states[1])
    assert "expected     closed: no state" in lines
    assert any(row.split() == ["*", "entries", "-", "2"] for row in lines)
    assert not is_closed(["open_log()", "close_log()", "open_log()", "read_log(offset=1)"])
    assert not is_closed(["append(offset=1)"])


def test_an_outcome_without_a_state_has_no_table():
    assert fields_of_state("log", ["an invariant"]) == {}
    lines = sides("log", ["roll_log()"], ["state"], ["an invariant"], 3)
    assert lines[1:] == ["expected     ['an invariant']", "actual       3"]


# -- outcomes -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("machine", "step", "expected", "actual", "words"),
    [
        ("offset", "lookup(target=1)", [1, 0], [0, 0], ["*offset=1  position=0", "*offset=0  position=0"]),
        ("time", "lookup(target=1)", [1, 0], [1, 3], [" timestamp=1 *offset=0", " timestamp=1 *offset=3"]),
        ("offset", "lookup(target=1)", [10, 0], [1, 0], ["*offset=10  position=0", "*offset=1   position=0"]),
        ("offset", "fetch_upper_bound(n=1)", [1, 0], None, ["offset=1 position=0", "nothing"]),
        ("log", "roll_log()", 3, 4, ["3", "4"]),
    ],
)
def test_a_tuple_is_shown_by_its_fields_with_the_different_one_marked(machine, step, expected, actual, words):
    _, *lines = sides(machine, [step], ["outcome"], [None, expected], [None, actual])
    assert [
        line.split(maxsplit=1)[1] if " *" not in line and "  t" not in line else line[13:] for line in lines
    ] == words


def test_a_batch_in_a_result_is_shown_field_by_field():
    data = encode([{"base": 4, "epoch": 3, "records": [[0, 1000], [1, 1007]]}])
    epochless = encode([{"base": 4, "records": [[0, 1000], [1, 1007]]}])
    values = [[None, list(first_batch(each))] for each in (data, epochless)]
    what, header, *rows = sides("log", ["read_log(offset=4)"], ["outcome"], *values)
    assert what == "differs in   outcome: crc32c_of_all, leader_epoch"
    assert header.split() == ["field", "expected", "actual"]
    table = {row.split()[-3]: row.split() for row in rows}
    assert table["leader_epoch"] == ["*", "leader_epoch", "3", "-1"]
    assert table["base_offset"] == ["base_offset", "4", "4"]
    assert table["last_offset"][1:] == ["5", "5"]
    assert table["records"][1:] == ["2", "2"]
    assert table["max_timestamp"][1:] == ["1007", "1007"]
    assert table["crc32c_of_all"][0] == "*"


def test_a_batch_of_a_trace_with_fewer_fields_is_read_too():
    what, *lines = sides("log", ["read_log(offset=0)"], ["outcome"], [None, [0, 68, 1]], [None, [0, 68, 2]])
    assert what == "differs in   outcome: crc32c_of_all"
    assert "*crc32c_of_all=0x00000001" in lines[0]


def test_a_truncated_or_older_batch_has_no_header():
    whole = encode([{"base": 4, "records": [[0, 1000]]}])
    assert first_batch(whole[:40])[:2] == (4, 40)
    assert first_batch(whole[:40])[3:] == (-1, -1, -1, -1)
    assert first_batch(encode([{"base": 4, "magic": 1, "records": [[0, 1000]]}]))[3:] == (-1, -1, -1, -1)
    assert first_batch(b"") is None


def test_answers_to_targets_are_named_by_them():
    step = "list_offsets(targets=(1000, -1, -3))"
    expected = [None, [[1000, 0, 0], [-1, 1, 0], None]]
    actual = [None, [[1000, 0, 0], [-1, 2, 0], None]]
    what, _, *rows = sides("log", [step], ["outcome"], expected, actual)
    assert what == "differs in   outcome: latest.offset"
    assert [row.split() for row in rows if "*" in row] == [["*", "latest.offset", "1", "2"]]
    assert "max_timestamp" in fields_of_value("log", step, expected[1])
    assert "target 0.offset" in fields_of_value("log", "list_offsets(targets=?)", expected[1])


def test_aborted_transactions_are_named():
    one, none = [[[1, 0, 4, 9]], True], [[], True]
    what, *_ = sides("transaction", ["collect_aborted(from=0)"], ["outcome"], [None, one], [None, none])
    assert what.startswith("differs in   outcome: aborted.count, aborted[0].producer_id, ")


# -- files ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("machine", "layout", "entry", "other", "words"),
    [
        ("offset", OFFSET_INDEX, (7, 120), (7, -1), " relative_offset=7 *position=-1"),
        ("time", TIME_INDEX, (1000, 3), (-1, 3), "*timestamp=-1    relative_offset=3"),
        ("transaction", ABORTED_TXN, (0, 1, 2, 3, 4), (0, 1, 2, 3, 9), "*last_stable_offset=9"),
    ],
)
def test_the_first_entry_that_differs_is_decoded_on_both_sides(machine, layout, entry, other, words):
    first = layout.struct.pack(*entry)
    mine, theirs = first + first, first + layout.struct.pack(*other)
    found = first_difference(machine, mine.hex(), theirs.hex())
    assert "in entry 1" in found.title
    assert words in found.actual
    assert words not in found.expected
    assert bytes.fromhex("".join(found.actual.split()[-len(layout.fields) :])) == layout.struct.pack(*other)
    named = [["00000000000000000000" + layout.name + ".deleted", side.hex()] for side in (mine, theirs)]
    again = first_difference("log", [named[0]], [named[1]])
    assert again.title == f"{named[0][0]}: {found.title}"
    assert again[1:3] == found[1:3]


def test_a_file_that_ends_early_is_missing_or_has_no_layout():
    assert first_difference("offset", "00" * 8, "00" * 16).expected == "(end of file)"
    assert "relative_offset=(truncated)" in first_difference("offset", "00" * 16, "00" * 11).actual
    assert first_difference("offset", None, "00" * 8)[1:3] == ("no file", "a file of 8 bytes")
    row = first_difference("segment", [["0.x", "ff" * 40]], [["0.x", "ff" * 20 + "01" + "ff" * 19]])
    assert "first difference at byte 20, in the bytes from 16" in row.title
    assert first_difference("offset", "00", "00") is None
    assert first_difference("offset", 1, "00") is None


def test_missing_and_extra_files_are_named():
    found = first_difference("offset", ["0.index"], ["0.index", "0.lock"])
    assert found[1:3] == ("0.index", "0.index, 0.lock (with 0.lock as well)")
    assert "without b" in first_difference("offset", ["a", "b"], ["a"]).actual


def test_a_batch_of_a_log_file_is_decoded_where_the_difference_is():
    first = encode([{"base": 0, "epoch": 1, "records": [[0, 1000]]}])
    mine = first + encode([{"base": 1, "epoch": 2, "records": [[0, 1000]]}])
    theirs = first + encode([{"base": 1, "epoch": 7, "records": [[0, 1000]]}])
    found = first_difference("log", [["0.log", mine.hex()]], [["0.log", theirs.hex()]])
    assert f"in the batch from byte {len(first)}, base offset 1" in found.title
    assert "*partition_leader_epoch=2" in found.expected
    assert "*partition_leader_epoch=7" in found.actual
    assert " record_count=1" in found.actual
    theirs = first + encode([{"base": 1, "epoch": 7, "records": [[0, 2000]]}])
    several = first_difference("log", [["0.log", mine.hex()]], [["0.log", theirs.hex()]])
    assert all(f"*{name}=" in several.actual for name in ("partition_leader_epoch", "crc", "max_timestamp"))
    changed = mine[:-1] + bytes([mine[-1] ^ 1])
    after = first_difference("log", [["0.log", mine.hex()]], [["0.log", changed.hex()]])
    assert f"the batch from byte {len(first)}, base offset 1, the bytes from " in after.title


def test_a_text_file_is_shown_by_line():
    one, other = (text.encode().hex() for text in ("0\n1\n3 5\n", "0\n1\n3 6\n"))
    found = first_difference("log", [["leader-epoch-checkpoint", one]], [["leader-epoch-checkpoint", other]])
    assert "in line 3" in found.title
    assert found[1:3] == ("'3 5'", "'3 6'")


def test_other_files_that_differ_are_named():
    found = first_difference("log", [["a", "00"], ["b", "00"]], [["a", "01"], ["b", "01"]])
    assert found.more == ("b",)


# -- steps ----------------------------------------------------------------------------------------------------------


def test_the_harness_steps_are_described_by_their_effect():
    appended = str(Operation("bulk_append", (10, 0, 2, 100, 5)))
    assert describe_harness_step(appended) == "5 times append: offset from 10 to 18 by 2, position from 0 to 400 by 100"
    same = str(Operation("bulk_append", (7, 0, 0, 9, 4)))
    assert describe_harness_step(same) == "4 times append: offset 7, position from 0 to 27 by 9"
    few = str(Operation("bulk_append", (0, 0, 0, 5, 2)))
    assert describe_harness_step(few) == "append(offset=0, position=0), append(offset=0, position=5)"
    assert "bytes 0 to 11 of" in describe_harness_step(str(Operation("zero_range", (12, 0))))
    assert "between 12 and -1" in describe_harness_step(str(Operation("zero_range", (12, -1))))
    assert "no byte" in describe_harness_step(str(Operation("zero_range", (3, 3))))
    assert "8 bytes 0x00" in describe_harness_step("pad_file(count=8, byte=0)")
    damage = Operation("damage_log_file", ("00000000000000000000.index", "cut_file", [3]))
    assert (
        describe_harness_step(str(damage))
        == "00000000000000000000.index: the closed file is cut to 3 bytes, if it is longer"
    )
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
    assert all(describe_harness_step(str(Operation(name, arguments))) for name, arguments in samples.items())


@pytest.mark.parametrize("step", ["append(offset=1, position=2)", "pad_file(", "pad_file(count=__import__('os'))", "?"])
def test_other_steps_and_invalid_steps_are_unchanged(step):
    assert describe_harness_step(step) == ""
