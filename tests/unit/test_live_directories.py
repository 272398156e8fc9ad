"""Directories of a running broker: ends, vanishing files, preallocated logs, and corruption that resembles neither."""

from __future__ import annotations

import shutil
import struct
from pathlib import Path

import duckdb
import pytest
from fsspec import register_implementation
from fsspec.implementations.memory import MemoryFileSystem
from thorough_params import thorough_param

import kidx
from kidx import rebuild as rebuilding
from kidx.errors import ToolError
from kidx.records import (
    ControlRecordType,
    EndTransactionMarker,
    SimpleRecord,
    build_batch,
    end_transaction_marker,
)
from kidx.records.errors import CorruptRecordError
from kidx.storage import LocalReader, Store
from kidx.tables import segments, split_reader
from kidx.tables.batch_walk import BatchWalk
from kidx.tables.following import list_partitions
from kidx.tables.indexes import Counter
from kidx.tables.isolation import last_stable_offset
from kidx.tables.offsets import LogOffsets
from kidx.tables.options import read_options
from kidx.tables.predicates import Predicates
from kidx.tables.segments import find_partitions
from kidx.tables.splits import plan_splits

ABORT = EndTransactionMarker(ControlRecordType.ABORT, 0)
COMMIT = EndTransactionMarker(ControlRecordType.COMMIT, 0)


def batches(first, end, *, size=10, **more):
    """Build batches of some records each, from one offset to before another."""
    records = [SimpleRecord(1_700_000_000_000, b"key", b"value" * 10)] * size
    return b"".join(build_batch(records, base_offset=base, **more) for base in range(first, end, size))


def write(directory, base, data, *, mode="wb"):
    """Write a segment with the indexes that its log should have."""
    directory.mkdir(parents=True, exist_ok=True)
    log = directory / f"{base:020d}.log"
    with log.open(mode) as file:
        file.write(data)
    made = rebuilding.rebuild(log, directory / "made", index_interval_bytes=500)
    for path in filter(None, (made.offset_index, made.time_index, made.txn_index)):
        path.replace(directory / path.name)
    shutil.rmtree(directory / "made")
    return log


def offsets(path, **more):
    return kidx.read(path, columns=["offset"], **more).read_all()["offset"].to_pylist()


@pytest.fixture
def partition(tmp_path):
    return tmp_path / "data" / "t-0"


@pytest.mark.parametrize("full_size", [False, True], ids=["growing", "preallocated"])
@pytest.mark.parametrize("use_indexes", [True, False])
def test_the_end_by_an_old_listing_is_never_before_its_listed_end(partition, use_indexes, full_size):
    """The index is read after the listing, and may be ahead of it."""
    zeros = bytes(1 << 20 if full_size else 0)
    write(partition, 0, batches(0, 200) + zeros)
    (old,) = find_partitions([Store(str(partition.parent))])
    assert LogOffsets(old, Counter(), use_indexes=use_indexes).end() == 200
    write(partition, 0, batches(0, 900) + zeros)
    assert LogOffsets(old, Counter(), use_indexes=use_indexes).end() == 900
    write(partition, 900, batches(900, 950) + zeros)
    assert LogOffsets(old, Counter(), use_indexes=use_indexes).end() == 900


def test_the_end_is_right_if_the_index_leads_astray(partition):
    log = write(partition, 0, batches(0, 400))
    index = log.with_suffix(".index")
    entries = index.read_bytes()
    for last in (entries[-8:-4] + (7).to_bytes(4), (3).to_bytes(4) + entries[-4:]):
        index.write_bytes(entries[:-8] + last)
        (found,) = find_partitions([Store(str(partition.parent))])
        assert LogOffsets(found, Counter()).end() == 400


