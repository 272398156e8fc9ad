"""Replies of a stream to Spark, offset by offset, without a session."""

from __future__ import annotations

import json
import re
import shutil

import pyarrow as pa
import pytest

from kidx.errors import ToolError
from kidx.records import ControlRecordType, EndTransactionMarker, SimpleRecord, build_batch, end_transaction_marker
from kidx.spark import limits
from kidx.spark.source import SegmentsReader
from kidx.spark.streaming import IDENTITIES, StreamReader
from kidx.storage import Store
from kidx.tables import following
from kidx.tables.columns import RowBuffer
from kidx.tables.indexes import Counter
from kidx.tables.isolation import last_stable_offset
from kidx.tables.options import read_options
from kidx.tables.predicates import Predicates
from kidx.tables.segments import find_partitions
from kidx.tables.split_reader import SplitReader

pytestmark = pytest.mark.spark


@pytest.fixture
def disk(tmp_path, monkeypatch):
    monkeypatch.setattr(following, "PAUSE", 0)
    return tmp_path / "data"


def append(disk, partition, base, first, end, *, size=10, **more):
    """Append batches of some records to a segment."""
    log = disk / f"t-{partition}" / f"{base:020d}.log"
    log.parent.mkdir(parents=True, exist_ok=True)
    records = [SimpleRecord(1_700_000_000_000, b"k", b"v" * 20)] * size
    with log.open("ab") as file:
        file.writelines(build_batch(records, base_offset=each, **more) for each in range(first, end, size))
    return log


def note(disk, **marks):
    lines = [f"t {name[1:]} {mark}" for name, mark in marks.items()]
    (disk / "replication-offset-checkpoint").write_text("\n".join(["0", str(len(lines)), *lines]) + "\n")


def reader(disk, **given):
    options = read_options({"path": str(disk), "subscribe": "t", **given}, may_stream=True)
    return Offsets(SegmentsReader(None, options), options)


class Offsets(StreamReader):
    """Reader whose replies are compared without identities."""

    def initialOffset(self):  # noqa: N802 -- Spark's name
        return without_identities(super().initialOffset())

    def latestOffset(self, *arguments):  # noqa: N802 -- Spark's name
        return without_identities(super().latestOffset(*arguments))


def without_identities(position):
    return {name: offset for name, offset in position.items() if name != IDENTITIES}


def planned(stream, start, end):
    """Return the offsets that the tasks of a micro-batch received, by partition."""
    found = {}
    for task in stream.partitions(start, end):
        for split in task.value:
            name = f"{split.segment.topic}-{split.segment.partition}"
            found.setdefault(name, []).append((split.first_offset, min(split.stop_offset, end[name])))
    return found


def test_ends_grow_with_the_log_and_never_decrease(disk):
    append(disk, 0, 0, 0, 50)
    append(disk, 1, 0, 0, 20)
    stream = reader(disk)
    start = stream.initialOffset()
    assert start == {"t-0": 0, "t-1": 0}
    end = stream.latestOffset(start, limits.default_limit(stream._options.limits))
    assert end == {"t-0": 50, "t-1": 20}
    assert planned(stream, start, end) == {"t-0": [(0, 50)], "t-1": [(0, 20)]}
    append(disk, 0, 50, 50, 80)
    append(disk, 2, 0, 0, 10)
    assert stream.latestOffset(end) == {"t-0": 80, "t-1": 20, "t-2": 10}
    assert stream.reportLatestOffset() == {"t-0": 80, "t-1": 20, "t-2": 10}
    assert planned(stream, end, {"t-0": 80, "t-1": 20, "t-2": 10}) == {"t-0": [(50, 80)], "t-2": [(0, 10)]}
    note(disk, _0=60, _1=20)
    assert stream.latestOffset({"t-0": 80, "t-1": 20, "t-2": 0})["t-0"] == 80
    assert reader(disk).latestOffset() == {"t-0": 60, "t-1": 20, "t-2": 10}, "as Spark 4.0 and 4.1 ask"


