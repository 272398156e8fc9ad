"""Grouping of divergences of a broker of ``wire:``."""

from __future__ import annotations

from conformance.lockstep.divergence import Divergence
from conformance.lockstep.scopes.wire_topic import Situation, WireDivergenceError
from conformance.operations import Operation
from conformance.runs.wire import group_by_root_cause

GONE = "with deleted records, with an open transaction, with its begin deleted"


def difference(clause, shape):
    what, _, how = shape.partition(": ")
    asked, *where = what.replace(" of LogAppendTime", ", with LogAppendTime").split(", with ")
    step = Operation("create_topic", ({},))
    divergence = Divergence(0, step, "mine", "4.4.0", "kidx", ("outcome",), "a", "b", (clause,))
    found = WireDivergenceError(divergence, (step,), Situation(asked, tuple(where)), how)
    assert found.shape == shape
    return found


def told(*differences):
    return {one.shape: [sight.difference.shape for sight in sights] for one, sights in group_by_root_cause(differences)}


def test_the_same_result_in_more_circumstances_is_related_in_any_order():
    more = difference("LO-6", "list_offsets timestamp of LogAppendTime, with deleted records: a record -> nothing")
    some = difference("LO-6", "list_offsets timestamp, with deleted records: a record -> nothing")
    plain = difference("LO-6", "list_offsets timestamp: a record -> nothing")
    assert told(more, plain, some) == {plain.shape: [more.shape, some.shape]}
    assert told(more, some) == {some.shape: [more.shape]}


def test_another_query_clause_or_result_is_a_separate_divergence():
    plain = difference("LO-6", "list_offsets timestamp: a record -> nothing")
    others = (
        difference("LO-10", "list_offsets -3, with deleted records: a record -> nothing"),
        difference("LO-12", "list_offsets timestamp, with deleted records: a record -> nothing"),
        difference("LO-6", "list_offsets timestamp, with deleted records: a record -> another record"),
    )
    assert list(told(plain, *others).values()) == [[], [], [], []]


def test_consequences_of_the_last_stable_offset_are_grouped_with_it():
    fetched = difference("FE-3", f"fetch, {GONE}: another last stable offset")
    largest = difference("LG-24", f"list_offsets -3, {GONE}: a record -> nothing")
    latest = difference("LO-2b", f"list_offsets -1, {GONE}: a record -> another record")
    assert told(fetched, latest, largest) == {latest.shape: [fetched.shape, largest.shape]}
    assert told(fetched, largest) == {fetched.shape: [], largest.shape: []}


def test_the_same_result_where_the_right_record_is_deleted_is_related():
    left = difference("LO-2b", f"list_offsets -1, {GONE}: a record -> another record")
    gone = difference("LO-2b", f"list_offsets -1, {GONE}: a deleted record -> another record")
    assert told(gone, left) == {left.shape: [gone.shape]}
    assert list(told(gone).values()) == [[]]


def test_the_same_result_after_a_stop_is_related():
    plain = difference("LO-6", "list_offsets timestamp: a record -> nothing")
    after = difference("LO-6", "list_offsets timestamp, with a kill: a record -> nothing")
    assert told(after, plain) == {plain.shape: [after.shape]}


def test_queries_without_a_response_are_one():
    first = difference("LO-10", "list_offsets -3: a record -> CONNECTION_CLOSED")
    others = (
        difference("LO-3a", "list_offsets -4: UNSUPPORTED_VERSION -> CONNECTION_CLOSED"),
        difference("LO-10", "list_offsets -3 of LogAppendTime: nothing -> CONNECTION_CLOSED"),
    )
    apart = (
        difference("LO-1", "list_offsets -2: a record -> UNDECODABLE_ANSWER"),
        difference("LG-12", "delete_before: an answer -> CONNECTION_CLOSED"),
    )
    assert told(others[1], *apart, others[0], first) == {
        apart[0].shape: [],
        apart[1].shape: [],
        first.shape: [others[1].shape, others[0].shape],
    }