@pytest.mark.parametrize("cut", [1, 12, 16, 17, 40, 61, 100, 300])
@pytest.mark.parametrize("compiled", [False, thorough_param(True)])
def test_a_batch_that_is_being_written_into_a_preallocated_log_is_ignored(partition, cut, compiled, monkeypatch):
    """On a live broker and after a kill, a partly written batch is followed by zeros."""
    monkeypatch.setattr(split_reader, "worth_compiling", lambda _: compiled)
    producer = {"producer_id": 1, "producer_epoch": 0, "base_sequence": 0, "is_transactional": True}
    marker = end_transaction_marker(COMMIT, producer_id=1, producer_epoch=0, offset=50)
    whole = batches(0, 50, **producer) + marker + batches(51, 91)
    torn = batches(91, 101)[:cut]
    log = write(partition, 0, whole)
    log.write_bytes(whole + torn + bytes(1 << 20))
    root = partition.parent
    (found,) = find_partitions([Store(str(root))])
    assert LogOffsets(found, Counter()).end() == 91
    assert last_stable_offset(found, Counter()) is None
    expected = [*range(50), *range(51, 91)]
    assert offsets(root) == expected
    assert offsets(root, isolation="read_committed") == expected
    assert kidx.read(root).read_all()["offset"].to_pylist() == expected
    assert not [error for error in kidx.read(root, "batches").read_all()["error"].to_pylist() if error]
    log.write_bytes(whole + torn + bytes(5000) + b"more")
    with pytest.raises(ToolError, match=rf"at byte {len(whole)}"):
        offsets(root)


def test_a_whole_last_batch_that_ends_in_zeros_counts(partition):
    batch = build_batch([SimpleRecord(0, b"k", bytes(100))], base_offset=0)
    write(partition, 0, batch + bytes(5000))
    (found,) = find_partitions([Store(str(partition.parent))])
    assert LogOffsets(found, Counter()).end() == 1
    damaged = bytearray(build_batch([SimpleRecord(0, b"k", b"value" * 10)] * 2, base_offset=0))
    damaged[-30] ^= 1
    write(partition, 0, bytes(damaged) + bytes(5000))
    with pytest.raises(ToolError, match="at byte 0: Record is corrupt"):
        offsets(partition.parent)


@pytest.mark.parametrize("isolation", ["read_uncommitted", "read_committed"])
@pytest.mark.parametrize("compiled", [False, True])
@pytest.mark.parametrize("columns", [["offset"], ["offset", "value"]])
@pytest.mark.parametrize(
    ("place", "value", "said"),
    [
        (-3, None, "Record is corrupt .stored crc"),
        (16, 9, "Invalid magic found in record: 9"),
        (16, 3, "Invalid magic"),
    ],
)
def test_a_corrupt_control_batch_raises_as_others_do(
    place, value, said, columns, compiled, isolation, partition, monkeypatch
):
    monkeypatch.setattr(split_reader, "worth_compiling", lambda _: compiled)
    producer = {"producer_id": 1, "producer_epoch": 0, "base_sequence": 0, "is_transactional": True}
    marker = bytearray(end_transaction_marker(ABORT, producer_id=1, producer_epoch=0, offset=20))
    log = write(partition, 0, batches(0, 20, **producer) + bytes(marker) + batches(21, 41))
    first = log.read_bytes().index(bytes(marker))
    marker[place] = marker[place] ^ 1 if value is None else value
    log.write_bytes(log.read_bytes()[:first] + bytes(marker) + batches(21, 41))
    write(partition, 41, batches(41, 51))

    def read(**more):
        return (
            kidx.read(partition.parent, columns=columns, isolation=isolation, **more).read_all()["offset"].to_pylist()
        )

    with pytest.raises(ToolError, match=rf"{log.name} at byte {first}: {said}"):
        read()
    visible = range(20) if isolation == "read_uncommitted" else range(0)
    assert read(fail_on_data_loss=False) == [*visible, *range(41, 51)]
    if value is None:
        assert read(check_crcs=False) == [*visible, *range(21, 51)]


def test_segments_that_overlap_give_each_record_once(partition):
    """A copy of a segment under another name overlaps it: a fetch reads the segment that its offset belongs to."""
    log = write(partition, 0, batches(0, 100))
    write(partition, 100, batches(100, 150))
    for suffix in (".log", ".index", ".timeindex"):
        shutil.copy(log.with_suffix(suffix), partition / f"{50:020d}{suffix}")
    for compiled in (False, True):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(split_reader, "worth_compiling", lambda _, compiled=compiled: compiled)
            assert offsets(partition.parent) == list(range(150))
            assert kidx.read(partition.parent).read_all()["offset"].to_pylist() == list(range(150))


class Vanishing:
    """Hook that runs each time that a directory of some name has been listed."""

    def __init__(self, monkeypatch, name, act):
        self._list = Store.list

        def listed(store, path):
            found = list(self._list(store, path))
            if path.rpartition("/")[2] == name:
                act()
            return iter(found)

        monkeypatch.setattr(Store, "list", listed)


