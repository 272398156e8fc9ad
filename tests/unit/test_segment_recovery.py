"""Recovering, truncating and rebuilding a segment (SEG-30 to SEG-38)."""

from __future__ import annotations

import pytest

from kidx import AbortedTxn, OffsetPosition, TimestampOffset
from kidx.dialect import DIALECTS, dialect_of
from kidx.errors import InvalidArgumentError, InvalidOffsetError
from kidx.java_values import INT_MAX
from kidx.rebuild import rebuild
from kidx.records import (
    ControlRecordType,
    EndTransactionMarker,
    build_batch,
    end_transaction_marker,
    write_batch,
)
from kidx.segment import (
    CompletedTxn,
    CoordinatorFencedError,
    InvalidTxnStateError,
    LogSegment,
    MissingBytesError,
    ProducerFencedError,
    ProducerState,
    SegmentConfig,
    SegmentOffsetOverflowError,
    ShortMarkerError,
    file_name,
)

SMALL = SegmentConfig(index_interval_bytes=0, segment_index_bytes=960)
NAME = file_name(0, "")


def batch(offset: int, *timestamps: int, **options) -> bytes:
    return build_batch([(t, b"k", b"v") for t in timestamps], base_offset=offset, **options)


def data(offset: int, producer: int, *, transactional: bool = True, epoch: int = 0) -> bytes:
    return batch(
        offset, 100, producer_id=producer, producer_epoch=epoch, base_sequence=0, is_transactional=transactional
    )


def marker(offset: int, producer: int, kind: str = "ABORT", *, epoch: int = 0, coordinator: int = 0) -> bytes:
    what = EndTransactionMarker(ControlRecordType[kind], coordinator)
    return end_transaction_marker(what, producer_id=producer, producer_epoch=epoch, offset=offset, timestamp=100)


@pytest.fixture
def segment(tmp_path):
    """Open a segment over a log of given bytes."""
    opened = []

    def over(records: bytes, release: str = "4.4.0", config: SegmentConfig = SMALL):
        (tmp_path / f"{NAME}.log").write_bytes(records)
        opened.append(LogSegment.open(tmp_path, 0, config, file_already_exists=True, dialect=release, clock=lambda: 9))
        return opened[-1]

    yield over
    for each in opened:
        each.release_handles()


# -- recovering ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("release", sorted(DIALECTS))
def test_recovering_indexes_every_batch(segment, tmp_path, release):
    """SEG-30, SEG-34: by batches in every release, and the files end up as long as their entries."""
    s = segment(batch(0, 100) + batch(1, 300) + batch(2, 200), release)
    assert s.recover() == 0
    assert list(s.offset_index) == [OffsetPosition(1, 70), OffsetPosition(2, 140)]
    assert list(s.time_index) == [TimestampOffset(300, 1)]
    assert (tmp_path / f"{NAME}.index").stat().st_size == 16
    assert s.bytes_since_last_index_entry == 0


@pytest.mark.parametrize(
    "damage",
    [
        lambda b: b[:-5],
        lambda b: b[:20] + bytes([b[20] ^ 1]) + b[21:],
        lambda b: b[:8] + bytes(4) + b[12:],
        lambda b: b[:8] + b"\x00\x00\x10\x00" + b[12:],
    ],
    ids=["cut", "checksum", "length 0", "length beyond the end"],
)
def test_an_invalid_batch_ends_the_log(segment, damage):
    """SEG-30: everything from it on is cut, valid or not."""
    good, bad, after = batch(0, 100), damage(batch(1, 200)), batch(2, 300)
    s = segment(good + bad + after)
    assert s.recover() == len(bad) + len(after)
    assert s.size == len(good)
    assert s.max_timestamp_so_far == (100, 0)


def test_a_batch_too_small_for_its_header(segment):
    """RB-4: a length too small for a header is a corrupt batch."""
    assert segment(batch(0, 100) + write_batch(b"", base_offset=1, last_offset=1, count=0)[:8] + bytes(70)).recover()


def test_offsets_that_no_index_can_represent(segment):
    """SEG-30, SEG-33: out of range and out of order are not corruption; recovery fails in every release."""
    with pytest.raises(SegmentOffsetOverflowError):
        segment(batch(0, 100) + batch(INT_MAX + 1, 200)).recover()
    with pytest.raises(InvalidOffsetError):
        segment(batch(0, 100) + batch(5, 200) + batch(5, 300)).recover()


