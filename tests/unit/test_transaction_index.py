"""The .txnindex file: worked examples of TX-1 to TX-23, and its rules against a list."""

from __future__ import annotations

import os
import struct
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kidx import AbortedTxn, TransactionIndex, TxnIndexSearchResult
from kidx.errors import CorruptIndexError, InvalidArgumentError, ReadOnlyError, UnsupportedVersionError

RELEASES = ("2.4.1", "3.4.1", "3.9.1", "3.9.2", "4.0.1", "4.3.1", "4.4.0")
EVERY_RELEASE = pytest.mark.parametrize("release", RELEASES)
FIRST, SECOND, THIRD = AbortedTxn(1, 0, 10, 11), AbortedTxn(2, 5, 20, 15), AbortedTxn(3, 15, 30, 31)


def records(*txns: AbortedTxn, version: int = 0) -> bytes:
    return b"".join(struct.pack(">hqqqq", version, *txn) for txn in txns)


@pytest.fixture
def path(tmp_path):
    return tmp_path / "00000000000000000000.txnindex"


@pytest.fixture
def index(path):
    """Open an index of three aborted transactions: 0–10, 5–20 while the third is open since 15, and 15–30."""
    with TransactionIndex(0, path) as opened:
        for txn in (FIRST, SECOND, THIRD):
            opened.append(txn)
        yield opened


# Appending and reopening.


@EVERY_RELEASE
def test_a_record_is_34_bytes(release, path):
    """Version 0 and four numbers; 4.4 generates the record and writes the same bytes (TX-1)."""
    with TransactionIndex(0, path, dialect=release) as index:
        index.append(AbortedTxn(producer_id=1, first_offset=2, last_offset=3, last_stable_offset=-1))
    assert path.read_bytes() == bytes.fromhex(
        "0000  0000000000000001  0000000000000002  0000000000000003  ffffffffffffffff"
    )


def test_the_first_append_creates_the_file(path):
    """Opening, reading and truncating create no file (TX-2, TX-10, TX-14a)."""
    with TransactionIndex(0, path) as index:
        assert (index.is_empty, len(index), list(index), index.last_offset) == (True, 0, [], None)
        index.truncate_to(0)
        index.reset()
        index.flush()
        index.sanity_check()
        assert not path.exists()
        index.append(FIRST)
        assert path.read_bytes() == records(FIRST)
        assert not index.is_empty


def test_an_existing_file_is_continued(index, path):
    """Another object appends at the end of the existing records (TX-2)."""
    index.close()
    with TransactionIndex(0, path) as again:
        again.append(AbortedTxn(4, 31, 40, 41))
        assert list(again) == [FIRST, SECOND, THIRD, (4, 31, 40, 41)]


@pytest.mark.parametrize("last_offset", [30, 29, -1])
def test_last_offsets_must_increase(index, path, last_offset):
    """The error names both and the absolute path, and nothing is written (TX-3)."""
    with pytest.raises(InvalidArgumentError, match=f"last offset {last_offset} must be larger than 30") as refusal:
        index.append(AbortedTxn(9, 0, last_offset, 0))
    assert refusal.value.kafka_message == (
        "The last offset of appended transactions must increase sequentially, but"
        f" {last_offset} is not greater than current last offset 30 of index {path}"
    )
    assert path.read_bytes() == records(FIRST, SECOND, THIRD)


def test_how_long_the_last_offset_is_remembered(index, tmp_path, path):
    """Close and rename keep it, reset forgets it, truncation takes the last kept one; a new object has none (TX-4)."""
    index.rename_to(tmp_path / "b")
    index.close()
    assert index.last_offset == 30
    with pytest.raises(InvalidArgumentError):
        index.append(THIRD)
    index.append(AbortedTxn(4, 31, 40, 41))
    index.truncate_to(50)
    assert index.last_offset == 40
    index.truncate_to(30)
    assert index.last_offset == 20
    index.truncate_to(0)
    assert index.last_offset is None
    index.append(FIRST)
    index.reset()
    assert (index.last_offset, len(index)) == (None, 0)
    path.write_bytes(records(FIRST, SECOND))
    with TransactionIndex(0, path) as again:
        assert again.last_offset is None
        again.append(FIRST)
        assert list(again) == [FIRST, SECOND, FIRST]


