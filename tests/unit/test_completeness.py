"""A run states what it has compared, from the results of its machines."""

from __future__ import annotations

from dataclasses import replace

import pytest

from conformance.errors import IncompleteError, NothingComparedError
from conformance.events import Result
from conformance.runs.completeness import clauses_compared, compared_in
from conformance.verdict import Comparison, combined

WHOLE = Result(
    "offset",
    "jvm",
    "4.4.0",
    10,
    300,
    1.0,
    0,
    {"OI-7": 3, "OI-1": 0},
    {"OI-7": "conforms", "OI-1": "not-run"},
    operations={"open": 10, "append": 20, "lookup": 3, "trim": 1},
)
IDLE = replace(WHOLE, implementation="mine", steps=0, verdicts={"OI-7": "could-not-run"}, operations={})


def test_a_clause_that_no_step_exercised_does_not_make_a_run_incomplete():
    assert compared_in([WHOLE], 0) == Comparison(34)
    assert compared_in([WHOLE], 0).settle() == 0
    assert clauses_compared([WHOLE], "observed") == (1, 2)


@pytest.mark.parametrize(
    ("operations", "details", "gap"),
    [
        ({"open": 10, "append": 20}, {}, "lookup of the offset machine was not run with jvm 4.4.0"),
        (
            WHOLE.operations,
            {"cut_by_time": True, "not_executed": {"regression traces": [0, 5], "examples": [3, 4]}},
            "3 of 4 examples of the offset machine not run (--max-time)",
        ),
    ],
)
def test_what_was_not_compared_is_a_gap(operations, details, gap):
    compared = compared_in([replace(WHOLE, operations=operations, details=details)], 0)
    assert [each for each in compared.gaps if each.startswith(gap)] == list(compared.gaps)
    assert compared.conclusion == "incomplete"
    with pytest.raises(IncompleteError, match="--allow-incomplete accepts this"):
        compared.settle()
    assert compared.settle(allow_incomplete=True) == 0
    assert replace(compared, differences=1).settle() == 1


@pytest.mark.parametrize(
    ("operations", "details", "failure"),
    [
        ({"open": 10, "append": 20, "lookup": 0}, {}, "lookup of the offset machine could not run with jvm 4.4.0"),
        ({"open": 9, "append": 9}, {"lacks": ["lookup"]}, "jvm 4.4.0 does not have lookup, without which the"),
        (WHOLE.operations | {"trim": 0}, {}, "trim of the offset machine could not run with jvm"),
        (
            WHOLE.operations,
            {"failures": {"not executed": 7, "examples": 9}},
            "7 of 9 examples of the offset machine not run with jvm 4.4.0, which failed too often",
        ),
        (WHOLE.operations, {"ended": "the broker is gone"}, "the offset machine ended early with jvm 4.4.0: the"),
    ],
)
def test_what_could_not_run_is_never_accepted(operations, details, failure):
    compared = compared_in([replace(WHOLE, operations=operations, details=details)], 0)
    assert [each for each in compared.failures if each.startswith(failure)] == list(compared.failures)
    assert (compared.conclusion, compared.gaps) == ("incomplete", ())
    with pytest.raises(IncompleteError) as error:
        compared.settle(allow_incomplete=True)
    assert "--allow-incomplete" not in str(error.value)


def test_releases_that_take_turns_share_a_rare_operation():
    without = replace(WHOLE, release="4.3.1", operations=WHOLE.operations | {"trim": 0})
    assert compared_in([WHOLE, without], 0).conclusion == "conforms"


def test_an_implementation_without_a_comparison_is_idle_beside_one_that_has_some():
    compared = compared_in([WHOLE, IDLE], 0)
    assert compared.conclusion == "nothing-compared"
    assert compared.idle == ("mine: it answers with unsupported wherever something is opened",)
    with pytest.raises(NothingComparedError, match="nothing was compared: mine: "):
        compared.settle(allow_incomplete=True)
    other = replace(
        WHOLE, machine="time", implementation="mine", operations={"open": 1, "maybe_append": 1, "lookup": 1}
    )
    told = compared_in([WHOLE, IDLE, other], 0)
    assert told.conclusion == "incomplete"
    assert told.failures[0].startswith("the offset machine could not run with mine 4.4.0")


def test_an_old_stream_without_operations_counts_its_steps():
    assert compared_in([replace(WHOLE, operations={})], 0) == Comparison(300)


def test_parts_are_added():
    parts = [Comparison(1, gaps=("a",)), Comparison(2, 1, gaps=("a", "b")), Comparison(0, failures=("d",), idle=("c",))]
    assert combined(parts) == Comparison(3, 1, ("a", "b"), ("d",), ("c",))
    assert combined([]).conclusion == "nothing-compared"
