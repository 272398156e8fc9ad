"""Grouping by root cause: the five ways in which divergences are grouped, and which are never grouped."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import replace

import pytest

from conformance.events import Diverged, event_from_json
from conformance.lockstep import Divergence, DivergenceError
from conformance.lockstep.divergence import can_continue, failure_json
from conformance.operations import Operation, Outcome, State, every_signature
from conformance.operations.outcomes import FAILURE
from conformance.report.divergence import format_divergence
from conformance.runs.divergences.deduplication import deduplicate
from conformance.runs.divergences.root_causes import MinimizedDivergence, are_twins, group_by_root_cause
from conformance.runs.divergences.signatures import Buckets

OPEN = Operation("open", ("offset", "0.index", 0, 24, True))
FULL = State(3, 3, True, 24, (2,))
WRONG_FLAG = (("state",), FULL, FULL._replace(full=False))
WRONG_COUNT = (("state",), FULL, FULL._replace(entries=2))
WRONG_BYTES = (("bytes",), b"\0", b"\1")
REFUSED = (("outcome",), Outcome(None, None)[:2], Outcome("io", None)[:2])


def difference(operation, pair, *clauses, step=1, fields=(), arguments=()):
    aspects, expected, actual = pair
    at = Operation(operation, arguments or (0,) * len(every_signature()[operation]))
    return Divergence(step, at, "mine 4.4.0", "4.4.0", "kidx", aspects, expected, actual, clauses, fields)


def case(divergence, *before, attempt=lambda _: None):
    """Make a machine's result for one bucket, with the results of variants of its steps."""
    buckets = Buckets()
    operations = (OPEN, *before, divergence.operation)
    buckets.record(divergence, operations)
    held = {"mine 4.4.0": Counter(divergence.clauses)}
    (distinct,) = deduplicate("offset", buckets, lambda _: "mine", held)
    event = Diverged("offset", {"clauses": []}, (), (), "", "")
    return MinimizedDivergence(distinct, DivergenceError(divergence, operations), event, attempt)


def sights(*cases):
    """Return the operations of the related divergences of each unique divergence."""
    for number, each in enumerate(cases):
        each.unique.first = number
    return {
        one.unique.operation + ":" + one.unique.identity.aspect: [other.unique.operation for other, _ in others]
        for one, others in group_by_root_cause(cases)
    }


def test_one_wrong_flag_of_the_state_is_one_divergence_after_any_operation():
    several = [case(difference(name, WRONG_FLAG, "AI-6")) for name in ("open", "resize", "trim")]
    assert sights(*several) == {"open:state": ["resize", "trim"]}


def test_the_opposite_error_of_a_flag_is_another_divergence():
    other = (("state",), FULL._replace(full=False), FULL)
    assert len(sights(case(difference("open", WRONG_FLAG)), case(difference("resize", other)))) == 2


def test_other_fields_of_the_state_are_separate_divergences_per_operation():
    """Two operations that each lose an entry need not do so for the same reason."""
    assert len(sights(case(difference("truncate", WRONG_COUNT)), case(difference("reset", WRONG_COUNT)))) == 2


def test_a_wrong_result_is_related_to_the_same_state_fields_of_the_same_operation():
    state = case(difference("resize", WRONG_COUNT, fields=("entries",)))
    result = (("outcome", "state"), (None, True), (None, False))
    assert sights(state, case(difference("resize", result, fields=("entries",)))) == {"resize:state": ["resize"]}
    setup = Operation("append", (7, 0)), Operation("append", (9, 0))
    assert len(sights(state, case(difference("resize", result, fields=("length",), step=3), *setup))) == 2
    assert len(sights(state, case(difference("truncate", result, fields=("entries",))))) == 2
    refused = (("outcome", "state"), (None, True), ("io", None))
    assert len(sights(state, case(difference("resize", refused, fields=("entries",), step=3), *setup))) == 2


def test_the_same_flag_of_a_result_is_one_divergence():
    def answer(*clauses, value):
        pair = (("outcome",), (None, (value, False)), (None, (value, True)))
        return case(difference("collect_aborted", pair, *clauses))

    assert sights(answer("TX-9", value=()), answer("TX-21", value=(1,))) == {
        "collect_aborted:outcome": ["collect_aborted"]
    }
    other = (("outcome",), (None, ((), False)), (None, ((1,), False)))
    assert (
        len(group_by_root_cause([answer("TX-9", value=()), case(difference("collect_aborted", other, "TX-21"))])) == 2
    )