def test_an_index_without_room(segment):
    """SEG-30: segment.index.bytes too small for the log."""
    with pytest.raises(InvalidArgumentError, match="is full"):
        segment(b"".join(batch(n, 100) for n in range(5)), config=SegmentConfig(0, 0, 0, 24, 0)).recover()


class Epochs:
    def __init__(self) -> None:
        self.entries: list[tuple[int, int]] = []

    @property
    def latest_epoch(self) -> int | None:
        return self.entries[-1][0] if self.entries else None

    def assign(self, epoch: int, start_offset: int) -> None:
        self.entries.append((epoch, start_offset))


@pytest.mark.parametrize(("release", "zero"), [("2.6.0", []), ("2.6.1", [(0, 0)]), ("4.4.0", [(0, 0)])])
def test_leader_epochs_are_noted(segment, release, zero):
    """SEG-31: an epoch is recorded if it is larger than all before it; up to 2.6.0, epoch 0 is not (KAFKA-10432)."""
    epochs = (0, -1, 3, 2, 3, 4)
    s = segment(b"".join(batch(n, 100, partition_leader_epoch=e) for n, e in enumerate(epochs)), release)
    cache = Epochs()
    s.recover(None, cache)
    assert cache.entries == [*zero, (3, 2), (4, 5)]


# -- transactions ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("release", sorted(DIALECTS))
def test_aborted_transactions_are_found_again(segment, release):
    """TX-15: the last stable offset is the start of another open transaction, else the offset after the marker."""
    log = data(0, 1) + data(1, 2) + marker(2, 1) + data(3, 1) + marker(4, 1, "COMMIT") + marker(5, 2)
    s = segment(log, release)
    s.recover()
    assert s.txn_index.all_aborted_txns() == [AbortedTxn(1, 0, 2, 1), AbortedTxn(2, 1, 5, 6)]


@pytest.mark.parametrize(("release", "found"), [("2.7.2", [AbortedTxn(1, 0, 0, 1)]), ("2.8.0", [])])
def test_a_marker_without_a_transaction(segment, release, found):
    """Up to 2.7 it counts as a separate transaction."""
    s = segment(marker(0, 1), release)
    s.recover()
    assert s.txn_index.all_aborted_txns() == found


def test_transactions_known_from_before(segment):
    """A transaction that began in an earlier segment is only found with that segment's producer state."""
    state = ProducerState("orders-0", dialect_of("4.4.0"))
    s = segment(marker(0, 1))
    s.recover(state)
    assert s.txn_index.is_empty
    state.update(next(segment(data(0, 1)).batches()))
    assert state.first_undecided_offset == 0
    s = segment(marker(1, 1))
    s.recover(state)
    assert s.txn_index.all_aborted_txns() == [AbortedTxn(1, 0, 1, 2)]
    assert (state.first_undecided_offset, state.map_end_offset) == (None, 2)


@pytest.mark.parametrize(("release", "gap"), [("2.4.1", " "), ("3.5.2", ""), ("3.6.2", ", "), ("4.4.0", ", ")])
def test_a_plain_batch_inside_a_transaction(segment, release, gap):
    """The batch does not count as corruption: the recovery fails."""
    s = segment(data(0, 1) + data(1, 1, transactional=False), release)
    with pytest.raises(InvalidTxnStateError) as refusal:
        s.recover()
    assert f"(offset=1{gap}segment=[-1:-1]) in partition t-0" in str(refusal.value)


def test_2_4_0_rejects_old_epochs(segment):
    """A leader accepted the markers and a follower copied them: 2.4.0 fails on old epochs, later ones do not."""
    producer = data(0, 1, epoch=1) + marker(1, 1, epoch=0)
    coordinator = marker(0, 1, coordinator=1) + marker(1, 1)
    with pytest.raises(ProducerFencedError):
        segment(producer, "2.4.0").recover()
    with pytest.raises(CoordinatorFencedError):
        segment(coordinator, "2.4.0").recover()
    for log in (producer, coordinator):
        assert segment(log, "2.4.1").recover() == 0


