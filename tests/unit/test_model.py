"""The abstract model, by worked examples: one or more for each clause it defines, its id in the test's name."""

from __future__ import annotations

import ast
import inspect
import struct
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from conformance.implementations import model as package
from conformance.implementations.model import UNKNOWN, Model, Prediction
from conformance.implementations.model.dialect import GUARDED, JAVA, REMAPPED, SCALA, UNTRIMMED, dialect_of
from conformance.operations import SIGNATURES, Operation

INT_MAX = 2**31 - 1
LONG_MAX = 2**63 - 1
LONG_MIN = -(2**63)


class Play:
    """Model with a directory: its predictions are applied to the files, so files survive from open to open."""

    def __init__(self, release: str = "3.9.2") -> None:
        self.model = Model(release)
        self.path = ""
        self.files: dict[str, bytes | None] = {}

    def __call__(self, name: str, *args: Any) -> Any:
        """Return the prediction; the example requires that it exists and that its state is known."""
        prediction = self.maybe(name, *args)
        assert prediction is not None, f"the model says nothing of {name}{args}"
        return prediction

    def maybe(self, name: str, *args: Any) -> Prediction | None:
        operation = Operation(name, args)
        assert len(args) == len(SIGNATURES[name])
        file_bytes = None
        if name == "open":
            self.path = args[1]
            file_bytes = self.files.get(self.path)
        if name == "rename":
            self.files[args[0]] = self.files.pop(self.path, None)
            self.path = args[0]
        prediction = self.model.perform(operation, file_bytes=file_bytes)
        if prediction is not None and prediction.file is not UNKNOWN:
            self.files[self.path] = None if prediction.file is None else bytes(prediction.file)
        return prediction

    def value(self, name: str, *args: Any) -> Any:
        prediction = self(name, *args)
        assert prediction.outcome.error is None
        return prediction.outcome.value

    def refused(self, name: str, *args: Any) -> Any:
        return self(name, *args).outcome.error

    def state(self) -> Any:
        """Return the state, by an operation that changes nothing."""
        return self("flush").state

    @property
    def file(self) -> bytes | None:
        return self.files[self.path]


def offset_index(
    *pairs: tuple[int, int], base: int = 0, size: int = 80, release: str = "3.9.2", writable: bool = True
) -> Play:
    play = Play(release)
    assert play.refused("open", "offset", "a", base, size, writable) is None
    for pair in pairs:
        assert play.refused("append", *pair) is None
    return play


def time_index(*pairs: tuple[int, int], base: int = 0, size: int = 120, release: str = "3.9.2") -> Play:
    play = Play(release)
    assert play.refused("open", "time", "a", base, size, True) is None
    for pair in pairs:
        assert play.refused("maybe_append", *pair, False) is None
    return play


def transaction_index(*transactions: tuple[int, int, int, int], start: int = 0, release: str = "3.9.2") -> Play:
    play = Play(release)
    assert play.refused("open", "transaction", "a", start, -1, True) is None
    for transaction in transactions:
        assert play.refused("append_aborted", *transaction) is None
    return play


def damaged(kind: str, content: bytes, base: int = 0, release: str = "3.9.2", size: int = 80) -> Play:
    """Open an index on bytes that another program wrote."""
    play = Play(release)
    play.files["a"] = content
    assert play.refused("open", kind, "a", base, size, True) is None
    return play


def offsets(*pairs: tuple[int, int]) -> bytes:
    return b"".join(struct.pack(">ii", *pair) for pair in pairs)


def timestamps(*pairs: tuple[int, int]) -> bytes:
    return b"".join(struct.pack(">qi", *pair) for pair in pairs)


def records(*transactions: tuple[int, int, int, int]) -> bytes:
    return b"".join(struct.pack(">hqqqq", 0, *transaction) for transaction in transactions)


# The file of an index: AI-3 to AI-21.


@pytest.mark.parametrize(("kind", "length", "entries"), [("offset", 64, 8), ("time", 60, 5)])
def test_ai_3_a_new_file_holds_whole_entries_of_zeros(kind: str, length: int, entries: int) -> None:
    play = Play()
    state = play("open", kind, "a", 0, 67, True).state
    assert (state.entries, state.max_entries, state.length) == (0, entries, length)
    assert play.file == bytes(length)


@pytest.mark.parametrize("size", [7, 0, -1])
def test_ai_3_no_capacity_for_one_entry_raises_and_leaves_an_empty_file(size: int) -> None:
    play = Play()
    assert play("open", "offset", "a", 0, size, True) == (("invalid_argument", None, None), UNKNOWN, b"")
    assert play.maybe("lookup", 1) is None
    assert play("open", "offset", "a", 0, size, True).state == (0, 0, True, 0, (0,))


def test_ai_4_a_new_file_cannot_be_created_read_only() -> None:
    assert Play().refused("open", "offset", "a", 0, 64, False) == "io"
    assert Play().refused("open", "offset", "a", 0, 4, False) == "invalid_argument"