@pytest.mark.parametrize("content", ["records", "batches", "offset_index", "segments"])
def test_changes_of_other_topics_end_nothing(content, partition, monkeypatch):
    """A topic is deleted between two listings; links lead to themselves, to nothing, and back up."""
    write(partition, 0, batches(0, 100))
    root = partition.parent
    (root / "looping").symlink_to(root / "looping")
    (root / "dangling").symlink_to(root / "nothing")
    (root / "up").symlink_to(root)
    other = root / "other-0"
    write(other, 0, batches(0, 10))
    (other / f"{10:020d}.log").symlink_to(other / f"{10:020d}.log")
    before = kidx.read(root, content, topics="t").read_all().num_rows
    assert before
    Vanishing(monkeypatch, "data", lambda: shutil.rmtree(root / "other-0", ignore_errors=True))
    assert kidx.read(root, content, topics="t").read_all().num_rows == before
    assert not other.exists()
    assert kidx.read(root, content).read_all().num_rows == before


def test_an_unreadable_directory_of_a_requested_partition_is_an_error(partition, monkeypatch):
    write(partition, 0, batches(0, 10))
    write(partition.parent / "other-0", 0, batches(0, 10))
    (partition.parent / "lost+found").mkdir()
    listing = Store.list

    def refused(store, path):
        if path.rpartition("/")[2] in ("other-0", "lost+found"):
            raise PermissionError(13, "Permission denied", path)
        return listing(store, path)

    monkeypatch.setattr(Store, "list", refused)
    assert offsets(partition.parent, topics="t") == list(range(10))
    with pytest.raises(ToolError, match=r"Permission denied.*other-0"):
        offsets(partition.parent)


def test_a_segment_that_retention_deletes_is_lost_and_the_rest_is_read(partition):
    for base in (0, 100, 200):
        write(partition, base, batches(base, base + 100))
    (task,) = plan_splits(read_options({"path": str(partition.parent)}), Predicates(), Counter())
    for suffix in (".log", ".index", ".timeindex"):
        (partition / f"{0:020d}{suffix}").unlink()
    assert read_splits(task, fail_on_data_loss=False) == list(range(100, 300))
    with pytest.raises(ToolError, match=r"t-0 begins at offset 100; offset 0 was deleted \(failOnDataLoss=false"):
        read_splits(task)
    shutil.rmtree(partition)
    assert read_splits(task, fail_on_data_loss=False) == []
    with pytest.raises(ToolError, match="t-0 no longer exists"):
        read_splits(task)


def read_splits(splits, **more):
    import pyarrow as pa

    from kidx.tables.columns import RowBuffer

    buffer, found = RowBuffer(pa.schema([("offset", pa.int64())])), []
    for split in splits:
        for batch in split_reader.SplitReader(Predicates(), **more).records(split, buffer, Counter()):
            found += batch["offset"].to_pylist()
    return found + [offset for batch in buffer.flush() for offset in batch["offset"].to_pylist()]


def test_segments_that_a_cleaner_merges_during_a_read_give_the_remaining_records(partition):
    for base in (0, 100, 200):
        write(partition, base, batches(base, base + 100))
    options = read_options({"path": str(partition.parent), "maxPartitionBytes": "2000"})
    splits = [split for task in plan_splits(options, Predicates(), Counter()) for split in task]
    assert len(splits) > 6
    remove(partition, 100)
    rewrite(partition, 0, batches(0, 40) + batches(70, 90) + batches(150, 200))
    assert read_splits(splits) == [*range(40), *range(70, 90), *range(150, 300)]


def remove(partition, base):
    for path in partition.glob(f"{base:020d}.*"):
        path.unlink()


def vanish(partition):
    remove(partition, 100)


def vanish_before_one_that_is_cleaned(partition):
    remove(partition, 100)
    rewrite(partition, 200, batches(200, 250))


def vanish_and_leave_nothing_behind(partition):
    remove(partition, 100)
    remove(partition, 200)


