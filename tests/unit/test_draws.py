"""Values from one seed: what combinators draw, and that an example of Hypothesis draws the same again."""

from __future__ import annotations

from collections import Counter
from random import Random

import pytest
from hypothesis import seed
from hypothesis.stateful import run_state_machine_as_test
from thorough_params import thorough_param

from conformance.machines import MACHINES
from conformance.machines.seeded_rules import rule
from conformance.runs.profiles import PROFILES
from conformance.strategies import draws
from conformance.strategies.leader import sent


def drawn(draw, count=2000):
    """Draw this number of values."""
    chance = Random(1)  # noqa: S311 -- nothing secret
    return [draw.pick(chance) for _ in range(count)]


def test_every_value_is_drawn_in_proportion_to_its_listing():
    counts = Counter(drawn(draws.sampled_from("aab"), 3000))
    assert set(counts) == {"a", "b"}
    assert 1.6 < counts["a"] / counts["b"] < 2.5


def test_numbers_and_sizes_reach_both_ends():
    assert set(drawn(draws.integers(-2, 3))) == set(range(-2, 4))
    assert set(map(len, drawn(draws.lists(draws.just(0), min_size=1, max_size=4)))) == {1, 2, 3, 4}
    assert set(map(len, drawn(draws.lists(draws.just(0), max_size=2)))) == {0, 1, 2}
    assert set(drawn(draws.booleans())) == {False, True}


def test_a_nested_choice_counts_as_its_alternatives():
    nested = (draws.just(1) | draws.just(2)) | draws.one_of(draws.just(3), draws.just(4))
    counts = Counter(drawn(nested, 4000))
    assert set(counts) == {1, 2, 3, 4}
    assert min(counts.values()) > 800


def test_a_kind_counts_as_one_for_any_number_of_alternatives():
    kinds = draws.one_of_kinds(draws.just(1), draws.one_of(draws.just(2), draws.just(3), draws.just(4)))
    counts = Counter(drawn(kinds, 4000))
    assert 1800 < counts[1] < 2200
    assert min(counts.values()) > 500


def test_a_leader_is_often_sent_sound_batches_that_claim_a_stamp():
    stamped = [{"codec": "none", "header": {"attributes": 8}}, {"codec": "gzip", "header": {"attributes": 9}}]
    options = [batch.options for batch in drawn(sent())]
    assert all(options.count(one) > 0.03 * len(options) for one in stamped)


def test_values_are_put_together():
    digits = draws.sampled_from((1, 2))
    assert set(drawn(draws.tuples(digits, draws.just("x")))) == {(1, "x"), (2, "x")}
    assert set(drawn(draws.builds(divmod, draws.just(7), digits))) == {(7, 0), (3, 1)}
    assert drawn(draws.builds(dict, a=draws.just(1)), 1) == [{"a": 1}]
    assert set(drawn(digits.map(str))) == {"1", "2"}
    assert set(drawn(digits.flatmap(lambda n: draws.just(10 * n)))) == {10, 20}
    both = draws.fixed_dictionaries({"a": digits}, optional={"b": digits})
    assert {tuple(found) for found in drawn(both)} == {("a",), ("a", "b")}


def test_a_rule_that_another_rule_calls_receives_its_arguments():
    class Machine:
        rng = Random(1)  # noqa: S311 -- nothing secret

        @rule(number=draws.just(1))
        def one(self, number):
            self.seen = number

        @rule(number=draws.just(5))
        def both(self, number):
            self.one(number + 1)

    machine = Machine()
    machine.one()
    assert machine.seen == 1
    machine.both()
    assert machine.seen == 6


@pytest.mark.thorough
@pytest.mark.parametrize("name", ["segment", thorough_param("log"), thorough_param("cleaned")])
def test_a_seed_of_hypothesis_gives_the_same_operations_again(name, tmp_path):
    kind = MACHINES[name]

    def performed(number):
        lockstep = kind.lockstep_type([], tmp_path / f"{name}-{number}", releases=["4.4.0"])
        operations, end = [], lockstep.end

        def keep():
            operations.append(list(lockstep.operations))
            end()

        lockstep.end = keep
        run_state_machine_as_test(seed(number)(kind.bind(lockstep)), settings=PROFILES["ci"].settings(4))
        return operations

    first = performed(7)
    assert performed(7) == first
    assert performed(8) != first
    assert len({str(operations) for operations in first}) == len(first)