def test_ai_5_an_existing_file_is_full_of_entries_whatever_the_size_argument() -> None:
    play = damaged("offset", offsets((1, 2), (3, 4)) + b"rest", size=800)
    assert play.state() == (2, 2, True, 20, (3,))
    assert play.value("entry", 1) == (3, 4)


def test_ai_5_a_preallocated_tail_counts_as_entries() -> None:
    play = damaged("offset", offsets((5, 50)) + bytes(16), base=100)
    assert play.state() == (3, 3, True, 24, (100,))
    assert play.value("entry", 2) == (100, 0)


def test_ai_6_a_time_index_keeps_its_last_slot() -> None:
    play = time_index((1, 1), size=36)
    assert play.state().full is False
    assert play("maybe_append", 2, 2, False).state.full is True
    assert play.refused("maybe_append", 3, 3, False) == "invalid_argument"


def test_ai_8_offsets_are_counted_from_the_base_modulo_64_bits() -> None:
    play = offset_index(base=LONG_MAX)
    assert play("append", LONG_MIN, 9).state.last == (LONG_MIN,)
    assert play.file is not None
    assert play.file[:8] == offsets((1, 9))
    assert offset_index(base=LONG_MIN).refused("append", LONG_MAX, 0) == "offset_overflow"


def test_ai_9_a_stored_offset_is_signed() -> None:
    play = damaged("offset", b"\xff\xff\xff\xff" + bytes(4), base=7)
    assert play.value("entry", 0) == (6, 0)


def test_ai_10_resize_rounds_down_and_returns_whether_anything_changed() -> None:
    play = offset_index((1, 10), size=64)
    assert play.value("resize", 71) is False
    assert play.value("resize", 39) is True
    assert play.state() == (1, 4, False, 32, (1,))
    assert play.file == offsets((1, 10)) + bytes(24)
    assert play.value("resize", 32) is False


def test_ai_10_a_resized_index_is_writable_even_if_it_was_opened_read_only() -> None:
    play = offset_index((1, 1), (2, 2))
    play("close")
    play("open", "offset", "a", 0, 80, False)
    assert play.value("resize", 40) is True
    assert play.refused("append", 9, 9) is None


@pytest.mark.parametrize(("release", "closed"), [("3.9.1", False), ("3.9.2", True), ("4.1.0", False), ("4.1.2", True)])
def test_ai_10_negative_size_raises_and_closes_if_unmapped_first(release: str, closed: bool) -> None:
    play = offset_index((1, 1), release=release)
    assert play.refused("resize", -8) == "io"
    assert play.refused("lookup", 1) == ("closed" if closed else None)


def test_ai_11_resizing_below_the_entries_truncates_the_file_and_then_fails() -> None:
    play = offset_index((1, 10), (2, 20), (3, 30), size=64)
    prediction = play("resize", 8)
    assert prediction.outcome.error == "invalid_argument"
    assert prediction.state == (3, 1, True, 8, (3,))
    assert play.file == offsets((1, 10))
    assert play.value("entry", 0) == (1, 10)
    assert play.refused("entry", 2) == "out_of_bounds"
    assert play.maybe("lookup", 3) is None
    assert play.value("truncate") is None
    assert play.value("lookup", 3) == (0, 0)


@pytest.mark.parametrize(("release", "kind"), [("3.4.1", "invalid_argument"), ("3.5.2", "illegal_state")])
def test_oi_6_after_a_failed_resize_the_pen_is_at_the_start(release: str, kind: str) -> None:
    """So the next append overwrites the first entry, is counted, and raises."""
    play = offset_index((1, 10), (2, 20), size=64, release=release)
    assert play.refused("resize", 8) == "invalid_argument"
    assert play.value("resize", 32) is True
    prediction = play("append", 7, 70)
    assert prediction.outcome.error == kind
    assert prediction.state == (3, 4, False, 32, (7,))
    assert play.file == offsets((7, 70)) + bytes(24)


def test_ai_13_truncated_bytes_return_as_zeros() -> None:
    play = offset_index((1, 10), (2, 20), size=24)
    play("truncate_to", 2)
    play("resize", 8)
    play("resize", 24)
    assert play.file == offsets((1, 10)) + bytes(16)


def test_ai_14_truncation_leaves_the_bytes_until_they_are_overwritten() -> None:
    play = offset_index((1, 10), (2, 20), (3, 30), size=32)
    assert play("truncate_to", 2).state == (1, 4, False, 32, (1,))
    assert play.file == offsets((1, 10), (2, 20), (3, 30)) + bytes(8)
    play("append", 5, 50)
    assert play.file == offsets((1, 10), (5, 50), (3, 30)) + bytes(8)


def test_ai_15_reset_empties_and_restores_the_initial_size() -> None:
    play = offset_index((1, 10), size=32)
    play("resize", 16)
    assert play("reset").state == (0, 4, False, 32, (0,))
    assert play.file == offsets((1, 10)) + bytes(24), "stale bytes remain"


def test_ai_15_reset_to_a_size_of_minus_one_leaves_nothing() -> None:
    play = damaged("time", timestamps((5, 1)), base=3, size=-1)
    assert play("reset").state == (0, 0, True, 0, (-1, 3))
    assert play.file == b""


