"""Deduplication of occurrences: which clause fails, and which occurrences are one divergence."""

from __future__ import annotations

from collections import Counter

from conformance.lockstep import Divergence
from conformance.operations import Operation, Outcome
from conformance.runs.divergences.deduplication import deduplicate
from conformance.runs.divergences.signatures import Buckets, signature_of


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