def truncate(partition):
    vanish_and_leave_nothing_behind(partition)
    log = partition / f"{0:020d}.log"
    with log.open("r+b") as file:
        file.truncate(log.stat().st_size // 2)


def rewrite(partition, base, data):
    """Replace a segment by another file, as a cleaner does: the old file still exists when the new one is written."""
    write(partition / "cleaned", base, data)
    for path in (partition / "cleaned").glob("*"):
        path.replace(partition / path.name)
    (partition / "cleaned").rmdir()


@pytest.mark.parametrize("change", [vanish, vanish_before_one_that_is_cleaned, truncate])
@pytest.mark.parametrize("cut", ["2000", "10000000"])
def test_a_segment_that_vanishes_in_the_middle_after_planning_is_lost(partition, change, cut):
    for base in (0, 100, 200):
        write(partition, base, batches(base, base + 100))
    options = read_options({"path": str(partition.parent), "maxPartitionBytes": cut})
    splits = [split for task in plan_splits(options, Predicates(), Counter()) for split in task]
    change(partition)
    with pytest.raises(ToolError, match=r"\.log no longer exists as it was .* no other segment has its records"):
        read_splits(splits)
    assert read_splits(splits, fail_on_data_loss=False) == offsets(partition.parent), "the rest is read once"


def cut_off(partition):
    with (partition / f"{200:020d}.log").open("r+b") as file:
        file.truncate(len(batches(200, 250)))


def replace_by_another_leader(partition):
    cut_off(partition)
    write(partition, 200, batches(250, 340, partition_leader_epoch=7), mode="ab")


def remove_last(partition):
    remove(partition, 200)


@pytest.mark.parametrize(("change", "end"), [(cut_off, 250), (replace_by_another_leader, 340), (remove_last, 200)])
@pytest.mark.parametrize("cut", ["2000", "10000000"])
def test_a_last_segment_that_a_broker_truncates_after_planning_is_lost(partition, change, end, cut):
    for base in (0, 100, 200):
        write(partition, base, batches(base, base + 100))
    options = read_options({"path": str(partition.parent), "maxPartitionBytes": cut})
    splits = [split for task in plan_splits(options, Predicates(), Counter()) for split in task]
    few = [split for task in plan_splits(options, Predicates(max_offset=240), Counter()) for split in task]
    change(partition)
    with pytest.raises(ToolError, match=f"^t-0 was truncated .*, and ends at offset {end} now; offset 299 was req"):
        read_splits(splits)
    assert read_splits(splits, fail_on_data_loss=False) == offsets(partition.parent)
    if change is not remove_last:
        assert read_splits(few) == list(range(241)), "the requested records are kept"
    write(partition, 200, batches(200, 300) + bytes(9000))
    assert read_splits(splits) == list(range(300)), "a broker appends, also to a preallocated log"


@pytest.mark.parametrize("compiled", [False, True])
def test_a_last_segment_that_a_broker_truncates_while_it_is_read_is_lost(partition, compiled, monkeypatch):
    monkeypatch.setattr(split_reader, "worth_compiling", lambda _: compiled)
    monkeypatch.setattr("kidx.tables.batch_walk.WINDOW", 1000)
    monkeypatch.setattr("kidx.tables.columns.ROWS", 20)
    last = write(partition, 0, batches(0, 300))
    reader = kidx.read(partition.parent)
    found = reader.read_next_batch()["offset"].to_pylist()
    with last.open("r+b") as file:
        file.truncate(len(batches(0, 200)))
    with pytest.raises(duckdb.Error, match=r"\.log was truncated while it was read .failOnDataLoss=false"):
        duckdb.from_arrow(reader).fetchall()
    assert found == list(range(len(found)))
    assert 0 < len(found) < 200


class Listed(MemoryFileSystem):
    """A store that keeps its listings, as the file systems of S3, GCS and Azure do."""

    protocol = "listed"

    @classmethod
    def _strip_protocol(cls, path):
        return super()._strip_protocol(path.removeprefix("listed:/"))

    def ls(self, path, detail=True, **_):
        path = self._strip_protocol(path)
        if path not in self.dircache:
            self.dircache[path] = [dict(each) for each in super().ls(path, detail=True)]
        return self.dircache[path] if detail else [each["name"] for each in self.dircache[path]]

    def info(self, path, **_):
        path = self._strip_protocol(path)
        known = {each["name"]: each for each in self.dircache.get(self._parent(path), ())}
        return known[path] if path in known else super().info(path)

    def invalidate_cache(self, path=None):
        self.dircache.clear() if path is None else self.dircache.pop(self._strip_protocol(path), None)


register_implementation("listed", Listed)


@pytest.mark.parametrize("protocol", ["memory", "listed"])
def test_a_segment_that_vanishes_from_an_object_store_is_lost_and_a_merge_is_not(partition, protocol):
    def upload():
        memory = MemoryFileSystem(skip_instance_cache=True)
        for path in partition.glob("*"):
            if path.is_file():
                memory.pipe_file(f"/vanishing/t-0/{path.name}", path.read_bytes())
        for path in memory.ls("/vanishing/t-0", detail=False):
            if not (partition / path.rpartition("/")[2]).exists():
                memory.rm_file(path)

    def plan():
        (task,) = plan_splits(read_options({"path": f"{protocol}://vanishing"}), Predicates(), Counter())
        return task

    for base in (0, 100, 200):
        write(partition, base, batches(base, base + 100))
    upload()
    task = plan()
    remove(partition, 100)
    rewrite(partition, 0, batches(0, 90) + batches(150, 200))
    upload()
    assert read_splits(task) == [*range(90), *range(150, 300)]
    task = plan()
    remove(partition, 200)
    MemoryFileSystem().rm_file(f"/vanishing/t-0/{200:020d}.log")
    with pytest.raises(ToolError, match="no other segment has its records"):
        read_splits(task)


@pytest.mark.parametrize("protocol", ["memory", "listed"])
@pytest.mark.parametrize("end", [60, 100, 130])
def test_a_topic_that_is_created_again_in_an_object_store_after_planning_is_lost(partition, protocol, end):
    memory = MemoryFileSystem(skip_instance_cache=True)

    def upload(end, topic_id, epoch):
        shutil.rmtree(partition, ignore_errors=True)
        write(partition, 0, batches(0, end, partition_leader_epoch=epoch))
        (partition / "partition.metadata").write_text(f"version: 0\ntopic_id: {topic_id}\n")
        if memory.exists("/again"):
            memory.rm("/again", recursive=True)
        for path in partition.iterdir():
            memory.pipe_file(f"/again/t-0/{path.name}", path.read_bytes())

    upload(100, "rKcGn0ygQ8OEsl1EDgbTnQ", 1)
    (task,) = plan_splits(read_options({"path": f"{protocol}://again"}), Predicates(), Counter())
    assert read_splits(task) == list(range(100))
    upload(end, "1Z2y3X4w5V6u7T8s9R0qPA", 2)
    with pytest.raises(ToolError, match="t-0 no longer exists, or was deleted and created again"):
        read_splits(task)
    assert read_splits(task, fail_on_data_loss=False) == []
    upload(end + 10, "1Z2y3X4w5V6u7T8s9R0qPA", 2)
    assert offsets(f"{protocol}://again") == list(range(end + 10)), "a later query lists again"


@pytest.mark.thorough
@pytest.mark.parametrize(("into", "end", "is_known"), [(490, 1000, True), (100, 1400, False)])
def test_a_merge_of_more_segments_than_a_split_remembers_fails_the_query(into, end, is_known, partition):
    for base in range(0, end, 10):
        write(partition, base, batches(base, base + 10))
    tasks = plan_splits(read_options({"path": str(partition.parent)}), Predicates(), Counter())
    for base in range(into + 10, end, 10):
        remove(partition, base)
    rewrite(partition, into, batches(into, end))
    splits = [split for task in tasks for split in task]
    if is_known:
        assert read_splits(splits) == list(range(end))
    else:
        with pytest.raises(ToolError, match="no other segment has its records"):
            read_splits(splits)


def test_zeros_that_a_broker_cuts_off_when_it_rolls_are_no_loss(partition):
    """The listing can have the preallocated size of a segment, although it has the next one, too."""
    log = write(partition, 0, batches(0, 100) + bytes(5000))
    write(partition, 100, batches(100, 200))
    (task,) = plan_splits(read_options({"path": str(partition.parent)}), Predicates(), Counter())
    with log.open("r+b") as file:
        file.truncate(log.stat().st_size - 5000)
    assert read_splits(task) == list(range(200))


def test_a_read_continues_only_in_the_same_topic_and_only_if_it_is_as_long(partition, caplog):
    old, new = "rKcGn0ygQ8OEsl1EDgbTnQ", "1Z2y3X4w5V6u7T8s9R0qPA"
    metadata = partition / "partition.metadata"
    write(partition, 0, batches(0, 100))
    metadata.write_text(f"version: 0\ntopic_id: {old}\n")
    (known,) = kidx.read(partition.parent, "segments", columns=["topic_id"]).read_all()["topic_id"].to_pylist()
    assert known == old
    how = {"topics": "t", "topic_id": old}
    assert offsets(partition.parent, offsets=(90, None), **how) == list(range(90, 100))
    assert offsets(partition.parent, offsets=(100, None), **how) == []
    with pytest.raises(ToolError, match="t-0 was read up to offset 120, and ends at 100: it was truncated"):
        offsets(partition.parent, offsets=(120, None), **how)
    shutil.rmtree(partition)
    write(partition, 0, batches(0, 130))
    metadata.write_text(f"version: 0\ntopic_id: {new}\n")
    with pytest.raises(ToolError, match=f"up to offset 100, and is another topic now: topic id {new} instead of {old}"):
        offsets(partition.parent, offsets=(100, None), **how)
    assert offsets(partition.parent, offsets=(100, None), fail_on_data_loss=False, **how) == list(range(130))
    assert "t-0 was read up to offset 100, and is another topic now" in caplog.text
    with pytest.raises(ToolError, match="topic_id requires the records of one topic; name it with topics"):
        offsets(partition.parent, topic_id=old)


def test_between_an_old_segment_and_the_cleaned_one_the_directory_is_listed_again(partition, monkeypatch):
    write(partition, 0, batches(0, 100))
    write(partition, 100, batches(100, 120))
    log = partition / f"{0:020d}.log"
    log.rename(f"{log}.swap")
    monkeypatch.setattr(segments.time, "sleep", lambda _: Path(f"{log}.swap").rename(log))
    assert offsets(partition.parent) == list(range(120))


def test_transactions_that_end_while_a_query_is_planned_are_hidden(partition):
    """The index of aborted transactions can come after the listing."""
    producer = {"producer_id": 1, "producer_epoch": 0, "base_sequence": 0, "is_transactional": True}
    marker = end_transaction_marker(ABORT, producer_id=1, producer_epoch=0, offset=20)
    log = write(partition, 0, batches(0, 20, **producer) + marker)
    aborted = log.with_suffix(".txnindex").read_bytes()
    log.with_suffix(".txnindex").unlink()
    options = read_options({"path": str(partition.parent), "isolationLevel": "read_committed"})
    (task,) = plan_splits(options, Predicates(), Counter())
    log.with_suffix(".txnindex").write_bytes(aborted)
    assert read_splits(task, isolation="read_committed") == []


@pytest.mark.parametrize("kept", ["", "first", "last", "all"])
def test_aborted_transactions_are_derived_from_markers_where_a_broker_would(partition, kept):
    """A broker recovers a segment without an offset index, and then has its index of aborted transactions."""
    one, two = ({"producer_id": n, "producer_epoch": 0, "base_sequence": 0, "is_transactional": True} for n in (1, 2))

    def end_of(marker, number, offset):
        return end_transaction_marker(marker, producer_id=number, producer_epoch=0, offset=offset)

    first = batches(0, 10, **one) + batches(10, 20) + end_of(COMMIT, 1, 20) + batches(21, 31, **one)
    second = batches(31, 41, **two) + end_of(ABORT, 1, 41) + batches(42, 52, **one) + end_of(COMMIT, 2, 52)
    third = batches(53, 63) + end_of(COMMIT, 1, 63) + batches(64, 74, **two) + end_of(ABORT, 2, 74) + batches(75, 85)
    logs = [write(partition, base, data) for base, data in ((0, first), (31, second), (53, third))]
    # The index that recovery writes for one segment alone does not know where the transaction began.
    (partition / f"{31:020d}.txnindex").write_bytes(struct.pack(">hqqqq", 0, 1, 21, 41, 31))
    expected = [*range(20), *range(31, 41), *range(42, 52), *range(53, 63), *range(75, 85)]
    if kept != "all":
        for log in logs:
            if (kept, log) not in (("first", logs[0]), ("last", logs[2])):
                for suffix in (".index", ".timeindex", ".txnindex"):
                    log.with_suffix(suffix).unlink(missing_ok=True)
    assert offsets(partition.parent, isolation="read_committed") == expected
    for start in (0, 25, 31, 45, 60):
        wanted = [offset for offset in expected if offset >= start]
        assert offsets(partition.parent, isolation="read_committed", offsets=(start, None)) == wanted


def test_high_watermarks_and_clusters_are_read_from_the_log_directory(tmp_path):
    for broker, end in (("1", 100), ("2", 60)):
        write(tmp_path / broker / "t-0", 0, batches(0, end))
        (tmp_path / broker / "meta.properties").write_text("#\nversion=1\ncluster.id=one\n")
    options = read_options({"path": str(tmp_path)})
    assert list_partitions(options)["t-0"].readable == 100
    (tmp_path / "1" / "replication-offset-checkpoint").write_text("0\n1\nt 0 40\n")
    (tmp_path / "2" / "replication-offset-checkpoint").write_text("0\n1\nt 0 50\n")
    assert (list_partitions(options)["t-0"].readable, list_partitions(options)["t-0"].end) == (50, 100)
    assert offsets(tmp_path) == list(range(100)), "a batch query reads the longest log to its end"
    (tmp_path / "2" / "meta.properties").write_text("cluster.id=two\n")
    with pytest.raises(ToolError, match="t-0 has replicas of the clusters one and two; read each cluster separately"):
        offsets(tmp_path)


def test_the_replica_with_the_highest_end_is_read_for_any_segmentation(tmp_path):
    write(tmp_path / "1" / "t-0", 0, batches(0, 90))
    write(tmp_path / "1" / "t-0", 90, batches(90, 100))
    write(tmp_path / "2" / "t-0", 0, batches(0, 300))
    assert offsets(tmp_path) == list(range(300))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"topics": "nope"}, "unknown topic or partition nope; choose from t"),
        ({"partitions": 9}, "unknown partition 9 of t; choose from 0"),
        ({"topics": "t", "partitions": [0, 3]}, "unknown partition 3 of t; choose from 0"),
        ({"offsets": (5, 2)}, "the start offset 5 is past the end 2"),
        (
            {"offsets": ("5", None)},
            r"offsets must be a pair \(first, end\) of integers or None, not \('5', None\)",
        ),
        ({"offsets": 5}, r"offsets must be a pair \(first, end\) of integers or None, not 5"),
        ({"times": ("2023-11-14", None)}, "times must be .* datetimes with a zone, milliseconds or None, not"),
        ({"times": (7, 5)}, "the start time 7 is past the end 5"),
    ],
)
def test_a_missing_partition_is_reported(arguments, message, partition):
    write(partition, 0, batches(0, 10))
    with pytest.raises(ToolError, match=message):
        kidx.read(partition.parent, **arguments).read_all()