def test_a_field_that_is_no_long_is_rejected(index, path):
    """Java's types exclude it; kidx raises without changing its state or the file."""
    with pytest.raises(InvalidArgumentError, match=r"producer_id=9223372036854775808.* in numbers of 64 bits"):
        index.append(AbortedTxn(2**63, 0, 99, 0))
    assert index.last_offset == 30
    assert path.read_bytes() == records(FIRST, SECOND, THIRD)


def test_a_record_is_written_whole_or_the_error_of_the_system_is_raised(tmp_path):
    """In a file that may grow to 50 bytes, the second record is torn, and the append raises the error of the system."""
    program = """
import resource, sys
from kidx import AbortedTxn, TransactionIndex
resource.setrlimit(resource.RLIMIT_FSIZE, (50, 50))
index = TransactionIndex(0, "a")
index.append(AbortedTxn(1, 0, 10, 11))
try:
    index.append(AbortedTxn(2, 5, 20, 21))
except OSError as error:
    print(error.strerror, len(index))
"""
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(entry for entry in sys.path if entry)}
    command = [sys.executable, "-B", "-c", program]
    done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=True)
    assert done.stdout == "File too large 1\n"
    assert (tmp_path / "a").read_bytes() == (records(FIRST) + records(AbortedTxn(2, 5, 20, 21)))[:50]


# Collecting the aborted transactions of a fetch.


@pytest.mark.parametrize(
    ("fetch_offset", "upper_bound", "found", "complete"),
    [
        (0, 100, (FIRST, SECOND, THIRD), False),
        (0, 5, (FIRST,), True),  # the first record's last stable offset, 11, reaches 5
        (11, 15, (SECOND,), True),  # 15 reaches 15; the third begins at the bound
        (11, 16, (SECOND, THIRD), True),
        (10, 12, (FIRST, SECOND), True),
        (31, 100, (), False),
        (0, 0, (), True),
    ],
)
def test_collecting_for_a_fetch(index, fetch_offset, upper_bound, found, complete):
    """Overlapping transactions in file order, up to the first whose last stable offset reaches the bound (TX-9)."""
    result = index.collect_aborted_txns(fetch_offset, upper_bound)
    assert result == TxnIndexSearchResult(aborted_transactions=found, is_complete=complete)


def test_collecting_from_nothing(path):
    """No file, no transactions, and a later segment may have some (TX-9)."""
    with TransactionIndex(0, path) as index:
        assert index.collect_aborted_txns(0, 100) == ((), False)
        assert index.all_aborted_txns() == []


# Truncating, resetting, checking.


@pytest.mark.parametrize(("offset", "kept"), [(31, 3), (30, 2), (21, 2), (20, 1), (10, 0), (-5, 0)])
def test_truncation_cuts_at_the_first_match(index, path, offset, kept):
    """From the first record on that ends at the offset or later (TX-10)."""
    index.truncate_to(offset)
    assert path.read_bytes() == records(*(FIRST, SECOND, THIRD)[:kept])
    assert len(index) == kept


def test_truncation_is_by_file_order(path):
    """A smaller last offset after the match is removed as well (TX-10)."""
    path.write_bytes(records(FIRST, THIRD, SECOND))
    with TransactionIndex(0, path) as index:
        index.truncate_to(25)
        assert (list(index), index.last_offset) == ([FIRST], 10)


