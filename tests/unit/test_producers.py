"""The state of producers in a log, in every dialect in which releases differ."""

from __future__ import annotations

import os
import struct

import google_crc32c
import pytest

from kidx.dialect import DIALECTS, dialect_of
from kidx.java_values import INT_MAX
from kidx.log import LogConfig, UnifiedLog
from kidx.producers import (
    CorruptSnapshotError,
    Origin,
    OutOfOrderSequenceError,
    ProducerFencedError,
    ProducerState,
    ProducerStateManager,
    UnknownProducerError,
    snapshot_name,
)
from kidx.producers.snapshot import HashOrder, decode, in_hash_order
from kidx.records import (
    ControlRecordType,
    EndTransactionMarker,
    build_batch,
    end_transaction_marker,
    iter_memory_batches,
)

NEW, OLD = "4.4.0", "2.4.0"


def batch(offset=0, *, producer=1, epoch=0, sequence=0, records=1, transactional=False, timestamp=1000):
    return build_batch(
        [(timestamp, None, b"")] * records,
        base_offset=offset,
        producer_id=producer,
        producer_epoch=epoch,
        base_sequence=sequence,
        is_transactional=transactional,
        partition_leader_epoch=0,
    )


def marker(offset, *, producer=1, epoch=0, coordinator=0, timestamp=1000):
    return end_transaction_marker(
        EndTransactionMarker(ControlRecordType.ABORT, coordinator),
        producer_id=producer,
        producer_epoch=epoch,
        offset=offset,
        timestamp=timestamp,
        partition_leader_epoch=0,
    )


def told(state, *records):
    for data in records:
        for one in iter_memory_batches(data):
            completed = state.update(one)
            if completed is not None:
                state.complete(completed)
            state.map_end_offset = one.next_offset
    return state


def accepted(state, data, origin=Origin.CLIENT):
    (one,) = iter_memory_batches(data)
    state.prepare(one.producer_id, origin).append(one)


def new_log(path, release, **options):
    config = LogConfig(segment_bytes=300, segment_index_bytes=120)
    return UnifiedLog(path / "t-0", config, dialect=release, clock=lambda: 2000, **options)


@pytest.mark.parametrize("release", DIALECTS)
def test_a_snapshot_is_read_as_it_was_written(release, tmp_path):
    manager = told(
        ProducerStateManager(tmp_path, dialect_of(release)),
        batch(0, records=3, transactional=True),
        batch(3, producer=2, epoch=5, sequence=7),
        marker(4, producer=3, epoch=2, coordinator=9),
    )
    manager.take_snapshot()
    content = (tmp_path / snapshot_name(5)).read_bytes()
    version, crc, count = struct.unpack_from(">hIi", content)
    assert (version, count, len(content)) == (1, 3, 10 + 3 * 46)
    assert crc == google_crc32c.value(content[6:])
    found = decode(content, dialect_of(release))
    assert {p: (e.producer_epoch, e.coordinator_epoch, e.current_txn_first_offset) for p, e in found.items()} == {
        1: (0, -1, 0),
        2: (5, -1, None),
        3: (2, 9, None),
    }
    assert (found[1].last_sequence, found[1].last_offset, found[1].last_offset_delta) == (2, 2, 2)
    assert bool(found[3].batches) is (release == OLD)


@pytest.mark.parametrize("damage", [b"", b"\x00\x02", b"\x00\x01\x00\x00\x00\x00\x00\x00\x00\x01"])
def test_a_corrupt_snapshot_is_not_trusted(damage):
    with pytest.raises(CorruptSnapshotError):
        decode(damage, dialect_of(NEW))


def test_a_sparse_file_of_terabytes_with_the_name_of_a_snapshot_is_rejected(tmp_path):
    with (tmp_path / snapshot_name(5)).open("wb") as file:
        file.truncate(3 << 40)
    manager = ProducerStateManager(tmp_path, dialect_of(NEW))
    with pytest.raises(OSError, match=f"Is larger than {256 << 20} bytes"):
        manager.truncate_and_reload(0, 9, 0)


def test_a_file_that_becomes_a_fifo_after_the_listing_is_rejected(tmp_path):
    """Opening a fifo waits for a writer forever."""
    manager = ProducerStateManager(tmp_path, dialect_of(NEW))
    (tmp_path / snapshot_name(5)).touch()
    manager.remove_stray_snapshots([5])
    (tmp_path / snapshot_name(5)).unlink()
    os.mkfifo(tmp_path / snapshot_name(5))
    with pytest.raises(OSError, match="Is a FIFO"):
        manager.truncate_and_reload(0, 9, 0)