def test_ai_16_trim_leaves_exactly_the_entries() -> None:
    play = offset_index((1, 10), (2, 20))
    assert play("trim").state == (2, 2, True, 16, (2,))
    assert play.file == offsets((1, 10), (2, 20))


def test_ai_16_trim_cuts_the_part_of_an_entry() -> None:
    play = damaged("offset", offsets((1, 2), (3, 4)) + b"rest")
    assert play.refused("sanity_check") == "corrupt"
    assert play.value("trim") is None
    assert play.file == offsets((1, 2), (3, 4))
    assert play.refused("sanity_check") is None


@pytest.mark.parametrize(
    ("release", "error"), [("3.9.1", "closed"), ("4.0.0", "closed"), ("3.9.2", None), ("4.0.1", None)]
)
def test_ai_16_trimming_a_closed_index_raised_before_it_did_nothing(release: str, error: str | None) -> None:
    """It is visible after ``delete``, which does not trim, and the error leaves an empty file."""
    play = offset_index((1, 10), release=release)
    assert play.value("delete") is True
    assert play.refused("trim") == error
    assert play.file == (b"" if error else None)


@pytest.mark.parametrize(("release", "length"), [("2.4.1", 8), ("4.3.1", 8), ("4.4.0", 80)])
def test_ai_16_close_trims_until_4_4(release: str, length: int) -> None:
    play = offset_index((1, 10), release=release)
    assert play("close").state.length == length
    assert play.file == (offsets((1, 10)) + bytes(72))[:length]


def test_ai_19_a_closed_index_has_counters_and_raises_for_the_rest() -> None:
    play = offset_index((1, 10), (2, 20))
    state = play("close").state
    calls: dict[str, tuple[int, ...]] = {
        "lookup": (1,),
        "entry": (0,),
        "fetch_upper_bound": (0, 0, 1),
        "truncate_to": (1,),
        "flush": (),
    }
    for name, arguments in calls.items():
        assert play(name, *arguments) == (("closed", None, None), state, play.file)
    assert play.refused("entry", 2) == "invalid_argument"
    assert play.refused("append", 3, 30) == "invalid_argument", "trimmed, so it is full"
    assert play.value("resize", 16) is False
    assert play.refused("resize", 24) == "closed"
    assert play.refused("sanity_check") is None
    assert play("truncate") == (("closed", None, None), (0, 2, False, 16, (2,)), play.file)


def test_ai_19_since_4_4_a_closed_index_is_not_full_and_flush_does_nothing() -> None:
    play = offset_index((1, 10), release="4.4.0")
    play("close")
    assert play.refused("append", 2, 20) == "closed"
    assert play.refused("append", 1, 20) == "invalid_offset"
    assert play.refused("append", INT_MAX + 1, 20) == "offset_overflow"
    assert play.refused("flush") is None


def test_ai_20_delete_returns_whether_the_file_existed() -> None:
    play = offset_index((1, 10))
    assert play.value("delete") is True
    assert play.file is None
    assert play.value("delete") is False


def test_ai_21_rename_moves_the_file_and_the_index_writes_on() -> None:
    play = offset_index((1, 10), size=16)
    assert play("rename", "b").outcome.error is None
    play("append", 2, 20)
    assert (play.path, play.file) == ("b", offsets((1, 10), (2, 20)))


def test_ai_21_a_rename_that_fails_renames_the_index_all_the_same() -> None:
    play = offset_index((1, 10))
    play("delete")
    assert play("rename", "b") == (("io", None, None), (1, 10, False, 80, (1,)), None)


# Searching: AI-31 to AI-36, by its meaning.


def test_ai_32_a_lookup_finds_the_largest_key_that_is_not_above_the_target() -> None:
    play = offset_index(*((offset, offset * 10) for offset in range(1, 3000, 2)), size=12000)
    assert play.value("lookup", 0) == (0, 0)
    assert play.value("lookup", 1) == (1, 10)
    assert play.value("lookup", 2) == (1, 10)
    assert play.value("lookup", 951) == (951, 9510)
    assert play.value("lookup", LONG_MAX) == (2999, 29990)


def test_ai_33_the_bound_of_a_fetch_is_the_first_entry_at_or_after_its_end() -> None:
    play = offset_index((1, 10), (2, 20), (3, 30))
    assert play.value("fetch_upper_bound", 0, 0, 9) == (1, 10)
    assert play.value("fetch_upper_bound", 1, 10, 1) == (2, 20)
    assert play.value("fetch_upper_bound", 1, 10, 10) == (2, 20)
    assert play.value("fetch_upper_bound", 1, 10, 21) is None


def test_ai_33_but_the_first_entry_is_never_found_by_its_own_position() -> None:
    play = offset_index((1, 10), (2, 20))
    assert play.value("fetch_upper_bound", 0, 0, 10) == (2, 20)
    assert offset_index((1, 10)).value("fetch_upper_bound", 0, 0, 10) is None