@pytest.mark.parametrize(
    ("path", "hint"), [("d*", "patterns are not expanded"), ("a,b", "give several paths as a JSON array")]
)
def test_patterns_and_lists_of_paths_are_rejected_with_the_alternative(path, hint, tmp_path):
    with pytest.raises(ToolError, match=f"does not exist: .*{hint}"):
        kidx.read(tmp_path / path).read_all()


def test_an_append_between_two_reads_of_a_preallocated_log_is_no_corruption(tmp_path):
    """The first read ends in zeros; before the zeros are checked, the broker has written a batch there."""
    path = tmp_path / f"{0:020d}.log"
    appended = [build_batch([(1, None, b"v" * 50)], base_offset=number) for number in range(3)]
    path.write_bytes(appended[0].ljust(1 << 14, b"\0"))

    class Overtaken(LocalReader):
        def _read(self, start, end):
            data = super()._read(start, end)
            with path.open("r+b") as file:  # the broker continues after the end of the read
                file.seek(len(appended[0]))
                file.write(b"".join(appended[1:]))
            return data

    with Overtaken(str(path)) as reader:
        walk = BatchWalk(reader, 0, reader.size, source=str(path), may_grow=True)
        assert [batch.base_offset for _, batch, _ in walk] == [0, 1, 2]
        assert walk.ends_in_zeros
    path.write_bytes(appended[0] + b"\0" * 100 + appended[1] + b"\0" * 100)
    with LocalReader(str(path)) as reader, pytest.raises(CorruptRecordError, match="Found record size 0"):
        list(BatchWalk(reader, 0, reader.size, source=str(path), may_grow=True))
