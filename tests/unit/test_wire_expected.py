"""Expected responses to ListOffsets of a partition whose first segments are only in the remote tier."""

from __future__ import annotations

import pytest

from conformance.implementations.broker.reference import ReferencePartition
from conformance.implementations.wire.expected import NONE, ExpectedRows
from kidx.records import build_batch


@pytest.fixture
def partition(tmp_path):
    """Three segments; the only record of the first one with a late timestamp is deleted."""
    partition = ReferencePartition("4.3.1", tmp_path / "t-0", {"segment.bytes": 140}, 0)
    for timestamps in ((1000, 10), (20,), (900,)):
        partition.append(build_batch([(timestamp, None, b"v" * 20) for timestamp in timestamps]))
    partition.delete_records(1)
    assert [segment.base_offset for segment in partition.log.segments] == [0, 2, 3]
    return partition


def offsets(partition, target, *local_starts):
    rows = ExpectedRows(partition, local_starts).rows(target, 7, "read_uncommitted")
    return list(dict.fromkeys(NONE if row == NONE else row.offset for row in rows))


def test_a_segment_of_deleted_records_hides_only_those_of_its_tier(partition):
    """LO-19: where remote segments have no result, the local ones are searched; LO-23: else only the first one is."""
    assert offsets(partition, 500, 0) == [NONE]
    assert offsets(partition, 500, 3) == [3]
    assert offsets(partition, 500, 3, 0) == [3, NONE]


@pytest.mark.parametrize(("target", "offset"), [(5, 1), (-1, 4), (-2, 1), (-3, 0)])
def test_other_results_do_not_depend_on_tiers(partition, target, offset):
    assert offsets(partition, target, 0) == offsets(partition, target, 3) == [offset]