@pytest.mark.parametrize(("value", "first"), [("latest", 40), ("earliest", 0), ('{"t": {"0": -1}}', 40)])
def test_a_stream_starts_at_the_given_position(value, first, disk):
    append(disk, 0, 0, 0, 50)
    note(disk, _0=40)
    assert reader(disk, startingOffsets=value).initialOffset() == {"t-0": first}


def test_a_checkpoint_that_decreases_causes_no_duplicates(disk):
    """An earlier version of kidx wrote such checkpoints: a micro-batch ends before it begins."""
    append(disk, 0, 0, 0, 100)
    stream = reader(disk)
    assert planned(stream, {"t-0": 90}, {"t-0": 70}) == {}
    end = stream.latestOffset({"t-0": 70})
    assert end == {"t-0": 100}
    assert planned(stream, {"t-0": 70}, end) == {"t-0": [(90, 100)]}
    assert planned(stream, {"t-0": 70}, end) == {"t-0": [(90, 100)]}, "planning it again changes nothing"


def test_a_recreated_topic_is_data_loss(disk):
    append(disk, 0, 0, 0, 30)
    stream, loose = reader(disk), reader(disk, failOnDataLoss="false")
    with pytest.raises(ToolError, match="t-0 was read up to offset 90, and ends at 30: it was truncated, or"):
        stream.latestOffset({"t-0": 90})
    assert loose.latestOffset({"t-0": 90}) == {"t-0": 30}
    with pytest.raises(ToolError, match="offset of t-0 was changed from 90 to 30"):
        stream.partitions({"t-0": 90}, {"t-0": 30})
    assert planned(loose, {"t-0": 90}, {"t-0": 30}) == {}
    append(disk, 0, 0, 30, 50)
    assert planned(loose, {"t-0": 30}, loose.latestOffset({"t-0": 30})) == {"t-0": [(30, 50)]}


def test_segments_deleted_by_retention_and_missing_partitions_are_data_loss(disk):
    append(disk, 0, 0, 0, 30)
    append(disk, 0, 30, 30, 60)
    append(disk, 1, 0, 0, 30)
    start, end = {"t-0": 10, "t-1": 10}, {"t-0": 60, "t-1": 30}
    (disk / "t-0" / f"{0:020d}.log").unlink()
    stream, loose = reader(disk), reader(disk, failOnDataLoss="false")
    with pytest.raises(
        ToolError, match="t-0 begins at offset 30; offset 10 was deleted: some data may have been missed"
    ):
        stream.partitions(start, end)
    assert planned(loose, start, end) == {"t-0": [(30, 60)], "t-1": [(10, 30)]}
    with pytest.raises(ToolError, match="t-0 is new and begins at offset 30 instead of 0"):
        stream.partitions({"t-1": 30}, end)
    assert planned(loose, {"t-1": 30}, end) == {"t-0": [(30, 60)]}
    with pytest.raises(ToolError, match="t-0 ends at offset 60, before the requested offset 70"):
        stream.partitions({"t-0": 40}, {"t-0": 70})
    shutil.rmtree(disk / "t-1")
    with pytest.raises(ToolError, match="t-1 no longer exists"):
        stream.latestOffset(start)
    with pytest.raises(ToolError, match="t-1 no longer exists"):
        stream.partitions({"t-0": 40, "t-1": 10}, end)
    assert loose.latestOffset(start) == {"t-0": 60}
    assert planned(loose, {"t-0": 30, "t-1": 10}, {"t-0": 60}) == {"t-0": [(30, 60)]}
    with pytest.raises(ToolError, match="t-1 no longer exists"):
        stream.partitions({"t-0": 30, "t-1": 10}, {"t-0": 60})


def test_a_partition_that_moves_to_another_disk_is_found_again(disk, monkeypatch):
    append(disk / "one", 0, 0, 0, 30)
    away, here = disk / "two" / "t-0.moving", disk / "two" / "t-0"
    append(disk / "two", 1, 0, 0, 10)
    stream = reader(disk)
    shutil.move(disk / "one" / "t-0", away)
    monkeypatch.setattr(following.time, "sleep", lambda _: away.rename(here))
    assert stream.latestOffset({"t-0": 20, "t-1": 0}) == {"t-0": 30, "t-1": 10}