def test_crashes_with_the_same_output_are_one_divergence():
    def crash(operation, words, how="ended (exit status 101)"):
        text = f"{how} instead of replying to {operation}; its stderr says:\n{words}"
        return case(difference(operation, (("outcome",), Outcome(None, None)[:2], Outcome(FAILURE, None, text))))

    first = crash("append", "thread 'main' (3275) panicked at index.rs:278:9\n at 0xc000012345")
    again = crash("truncate", "thread 'main' (8057) panicked at index.rs:278:9\n at 0xc0000abcde")
    assert sights(first, again) == {"append:failure": ["truncate"]}
    assert len(sights(first, crash("truncate", "thread 'main' (8057) panicked at index.rs:301:9"))) == 2
    silent = (
        difference(name, (("outcome",), (None, None), Outcome(FAILURE, None, "ended"))) for name in ("open", "trim")
    )
    assert len(sights(*map(case, silent))) == 2
    late = "gave no reply within 10 s"
    assert len(sights(crash("append", "a line of its log", late), crash("trim", "a line of its log", late))) == 2


BULK = (0, 0, 1, 0, 3)


def test_a_bulk_operation_is_related_to_the_divergence_of_its_single_operations():
    first = difference("append", WRONG_BYTES, "OI-3", step=2)
    performed = []

    def attempt(operations):
        performed.append(operations[1:])
        return first

    bulk = case(difference("bulk_append", REFUSED, "OI-23b", arguments=BULK), attempt=attempt)
    assert sights(case(first), bulk) == {"append:bytes": ["append"]}
    assert performed[0] == tuple(Operation("append", (number, 0)) for number in range(3))


def test_single_operations_of_an_earlier_step_explain_nothing():
    """It was set aside when the difference was found, and the last operation differs all the same."""
    first = difference("append", WRONG_BYTES, "OI-3", step=2)
    append = Operation("bulk_append", BULK)
    later = difference("bulk_append", REFUSED, "OI-23b", arguments=BULK, step=2)
    assert len(sights(case(first), case(later, append, attempt=lambda _: first))) == 2


def test_a_divergence_of_single_operations_does_not_explain_one_that_they_show_too():
    first = difference("append", WRONG_BYTES, "OI-3", step=2)
    both = case(difference("bulk_append", REFUSED, "OI-23b", arguments=BULK), attempt=lambda _: first)
    both.unique.shapes.add("append: outcome ok -> io")
    assert len(sights(case(first), both)) == 2


RENAME = Operation("rename", ("missing/0.index",))


@pytest.mark.parametrize(
    ("pair", "clauses", "is_a_sight"),
    [
        (REFUSED, ("OI-10",), True),
        ((("outcome",), (None, 1), (None, 2)), ("OI-10",), False),
        ((("outcome",), ("io", None), (None, None)), ("OI-10",), False),  # a documented error that is missing
        ((("outcome",), ("io", None), (None, None)), ("AI-21b",), True),  # one that no clause promises
        ((("outcome",), (None, None), Outcome(FAILURE, None, "dead")), ("OI-10",), False),
    ],
)
def test_a_failure_in_circumstances_is_related_to_the_one_without_them(pair, clauses, is_a_sight):
    state = difference("truncate", WRONG_COUNT, "OI-10")

    def attempt(operations):
        return None if RENAME in operations else state

    failing = case(difference("truncate", pair, *clauses, step=2), RENAME, attempt=attempt)
    assert len(sights(case(state), failing)) == (1 if is_a_sight else 2)


def test_the_divergence_without_the_circumstances_must_be_in_the_same_step():
    """Otherwise the removed step only prevented another divergence."""
    earlier = difference("append", WRONG_COUNT, "OI-3", step=1)
    failing = case(difference("truncate", REFUSED, "OI-10", step=3), RENAME, RENAME, attempt=lambda _: earlier)
    assert len(sights(case(earlier), failing)) == 2


def test_a_relation_is_transitive_to_the_first_divergence():
    state = difference("append", WRONG_FLAG, "OI-3")
    bulk = case(difference("bulk_append", REFUSED, "OI-23b", arguments=BULK), attempt=lambda _: state)
    assert sights(case(difference("open", WRONG_FLAG, "AI-5")), case(state), bulk) == {
        "open:state": ["append", "append"]
    }


@pytest.mark.parametrize(
    ("operation", "outcomes", "stays"),
    [
        ("close", ("io", None), False),  # closed here, open there: the state does not tell
        ("open", (None, "corrupt"), False),
        ("close", ("io", "closed"), True),
        ("lookup", (None, "io"), True),
    ],
)
def test_a_participant_drops_out_after_it_released_what_the_reference_keeps(operation, outcomes, stays):
    expected, actual = ((error, None) for error in outcomes)
    assert can_continue(difference(operation, (("outcome",), expected, actual))) is stays