def test_a_torn_record_remains(path):
    """It is neither read nor removed, and later appends are misaligned (TX-12a, TX-23)."""
    path.write_bytes(records(FIRST) + bytes(17))
    with TransactionIndex(0, path) as index:
        index.sanity_check()
        assert (len(index), list(index)) == (1, [FIRST])
        index.append(SECOND)
        assert path.read_bytes() == records(FIRST) + bytes(17) + records(SECOND)
        assert (len(index), list(index) == [FIRST, SECOND]) == (2, False)
        index.truncate_to(10)
        assert (path.read_bytes(), len(index)) == (b"", 0)


@EVERY_RELEASE
def test_sanity_check_with_the_text_of_the_dialect(release, path):
    """A last offset below the start; the text has the version, which is its high byte, up to 4.3 (TX-12)."""
    path.write_bytes(records(SECOND) + records(FIRST, version=0 if release == "4.4.0" else -2))
    prefix = "" if release == "4.4.0" else "version=-1, "
    below = pytest.raises(CorruptIndexError, match="ends below the start offset 11")
    with TransactionIndex(11, path, dialect=release) as index, below as refusal:
        index.sanity_check()
    assert refusal.value.kafka_message == (
        f"Last offset of aborted transaction AbortedTxn({prefix}producerId=1, firstOffset=0, lastOffset=10,"
        f" lastStableOffset=11) in index {path} is less than start offset 11"
    )
    with TransactionIndex(10, path, dialect=release) as index:
        index.sanity_check()


# Versions.


@EVERY_RELEASE
@pytest.mark.parametrize(
    ("version", "old", "new"),
    [(0x0100, 1, 0x0100), (0x7FFF, 0x7F, 0x7FFF), (0x00FF, None, 0xFF), (1, None, 1), (-1, None, -1), (-2, None, -2)],
)
def test_unknown_versions(release, version, old, new, path):
    """Up to 4.3 the high byte counts, if it is positive; 4.4 rejects all except 0, with another text (TX-7, TX-8)."""
    path.write_bytes(records(FIRST) + records(SECOND, version=version))
    shown, range_text = (
        (new, "supported version range is 0 to 0") if release == "4.4.0" else (old, "current version is 0")
    )
    with TransactionIndex(0, path, dialect=release) as index:
        assert len(index) == 2
        reads = (index.all_aborted_txns, index.sanity_check, lambda: index.collect_aborted_txns(0, 99))
        if shown is None:
            for read in reads:
                read()
            assert index.all_aborted_txns() == [FIRST, SECOND]
            return
        for read in (*reads, lambda: index.truncate_to(15)):
            with pytest.raises(
                UnsupportedVersionError, match=f"version {shown}; Kafka {release} reads only version 0"
            ) as refusal:
                read()
            assert not isinstance(refusal.value, CorruptIndexError)
            assert refusal.value.kafka_message == (
                f"Unexpected aborted transaction version {shown} in transaction index {path}, {range_text}"
            )
        assert index.collect_aborted_txns(0, 5).is_complete  # the first record ends the search
        index.truncate_to(10)
        assert len(index) == 0


# Closing, names, read-only.


def test_a_closed_index_reads_empty_and_reopens(index, path):
    """Nothing is found, truncated, reset or synced; the next append opens or creates the file again (TX-21, TX-11)."""
    index.close()
    index.close()
    index.truncate_to(0)
    index.flush()
    assert (len(index), index.is_empty, list(index), path.read_bytes()) == (0, True, [], records(FIRST, SECOND, THIRD))
    index.reset()
    assert (index.last_offset, path.read_bytes()) == (None, records(FIRST, SECOND, THIRD))
    index.append(FIRST)
    assert list(index) == [FIRST, SECOND, THIRD, FIRST]
    assert index.delete_if_exists()
    assert not index.delete_if_exists()
    index.append(SECOND)
    assert path.read_bytes() == records(SECOND)


def test_flush_syncs_an_open_file(index, monkeypatch):
    """Only an open one (TX-11)."""
    synced = []
    monkeypatch.setattr(os, "fsync", synced.append)
    index.flush()
    index.close()
    index.flush()
    assert len(synced) == 1