def test_committed_readers_stop_at_the_first_undecided_record(disk):
    producer = {"producer_id": 1, "producer_epoch": 0, "base_sequence": 0, "is_transactional": True}
    append(disk, 0, 0, 0, 20)
    log = append(disk, 0, 0, 20, 30, **producer)
    append(disk, 0, 0, 30, 40)
    committed = reader(disk, isolationLevel="read_committed")
    assert committed.latestOffset({"t-0": 0}) == {"t-0": 20}
    assert reader(disk).latestOffset({"t-0": 0}) == {"t-0": 40}
    marker = EndTransactionMarker(ControlRecordType.COMMIT, 0)
    with log.open("ab") as file:
        file.write(end_transaction_marker(marker, producer_id=1, producer_epoch=0, offset=40))
    assert committed.latestOffset({"t-0": 20}) == {"t-0": 41}
    assert planned(committed, {"t-0": 20}, {"t-0": 41}) == {"t-0": [(20, 41)]}


def test_transactions_are_followed_from_the_end_of_the_last_pass(disk):
    producer = {"producer_id": 1, "producer_epoch": 0, "base_sequence": 0, "is_transactional": True}
    append(disk, 0, 0, 0, 100)
    append(disk, 0, 0, 100, 110, **producer)
    append(disk, 0, 110, 110, 150)

    def stable(settled):
        (log,), counter = find_partitions([Store(str(disk))]), Counter()
        return last_stable_offset(log, counter, seen, settled), counter.log_bytes

    seen = {}
    first, full = stable(130)
    assert first == 100
    assert (seen[str(disk / "t-0")].base_offset, seen[str(disk / "t-0")].open_since) == (110, {1: 100})
    assert stable(0)[0] == 100
    assert not seen, "what may be truncated is not remembered"
    stable(130)
    with append(disk, 0, 110, 150, 150).open("ab") as file:
        marker = EndTransactionMarker(ControlRecordType.ABORT, 0)
        file.write(end_transaction_marker(marker, producer_id=1, producer_epoch=0, offset=150))
    last, little = stable(151)
    assert last is None
    assert little * 3 < full
    (disk / "t-0" / f"{110:020d}.log").write_bytes(b"")
    assert stable(151)[0] == 100, "the log is shorter than before"


# --- topics that are deleted and created again ---------------------------------------------------------------------

IDS = {"old": "rKcGn0ygQ8OEsl1EDgbTnQ", "new": "1Z2y3X4w5V6u7T8s9R0qPA"}
HOW = {"topic id": {"old": IDS["old"], "new": IDS["new"]}, "first batch": {"old": None, "new": None}}


def create(disk, partition, end, *, topic, how):
    """Write a partition of the old or the new topic, with or without a file that has its id."""
    log = disk / f"t-{partition}" / f"{0:020d}.log"
    shutil.rmtree(log.parent, ignore_errors=True)
    log.parent.mkdir(parents=True)
    time = {"old": 1_700_000_000_000, "new": 1_800_000_000_000}[topic]
    batches = [build_batch([SimpleRecord(time, b"k", b"v")] * 10, base_offset=base) for base in range(0, end, 10)]
    log.write_bytes(b"".join(batches))
    if HOW[how][topic]:
        (log.parent / "partition.metadata").write_text(f"version: 0\ntopic_id: {HOW[how][topic]}\n")


def follower(disk, **given):
    options = read_options({"path": str(disk), "subscribe": "t", **given}, may_stream=True)
    return StreamReader(SegmentsReader(None, options), options)


def checkpointed(position):
    return json.loads(json.dumps(position))


DIFFERENCES = {
    "topic id": f"topic id {IDS['new']} instead of {IDS['old']}",
    "first batch": "its first batch has offset 0, time 1800000000000 and producer -1 instead of offset 0, time 17",
}