def test_a_marker_that_cannot_be_read_counts_all_the_same(segment):
    """SEG-30: the scan stops after it, not before it."""
    unreadable = batch(0, 100, producer_id=1, producer_epoch=0, base_sequence=0, is_control=True)
    emptied = write_batch(
        b"", base_offset=1, last_offset=1, count=0, producer_id=1, producer_epoch=0, is_control=True, base_timestamp=0
    )
    s = segment(emptied + unreadable + batch(2, 300))
    assert s.recover() == 70
    assert s.size == len(emptied + unreadable)


@pytest.mark.parametrize(("release", "text"), [("4.1.2", "CompletedTxn(producerId=1"), ("4.2.1", "CompletedTxn[")])
def test_a_transaction_that_was_never_begun(release, text):
    """Completing it raises with the text of the release."""
    with pytest.raises(InvalidArgumentError) as refusal:
        ProducerState(dialect=dialect_of(release)).complete(CompletedTxn(1, 2, 3, is_aborted=True))
    assert text in str(refusal.value)


# -- truncating ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("release", sorted(DIALECTS))
def test_truncating_removes_whole_batches(segment, tmp_path, release):
    """SEG-38: the log ends before the batch that holds the offset; indexes have a preallocated tail again."""
    s = segment(batch(0, 100, 101) + batch(2, 300, 301) + batch(4, 200), release)
    s.recover()
    assert s.truncate_to(3) == 79 + 70
    assert s.size == 79
    assert s.max_timestamp_so_far == (101, 1)
    assert len(s.offset_index) == 0
    assert (tmp_path / f"{NAME}.index").stat().st_size == 960
    assert s.truncate_to(2) == 0
    assert s.truncate_to(0) == 79
    assert s.created == 9


def test_truncating_to_an_offset_beyond_the_end(segment):
    """SEG-38: nothing is truncated, but the count of bytes restarts."""
    s = segment(b"")
    for n in range(2):
        s.append(batch(n, 100))
    assert s.bytes_since_last_index_entry == 70
    assert s.truncate_to(50) == 0
    assert s.bytes_since_last_index_entry == 0


# -- rebuilding ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("release", ["2.4.0", "2.7.2", "3.6.2", "3.9.0", "4.0.0", "4.4.0"])
def test_a_rebuild_equals_a_recovery(segment, tmp_path, release):
    """The three files are the same, and the log is unchanged, its invalid end included."""
    log = b"".join(batch(n, 100 + n) for n in range(8)) + data(8, 1) + marker(9, 1) + b"\x00" * 30
    source = tmp_path / "elsewhere" / f"{NAME}.log"
    source.parent.mkdir()
    source.write_bytes(log)
    source.chmod(0o444)
    out = tmp_path / "out"
    rebuilt = rebuild(source, out, dialect=release, index_interval_bytes=100)
    segment(log, release, SegmentConfig(index_interval_bytes=100)).recover()
    assert source.read_bytes() == log
    assert rebuilt.invalid_bytes == 30
    assert rebuilt.valid_bytes == len(log) - 30
    for path in (rebuilt.offset_index, rebuilt.time_index, rebuilt.txn_index):
        assert path.read_bytes() == (tmp_path / path.name).read_bytes()
    assert len(list(out.iterdir())) == 3


def test_a_rebuild_of_an_empty_log_replaces_existing_files(tmp_path):
    """Two empty files, and no .txnindex: an old one is removed."""
    (tmp_path / f"{NAME}.log").write_bytes(b"")
    out = tmp_path / "out"
    out.mkdir()
    (out / f"{NAME}.txnindex").write_bytes(b"old")
    rebuilt = rebuild(tmp_path / f"{NAME}.log", out)
    assert rebuilt.txn_index is None
    assert {path.name: path.stat().st_size for path in out.iterdir()} == {f"{NAME}.index": 0, f"{NAME}.timeindex": 0}


def test_input_that_a_rebuild_rejects(tmp_path):
    """The log's own directory, a name without an offset; a failure leaves no files."""
    log = tmp_path / f"{NAME}.log"
    log.write_bytes(batch(0, 100) + batch(INT_MAX + 1, 200))
    with pytest.raises(InvalidArgumentError, match="holds the log itself"):
        rebuild(log, tmp_path)
    with pytest.raises(InvalidArgumentError, match="not named after a base offset"):
        rebuild(tmp_path / "orders.log", tmp_path / "out")
    with pytest.raises(SegmentOffsetOverflowError):
        rebuild(log, tmp_path / "out", index_interval_bytes=0)
    assert not (tmp_path / "out").exists()