def test_rename_moves_existing_files(index, tmp_path, path):
    """An open file is usable under its new name; without a file only the name changes (TX-13a)."""
    index.truncate_to(15)
    index.rename_to(str(tmp_path / "b"))
    index.append(SECOND)
    assert (tmp_path / "b").read_bytes() == records(FIRST, SECOND)
    assert not path.exists()
    with TransactionIndex(0, tmp_path / "none") as missing:
        missing.rename_to(tmp_path / "c")
        assert missing.path == tmp_path / "c"
        assert not missing.path.exists()


def test_a_failed_rename_changes_the_name(index, tmp_path, path):
    """The move fails, the file is not moved, but the index has the new name (TX-13a)."""
    with pytest.raises(FileNotFoundError):
        index.rename_to(tmp_path / "missing" / "b")
    assert index.path == tmp_path / "missing" / "b"
    assert path.exists()


def test_a_directory_that_moved(tmp_path, path):
    """Only the name changes."""
    with TransactionIndex(0, path) as index:
        (tmp_path / "moved").mkdir()
        index.update_parent_dir(tmp_path / "moved")
        index.append(FIRST)
    assert (tmp_path / "moved" / path.name).read_bytes() == records(FIRST)
    assert not path.exists()


def test_an_index_opened_read_only(index, path):
    """An addition of kidx: reads work, writes raise before the state changes, nothing is written."""
    index.flush()
    with TransactionIndex(0, path, writable=False) as reader:
        assert list(reader) == [FIRST, SECOND, THIRD]
        reader.sanity_check()
        reader.flush()
        for write in (lambda: reader.append(AbortedTxn(4, 31, 40, 41)), lambda: reader.truncate_to(5), reader.reset):
            with pytest.raises(ReadOnlyError, match=str(path)):
                write()
        assert reader.last_offset is None
        reader.truncate_to(99)
    assert path.read_bytes() == records(FIRST, SECOND, THIRD)
    with TransactionIndex(0, path.with_name("missing"), writable=False) as reader:
        assert list(reader) == []
    assert not path.with_name("missing").exists()


@pytest.mark.parametrize("writable", [True, False])
def test_a_directory_is_no_index(tmp_path, writable):
    """One clear OSError, whatever it was to be opened for, and no descriptor is left open."""
    descriptors = Path("/proc/self/fd")
    before = len(list(descriptors.iterdir()))
    with pytest.raises(IsADirectoryError, match=str(tmp_path)):
        TransactionIndex(0, tmp_path, writable=writable)
    assert len(list(descriptors.iterdir())) <= before


# Against a list.

offsets = st.integers(0, 40)
transactions = st.builds(AbortedTxn, st.integers(0, 3), offsets, offsets, offsets)


@given(txns=st.lists(transactions, max_size=8), low=offsets, high=offsets, release=st.sampled_from(RELEASES))
def test_the_index_is_a_list(txns, low, high, release, tmp_path_factory):
    """Any records in any order: collecting and truncating go through them one by one (TX-9, TX-10)."""
    path = tmp_path_factory.getbasetemp() / "list.txnindex"
    path.write_bytes(records(*txns))
    with TransactionIndex(0, path, dialect=release) as index:
        assert index.all_aborted_txns() == txns
        ends = [n for n, txn in enumerate(txns) if txn.last_stable_offset >= high]
        looked_at = txns[: ends[0] + 1] if ends else txns
        assert index.collect_aborted_txns(low, high) == (
            tuple(txn for txn in looked_at if txn.last_offset >= low and txn.first_offset < high),
            bool(ends),
        )
        cuts = [n for n, txn in enumerate(txns) if txn.last_offset >= low]
        index.truncate_to(low)
        assert path.read_bytes() == records(*(txns[: cuts[0]] if cuts else txns))