def test_ai_33_the_end_of_a_fetch_is_a_sum_of_32_bits() -> None:
    play = offset_index((1, 10))
    assert play.value("fetch_upper_bound", 0, INT_MAX, 1) == (1, 10)


def test_ai_35_in_content_out_of_order_the_model_abstains() -> None:
    play = damaged("offset", offsets((5, 50), (3, 30), (9, 40)))
    assert play.maybe("lookup", 4) is None
    assert play.maybe("fetch_upper_bound", 0, 0, 45) is None
    assert play.value("entry", 1) == (3, 30)
    assert play.state() == (3, 3, True, 24, (9,))


def test_ai_36_equal_keys_have_a_result_only_if_it_is_the_same_for_all_of_them() -> None:
    play = damaged("offset", offsets((1, 10), (4, 20), (4, 30), (6, 30), (6, 30)))
    assert play.maybe("lookup", 4) is None
    assert play.value("lookup", 5) == (4, 30)
    assert play.value("lookup", 6) == (6, 30)
    assert play.maybe("fetch_upper_bound", 0, 0, 30) is None
    assert play.value("fetch_upper_bound", 0, 0, 29) == (4, 30)


def test_an_undefined_truncation_is_undefined_until_the_index_is_empty() -> None:
    play = damaged("offset", offsets((1, 10), (4, 20), (4, 30), (6, 40)))
    assert play.maybe("truncate_to", 4) is None
    assert play.maybe("lookup", 9) is None
    assert play.maybe("flush") is None
    assert play("truncate").state == (0, 4, False, 32, (0,))
    assert play.file == offsets((1, 10), (4, 20), (4, 30), (6, 40))


def test_an_undefined_index_is_defined_again_by_the_bytes_of_its_file() -> None:
    play = damaged("offset", offsets((4, 20), (1, 10)))
    assert play.maybe("truncate_to", 4) is None
    assert play.maybe("append", 6, 60) is None
    assert play.maybe("reset") is None, "there may be an entry that the model knows nothing of"
    play.files["a"] = offsets((4, 20), (6, 60))
    assert play("open", "offset", "a", 0, 80, True).state == (2, 2, True, 16, (6,))
    assert play.value("lookup", 5) == (4, 20)


def test_after_corruption_only_the_cached_state_is_known() -> None:
    play = offset_index((1, 10))
    play("close")
    assert play.maybe("flip_bit", 0, 0) is None
    assert play("lookup", 1) == (("closed", None, None), (1, 1, True, 8, (1,)), UNKNOWN)
    assert play.maybe("delete") is None


def test_corruption_of_an_open_index_makes_the_state_unknown() -> None:
    play = offset_index((1, 10))
    assert play.maybe("cut_file", 0) is None
    assert play.maybe("lookup", 1) is None


def test_a_value_beyond_the_types_of_java_is_undefined() -> None:
    assert offset_index().maybe("append", 2**63, 0) is None
    assert offset_index().maybe("append", 1, 2**31) is None
    assert offset_index().maybe("lookup", 2**63) is None
    assert offset_index().maybe("entry", 2**31) is None
    assert offset_index().maybe("truncate_to", 2**63) is None
    assert offset_index().maybe("resize", 2**31) is None
    assert offset_index().maybe("fetch_upper_bound", 0, 0, 2**31) is None
    assert time_index().maybe("maybe_append", 2**63, 0, False) is None
    assert transaction_index().maybe("append_aborted", 2**63, 0, 0, 0) is None


def test_files_too_large_to_keep_are_undefined() -> None:
    assert Play().maybe("open", "offset", "a", 0, INT_MAX, True) is None
    assert offset_index().maybe("resize", INT_MAX) is None


# The offset index: OI-2 to OI-11.


def test_oi_2_the_last_offset_is_from_the_last_entry_or_the_base() -> None:
    play = offset_index(base=5)
    assert play.state().last == (5,)
    assert play("append", 9, 1).state.last == (9,)
    assert play("append", 12, 2).state.last == (12,)
    assert play("truncate_to", 12).state.last == (9,)
    play("close")
    assert play("open", "offset", "a", 5, 80, True).state.last == (9,)


def test_oi_3_an_append_is_checked_for_capacity_then_order_then_range() -> None:
    play = offset_index((5, 1), (6, 2), size=16)
    assert play.refused("append", 6, 0) == "invalid_argument"
    play("resize", 24)
    assert play.refused("append", 6, 0) == "invalid_offset"
    assert play.refused("append", INT_MAX + 1, 0) == "offset_overflow"
    assert play.state().entries == 2
    assert play.refused("append", 7, -1) is None, "a position may be anything"


def test_oi_5_the_first_offset_is_from_the_base_to_31_bits_above_it() -> None:
    assert offset_index((100, 0), base=100).file == bytes(80)
    assert offset_index(base=100).refused("append", 99, 0) == "offset_overflow"
    assert offset_index(base=100).refused("append", 100 + INT_MAX, 0) is None
    assert offset_index(base=100).refused("append", 101 + INT_MAX, 0) == "offset_overflow"