# -- control records that are no markers ------------------------------------------------------------------------

ABORT_KEY, VALUE = bytes(4), bytes(6)


def control(key: bytes | None, value: bytes | None) -> bytes:
    return build_batch([(100, key, value)], producer_id=1, producer_epoch=0, is_control=True)


@pytest.mark.parametrize("release", ["2.4.1", "4.0.2", "4.1.0", "4.4.0"])
@pytest.mark.parametrize(
    ("key", "value"),
    [(b"\xff\xff\x00\x00", VALUE), (b"\x00", VALUE), (ABORT_KEY, b"\xff\xff\x00\x00\x00\x00")],
    ids=["key of version -1", "short key", "value of version -1"],
)
def test_a_marker_that_makes_no_sense_ends_the_log(segment, release, key, value):
    """SEG-30: in every release."""
    assert segment(control(key, value) + batch(1, 200), release).recover() == 70


@pytest.mark.parametrize(("release", "fails"), [("4.0.2", False), ("4.1.0", True), ("4.4.0", True)])
def test_a_marker_cut_short(segment, release, fails):
    """From 4.1 on the marker does not count as corruption: the recovery fails."""
    s = segment(control(ABORT_KEY, VALUE[:2]) + batch(1, 200), release)
    if fails:
        with pytest.raises(ShortMarkerError):
            s.recover()
    else:
        assert s.recover() == 70


@pytest.mark.parametrize(("key", "value"), [(None, VALUE), (ABORT_KEY, None)])
def test_a_marker_without_key_or_value(segment, key, value):
    """Kafka's NullPointerException, in every release."""
    with pytest.raises(MissingBytesError):
        segment(control(key, value), "3.6.2").recover()


@pytest.mark.parametrize(
    ("release", "number", "name"),
    [
        ("2.6.3", 2, "markerUNKNOWN"),
        ("2.7.2", 2, "markerQUORUM_REASSIGNMENT"),
        ("3.0.2", 2, "markerLEADER_CHANGE"),
        ("3.7.2", 5, "markerUNKNOWN"),
        ("4.0.2", 5, "markerKRAFT_VERSION"),
        ("4.4.0", 5, "marker KRAFT_VERSION"),
        ("4.4.0", -1, "marker UNKNOWN"),
    ],
)
def test_a_control_record_of_another_type(segment, release, number, name):
    """No producer writes it: the recovery fails, and names the type as far as the release knows it."""
    with pytest.raises(InvalidArgumentError, match=name):
        segment(control(b"\x00\x00" + number.to_bytes(2, signed=True), VALUE), release).recover()


# -- the largest timestamp and the handles of a segment ---------------------------------------------------------


@pytest.mark.parametrize(("release", "known"), [("2.8.2", True), ("3.4.1", False), ("3.7.2", True)])
def test_a_time_index_that_ends_with_nothing(segment, tmp_path, release, known):
    """SEG-6: from 3.0 to 3.6 a last entry of -1 at offset -1 counts as not read."""
    (tmp_path / f"{NAME}.timeindex").write_bytes(b"\xff" * 12)
    s = segment(b"", release)
    assert s.maximum.cached() is None
    assert s.max_timestamp_so_far == (-1, -1)
    assert s.maximum.is_known == known


def test_a_maximum_half_read(segment):
    """SEG-6: up to 2.8 the offset is read only where it is needed; until then it is the index's own."""
    s = segment(batch(0, 100), "2.8.2")
    s.recover()
    again = segment(batch(0, 100), "2.8.2")
    again.append(batch(1, 50))
    assert again.maximum.cached() == (100, 0)
    assert again.max_timestamp_so_far == (100, 0)
    assert segment(batch(0, 100)).maximum.known_timestamp == -1


@pytest.mark.parametrize(("release", "files"), [("2.5.1", 3), ("2.6.3", 1), ("4.4.0", 1)])
def test_closing_only_the_handles(segment, tmp_path, release, files):
    """A broker does this when a disk has failed; up to 2.5 it creates the missing index files."""
    segment(b"", release).close_handlers()
    assert len(list(tmp_path.iterdir())) == files