def test_related_divergences_are_reported_saved_and_found_by_their_clauses():
    sight = {
        "signature": "close: outcome ok -> io",
        "clause": "AI-21b",
        "clauses": ["AI-21b", "AI-42b"],
        "occurrences": 3,
        "trace": "traces/offset-1.json",
        "reason": "without the rename before it, it shows the difference above",
    }
    divergence = difference("close", WRONG_BYTES, "AI-42b")
    told = Diverged("offset", failure_json(divergence), (), ("close()",), "t.json", "replay", related=(sight,))
    assert told.clauses == ("AI-42b", "AI-21b")
    assert event_from_json(json.loads(json.dumps(told.to_json()))).related == (sight,)
    (line, trace) = format_divergence(told).split("related     ")[1].splitlines()[:2]
    assert line.strip() == (
        "close: outcome ok -> io (AI-21b), 3 times: without the rename before it, it shows the difference above"
    )
    assert trace.strip() == "traces/offset-1.json"


@pytest.mark.parametrize(
    ("clause", "aspect", "release", "expected"),
    [
        ("TI-7", "outcome", "4.4.0", True),
        ("TI-1", "outcome", "4.4.0", False),
        ("TI-7", "state", "4.4.0", False),
        ("TI-7", "outcome", "3.9.1", False),
    ],
)
def test_a_divergence_of_both_kinds_of_index_in_the_same_releases_is_one(clause, aspect, release, expected):
    def distinct(machine, clause, aspect="outcome", release="4.4.0"):
        divergence = replace(difference("lookup", ((aspect,), (None, (0, 0)), (None, (1, 0))), clause), release=release)
        buckets = Buckets()
        buckets.record(divergence, (OPEN, divergence.operation))
        (found,) = deduplicate(machine, buckets, lambda _: "mine", {})
        return found

    assert are_twins(distinct("offset", "OI-7"), distinct("time", clause, aspect, release)) is expected


def test_the_same_steps_in_a_file_of_another_name_are_the_same_divergence():
    """A required base offset is part of the name; if nothing else differs, it is one cause."""
    pair = (("outcome",), (None, (0, 0)), (None, None))

    def in_file(base, *clauses, answer=pair):
        opening = OPEN._replace(args=("offset", f"{base:020d}.index", base, 24, True))
        divergence = difference("lookup", answer, *clauses)
        found = case(divergence)
        return replace(found, minimized=DivergenceError(divergence, (opening, divergence.operation)))

    assert sights(in_file(0, "OI-7"), in_file(-5, "AI-31")) == {"lookup:outcome": ["lookup"]}
    other = (("outcome",), (None, (0, 0)), (None, (1, 1)))
    separate = [in_file(0, "OI-7"), in_file(-5, "AI-31", answer=other)]
    states = [(("state",), FULL, FULL._replace(length=length)) for length in (8, 16)]
    separate += [in_file(-5 * number, answer=state) for number, state in enumerate(states)]
    sights(*separate)
    assert len(group_by_root_cause(separate)) == 4


def test_the_same_steps_but_for_one_operation_have_one_cause():
    """The arguments of one step may differ, or there is one more step after the first divergence."""
    first = case(difference("append", WRONG_BYTES, "AI-1", arguments=(7, 0)))
    other = case(difference("append", REFUSED, "OI-3", "AI-1", arguments=(9, 0)))
    assert sights(first, other) == {"append:bytes": ["append"]}
    foreign = case(difference("append", REFUSED, "OI-3", arguments=(9, 0)))
    assert len(sights(first, foreign)) == 2  # other arguments do not make one cause of two clauses
    twice = case(difference("append", REFUSED, "OI-3", arguments=(9, 0), step=2), Operation("append", (7, 0)))
    assert len(sights(first, twice)) == 2  # executed again, the steps do not show the first divergence

    def shown(*clauses, pair=WRONG_COUNT):
        divergence = difference("lookup", pair, *clauses, arguments=(9,), step=2)
        return case(divergence, Operation("append", (7, 0)), attempt=lambda _: first.minimized.divergence)

    for related in (shown("AI-8", "AI-1"), shown("AI-8", pair=WRONG_BYTES)):
        assert sights(first, related)["append:bytes"] == ["lookup"]
    assert len(sights(first, shown("AI-8"))) == 2  # neither a clause nor an aspect in common
    assert len(sights(first, case(difference("lookup", WRONG_COUNT, "AI-8", arguments=(9,))))) == 2


def test_a_violation_of_a_must_clause_is_not_related_to_a_weaker_one():
    weak = case(difference("append", WRONG_BYTES, "AI-43", arguments=(7, 0)))
    strong = case(difference("append", REFUSED, "OI-3", "AI-43", arguments=(9, 0)))
    assert len(sights(weak, strong)) == 2
    assert sights(strong, weak) == {"append:outcome": ["append"]}