def test_oi_7_below_the_first_entry_a_lookup_returns_the_base() -> None:
    play = offset_index((105, 50), base=100)
    assert play.value("lookup", 104) == (100, 0)
    assert play.value("lookup", LONG_MIN) == (100, 0)


def test_oi_8_an_entry_is_absolute_and_its_number_below_the_count() -> None:
    play = offset_index((105, 50), base=100)
    assert play.value("entry", 0) == (105, 50)
    assert play.refused("entry", 1) == "invalid_argument"
    assert play.refused("entry", -1) == "out_of_bounds"


def test_oi_8_a_number_far_below_zero_wraps_around_into_the_file() -> None:
    """Its byte position is an int: -2**29 entries of 8 bytes are 0 modulo 2**32."""
    play = offset_index((1, 10), (2, 20))
    assert play.value("entry", -(2**29)) == (1, 10)
    assert play.value("entry", -(2**29) + 1) == (2, 20)
    assert play.value("entry", -(2**29) + 2) == (0, 0)
    assert play.refused("entry", -(2**29) + 10) == "out_of_bounds"


def test_oi_10_truncation_keeps_the_entries_below_an_offset() -> None:
    for offset, kept in [(0, 0), (2, 0), (3, 1), (4, 1), (5, 2), (6, 2), (7, 3), (99, 3)]:
        assert offset_index((2, 1), (4, 2), (6, 3))("truncate_to", offset).state.entries == kept


@pytest.mark.parametrize(
    ("content", "error"),
    [
        (b"", None),
        (offsets((1, 1), (0, 0)), None),
        (offsets((1, 1), (-1, 0)), "corrupt"),
        (offsets((1, 1)) + b"x", "corrupt"),
    ],
)
def test_oi_11_only_a_last_offset_below_the_base_and_a_partial_entry_are_corrupt(
    content: bytes, error: str | None
) -> None:
    assert damaged("offset", content, base=10).refused("sanity_check") == error


def test_oi_13_a_read_only_index_rejects_the_write_itself() -> None:
    play = offset_index((1, 10), (2, 20))
    play("close")
    play("open", "offset", "a", 0, 80, False)
    assert play.refused("append", 3, 30) == "invalid_argument"
    play("truncate_to", 2)
    assert play.refused("append", 3, 30) == "read_only"
    assert play.state().entries == 1


def test_a_bulk_append_continues_to_the_first_error() -> None:
    play = offset_index(size=24)
    assert play("bulk_append", 1, 10, 2, 5, 2).state == (2, 3, False, 24, (3,))
    assert play("bulk_append", 5, 30, 1, 0, 9) == (("invalid_argument", None, None), (3, 3, True, 24, (5,)), play.file)
    assert play.file == offsets((1, 10), (3, 15), (5, 30))
    assert play.value("bulk_append", 0, 0, 0, 0, 0) is None


# The time index: TI-2 to TI-11.


def test_ti_2_the_last_entry_is_nothing_at_the_base_when_empty() -> None:
    play = time_index(base=5)
    assert play.state().last == (-1, 5)
    assert play("maybe_append", 10, 7, False).state.last == (10, 7)


def test_ti_2_a_resize_that_changes_the_size_reads_the_last_entry_again() -> None:
    play = time_index((10, 1), (20, 2), size=60)
    assert play("resize", 12).state.last == (20, 2), "rejected, so not read"
    assert play("resize", 60).state.last == (0, 0), "now it is zeros"


def test_ti_3_errors_in_order_and_ignored_calls() -> None:
    play = time_index((10, 5), size=48)
    assert play.refused("maybe_append", 9, 4, False) == "invalid_offset"
    assert play.refused("maybe_append", 9, 5, False) == "illegal_state"
    assert play("maybe_append", 10, 99, False).state == (1, 4, False, 48, (10, 5)), "an equal timestamp is ignored"
    assert play("maybe_append", 11, 5, False).state.last == (11, 5), "an equal offset is not"
    play("maybe_append", 12, 6, False)
    assert play.refused("maybe_append", 12, 6, False) == "invalid_argument", "full comes first"
    assert play("maybe_append", 13, 7, True).state.entries == 4


def test_ti_3_no_timestamp_is_ignored_without_checking_the_offset() -> None:
    assert time_index(base=5)("maybe_append", -1, -99, False).state == (0, 10, False, 120, (-1, 5))


def test_ti_5_past_the_last_slot_the_buffer_overflows() -> None:
    play = time_index((1, 1), size=24)
    play("maybe_append", 2, 2, True)
    before = play.state()
    assert play("maybe_append", 3, 3, True) == (("buffer_overflow", None, None), before, play.file)
    assert play.file == timestamps((1, 1), (2, 2))


def test_ti_5_in_a_file_with_a_rest_the_timestamp_still_fits() -> None:
    play = damaged("time", timestamps((1, 1)) + bytes(8))
    assert play.refused("maybe_append", 3, 3, True) == "buffer_overflow"
    assert play.file == timestamps((1, 1), (3, 0))[:20]