@pytest.mark.parametrize("how", HOW)
@pytest.mark.parametrize("end", [40, 100, 130], ids=["shorter", "equally long", "longer"])
@pytest.mark.parametrize("down", [False, True], ids=["between batches", "while the query is down"])
def test_a_topic_that_was_created_again_is_read_from_its_start(disk, how, end, down, caplog):
    create(disk, 0, 100, topic="old", how=how)
    create(disk, 1, 20, topic="old", how=how)
    stream, loose = follower(disk), follower(disk, failOnDataLoss="false")
    start = checkpointed(stream.latestOffset(stream.initialOffset()))
    assert without_identities(start) == {"t-0": 100, "t-1": 20}
    assert checkpointed(stream.latestOffset(start)) == start
    create(disk, 0, end, topic="new", how=how)
    if down:
        stream, loose = follower(disk), follower(disk, failOnDataLoss="false")
    with pytest.raises(ToolError) as raised:
        stream.latestOffset(start)
    said = f"t-0 was read up to offset 100, and is another topic now, with the offsets 0 to {end}: {DIFFERENCES[how]}"
    assert said in str(raised.value)
    new = checkpointed(loose.latestOffset(start))
    assert said in caplog.text
    assert without_identities(new) == {"t-0": end, "t-1": 20}
    assert planned(loose, start, new) == {"t-0": [(0, end)]}
    with pytest.raises(ToolError, match="t-0 was read up to offset 100, and is another topic now"):
        follower(disk).partitions(start, new)
    caplog.clear()
    assert checkpointed(loose.latestOffset(new)) == new
    assert planned(loose, new, new) == {}
    assert not caplog.text


@pytest.mark.parametrize("how", HOW)
@pytest.mark.parametrize("end", [40, 100, 130], ids=["shorter", "equally long", "longer"])
def test_a_topic_that_is_created_again_during_a_micro_batch_loses_the_rest_of_the_old(disk, how, end, caplog):
    create(disk, 0, 100, topic="old", how=how)
    stream, loose = follower(disk), follower(disk, failOnDataLoss="false")
    start = checkpointed(stream.initialOffset())
    until = checkpointed(stream.latestOffset(start))
    create(disk, 0, end, topic="new", how=how)
    with pytest.raises(ToolError, match="t-0 was read up to offset 0, and is another topic now"):
        stream.partitions(start, until)
    assert planned(loose, start, until) == {}
    new = checkpointed(loose.latestOffset(until))
    assert planned(loose, until, new) == {"t-0": [(0, end)]}
    assert re.findall(r"t-0 was read up to offset \d+", caplog.text) == ["t-0 was read up to offset 0"]


@pytest.mark.parametrize("end", [40, 100, 130], ids=["shorter", "equally long", "longer"])
def test_a_task_does_not_read_a_topic_that_was_created_again_after_planning(disk, end):
    create(disk, 0, 100, topic="old", how="topic id")
    stream = follower(disk)
    start = stream.initialOffset()
    (task,) = stream.partitions(start, stream.latestOffset(start))
    create(disk, 0, end, topic="new", how="topic id")
    with pytest.raises(ToolError, match="created again: its records from offset 0 on are lost"):
        list(SplitReader(Predicates()).records(task.value[0], RowBuffer(pa.schema({"offset": pa.int64()})), Counter()))


def test_more_and_fewer_partitions(disk):
    for partition in (0, 1):
        create(disk, partition, 100, topic="old", how="topic id")
    loose = follower(disk, failOnDataLoss="false")
    start = checkpointed(loose.latestOffset(loose.initialOffset()))
    for partition in (0, 1, 2):
        create(disk, partition, 30, topic="new", how="topic id")
    more = checkpointed(loose.latestOffset(start))
    assert planned(loose, start, more) == {"t-0": [(0, 30)], "t-1": [(0, 30)], "t-2": [(0, 30)]}
    with pytest.raises(ToolError, match="t-0 was read up to offset 100, and is another topic now"):
        follower(disk).latestOffset(start)
    shutil.rmtree(disk / "t-1")
    fewer = checkpointed(loose.latestOffset(start))
    assert planned(loose, start, fewer) == {"t-0": [(0, 30)], "t-2": [(0, 30)]}


def test_a_checkpoint_of_an_earlier_version_is_continued_and_gets_identities(disk):
    create(disk, 0, 100, topic="old", how="topic id")
    stream = follower(disk)
    end = stream.latestOffset({"t-0": 60})
    assert end == {"t-0": 100, "identities": {"t-0": IDS["old"]}}
    assert planned(stream, {"t-0": 60}, end) == {"t-0": [(60, 100)]}


