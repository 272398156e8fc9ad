"""Divergences of a run: their signatures, which are the same, and which have one cause."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import replace
from types import SimpleNamespace

import pytest

from conformance.errors import ToolError
from conformance.events import Diverged, Event, RunFinished, event_from_json
from conformance.expectations import ExpectationTracker, read_expectations
from conformance.lockstep import Divergence, DivergenceError
from conformance.lockstep.divergence import FileDifference, can_continue, failure_json
from conformance.operations import OK, Operation, Outcome, State, every_signature
from conformance.operations.outcomes import FAILURE
from conformance.report.divergence import format_divergence
from conformance.report.stream import CombinedSink
from conformance.runs import divergence_event, divergence_reporter
from conformance.runs.divergence_reporter import TWIN, DivergenceReporter
from conformance.runs.divergences.deduplication import deduplicate
from conformance.runs.divergences.root_causes import are_twins, group_by_root_cause
from conformance.runs.divergences.signatures import Buckets, signature_detail, signature_of
from conformance.runs.plan import Plan
from conformance.runs.profiles import PROFILES
from conformance.runs.runner import run

# -- Deduplication of occurrences: which clause fails, and which occurrences are one divergence --------------------


def difference(*clauses, release="4.4.0", operation="lookup", aspects=("outcome",), expected=None, actual=None):
    pair = (expected, actual)
    if aspects[0] == "outcome":
        pair = (expected or Outcome(None, 1), actual or Outcome(None, 2))
    return Divergence(1, Operation(operation), f"mine {release}", release, "kidx", aspects, *pair, clauses)


def distinct(*seen, held=(), machine="offset"):
    buckets = Buckets()
    for divergence, times in seen:
        for _ in range(times):
            buckets.record(divergence, [Operation("open"), divergence.operation])
    counts = {f"mine {release}": Counter(dict(held)) for release in ("3.9.1", "4.4.0")}
    return deduplicate(machine, buckets, lambda _: "mine", counts)


def test_an_operation_that_is_always_wrong_is_one_divergence_of_its_general_clause():
    (found,) = distinct((difference("OI-5", "OI-7"), 5), (difference("OI-8a", "OI-7"), 9), (difference("OI-7"), 1))
    assert (found.clause, found.count) == ("OI-7", 15)


def test_an_operation_whose_own_clause_never_holds_includes_its_consequences():
    (found,) = distinct((difference("OI-8a", "OI-1"), 9), (difference("OI-8d"), 4), (difference("AI-19a"), 1))
    assert (found.clause, found.count) == ("OI-1", 14)


def test_an_observed_divergence_follows_from_a_broken_promise_of_the_operation():
    (found,) = distinct((difference("OI-7"), 9), (difference("AI-11b"), 4), held={"OI-7": 40})
    assert (found.clause, found.count) == ("OI-7", 13)
    other = difference("AI-11b", operation="entry")
    assert len(distinct((difference("OI-7"), 9), (other, 4), held={"OI-7": 40})) == 2


def test_a_divergence_in_one_situation_belongs_to_the_specific_clause():
    (found,) = distinct((difference("OI-5", "OI-7"), 5), held={"OI-7": 40})
    assert found.clause == "OI-5"


def test_two_defects_of_one_operation_do_not_hide_each_other():
    found = distinct((difference("OI-5", "OI-7"), 5), (difference("OI-8a", "OI-7"), 9), held={"OI-7": 40})
    assert sorted(one.clause for one in found) == ["OI-5", "OI-8a"]


def test_too_few_occurrences_prove_nothing_about_the_situation():
    (found,) = distinct((difference("OI-5", "OI-7"), 1), (difference("OI-8a", "OI-7"), 2), held={"OI-7": 40})
    assert found.clause == "OI-7"


def test_a_divergence_of_bytes_only_belongs_to_the_layout():
    for aspect, clause in (("bytes", "OI-1"), ("outcome", "OI-3")):
        seen = difference("AI-1", "OI-1", "OI-3", operation="append", aspects=(aspect,))
        (found,) = distinct((seen, 2), held={"AI-1": 9, "OI-1": 9, "OI-3": 9})
        assert found.clause == clause


def test_a_general_clause_that_holds_elsewhere_separates_operations():
    found = distinct(
        (difference("OI-2", aspects=("state",)), 1),
        (difference("OI-2", operation="truncate_to", aspects=("state",)), 1),
        held={"OI-2": 100},
    )
    assert [one.clause for one in found] == ["OI-2", "OI-2"]


def test_releases_and_variants_of_a_clause_are_one_divergence_newest_first():
    (found,) = distinct(
        (difference("AI-44a", release="3.9.1"), 4), (difference("AI-44b", release="4.4.0"), 4), held={"AI-7": 9}
    )
    assert found.releases == ("4.4.0", "3.9.1")
    assert found.representative.divergence.release == "4.4.0"


def test_aspects_are_separate_divergences():
    assert len(distinct((difference("OI-7"), 3), (difference("OI-7", aspects=("state", "bytes")), 3))) == 2


def test_without_a_clause_the_shape_decides():
    full = difference(operation="append", actual=Outcome("full", None))
    closed = difference(operation="append", actual=Outcome("closed", None))
    found = distinct((full, 2), (closed, 2), (difference(operation="close", aspects=("bytes",)), 1))
    assert [one.shape for one in found] == [
        "append: outcome ok -> full",
        "append: outcome ok -> closed",
        "close: bytes",
    ]
    assert not any(one.clause for one in found)


def test_shapes():
    assert signature_of(difference(expected=["0.index"], actual=["0.index", "lock"], aspects=("bytes",))) == "directory"
    assert signature_of(difference(actual=Outcome("failure", None, "ended"))) == "lookup: failure"
    assert signature_of(difference("OI-7", aspects=("state", "bytes"))) == "lookup: state"


def test_a_bucket_is_represented_by_its_shortest_then_earliest_steps():
    mine, theirs = Buckets(), Buckets()
    long, short = [Operation("open")] * 3, [Operation("open"), Operation("lookup")]
    mine.record(difference("OI-7"), long)
    theirs.record(difference("OI-7"), short)
    theirs.record(difference("OI-7"), [Operation("open"), Operation("entry")])
    mine.merge(theirs)
    ((_, bucket),) = mine.items()
    assert (bucket.count, list(bucket.operations)) == (3, short)


CLOSED, OFFSET = Outcome("closed", None), Outcome("invalid_offset", None)


def seen_after(*pairs):
    """Return the one divergence of occurrences, each with its number of steps."""
    buckets = Buckets()
    for divergence, steps in pairs:
        buckets.record(divergence, [Operation("open")] * (steps - 1) + [divergence.operation])
    (found,) = deduplicate("offset", buckets, lambda _: "mine", {})
    return found


def test_a_bucket_is_represented_by_its_gravest_occurrence():
    """The kind of error is less important than other aspects; the other occurrences are retained."""
    kind = difference("OI-3", operation="append", expected=OFFSET, actual=CLOSED)
    accepted = difference("OI-3", operation="append", expected=OFFSET)
    found = seen_after((kind, 2), (kind, 3), (accepted, 9))
    assert found.representative.divergence is accepted
    assert [(bucket.divergence, times) for bucket, times in found.other_forms] == [(kind, 2)]


def test_a_wrong_answer_stands_for_a_missing_one():
    nothing = difference("OI-7", actual=Outcome(None, None))
    wrong = difference("OI-7")
    found = seen_after((nothing, 2), (wrong, 9))
    assert found.representative.divergence is wrong


def test_an_occurrence_without_special_circumstances_represents_equal_ones():
    empty = difference("AI-31", "OI-7")
    among_entries = difference("OI-7")
    found = seen_after((empty, 2), (among_entries, 5))
    assert found.representative.divergence is among_entries
    assert found.other_forms == []
    assert not found.matches_participant(empty)
    assert found.matches_participant(difference("OI-7", actual=Outcome(None, 3)))


def test_different_bytes_are_graver_than_a_different_error():
    kind = difference("OI-3", operation="append", expected=OFFSET, actual=CLOSED)
    bytes_too = difference("OI-3", operation="append", expected=OFFSET, actual=CLOSED, aspects=("outcome", "bytes"))
    found = seen_after((kind, 2), (bytes_too, 9))
    assert found.representative.divergence is bytes_too
    assert not found.matches_participant(kind)


# -- Details that distinguish divergences of one signature in logs, and expectations that name them ----------------


ASKED = Operation("list_offsets", ((-1, -3, 10, 20),))


def distinct_by(operation, aspect, *, expected=OK, actual=OK, **about):
    who = "mine 4.3.1", "4.3.1", "kidx"
    return Divergence(3, operation, *who, (aspect,), expected, actual, (), **about)


@pytest.mark.parametrize(
    ("divergence", "named"),
    [
        (
            distinct_by(Operation("truncate_log", (1,)), "state", fields=("high_watermark", "end_offset")),
            "truncate_log: state of end_offset, high_watermark",
        ),
        (
            distinct_by(
                Operation("close_log", (True,)),
                "bytes",
                files=tuple(map(FileDifference, ("0.timeindex", "7.timeindex", "leader-epoch-checkpoint"))),
            ),
            "close_log: bytes of .timeindex, leader-epoch-checkpoint",
        ),
        (
            distinct_by(
                ASKED,
                "outcome",
                expected=(None, ((5, 1), (9, 1), None, None)),
                actual=(None, ((5, 1), None, None, (20, 2))),
            ),
            "list_offsets: outcome ok -> ok of -3, times",
        ),
        (
            distinct_by(ASKED, "outcome", expected=(None, ((5, 1),)), actual=Outcome("io", None)),
            "list_offsets: outcome ok -> io",
        ),
        (distinct_by(Operation("append", (1, 2)), "bytes", files=(FileDifference(""),)), "append: bytes"),
    ],
)
def test_the_parts_that_differ_are_named_once_and_in_order(divergence, named):
    assert signature_of(divergence) + signature_detail(divergence) == named


ENTRY = """
[[expectation]]
signature = "{}"
machine = "log"
implementation = "mine"
releases = ">=4.0.0"
reason = "a debt"
link = "https://example.org/7"
"""


@pytest.mark.parametrize(
    ("shape", "is_met"),
    [
        ("truncate_log: state", True),
        ("truncate_log: state of end_offset", True),
        ("truncate_log: state of *end_offset*", True),
        ("truncate_log: state of high_watermark", False),
        ("truncate_log: bytes of end_offset", False),
    ],
)
def test_an_expectation_may_name_them_or_not(shape, is_met):
    ledger = ExpectationTracker(read_expectations("mine.toml", ENTRY.format(shape)))
    found = ledger.find((), "truncate_log: state", "log", "mine", "4.3.1", " of end_offset")
    assert (found == 0) is is_met


# -- Grouping by root cause: the five ways in which divergences are grouped, and which are never grouped -----------


OPEN = Operation("open", ("offset", "0.index", 0, 24, True))
FULL = State(3, 3, True, 24, (2,))
WRONG_FLAG = (("state",), FULL, FULL._replace(full=False))
WRONG_COUNT = (("state",), FULL, FULL._replace(entries=2))
WRONG_BYTES = (("bytes",), b"\0", b"\1")
REFUSED = (("outcome",), Outcome(None, None)[:2], Outcome("io", None)[:2])


def unlike(operation, pair, *clauses, step=1, fields=(), arguments=()):
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
    distinct.minimized = DivergenceError(divergence, operations)
    distinct.event = Diverged("offset", {"clauses": []}, (), (), "", "")
    distinct.attempt = attempt
    return distinct


def grouped(cases):
    return group_by_root_cause(cases, lambda one, operations: one.attempt(operations))


def sights(*cases):
    """Return the operations of the related divergences of each unique divergence."""
    for number, each in enumerate(cases):
        each.first = number
    return {
        one.operation + ":" + one.identity.aspect: [other.operation for other, _ in others]
        for one, others in grouped(cases)
    }


def test_one_wrong_flag_of_the_state_is_one_divergence_after_any_operation():
    several = [case(unlike(name, WRONG_FLAG, "AI-6")) for name in ("open", "resize", "trim")]
    assert sights(*several) == {"open:state": ["resize", "trim"]}


def test_the_opposite_error_of_a_flag_is_another_divergence():
    other = (("state",), FULL._replace(full=False), FULL)
    assert len(sights(case(unlike("open", WRONG_FLAG)), case(unlike("resize", other)))) == 2


def test_other_fields_of_the_state_are_separate_divergences_per_operation():
    """Two operations that each lose an entry need not do so for the same reason."""
    assert len(sights(case(unlike("truncate", WRONG_COUNT)), case(unlike("reset", WRONG_COUNT)))) == 2


def test_a_wrong_result_is_related_to_the_same_state_fields_of_the_same_operation():
    state = case(unlike("resize", WRONG_COUNT, fields=("entries",)))
    result = (("outcome", "state"), (None, True), (None, False))
    assert sights(state, case(unlike("resize", result, fields=("entries",)))) == {"resize:state": ["resize"]}
    setup = Operation("append", (7, 0)), Operation("append", (9, 0))
    assert len(sights(state, case(unlike("resize", result, fields=("length",), step=3), *setup))) == 2
    assert len(sights(state, case(unlike("truncate", result, fields=("entries",))))) == 2
    refused = (("outcome", "state"), (None, True), ("io", None))
    assert len(sights(state, case(unlike("resize", refused, fields=("entries",), step=3), *setup))) == 2


def test_the_same_flag_of_a_result_is_one_divergence():
    def answer(*clauses, value):
        pair = (("outcome",), (None, (value, False)), (None, (value, True)))
        return case(unlike("collect_aborted", pair, *clauses))

    assert sights(answer("TX-9", value=()), answer("TX-21", value=(1,))) == {
        "collect_aborted:outcome": ["collect_aborted"]
    }
    other = (("outcome",), (None, ((), False)), (None, ((1,), False)))
    assert len(grouped([answer("TX-9", value=()), case(unlike("collect_aborted", other, "TX-21"))])) == 2


def test_crashes_with_the_same_output_are_one_divergence():
    def crash(operation, words, how="ended (exit status 101)"):
        text = f"{how} instead of replying to {operation}; its stderr says:\n{words}"
        return case(unlike(operation, (("outcome",), Outcome(None, None)[:2], Outcome(FAILURE, None, text))))

    first = crash("append", "thread 'main' (3275) panicked at index.rs:278:9\n at 0xc000012345")
    again = crash("truncate", "thread 'main' (8057) panicked at index.rs:278:9\n at 0xc0000abcde")
    assert sights(first, again) == {"append:failure": ["truncate"]}
    assert len(sights(first, crash("truncate", "thread 'main' (8057) panicked at index.rs:301:9"))) == 2
    silent = (unlike(name, (("outcome",), (None, None), Outcome(FAILURE, None, "ended"))) for name in ("open", "trim"))
    assert len(sights(*map(case, silent))) == 2
    late = "gave no reply within 10 s"
    assert len(sights(crash("append", "a line of its log", late), crash("trim", "a line of its log", late))) == 2


BULK = (0, 0, 1, 0, 3)


def test_a_bulk_operation_is_related_to_the_divergence_of_its_single_operations():
    first = unlike("append", WRONG_BYTES, "OI-3", step=2)
    performed = []

    def attempt(operations):
        performed.append(operations[1:])
        return first

    bulk = case(unlike("bulk_append", REFUSED, "OI-23b", arguments=BULK), attempt=attempt)
    assert sights(case(first), bulk) == {"append:bytes": ["append"]}
    assert performed[0] == tuple(Operation("append", (number, 0)) for number in range(3))


def test_single_operations_of_an_earlier_step_explain_nothing():
    """It was set aside when the difference was found, and the last operation differs all the same."""
    first = unlike("append", WRONG_BYTES, "OI-3", step=2)
    append = Operation("bulk_append", BULK)
    later = unlike("bulk_append", REFUSED, "OI-23b", arguments=BULK, step=2)
    assert len(sights(case(first), case(later, append, attempt=lambda _: first))) == 2


def test_a_divergence_of_single_operations_does_not_explain_one_that_they_show_too():
    first = unlike("append", WRONG_BYTES, "OI-3", step=2)
    both = case(unlike("bulk_append", REFUSED, "OI-23b", arguments=BULK), attempt=lambda _: first)
    both.shapes.add("append: outcome ok -> io")
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
    state = unlike("truncate", WRONG_COUNT, "OI-10")

    def attempt(operations):
        return None if RENAME in operations else state

    failing = case(unlike("truncate", pair, *clauses, step=2), RENAME, attempt=attempt)
    assert len(sights(case(state), failing)) == (1 if is_a_sight else 2)


def test_the_divergence_without_the_circumstances_must_be_in_the_same_step():
    """Otherwise the removed step only prevented another divergence."""
    earlier = unlike("append", WRONG_COUNT, "OI-3", step=1)
    failing = case(unlike("truncate", REFUSED, "OI-10", step=3), RENAME, RENAME, attempt=lambda _: earlier)
    assert len(sights(case(earlier), failing)) == 2


def test_a_relation_is_transitive_to_the_first_divergence():
    state = unlike("append", WRONG_FLAG, "OI-3")
    bulk = case(unlike("bulk_append", REFUSED, "OI-23b", arguments=BULK), attempt=lambda _: state)
    assert sights(case(unlike("open", WRONG_FLAG, "AI-5")), case(state), bulk) == {"open:state": ["append", "append"]}


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
    assert can_continue(unlike(operation, (("outcome",), expected, actual))) is stays


def test_a_participant_without_a_state_drops_out_after_an_append_that_one_side_rejects():
    one = unlike("append", (("outcome",), ("invalid_argument", None), (None, None)), "OI-3")
    assert can_continue(one)
    assert not can_continue(replace(one, reports_state=False))
    assert can_continue(replace(unlike("append", (("outcome",), ("io", None), ("closed", None))), reports_state=False))


@pytest.mark.parametrize("operation", ["verify_transaction", "assign_topic_id", "raise_high_watermark"])
def test_a_participant_drops_out_after_another_result_that_changes_what_no_state_includes(operation):
    assert not can_continue(unlike(operation, (("outcome",), ("producer_fenced", None), (None, True))))
    assert can_continue(unlike(operation, (("outcome",), ("io", None), ("kafka", None))))


def test_a_segment_drops_out_after_another_capacity_of_an_index():
    """A roll depends on it, and a segment has no history."""
    one = unlike("resize_indexes", (("state",), None, None), "SEG-25", fields=("time_index.max_entries",))
    assert not can_continue(one, "must")
    assert can_continue(replace(one, fields=("max_entries",)), "must")


def test_related_divergences_are_reported_saved_and_found_by_their_clauses():
    sight = {
        "signature": "close: outcome ok -> io",
        "clause": "AI-21b",
        "clauses": ["AI-21b", "AI-42b"],
        "occurrences": 3,
        "trace": "traces/offset-1.json",
        "reason": "without the rename before it, it shows the difference above",
    }
    divergence = unlike("close", WRONG_BYTES, "AI-42b")
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
        divergence = replace(unlike("lookup", ((aspect,), (None, (0, 0)), (None, (1, 0))), clause), release=release)
        buckets = Buckets()
        buckets.record(divergence, (OPEN, divergence.operation))
        (found,) = deduplicate(machine, buckets, lambda _: "mine", {})
        return found

    assert are_twins(distinct("offset", "OI-7"), distinct("time", clause, aspect, release)) is expected


def test_what_is_related_to_a_twin_is_known_too():
    """The related divergences of a twin are reported with it, and counted once."""
    cases = [distinct((difference(clause), 2), machine=machine)[0] for machine, clause in
             (("offset", "OI-7"), ("time", "TI-7"), ("time", "TI-8a"))]  # fmt: skip
    reported, twin, related = cases
    for one in cases:
        one.event = Diverged("offset", failure_json(difference(one.clause)), (), ("lookup(5)",), "t.json", "replay")
    reporter = DivergenceReporter(SimpleNamespace(stop_at_first=False), 0, lambda _: None)
    reporter._emit_group(reported, [])
    assert reporter._is_twin(twin, [(related, "why")])
    assert [one.clause for one in reporter._unique_for_machine([twin, related])] == ["TI-7"]
    ((_, event),) = reporter._events
    assert [one["reason"] for one in event.related] == [TWIN, "why"]
    assert reported.count == 6


def test_the_same_steps_in_a_file_of_another_name_are_the_same_divergence():
    """A required base offset is part of the name; if nothing else differs, it is one cause."""
    pair = (("outcome",), (None, (0, 0)), (None, None))

    def in_file(base, *clauses, answer=pair):
        opening = OPEN._replace(args=("offset", f"{base:020d}.index", base, 24, True))
        divergence = unlike("lookup", answer, *clauses)
        found = case(divergence)
        found.minimized = DivergenceError(divergence, (opening, divergence.operation))
        return found

    assert sights(in_file(0, "OI-7"), in_file(-5, "AI-31")) == {"lookup:outcome": ["lookup"]}
    other = (("outcome",), (None, (0, 0)), (None, (1, 1)))
    separate = [in_file(0, "OI-7"), in_file(-5, "AI-31", answer=other)]
    states = [(("state",), FULL, FULL._replace(length=length)) for length in (8, 16)]
    separate += [in_file(-5 * number, answer=state) for number, state in enumerate(states)]
    sights(*separate)
    assert len(grouped(separate)) == 4


def test_the_same_steps_but_for_one_operation_have_one_cause():
    """The arguments of one step may differ, or there is one more step after the first divergence."""
    first = case(unlike("append", WRONG_BYTES, "AI-1", arguments=(7, 0)))
    other = case(unlike("append", REFUSED, "OI-3", "AI-1", arguments=(9, 0)))
    assert sights(first, other) == {"append:bytes": ["append"]}
    foreign = case(unlike("append", REFUSED, "OI-3", arguments=(9, 0)))
    assert len(sights(first, foreign)) == 2  # other arguments do not make one cause of two clauses
    twice = case(unlike("append", REFUSED, "OI-3", arguments=(9, 0), step=2), Operation("append", (7, 0)))
    assert len(sights(first, twice)) == 2  # executed again, the steps do not show the first divergence

    def shown(*clauses, pair=WRONG_COUNT):
        divergence = unlike("lookup", pair, *clauses, arguments=(9,), step=2)
        return case(divergence, Operation("append", (7, 0)), attempt=lambda _: first.minimized.divergence)

    for related in (shown("AI-8", "AI-1"), shown("AI-8", pair=WRONG_BYTES)):
        assert sights(first, related)["append:bytes"] == ["lookup"]
    assert len(sights(first, shown("AI-8"))) == 2  # neither a clause nor an aspect in common
    assert len(sights(first, case(unlike("lookup", WRONG_COUNT, "AI-8", arguments=(9,))))) == 2


def test_a_violation_of_a_must_clause_is_not_related_to_a_weaker_one():
    weak = case(unlike("append", WRONG_BYTES, "AI-43", arguments=(7, 0)))
    strong = case(unlike("append", REFUSED, "OI-3", "AI-43", arguments=(9, 0)))
    assert len(sights(weak, strong)) == 2
    assert sights(strong, weak) == {"append:outcome": ["append"]}


# -- Whatever fails while a difference is shrunk, written or reported: the difference itself is never lost ---------


OFF_BY_ONE = "python:tests.adapters.python_index:open_off_by_one"


def plan(directory, **options):
    """Run an index whose lookup is off by one."""
    options = {"max_examples": 12, "replays": False, "shrink_time": 5.0} | options
    return Plan(("4.4.0",), (OFF_BY_ONE,), ("offset",), PROFILES["dev"], directory, **options)


def events_of(a_plan):
    events: list[Event] = []
    assert not run(a_plan, events.append)
    assert events[-1].verdict == "diverges"
    return [event for event in events if isinstance(event, Diverged)]


def broken(*_arguments, **_options):
    return 1 // 0


@pytest.mark.thorough
def test_a_shrinker_that_fails_costs_the_shrinking(tmp_path, monkeypatch):
    monkeypatch.setattr(divergence_reporter, "shrink_divergence", broken)
    (event,) = events_of(plan(tmp_path))
    assert event.clause == "OI-7"
    assert event.shrinking.startswith("not shrunk, because the shrinker failed: ZeroDivisionError")
    assert event.trace
    assert "the shrinker failed" in format_divergence(event)


@pytest.mark.thorough
def test_a_failing_grouping_costs_only_the_grouping(tmp_path, monkeypatch):
    monkeypatch.setattr(divergence_reporter, "group_by_root_cause", broken)
    (event,) = events_of(plan(tmp_path))
    assert event.shrinking == "minimal"


@pytest.mark.thorough
def test_a_directory_that_cannot_be_written_costs_the_trace(tmp_path):
    (tmp_path / "file").write_text("")
    (event,) = events_of(plan(tmp_path / "file" / "traces"))
    assert (event.trace, event.replay) == ("", "")
    assert event.note.startswith("cannot write the trace")
    assert event.note.endswith("Not a directory")
    text = format_divergence(event)
    assert f"  note         {event.note}" in text
    assert "replay" not in text


@pytest.mark.thorough
def test_a_trace_that_cannot_be_encoded_costs_the_trace(tmp_path, monkeypatch):
    monkeypatch.setattr(divergence_event.Trace, "save", broken)
    (event,) = events_of(plan(tmp_path))
    assert event.note.startswith("cannot write its trace: ZeroDivisionError")


class TestTogether:
    EVENT = Diverged("offset", {"participant": "mine 4.4.0"}, (("OI-7", "MUST", "…"),), ("open()", "lookup(1)"), "", "")

    def test_a_failing_writer_costs_only_its_output(self):
        seen = []

        def fails_at_differences(event):
            if isinstance(event, Diverged):
                broken()
            seen.append(event)

        together = CombinedSink([fails_at_differences, seen.append])
        footer = RunFinished("diverges", 1, 0.1)
        for event in (self.EVENT, self.EVENT, footer):
            together(event)
        assert seen == [self.EVENT, self.EVENT, footer, footer]
        (line,) = together.failures
        assert "function could not write the divergence of mine 4.4.0 (OI-7) after lookup(1)" in line

    def test_a_full_disk_is_noted_once(self):
        def full(_event):
            raise ToolError("cannot write the report out/events.ndjson: No space left on device")

        together = CombinedSink([full])
        together(self.EVENT)
        together(self.EVENT)
        assert together.failures == ["cannot write the report out/events.ndjson: No space left on device"]

    def test_a_closed_output_ends_the_run(self):
        def closed(_event):
            raise BrokenPipeError

        with pytest.raises(BrokenPipeError):
            CombinedSink([closed])(self.EVENT)