def test_sequence_numbers_are_consecutive_and_wrap():
    state = told(ProducerState(dialect=dialect_of(NEW)), batch(sequence=INT_MAX - 1, records=2))
    accepted(state, batch(2, sequence=0))
    for wrong in (1, INT_MAX - 1):
        with pytest.raises(OutOfOrderSequenceError):
            accepted(state, batch(2, sequence=wrong))
    assert state.producers[1].batches[-1].first_sequence == INT_MAX - 1
    (again,) = iter_memory_batches(batch(sequence=INT_MAX - 1, records=2))
    assert state.producers[1].find_duplicate(again) is not None


def test_a_new_epoch_begins_with_zero_and_an_old_one_is_fenced():
    state = told(ProducerState(dialect=dialect_of(NEW)), batch(epoch=1, sequence=4))
    accepted(state, batch(1, epoch=2, sequence=0))
    with pytest.raises(OutOfOrderSequenceError):
        accepted(state, batch(1, epoch=2, sequence=5))
    with pytest.raises(ProducerFencedError):
        accepted(state, batch(1, epoch=0, sequence=0))
    accepted(state, batch(1, epoch=0, sequence=77), Origin.REPLICATION)


@pytest.mark.parametrize("release", DIALECTS)
def test_an_unknown_producer_begins_with_any_sequence_number_from_2_5(release):
    state = ProducerState(dialect=dialect_of(release))
    if not dialect_of(release).rejects_unknown_sequences:
        accepted(state, batch(sequence=9))
    else:
        with pytest.raises(UnknownProducerError):
            accepted(state, batch(sequence=9))


def test_five_batches_are_remembered():
    state = told(ProducerState(dialect=dialect_of(NEW)), *(batch(n, sequence=n) for n in range(7)))
    assert [known.last_sequence for known in state.producers[1].batches] == [2, 3, 4, 5, 6]


@pytest.mark.parametrize(("release", "stable"), [("2.4.0", 1), ("3.9.2", 1), ("4.0.0", 2), ("4.4.0", 2)])
def test_a_transaction_from_before_the_start_is_open_after_an_unclean_opening(release, stable, tmp_path):
    """The log machine found this divergence: only a snapshot of the recovery contains the transaction."""
    log = new_log(tmp_path, release)
    log.append_as_follower(batch(0, producer=2, transactional=True))
    log.append_as_follower(marker(2))
    log.release_handles()
    log = new_log(tmp_path, release, log_start_offset=1, clean=False)
    log.update_high_watermark(6)
    assert (log.high_watermark, log.last_stable_offset) == (3, stable)
    log.release_handles()


@pytest.mark.parametrize(("release", "first"), [("2.4.1", 4), ("2.7.2", 4), ("3.6.2", 4)])
def test_a_recovered_segment_names_the_producers_of_the_snapshot_before_it(release, first, tmp_path):
    """The first offset of an aborted transaction across segments comes from the last snapshot in range."""
    log = new_log(tmp_path, release)
    for offset in range(6):
        log.append_as_follower(batch(offset, sequence=offset, transactional=True))
        if offset % 2:
            log.roll()
    log.append_as_follower(marker(6))
    log.close()
    log = new_log(tmp_path, release, log_start_offset=4, clean=False, recovery_point=6)
    log.close()
    (left,) = tmp_path.glob("t-0/*.txnindex")
    assert left.name == f"{6:020d}.txnindex"
    (found,) = [struct.unpack(">hqqqq", left.read_bytes())[2]]
    assert found == (0 if first == 4 and (tmp_path / "t-0" / snapshot_name(6)).exists() else first)


@pytest.mark.parametrize("release", ["2.7.2", "2.8.2", "4.4.0"])
def test_deleting_records_deletes_snapshots_up_to_2_7(release, tmp_path):
    log = new_log(tmp_path, release)
    for offset in range(3):
        log.append_as_follower(batch(offset, sequence=offset))
        log.roll()
    log.update_high_watermark(3)
    log.delete_records(2)
    left = sorted(path.name for path in tmp_path.glob("t-0/*.snapshot"))
    assert left == [snapshot_name(offset) for offset in ((2, 3) if release == "2.7.2" else (1, 2, 3))]
    log.release_handles()


def test_a_hash_table_grows_and_keeps_its_size():
    order = HashOrder(lambda: False)
    seen = []
    for key in range(100, 113):
        order.insert(key, seen)
        seen.append(key)
    assert order.buckets == 32
    assert order.sort([7, 39, 8]) == [7, 39, 8]
    assert order.sort([39, 7, 8]) == [39, 7, 8]
    assert HashOrder(lambda: True).sort([23, 7, 8]) == [7, 23, 8]


def test_a_computed_hash_comes_first_in_its_bucket():
    assert in_hash_order([2, (3 << 32) + 1, 2], lambda: False) == [(3 << 32) + 1, 2]
    assert in_hash_order([2, (3 << 32) + 1, 2], lambda: True) == [2, (3 << 32) + 1]