def test_ti_6_an_offset_out_of_range_is_detected_after_the_timestamp_is_written() -> None:
    play = time_index((1, 1), size=48)
    prediction = play("maybe_append", 2, INT_MAX + 1, False)
    assert prediction.outcome.error == "offset_overflow"
    assert prediction.state == (1, 4, False, 48, (1, 1))
    assert play.file == timestamps((1, 1), (2, 0)) + bytes(24)
    assert play.refused("maybe_append", 3, 3, False) == "illegal_state", "8 bytes too far, counted, and rejected"
    assert play.file == timestamps((1, 1)) + struct.pack(">qqi", 2, 3, 3) + bytes(16)
    assert play.state() == (2, 4, False, 48, (3, 3))
    assert play("truncate").state == (0, 4, False, 48, (-1, 0))
    assert play.refused("maybe_append", 5, 5, False) is None, "a truncation resets the write position"


@pytest.mark.parametrize(("release", "error"), [("4.3.1", "invalid_argument"), ("4.4.0", None)])
def test_ti_6_and_then_the_index_cannot_be_trimmed_nor_closed_while_close_trims(
    release: str, error: str | None
) -> None:
    play = time_index((1, 1), release=release)
    play("maybe_append", 2, INT_MAX + 1, False)
    assert play.refused("close") == error
    assert play.refused("close") is None
    assert play.refused("lookup", 1) == "closed"


def test_ti_7_a_lookup_returns_no_timestamp_below_the_first_entry() -> None:
    play = time_index((10, 105), (20, 110), base=100)
    assert play.value("lookup", 9) == (-1, 100)
    assert play.value("lookup", 19) == (10, 105)
    assert play.value("lookup", 20) == (20, 110)


def test_ti_9_truncation_is_by_offset() -> None:
    for offset, kept in [(1, 0), (2, 0), (3, 1), (4, 1), (5, 2)]:
        assert time_index((10, 2), (20, 4))("truncate_to", offset).state.entries == kept


def test_ti_9_an_offset_that_entries_share_has_no_meaning() -> None:
    play = time_index((10, 2), (20, 4), (30, 4))
    assert play.maybe("truncate_to", 4) is None
    assert play("reset").state.entries == 0
    assert time_index((10, 2), (20, 4), (30, 4))("truncate_to", 3).state.entries == 1


@pytest.mark.parametrize(
    ("content", "error"),
    [
        (bytes(24), None),
        (timestamps((5, 1)) + bytes(12), "corrupt"),
        (timestamps((5, 1), (6, -1)), "corrupt"),
        (timestamps((5, 3), (6, 1)), None),
        (timestamps((5, 1)) + b"x", "corrupt"),
    ],
)
def test_ti_11_a_last_entry_before_the_first_or_below_the_base_is_corrupt(content: bytes, error: str | None) -> None:
    assert damaged("time", content, base=10).refused("sanity_check") == error


def test_a_bulk_of_maybe_appends_continues_to_the_first_error() -> None:
    play = time_index(size=48)
    assert play.refused("bulk_maybe_append", 1, 1, 1, 1, 9) == "invalid_argument"
    assert play.state() == (3, 4, True, 48, (3, 3))
    assert time_index(size=48).value("bulk_maybe_append", 1, 1, 1, 0, 3) is None


def test_ti_10_entries_outside_the_file_cannot_be_read_again() -> None:
    play = time_index((10, 1), (20, 2), (30, 3), size=60)
    assert play.refused("resize", 0) == "invalid_argument"
    assert play.refused("sanity_check") == "out_of_bounds"
    assert play("resize", 24) == (("out_of_bounds", None, None), (3, 2, True, 24, (30, 3)), bytes(24))
    assert play.value("resize", 36) is True
    assert play.state().last == (0, 0)


def test_ai_19_a_closed_time_index_raises_where_it_would_read_or_write() -> None:
    play = time_index((10, 1), (20, 2))
    play("close")
    assert play.refused("sanity_check") == "closed"
    assert play.refused("maybe_append", 30, 3, False) == "invalid_argument"
    assert play.refused("maybe_append", 30, 3, True) == "closed"
    assert play.refused("maybe_append", 30, 1, True) == "invalid_offset"
    assert play.refused("maybe_append", 20, 3, True) is None, "ignored before it is written"


def test_ai_8_a_time_index_counts_its_offsets_modulo_64_bits_too() -> None:
    play = time_index((1, LONG_MIN), base=LONG_MAX)
    assert play.file == timestamps((1, 1)) + bytes(108)
    play("close")
    assert play("open", "time", "a", LONG_MAX, 120, False).state.last == (1, LONG_MIN)
    play("truncate")
    assert play.refused("maybe_append", 1, LONG_MAX, False) == "invalid_argument"
    assert play.refused("maybe_append", 1, LONG_MAX, True) == "read_only"


# The transaction index: TX-2 to TX-13.


