"""The cache of remote index files: names, start-up, fetches, lookups, removals, in dialects that differ."""

from __future__ import annotations

import struct

import pytest

from kidx.dialect import dialect_of
from kidx.errors import (
    ClosedError,
    CorruptIndexError,
    IllegalStateError,
    InvalidArgumentError,
    KidxError,
    OutOfBoundsError,
)
from kidx.remote import (
    DIRECTORY,
    CacheError,
    RemoteIndexCache,
    RemoteResourceNotFoundError,
    RemoteSegment,
    RemoteStorageError,
    id_from_text,
    text_of_id,
)
from kidx.remote.entry import open_index, segment_id_of, start_offset_of
from kidx.remote.errors import InvalidNumberError

ID = "b-_UbGhWQSyTrDfNnQxAAw"
SEGMENT = RemoteSegment(100, id_from_text(ID))
OTHER = RemoteSegment(50, bytes(15) + b"\1")
FILES = {
    ".index": struct.pack(">4i", 5, 61, 9, 161),
    ".timeindex": struct.pack(">qiqi", 1000, 2, 1010, 5),
    ".txnindex": struct.pack(">h4q", 0, 7, 101, 104, 105),
}
ROOM = 1 << 20


class Storage:
    """Remote storage with the same files for every segment, and a count of its requests."""

    def __init__(self):
        self.files = dict(FILES)
        self.asked = []
        self.failure = None

    def fetch_index(self, segment, kind):
        self.asked.append(segment.file_name(kind))
        if self.failure is not None:
            raise self.failure
        if self.files[kind] is None:
            raise RemoteResourceNotFoundError(kind)
        return (self.files[kind],)


@pytest.fixture
def storage():
    return Storage()


def cache_of(directory, storage, release="4.4.0", **options):
    return RemoteIndexCache(directory, storage, dialect=release, **{"max_size": ROOM, **options})


def names(directory):
    return sorted(path.name for path in (directory / DIRECTORY).iterdir())


def test_an_id_is_printed_as_kafka_prints_it():
    assert text_of_id(SEGMENT.id) == ID
    assert SEGMENT.file_name(".index") == f"100_{ID}.index"
    assert id_from_text(ID + "==") == id_from_text(ID) == id_from_text(ID[:-1] + "x")


@pytest.mark.parametrize("name", ["README", ".DS_Store", "lost+found", ".nfs0001_x", "0_noid"])
def test_a_name_without_its_parts_is_out_of_bounds(name):
    with pytest.raises(OutOfBoundsError):
        segment_id_of(name)


@pytest.mark.parametrize(
    "name", ["0_notauuid.index", f"0_{ID}=.index", f"0_x{ID}.index", "foo.index", f"0_ {ID[1:]}.x"]
)
def test_a_name_without_an_id_is_rejected(name):
    with pytest.raises(InvalidArgumentError):
        segment_id_of(name)


def test_an_offset_is_parsed_as_java_does():
    assert start_offset_of(f"+7_{ID}.index") == 7
    assert start_offset_of("-9223372036854775808_x") == -(1 << 63)
    for name in ("x_1", "_1", "9223372036854775808_1", "1 _1"):
        with pytest.raises(InvalidNumberError):
            start_offset_of(name)
    with pytest.raises(OutOfBoundsError):
        start_offset_of("7")


def test_lookups_use_both_indexes(tmp_path, storage):
    cache = cache_of(tmp_path, storage)
    assert cache.lookup_offset(SEGMENT, 104) == 0
    assert cache.lookup_offset(SEGMENT, 105) == 61
    assert cache.lookup_timestamp(SEGMENT, 1010, 0) == 61
    assert cache.lookup_timestamp(SEGMENT, 1009, 0) == 0
    assert cache.lookup_timestamp(SEGMENT, 0, 109) == 161
    found = cache.entry(SEGMENT).transactions.collect_aborted_txns(100, 200)
    assert [txn.producer_id for txn in found.aborted_transactions] == [7]
    assert storage.asked == [f"100_{ID}{kind}" for kind in FILES]


def test_a_cached_file_is_not_fetched_again(tmp_path, storage):
    cache_of(tmp_path, storage).lookup_offset(SEGMENT, 0)
    storage.failure = RemoteStorageError("gone")
    cache = cache_of(tmp_path, storage)
    assert cache.lookup_offset(SEGMENT, 105) == 61
    with pytest.raises(CacheError):
        cache.entry(OTHER)


def test_no_transactions_are_an_empty_file(tmp_path, storage):
    storage.files[".txnindex"] = None
    assert not list(cache_of(tmp_path, storage).entry(SEGMENT).transactions)
    assert (tmp_path / DIRECTORY / f"100_{ID}.txnindex").read_bytes() == b""
    storage.files[".index"] = None
    with pytest.raises(CacheError):
        cache_of(tmp_path, storage).entry(OTHER)


def test_a_corrupt_transaction_index_in_the_cache_prevents_the_next_start(tmp_path, storage):
    """The copy in remote storage is sound again, but the start does not fetch it (RC-7)."""
    storage.files[".txnindex"] = bytes(34)
    cache = cache_of(tmp_path, storage)
    with pytest.raises(CorruptIndexError):
        cache.entry(SEGMENT)
    assert len(names(tmp_path)) == 3
    storage.files = dict(FILES)
    with pytest.raises(CorruptIndexError):
        cache_of(tmp_path, storage)
    assert cache.lookup_offset(SEGMENT, 105) == 61  # while the broker runs, the next request heals it
    assert cache_of(tmp_path, storage).lookup_offset(SEGMENT, 105) == 61


