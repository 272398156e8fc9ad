"""What many sightings come to: which clause fails, and which sightings are one difference."""

from __future__ import annotations

from collections import Counter

from conformance.lockstep import Divergence
from conformance.operations import Operation, Outcome
from conformance.runs.differences.distinct import distinct_differences
from conformance.runs.differences.shapes import shape_of
from conformance.runs.differences.sightings import Sightings


def difference(*clauses, release="4.4.0", operation="lookup", aspects=("outcome",), expected=None, actual=None):
    pair = (expected, actual)
    if aspects[0] == "outcome":
        pair = (expected or Outcome(None, 1), actual or Outcome(None, 2))
    return Divergence(1, Operation(operation), f"mine {release}", release, "kidx", aspects, *pair, clauses)


def distinct(*seen, held=(), machine="offset"):
    sightings = Sightings()
    for divergence, times in seen:
        for _ in range(times):
            sightings.see(divergence, [Operation("open"), divergence.operation])
    counts = {f"mine {release}": Counter(dict(held)) for release in ("3.9.1", "4.4.0")}
    return distinct_differences(machine, sightings, lambda _: "mine", counts)


def test_an_operation_that_is_always_wrong_is_one_difference_of_its_general_clause():
    (found,) = distinct((difference("OI-5", "OI-7"), 5), (difference("OI-8a", "OI-7"), 9), (difference("OI-7"), 1))
    assert (found.clause, found.count) == ("OI-7", 15)


def test_an_operation_whose_own_clause_never_holds_is_one_difference_with_all_that_follows():
    (found,) = distinct((difference("OI-8a", "OI-1"), 9), (difference("OI-8d"), 4), (difference("AI-19a"), 1))
    assert (found.clause, found.count) == ("OI-1", 14)


def test_what_nobody_promises_follows_from_a_broken_promise_of_the_operation():
    (found,) = distinct((difference("OI-7"), 9), (difference("AI-11b"), 4), held={"OI-7": 40})
    assert (found.clause, found.count) == ("OI-7", 13)
    other = difference("AI-11b", operation="entry")
    assert len(distinct((difference("OI-7"), 9), (other, 4), held={"OI-7": 40})) == 2


def test_what_is_wrong_in_one_situation_is_a_difference_of_the_particular_clause():
    (found,) = distinct((difference("OI-5", "OI-7"), 5), held={"OI-7": 40})
    assert found.clause == "OI-5"


def test_two_defects_of_one_operation_do_not_hide_each_other():
    found = distinct((difference("OI-5", "OI-7"), 5), (difference("OI-8a", "OI-7"), 9), held={"OI-7": 40})
    assert sorted(one.clause for one in found) == ["OI-5", "OI-8a"]


def test_too_few_sightings_say_nothing_about_the_situation():
    (found,) = distinct((difference("OI-5", "OI-7"), 1), (difference("OI-8a", "OI-7"), 2), held={"OI-7": 40})
    assert found.clause == "OI-7"


def test_a_general_clause_that_holds_elsewhere_keeps_operations_apart():
    found = distinct(
        (difference("OI-2", aspects=("state",)), 1),
        (difference("OI-2", operation="truncate_to", aspects=("state",)), 1),
        held={"OI-2": 100},
    )
    assert [one.clause for one in found] == ["OI-2", "OI-2"]


def test_releases_are_one_difference_the_newest_first_and_variants_of_a_clause_too():
    (found,) = distinct(
        (difference("AI-44a", release="3.9.1"), 4), (difference("AI-44b", release="4.4.0"), 4), held={"AI-7": 9}
    )
    assert found.releases == ("4.4.0", "3.9.1")
    assert found.sighting.divergence.release == "4.4.0"


def test_aspects_are_differences_of_their_own():
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
    assert shape_of(difference(expected=["0.index"], actual=["0.index", "lock"], aspects=("bytes",))) == "directory"
    assert shape_of(difference(actual=Outcome("failure", None, "ended"))) == "lookup: failure"
    assert shape_of(difference("OI-7", aspects=("state", "bytes"))) == "lookup: state"


def test_the_shortest_steps_stand_for_a_kind_and_the_earlier_of_equally_long_ones():
    mine, theirs = Sightings(), Sightings()
    long, short = [Operation("open")] * 3, [Operation("open"), Operation("lookup")]
    mine.see(difference("OI-7"), long)
    theirs.see(difference("OI-7"), short)
    theirs.see(difference("OI-7"), [Operation("open"), Operation("entry")])
    mine.merge(theirs)
    ((_, sighting),) = mine.items()
    assert (sighting.count, list(sighting.operations)) == (3, short)