def test_tx_2_the_first_append_makes_the_file() -> None:
    play = transaction_index()
    assert play("reset") == ((None, None, None), (0, None, None, None, ()), None)
    assert play("append_aborted", 1, 2, 3, 4).state == (1, None, None, None, (3,))
    assert play.file == records((1, 2, 3, 4))


def test_tx_3_last_offsets_rise() -> None:
    play = transaction_index((1, 0, 5, 9))
    assert play.refused("append_aborted", 2, 0, 5, 9) == "invalid_argument"
    assert play.refused("append_aborted", 2, 0, 6, 1) is None


def test_tx_4_the_last_offset_is_cached_by_the_object_and_not_stored_in_the_file() -> None:
    play = transaction_index((1, 0, 5, 9))
    assert play("close").state == (0, None, None, None, (5,))
    assert play("rename", "b").state.last == (5,)
    assert play.refused("append_aborted", 1, 0, 5, 9) == "invalid_argument"
    assert play("append_aborted", 1, 0, 6, 9).state.entries == 2, "an append opens the file again"
    play("close")
    assert play("open", "transaction", "b", 0, -1, True).state == (2, None, None, None, ())
    assert play.refused("append_aborted", 1, 0, 1, 9) is None
    assert play("reset").state == (0, None, None, None, ())


def test_tx_4_a_truncation_caches_the_last_remaining_record() -> None:
    play = transaction_index((1, 0, 5, 9), (2, 0, 8, 9))
    assert play("truncate_to", 8).state.last == (5,)
    assert play("truncate_to", 5).state.last == ()


@pytest.mark.parametrize(
    ("release", "version", "error"),
    [
        ("4.3.1", b"\x00\x01", None),
        ("4.3.1", b"\x01\x00", "unsupported_version"),
        ("4.3.1", b"\xff\xff", None),
        ("4.4.0", b"\x00\x01", "unsupported_version"),
        ("4.4.0", b"\xff\xff", "unsupported_version"),
    ],
)
def test_tx_7_which_versions_are_rejected(release: str, version: bytes, error: str | None) -> None:
    good = records((1, 0, 5, 9))
    play = damaged("transaction", good + version + good[2:], release=release)
    assert play.refused("all_aborted") == error
    assert play.refused("sanity_check") == error
    assert play.refused("truncate_to", 6) == error
    assert play.refused("collect_aborted", 0, 100) == error
    assert play.refused("collect_aborted", 0, 9) is None, "complete before it"
    assert (play.state() is UNKNOWN) == (error is not None), "does such a record count?"


def test_tx_9_collecting_stops_at_the_first_that_was_stable_after_the_bound() -> None:
    first, second, third = (1, 0, 5, 6), (2, 3, 8, 20), (3, 7, 9, 30)
    play = transaction_index(first, second, third)
    assert play.value("collect_aborted", 0, 10) == ((first, second), True)
    assert play.value("collect_aborted", 6, 10) == ((second,), True)
    assert play.value("collect_aborted", 9, 3) == ((), True)
    assert play.value("collect_aborted", 0, 31) == ((first, second, third), False)
    assert play.value("all_aborted") == (first, second, third)


def test_tx_10_truncation_removes_all_after_the_first_that_ends_too_late() -> None:
    content = records((1, 0, 5, 9), (2, 0, 8, 9), (3, 0, 2, 9))
    play = damaged("transaction", content)
    assert play("truncate_to", 9).state == (3, None, None, None, ())
    assert play("truncate_to", 6).state == (1, None, None, None, (5,))
    assert play.file == content[:34]


def test_tx_10_without_a_file_nothing_is_truncated() -> None:
    assert transaction_index()("truncate_to", 0) == ((None, None, None), (0, None, None, None, ()), None)


def test_a_partial_record_is_not_read_but_shifts_later_appends() -> None:
    play = damaged("transaction", records((1, 0, 5, 9)) + bytes(10))
    assert play.value("all_aborted") == ((1, 0, 5, 9),)
    play("append_aborted", 7, 0, 6, 9)
    assert play.value("all_aborted")[1] != (7, 0, 6, 9)
    assert play.file == records((1, 0, 5, 9)) + bytes(10) + records((7, 0, 6, 9))


def test_tx_12_a_record_that_ends_before_the_start_is_corrupt() -> None:
    assert transaction_index((1, 0, 5, 9), start=6).refused("sanity_check") == "corrupt"
    assert transaction_index((1, 9, 6, 1), start=6).refused("sanity_check") is None


def test_tx_13_rename_moves_a_file_only_if_it_exists() -> None:
    play = transaction_index()
    assert play("rename", "b") == ((None, None, None), (0, None, None, None, ()), None)
    assert play("append_aborted", 1, 0, 5, 9).file == records((1, 0, 5, 9))
    assert play.value("delete") is True
    assert play.value("delete") is False


def test_records_after_an_unreadable_one_are_not_read() -> None:
    play = damaged("transaction", b"\x01" + records((1, 0, 5, 9))[1:])
    assert play.refused("append_aborted", 2, 0, 6, 9) is None
    assert play.refused("all_aborted") == "unsupported_version"
    assert play("reset").state == (0, None, None, None, ())


