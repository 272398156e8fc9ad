"""The contract of ListOffsets, by hand, for cases with one right result or several."""

from __future__ import annotations

import pytest

from conformance.implementations.wire.contract import NOTHING, ListOffsetsContract, Pair
from conformance.implementations.wire.partition_history import PartitionHistory, StoredBatch, StoredRecord, committed
from conformance.kafka.client import AbortedTransaction, PartitionOffsetResponse

ABORT = b"\0\0\0\0"
COMMIT = b"\0\0\0\1"


def stored(base, *times, producer=-1, marker=None):
    records = tuple(StoredRecord(base + number, time, marker) for number, time in enumerate(times))
    transactional = producer >= 0
    last = base + len(times) - 1
    return StoredBatch(base, last, max(times), 0, producer, transactional, marker is not None, records)


def account(*batches, start=0):
    found = PartitionHistory(0, start)
    for batch in batches:
        found.add(batch)
    return found


def allowed(of, target, view="read_uncommitted"):
    return set(ListOffsetsContract(of).allowed(target, view))


def test_the_earliest_record_at_or_after_a_timestamp_is_the_only_result():
    of = account(stored(0, 50, 80, 20), stored(3, 80), stored(4, 90))
    assert allowed(of, 0) == allowed(of, 50) == {Pair(0, 50)}
    assert allowed(of, 51) == allowed(of, 80) == {Pair(1, 80)}
    assert allowed(of, 81) == {Pair(4, 90)}
    assert allowed(of, 91) == {NOTHING}


def test_deleted_records_may_hide_later_ones_but_need_not():
    of = account(stored(0, 50, 80, 20), stored(3, 90), start=2)
    assert allowed(of, 60) == {Pair(3, 90), NOTHING}
    assert allowed(of, 85) == {Pair(3, 90)}


def test_records_without_timestamps_may_hide_later_ones():
    assert allowed(account(stored(0, -1, -1), stored(2, 50)), 10) == {Pair(2, 50), NOTHING}


def test_undecided_records_are_found_by_readers_of_uncommitted_data_only():
    of = account(stored(0, 50), stored(1, 60, producer=7), stored(2, 70))
    assert allowed(of, 55) == {Pair(1, 60)}
    assert allowed(of, 55, "read_committed") == {NOTHING}
    assert allowed(of, -1) == {Pair(3, -1)}
    assert allowed(of, -1, "read_committed") == {Pair(1, -1)}
    assert allowed(of, -1, "replica") == {Pair(3, -1)}


def test_aborted_records_and_markers_may_be_passed_over():
    of = account(stored(0, 50), stored(1, 60, producer=7), stored(2, 70, producer=7, marker=ABORT), stored(3, 80))
    assert allowed(of, 55, "read_committed") == {Pair(1, 60), Pair(3, 80)}
    assert allowed(of, 55) == {Pair(1, 60)}
    assert allowed(of, 65) == {Pair(2, 70), Pair(3, 80)}


def test_the_last_stable_offset_of_a_cut_transaction_may_be_its_batch():
    of = account(stored(0, 50, 60, 70, producer=7), stored(3, 80), start=1)
    assert allowed(of, -1, "read_committed") == {Pair(1, -1), Pair(0, -1)}


def test_the_largest_timestamp_is_from_any_record_that_has_it():
    of = account(stored(0, 50, 80, 20), stored(3, 80))
    assert allowed(of, -3) == {Pair(1, 80), Pair(3, 80)}
    assert allowed(account(), -3) == {NOTHING}


def test_the_largest_timestamp_may_be_from_a_deleted_record_until_retention():
    of = account(stored(0, 99), stored(1, 50, 80, 20), start=1)
    assert allowed(of, -3) == {Pair(0, 99), Pair(2, 80)}


def test_an_uncommitted_larger_timestamp_may_hide_the_largest_visible_one():
    of = account(stored(0, 50), stored(1, 60, producer=7))
    assert allowed(of, -3, "read_committed") == {Pair(0, 50), NOTHING}


@pytest.mark.parametrize(
    ("target", "version", "answer", "clause"),
    [
        (60, 1, PartitionOffsetResponse("t", 0, None, 0, 50), "LO-6"),
        (60, 1, PartitionOffsetResponse("t", 0, None, 1, 60), None),
        (60, 4, PartitionOffsetResponse("t", 0, None, 1, 60, 0), None),
        (60, 4, PartitionOffsetResponse("t", 0, None, 1, 60, 5), "LO-14"),
        (99, 4, PartitionOffsetResponse("t", 0, None, -1, 99, -1), "LO-14"),
        (99, 4, PartitionOffsetResponse("t", 0, None, -1, -1, 0), "LO-14"),
        (99, 4, PartitionOffsetResponse("t", 0, None, 2, -1, -1), "LO-12"),
        (60, 4, PartitionOffsetResponse("t", 0, "UNKNOWN_SERVER_ERROR"), "LO-6"),
        (-3, 7, PartitionOffsetResponse("t", 0, "UNSUPPORTED_VERSION"), "LO-10"),
        (-3, 6, PartitionOffsetResponse("t", 0, "UNSUPPORTED_VERSION"), None),
        (-7, 9, PartitionOffsetResponse("t", 0, None, 0, 50), None),
        (-7, 9, PartitionOffsetResponse("t", 0, None, 2, -1), "LO-15c"),
        (-3, 6, PartitionOffsetResponse("t", 0, None, 0, -3), "LO-15c"),
        (-5, 9, PartitionOffsetResponse("t", 0, None, -1, -1), None),
        (-4, 8, PartitionOffsetResponse("t", 0, None, -1, -1), "LO-3a"),
        (-2, 1, PartitionOffsetResponse("t", 0, None, 1, -1), "LO-1"),
    ],
)
def test_an_answer_keeps_its_promise_or_breaks_a_clause(target, version, answer, clause):
    broken = ListOffsetsContract(account(stored(0, 50), stored(1, 60))).broken(
        target, version, "read_uncommitted", answer
    )
    assert (None if broken is None else broken.clause) == clause


def test_a_consumer_skips_exactly_the_aborted_transactions_of_a_fetch():
    batches = [
        stored(0, 1, producer=7),
        stored(1, 2, producer=8),
        stored(2, 3, producer=7, marker=ABORT),
        stored(3, 4, producer=8, marker=COMMIT),
        stored(4, 5, producer=7),
    ]
    offsets = [record.offset for record in committed(batches, [AbortedTransaction(7, 0)])]
    assert offsets == [1, 4]
    assert [record.offset for record in committed(batches, [])] == [0, 1, 4]