def test_the_first_batch_gives_way_to_the_topic_id_and_is_kept_over_retention_and_compaction(disk):
    create(disk, 0, 100, topic="old", how="first batch")
    append(disk, 0, 100, 100, 200)
    stream = follower(disk)
    start = stream.latestOffset()
    assert start["identities"] == {"t-0": [0, 1_700_000_000_000, -1]}
    (disk / "t-0" / f"{0:020d}.log").unlink()
    assert stream.latestOffset(start) == start
    create(disk, 0, 200, topic="new", how="first batch")
    (disk / "cleaner-offset-checkpoint").write_text("0\n1\nt 0 50\n")
    assert stream.latestOffset(start) == start, "a cleaner may have rewritten the first batch"
    (disk / "cleaner-offset-checkpoint").unlink()
    create(disk, 0, 200, topic="old", how="topic id")
    assert stream.latestOffset(start)["identities"] == {"t-0": IDS["old"]}


# --- limits, of Spark 4.2 and later --------------------------------------------------------------------------------


@pytest.fixture
def ask():
    """Return the end for Spark, with the limit that the source announces."""
    if not limits.KNOWS_LIMITS:
        pytest.skip("this Spark is older than 4.2")
    return lambda stream, start: stream.latestOffset(start, stream.getDefaultReadLimit())


def test_a_limit_of_offsets_is_divided_in_proportion(disk, ask):
    append(disk, 0, 0, 0, 900)
    append(disk, 1, 0, 0, 90)
    append(disk, 2, 0, 0, 10)
    stream = reader(disk, maxOffsetsPerTrigger="100")
    start = {"t-0": 0, "t-1": 0, "t-2": 0}
    assert ask(stream, start) == {"t-0": 90, "t-1": 9, "t-2": 1}
    assert ask(stream, {"t-0": 860, "t-1": 90, "t-2": 10}) == {"t-0": 900, "t-1": 90, "t-2": 10}
    assert ask(stream, {"t-0": 0}) == {"t-0": 90, "t-1": 9, "t-2": 1}, "new partitions count from their start"
    from pyspark.sql.streaming.datasource import ReadAllAvailable

    assert stream.latestOffset(start, ReadAllAvailable()) == {"t-0": 900, "t-1": 90, "t-2": 10}