def test_a_corrupt_transaction_index_is_undefined_after_an_append() -> None:
    play = transaction_index((1, 0, 5, 9))
    play("close")
    play.maybe("pad_file", 3, 0)
    assert play.value("all_aborted") == ()
    assert play.refused("append_aborted", 1, 0, 5, 9) == "invalid_argument", "the last offset is still known"
    assert play.maybe("append_aborted", 1, 0, 6, 9) is None
    assert play.maybe("all_aborted") is None


@pytest.mark.parametrize("play", [offset_index((1, 1)), transaction_index((1, 0, 5, 9))])
def test_a_rename_of_a_possibly_missing_file_is_undefined(play: Play) -> None:
    play("close")
    play.maybe("remove_file")
    assert play.maybe("rename", "b") is None
    assert play("close").file is UNKNOWN


# Dialects, and the model as a whole.


def test_every_group_of_releases() -> None:
    groups = {
        SCALA: ["2.4.0", "2.5.1", "3.4.1"],
        JAVA: ["3.5.2", "3.9.0", "3.9.1", "4.0.0"],
        GUARDED: ["4.0.1", "4.1.0"],
        REMAPPED: ["3.9.2", "4.0.2", "4.1.1", "4.1.2", "4.2.1", "4.3.1"],
        UNTRIMMED: ["4.4.0"],
    }
    for dialect, releases in groups.items():
        assert [dialect_of(release) for release in releases] == [dialect] * len(releases)


@pytest.mark.parametrize("release", ["2.3.1", "4.0", "trunk", "4.0.x"])
def test_an_unknown_release_is_rejected(release: str) -> None:
    with pytest.raises(ValueError, match=r"release|begins with"):
        Model(release)


def test_before_an_index_is_opened_nothing_is_predicted() -> None:
    play = offset_index((1, 10))
    play.model.begin()
    assert play.maybe("lookup", 1) is None
    assert repr(UNKNOWN) == "UNKNOWN"


def test_an_operation_of_another_kind_is_not_predicted() -> None:
    assert transaction_index().maybe("lookup", 1) is None
    assert offset_index().maybe("maybe_append", 1, 1, False) is None


def test_an_unchanged_file_is_not_copied() -> None:
    play = offset_index((1, 10))
    assert play("lookup", 1).file is play("lookup", 2).file


def test_the_model_imports_nothing_of_the_reference() -> None:
    for source in Path(inspect.getfile(package)).parent.glob("*.py"):
        for node in ast.walk(ast.parse(source.read_text(encoding="utf-8"))):
            names = [alias.name for alias in getattr(node, "names", [])] if isinstance(node, ast.Import) else []
            if isinstance(node, ast.ImportFrom):
                names = [node.module or ""]
            assert not any(name.split(".")[0] == "kidx" for name in names), source


STEPS = st.integers(1, 5)


@given(st.lists(st.tuples(STEPS, st.integers(-3, 9)), max_size=30), st.integers(-5, 160), st.integers(-9, 300))
def test_every_result_of_an_offset_index_equals_that_of_a_scan(
    steps: list[tuple[int, int]], target: int, bound: int
) -> None:
    """And its file is its entries, and zeros; and truncating is forgetting the entries from the offset on."""
    pairs, offset, position = [], 0, 0
    for by, further in steps:
        offset, position = offset + by, position + further
        pairs.append((offset, position))
    play = offset_index(*pairs, size=800)
    assert play.value("lookup", target) == max((pair for pair in pairs if pair[0] <= target), default=(0, 0))
    assert play.file == offsets(*pairs).ljust(800, b"\0")
    prediction = play.maybe("fetch_upper_bound", 0, bound, 0)
    positions = [pair[1] for pair in pairs]
    if positions == sorted(positions) and bound not in positions:
        assert prediction is not None
        assert prediction.outcome.value == next((pair for pair in pairs if pair[1] > bound), None)
    kept = [pair for pair in pairs if pair[0] < target]
    assert play("truncate_to", target).state.entries == len(kept)
    play("close")
    assert play.file == offsets(*kept)


@given(st.lists(st.tuples(STEPS, st.integers(0, 3)), max_size=30), st.integers(-5, 160), st.integers(-1, 100))
def test_every_result_of_a_time_index_equals_that_of_a_scan(
    steps: list[tuple[int, int]], target: int, offset: int
) -> None:
    pairs, timestamp, last = [], -1, 0
    for later, by in steps:
        timestamp, last = timestamp + later, last + by
        pairs.append((timestamp, last))
    play = time_index(*pairs, size=1200)
    assert play.value("lookup", target) == max((pair for pair in pairs if pair[0] <= target), default=(-1, 0))
    assert play.file == timestamps(*pairs).ljust(1200, b"\0")
    prediction = play.maybe("truncate_to", offset)
    assert (prediction is None) == ([pair[1] for pair in pairs].count(offset) > 1)
    if prediction is not None:
        play("trim")
        assert play.file == timestamps(*(pair for pair in pairs if pair[1] < offset))
