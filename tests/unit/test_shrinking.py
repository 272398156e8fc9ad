"""The shrinker on constructed divergences: what it removes, what it never tries, and when it stops."""

from __future__ import annotations

import itertools

import pytest

from conformance.operations import Effect, Operation, every_effect, every_signature
from conformance.operations.index_steps import has_valid_arguments
from conformance.runs.shrinking import shrink
from conformance.runs.shrinking.reductions import cost, is_valid_sequence, numbers, simplified, with_numbers
from kidx.records import SimpleRecord, build_batch
from kidx.segment.append_info import follower_append_info

OPEN = Operation("open", ("offset", "0.index", 0, 64, True))
CLOSE = Operation("close")
SETTINGS = {"segment.bytes": 300, "segment.index.bytes": 120, "retention.ms": -1, "segment.ms": 500}
OPEN_LOG = Operation("open_log", (SETTINGS, 0, 0, True, 10_000))


def append(base, *, records=((0, 1000),), **options):
    return Operation(
        "append_as_follower", ([{"base": base, "epoch": 0, "records": list(map(list, records))} | options], 0)
    )


def names(operations):
    return [operation.name for operation in operations]


def shows(*wanted):
    """Return a divergence that needs these operations in this order, and ends with the last of them."""

    def still(operations):
        left = iter(names(operations))
        return "seen" if all(name in left for name in wanted) and names(operations)[-1] == wanted[-1] else None

    return still