@pytest.mark.parametrize("kind", [".index", ".timeindex"])
def test_a_corrupt_index_in_the_cache_is_deleted_by_the_next_start(kind, tmp_path, storage):
    storage.files[kind] += b"\0"
    with pytest.raises(CorruptIndexError):
        cache_of(tmp_path, storage).entry(SEGMENT)
    storage.files = dict(FILES)
    assert cache_of(tmp_path, storage).lookup_offset(SEGMENT, 105) == 61


@pytest.mark.parametrize(("release", "left"), [("4.0.2", True), ("4.1.0", False)])
def test_leftovers_of_a_killed_broker(release, left, tmp_path, storage):
    cache_of(tmp_path, storage, release)
    leftovers = [f"100_{ID}.index.tmp", f"100_{ID}.txnindex.deleted"]
    for name in [*leftovers, ".tmp", ".deleted"]:
        (tmp_path / DIRECTORY / name).touch()
    cache_of(tmp_path, storage, release)
    assert names(tmp_path) == (leftovers if left else [])


@pytest.mark.parametrize("release", ["3.6.2", "4.4.0"])
@pytest.mark.parametrize("name", ["README", "0_notauuid.index"])
def test_a_foreign_file_ends_the_start(release, name, tmp_path, storage):
    cache_of(tmp_path, storage, release)
    (tmp_path / DIRECTORY / name).touch()
    with pytest.raises(KidxError):
        cache_of(tmp_path, storage, release)


def test_incomplete_segments_are_deleted(tmp_path, storage):
    cache_of(tmp_path, storage).entry(SEGMENT)
    (tmp_path / DIRECTORY / f"100_{ID}.timeindex").unlink()
    assert not cache_of(tmp_path, storage).entries
    assert names(tmp_path) == []


@pytest.mark.parametrize(("release", "answers"), [("4.0.2", False), ("4.1.0", True)])
def test_a_reader_keeps_a_removed_entry(release, answers, tmp_path, storage):
    cache = cache_of(tmp_path, storage, release)
    entry = cache.entry(SEGMENT)
    cache.remove(SEGMENT.id)
    assert names(tmp_path) == ([f"100_{ID}{kind}.deleted" for kind in FILES] if answers else [])
    if answers:
        assert entry.lookup_offset(105).position == 61
    cache.delete_removed()
    assert names(tmp_path) == []
    with pytest.raises(IllegalStateError, match="removed"):
        entry.lookup_offset(105)


def test_a_removal_that_fails_is_repeated_by_the_next(tmp_path, storage):
    cache = cache_of(tmp_path, storage)
    cache.entry(SEGMENT)
    (tmp_path / DIRECTORY / f"100_{ID}.timeindex").unlink()
    with pytest.raises(CacheError):
        cache.remove(SEGMENT.id)
    assert names(tmp_path) == [f"100_{ID}.index.deleted", f"100_{ID}.txnindex"]
    assert cache.lookup_offset(SEGMENT, 105) == 61
    cache.remove(SEGMENT.id)
    cache.delete_removed()
    assert not cache.entries
    assert names(tmp_path) == []


def test_a_limit_evicts_the_excess(tmp_path, storage):
    cache = cache_of(tmp_path, storage, max_size=100)
    assert cache.entry(SEGMENT).size == 16 + 24 + 34
    assert cache.lookup_offset(OTHER, 55) == 61
    assert list(cache.entries) == [OTHER.id]
    cache.resize(73)
    assert not cache.entries
    assert cache.lookup_offset(SEGMENT, 105) == 61  # too large for the cache, and answered all the same
    assert not cache.entries
    with pytest.raises(InvalidArgumentError):
        cache.resize(-1)


def test_in_3_6_the_limit_counts_entries(tmp_path, storage):
    cache = cache_of(tmp_path, storage, "3.6.2", max_size=2)
    for number in range(4):
        cache.entry(RemoteSegment(number, bytes([number] * 16)))
    assert len(cache.entries) == 2


@pytest.mark.parametrize(("release", "goes"), [("4.2.1", False), ("4.3.1", True)])
def test_an_unused_entry_is_evicted(release, goes, tmp_path, storage):
    now = [0]
    cache = cache_of(tmp_path, storage, release, ttl_ms=50, clock=lambda: now[0])
    cache.entry(SEGMENT)
    now[0] = 49
    cache.entry(SEGMENT)
    now[0] = 98
    cache.evict()
    assert SEGMENT.id in cache.entries
    now[0] = 99
    cache.evict()
    assert (SEGMENT.id in cache.entries) is not goes


def test_a_closed_cache_raises_errors(tmp_path, storage):
    cache = cache_of(tmp_path, storage)
    entry = cache.entry(SEGMENT)
    cache.close()
    cache.close()
    with pytest.raises(IllegalStateError, match="closed") as refused:
        cache.lookup_offset(SEGMENT, 105)
    assert refused.value.kafka_message.endswith(f"{ID}. RemoteIndexCache is closed.")
    with pytest.raises(ClosedError):
        entry.lookup_offset(105)
    assert len(names(tmp_path)) == 3


@pytest.mark.parametrize("kind", [".index", ".timeindex"])
def test_inspection_does_not_recreate_a_deleted_file(kind, tmp_path):
    path = tmp_path / f"100_{ID}{kind}"
    with pytest.raises(FileNotFoundError):
        open_index(path, kind, 100, dialect_of("4.4.0"), must_exist=True)
    assert not path.exists()