def test_the_progress_has_the_lag_of_each_partition(disk, ask):
    size = append(disk, 0, 0, 0, 100).stat().st_size
    size += append(disk, 0, 100, 100, 900).stat().st_size
    append(disk, 1, 0, 0, 90)
    stream = reader(disk, maxOffsetsPerTrigger="100")
    assert ask(stream, {"t-0": 0, "t-1": 90}) == {"t-0": 100, "t-1": 90}
    behind = {"t-0": {"offsets": 800, "bytes": size * 8 // 9}}
    assert stream.reportLatestOffset() == {"t-0": 900, "t-1": 90, "behind": behind}
    assert ask(stream, {"t-0": 890, "t-1": 90}) == {"t-0": 900, "t-1": 90}
    assert stream.reportLatestOffset() == {"t-0": 900, "t-1": 90}


def test_a_limit_of_bytes_takes_whole_batches_over_segments_and_one_at_least(disk, ask):
    log = append(disk, 0, 0, 0, 100)
    append(disk, 0, 100, 100, 200)
    batch = log.stat().st_size // 10
    for given, first, expected in (
        (1, 0, 10), (batch, 0, 10), (3 * batch, 0, 30), (3 * batch + 5, 0, 30), (12 * batch, 0, 120), (batch, 95, 100),
        (1, 100, 110), (3 * batch, 190, 200), (40 * batch, 0, 200),
    ):  # fmt: skip
        stream = reader(disk, maxBytesPerTrigger=str(given))
        assert ask(stream, {"t-0": first}) == {"t-0": expected}, (given, first)
    both = reader(disk, maxBytesPerTrigger=str(3 * batch), maxOffsetsPerTrigger="17")
    assert ask(both, {"t-0": 0}) == {"t-0": 17}


def test_a_stream_with_limits_reaches_the_end(disk, ask):
    append(disk, 0, 0, 0, 100)
    append(disk, 1, 0, 0, 40)
    stream, at, steps = reader(disk, maxBytesPerTrigger="700"), {"t-0": 0, "t-1": 0}, 0
    while (end := ask(stream, at)) != at:
        assert all(end[name] >= at[name] for name in at)
        at, steps = end, steps + 1
    assert at == {"t-0": 100, "t-1": 40}
    assert steps == 7


def test_a_micro_batch_waits_for_enough_offsets_but_not_for_ever(disk, ask):
    append(disk, 0, 0, 0, 20)
    stream = reader(disk, minOffsetsPerTrigger="30", maxTriggerDelay="10s")
    now = [100.0]
    stream._waiting = limits.Waiting(lambda: now[0])
    assert ask(stream, {"t-0": 0}) == {"t-0": 20}, "the first one does not wait"
    append(disk, 0, 0, 20, 40)
    now[0] += 9
    assert ask(stream, {"t-0": 20}) == {"t-0": 20}
    now[0] += 2
    assert ask(stream, {"t-0": 20}) == {"t-0": 40}
    append(disk, 0, 0, 40, 70)
    assert ask(stream, {"t-0": 40}) == {"t-0": 70}


def test_available_now_stops_at_the_end_that_was_seen_first(disk, ask):
    append(disk, 0, 0, 0, 50)
    stream = reader(disk, maxOffsetsPerTrigger="30", minOffsetsPerTrigger="25")
    stream.prepareForTriggerAvailableNow()
    append(disk, 0, 0, 50, 90)
    append(disk, 1, 0, 0, 10)
    assert ask(stream, {"t-0": 0}) == {"t-0": 30}
    assert ask(stream, {"t-0": 30}) == {"t-0": 50}
    assert ask(stream, {"t-0": 50}) == {"t-0": 50}
    assert ask(stream, {"t-0": 50, "t-1": 5}) == {"t-0": 50, "t-1": 5}, "a partition of an earlier run"


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"maxOffsetsPerTrigger": "none"}, "maxOffsetsPerTrigger is 'none', not an integer of at least 1"),
        ({"maxBytesPerTrigger": "0"}, "maxBytesPerTrigger is '0', not an integer of at least 1"),
        ({"maxOffsetsPerTrigger": "5", "minOffsetsPerTrigger": "9"}, "is 9, more than maxOffsetsPerTrigger, 5"),
        ({"maxTriggerDelay": "soon"}, "maxTriggerDelay is 'soon', not a time such as 30s, 15m or 1h"),
        ({"content": "batches"}, "readStream supports only content=records"),
        ({"replicas": "all"}, "readStream does not support replicas=all"),
        ({"endingOffsets": '{"t": {"0": 5}}'}, "readStream does not support endingOffsets"),
    ],
)
def test_wrong_options_are_named(given, said, disk):
    append(disk, 0, 0, 0, 10)
    with pytest.raises(ToolError, match=said):
        reader(disk, **given)


def test_limits_are_rejected_by_a_spark_that_does_not_use_them(disk, monkeypatch, caplog):
    append(disk, 0, 0, 0, 10)
    monkeypatch.setattr(limits, "KNOWS_LIMITS", False)
    for name in ("maxOffsetsPerTrigger", "maxBytesPerTrigger", "minOffsetsPerTrigger"):
        with pytest.raises(ToolError, match=f"{name} requires Spark 4.2 or later; this is "):
            reader(disk, **{name: "5"})
    reader(disk, maxRecordsPerPartition="5")
    assert "maxRecordsPerPartition is not used" in caplog.text
    options = read_options({"path": str(disk), "maxOffsetsPerTrigger": "5", "metrics": str(disk / "metrics")})
    SegmentsReader(None, options).partitions()
    assert "maxOffsetsPerTrigger: not used in a batch query" in caplog.text
    (document,) = [json.loads(path.read_text()) for path in (disk / "metrics").glob("plan-*.json")]
    assert document["pushed"] == []