class TestOmissions:
    def test_only_necessary_steps_remain(self):
        life = [OPEN, Operation("flush"), CLOSE]
        rest = [OPEN, *map(Operation, ("reset", "trim", "flush")), Operation("lookup", (1,))]
        found = shrink([*life, *life, *rest], shows("open", "trim", "lookup"))
        assert names(found.operations) == ["open", "trim", "lookup"]
        assert found.minimal

    def test_an_index_that_was_opened_twice_because_of_its_size_is_opened_once(self):
        small = Operation("open", ("offset", "0.index", 0, 7, True))

        def still(operations):
            has_room = operations[0].args[3] >= 8 or names(operations).count("open") > 1
            return "seen" if has_room and names(operations)[-1] == "flush" else None

        found = shrink([small, small, Operation("flush")], still)
        assert names(found.operations) == ["open", "flush"]
        assert found.operations[0].args[3] == 120

    def test_no_file_is_damaged_while_it_is_in_use(self):
        cut = Operation("cut_file", (1,))
        tried = []

        def still(operations):
            tried.append(operations)
            return "seen" if cut.name in names(operations) else None

        found = shrink([OPEN, Operation("flush"), CLOSE, cut, OPEN, Operation("flush")], still)
        assert names(found.operations) == ["open", "close", "cut_file"]
        assert all(map(is_valid_sequence, tried[1:]))

    @pytest.mark.parametrize(
        "damage",
        [
            Operation("swap_ranges", (5, 3, 8)),
            Operation("damage_log_file", ("00000000000000000000.index", "swap_ranges", [5, 3, 8])),
        ],
    )
    def test_arguments_remain_within_the_limits_of_operations(self, damage):
        """Two ranges without a size cannot be swapped: the harness divides by it."""
        tried = []

        def still(operations):
            tried.append(operations[-1])
            return "seen" if operations[-1].name == damage.name else None

        opening, closing = (OPEN, CLOSE) if damage.name == "swap_ranges" else (OPEN_LOG, Operation("crash_log"))
        found = shrink([opening, closing, damage], still)
        assert all(map(has_valid_arguments, tried))
        *_, numbers_left = found.operations[-1].args[-1:]
        assert numbers_left in (1, [0, 0, 1])

    def test_one_of_many_appends_is_an_append(self):
        bulk = Operation("bulk_append", (5, 6, 1, 1, 4))

        def still(operations):
            name, arguments = operations[-1]
            return "seen" if name == "append" or (name == "bulk_append" and arguments[-1] > 0) else None

        assert shrink([OPEN, bulk], still).operations[-1] == Operation("append", (0, 0))

    @pytest.mark.parametrize(
        ("needed", "count", "shown"),
        [
            ({0, 1}, 2, [0, 1]),
            ({0, 1, 2, 3}, 4, [0, 1, 2, 3]),
            ({1, 2}, 9, [1, 2]),
            ({0, 8}, 9, [0, 8]),
        ],
    )
    def test_a_few_appends_are_written_out(self, needed, count, shown):
        """Single appends are what a person writes, if their numbers matter."""
        bulk = Operation("bulk_append", (0, 0, 1, 1, count))

        def still(operations):
            pairs: set[tuple[int, int]] = set()
            for name, arguments in operations[1:]:
                first, second, *many = arguments
                steps, length = (many[:2], many[2]) if name == "bulk_append" else ((0, 0), 1)
                pairs |= {(first + i * steps[0], second + i * steps[1]) for i in range(length)}
            return "seen" if {(offset, offset) for offset in needed} <= pairs else None

        _, *appends = shrink([OPEN, bulk], still).operations
        assert appends == [Operation("append", (offset, offset)) for offset in shown]

    def test_an_entry_that_is_visible_replaces_many_that_are_zeros(self):
        """A repeated offset is written into one of three slots of zeros, or after them, where zeros are visible."""
        bulk = Operation("bulk_append", (5, 0, 0, 0, 10))

        def still(operations):
            entries = []
            for name, arguments in operations[1:]:
                entries += [arguments[:2]] * (arguments[-1] if name == "bulk_append" else 1)
            repeated = [place for place in range(1, len(entries)) if entries[place][0] == entries[0][0]]
            return "seen" if any(place >= 3 or entries[place][1] for place in repeated) else None

        assert shrink([OPEN, bulk], still).operations[1:] == (
            Operation("append", (0, 0)),
            Operation("append", (0, 1)),
        )

    def test_many_appends_remain_one_bulk_operation(self):
        bulk = Operation("bulk_append", (0, 0, 1, 1, 40))

        def still(operations):
            times = sum(arguments[-1] if name == "bulk_append" else 1 for name, arguments in operations[1:])
            return "seen" if times >= 8 else None

        assert shrink([OPEN, bulk], still).operations[1:] == (Operation("bulk_append", (0, 0, 0, 0, 8)),)

    def test_the_last_of_many_operations_may_be_the_divergent_one(self):
        bulk = Operation("bulk_append", (0, 0, 1000, 0, 700))

        def still(operations):
            _, (offset, _, *many) = operations[-1]
            return "seen" if offset + (many[0] * (many[-1] - 1) if many else 0) >= 650_000 else None

        assert shrink([OPEN, bulk], still).operations[-1] == Operation("append", (650_000, 0))

    @pytest.mark.parametrize("base", [-5, 7, 2**40])
    def test_a_base_offset_is_zero_unless_it_is_needed(self, base):
        """Later offsets keep their distance: an offset overflows from 0 as well."""
        path = f"{base:020d}.index"
        trace = [OPEN._replace(args=("offset", path, base, 64, True)), Operation("append", (base + 2**31, 0))]

        def still(operations):
            opening, *rest = operations
            overflows = [each for each in rest if each.args[0] - opening.args[2] > 2**31 - 1]
            return "seen" if overflows else None

        opening, append = shrink(trace, still).operations
        assert (opening.args[1], opening.args[2]) == (f"{0:020d}.index", 0)
        assert append.args[0] == 2**31

    def test_records_that_are_deleted_do_not_release_the_files_of_a_log(self):
        damage = Operation("damage_log_file", ("00000000000000000000.index", "remove_file", []))
        assert not is_valid_sequence((OPEN_LOG, Operation("delete_records", (1,)), damage))
        assert is_valid_sequence((OPEN_LOG, Operation("crash_log"), damage))

    def test_dependent_steps_are_removed_together(self):
        """Neither of two steps can be removed alone, and they are not adjacent."""
        trace = [OPEN, Operation("flush"), Operation("trim"), Operation("reset"), Operation("lookup", (0,))]

        def still(operations):
            seen = names(operations)
            return (
                "seen" if ("flush" in seen) == ("reset" in seen) and "trim" in seen and seen[-1] == "lookup" else None
            )

        assert names(shrink(trace, still).operations) == ["open", "trim", "lookup"]

    def test_offsets_close_the_gap_that_an_append_leaves(self):
        """As in a log, every batch must begin where the previous one ends."""

        def still(operations):
            end = 0
            for operation in operations[1:-1]:
                for batch in operation.args[0]:
                    if batch["base"] != end:
                        return None
                    end += batch["records"][-1][0] + 1
            return "seen" if end >= 2 and operations[-1] == Operation("truncate_log", (end,)) else None

        trace = [OPEN_LOG, *map(append, range(9)), Operation("truncate_log", (9,))]
        found = shrink(trace, still)
        assert [operation.args[0][0]["base"] for operation in found.operations[1:-1]] == [0, 1]
        assert found.operations[-1].args == (2,)

    def test_no_single_step_can_be_removed(self):
        """1-minimal, of a difference that is not monotone."""
        pool = [Operation("lookup", (n,)) for n in range(24)]

        def still(operations):
            seen = {operation.args[0] for operation in operations[1:]}
            return "seen" if 23 in seen and len(seen) % 3 == 0 else None

        found = shrink([OPEN, *pool], lambda operations: still(operations) if len(operations) > 1 else None)
        for number in range(1, len(found.operations)):
            assert still(found.operations[:number] + found.operations[number + 1 :]) is None
        assert len(found.operations) == 4

    def test_an_early_divergence_removes_later_steps(self):
        trace = [OPEN, Operation("lookup", (1,)), *[Operation("flush")] * 9]

        def still(operations):
            end = names(operations).index("lookup") + 1 if "lookup" in names(operations) else 0
            return tuple(operations[:end]) or None

        assert shrink(trace, still, needed=lambda shown: shown).tried < 10

    def test_invalid_steps_are_not_the_same_divergence(self):
        """An implementation of the harness says so of a candidate in its own way."""

        def still(operations):
            if Operation("trim") not in operations:
                raise ValueError("nothing to append to")
            return "seen"

        assert names(shrink([OPEN, Operation("flush"), Operation("trim")], still).operations) == ["open", "trim"]

    def test_every_candidate_costs_less(self):
        """Negative numbers go up to zero, and take nothing along."""
        tried = []

        def still(operations):
            tried.append(cost(operations))
            return "seen" if names(operations) == ["open", "lookup", "flip_bit"] else None

        low, high = Operation("lookup", (-(1 << 63),)), Operation("flip_bit", (3, 7))
        trace = [OPEN, low, CLOSE, high]
        assert shrink(trace, lambda operations: still([one for one in operations if one != CLOSE])) is not None
        assert max(tried[1:]) <= tried[0]

    def test_a_divergence_that_does_not_recur_is_not_shrunk(self):
        assert shrink([OPEN, CLOSE], lambda _: None) is None

    def test_no_candidate_is_performed_twice(self):
        tried = []

        def still(operations):
            tried.append(repr(operations))
            return "seen" if names(operations)[-1] == "lookup" and len(operations) > 3 else None

        found = shrink([OPEN, *[Operation("flush")] * 5, Operation("trim"), Operation("lookup", (70,))], still)
        assert len(tried) == len(set(tried)) == found.tried


class TestTime:
    @pytest.mark.parametrize("seconds", [0, 3, 10])
    def test_the_best_so_far_is_reported_as_not_minimal(self, seconds):
        ticks = itertools.count()
        trace = [OPEN, *(Operation("lookup", (number,)) for number in range(40))]
        found = shrink(
            trace,
            lambda operations: "seen" if operations[-1] == trace[-1] else None,
            seconds=seconds,
            clock=lambda: next(ticks),
        )
        assert not found.minimal
        assert found.tried <= seconds + 1
        assert found.operations[-1] == trace[-1]
        assert (len(found.operations) < len(trace)) == (seconds > 0)


class TestArguments:
    def test_numbers_shrink_to_zero_and_to_each_other(self):
        trace = [OPEN, Operation("append", (10_000_007, 4_000)), Operation("lookup", (10_000_009,))]

        def still(operations):
            if names(operations) != names(trace):
                return None
            return "seen" if operations[2].args[0] == operations[1].args[0] + 2 else None

        assert [operation.args for operation in shrink(trace, still).operations[1:]] == [(0, 0), (2,)]

    def test_the_smallest_number_that_will_do_is_found_fast(self):
        def still(operations):
            return "seen" if operations[-1].name == "lookup" and operations[-1].args[0] >= 123_456_789 else None

        found = shrink([OPEN, Operation("lookup", ((1 << 63) - 1,))], still)
        assert found.operations[-1].args == (123_456_789,)
        assert found.tried < 300

    def test_a_base_offset_takes_the_name_of_the_file_along(self):
        name = f"{5_000_000_000:020d}.index"
        trace = [Operation("open", ("offset", name, 5_000_000_000, 64, True)), Operation("append", (5_000_000_003, 1))]

        def still(operations):
            if names(operations) != ["open", "append"]:
                return None
            _, path, base, *_ = operations[0].args
            return "seen" if int(path[:20]) == base and operations[1].args[0] == base + 3 else None

        opened, appended = shrink(trace, still).operations
        assert opened.args[1:3] == (f"{0:020d}.index", 0)
        assert appended.args == (3, 0)

    def test_lists_options_and_settings_get_less(self):
        trace = [
            OPEN_LOG,
            append(0, records=[(0, 5), (1, 6), (2, 7)], codec="gzip", transactional=True, producer=[3, 0, 0]),
            Operation("list_offsets", (list(range(40)),)),
        ]

        def still(operations):
            return "seen" if names(operations) == names(trace) and 17 in operations[2].args[0] else None

        opened, appended, asked = shrink(trace, still).operations
        assert opened.args[0] == {"segment.bytes": 300, "segment.index.bytes": 120}
        assert appended.args == ([{"base": 0, "epoch": 0, "records": [[0, 0]]}], 0)
        assert asked.args == ([17],)

    def test_batches_of_a_segment_are_removed_with_the_arguments_of_a_follower(self):
        batches = [build_batch([SimpleRecord(1000 + n, None, b"v")], base_offset=n) for n in range(3)]
        data = b"".join(batches)
        candidates = list(simplified(Operation("append_records", (data.hex(), *follower_append_info(data)))))
        rests = [b"".join(batches[:n] + batches[n + 1 :]) for n in range(3)]
        assert [one.args for one in candidates] == [(rest.hex(), *follower_append_info(rest)) for rest in rests]

    def test_intentionally_corrupt_records_remain(self):
        assert not list(simplified(Operation("append_records", ("00" * 61, 0, 0, 0))))

    def test_every_simpler_operation_costs_less(self):
        rich = append(4, records=[(0, 5), (1, 6)], codec="zstd", transactional=True, producer=[3, 0, 0])
        for operation in (OPEN_LOG, rich, Operation("list_offsets", ([1, 2, 3, 4],))):
            assert all(cost([simpler]) < cost([operation]) for simpler in simplified(operation))


def test_every_effect_is_an_operations():
    assert set(every_effect()) <= set(every_signature())
    assert {name for name, effect in every_effect().items() if effect is Effect.OPENS} == {
        "open",
        "open_segment",
        "open_log",
        "open_cache",
        "open_tiers",
        "create_topic",
    }


def test_numbers_are_named_and_sizes_are_unchanged():
    assert numbers(OPEN_LOG) == [("log_start_offset", 0), ("recovery_point", 0), ("now", 10_000)]
    assert numbers(append(7)) == [("base", 7), ("epoch", 0), ("records", 0), ("records", 1000), ("leader_epoch", 0)]
    assert numbers(Operation("clean_log", (17, 200, 50, 1000))) == [("checkpoint", 17), ("age", 1000)]
    assert with_numbers(OPEN, lambda _, value: value) == OPEN
