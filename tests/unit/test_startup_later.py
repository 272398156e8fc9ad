"""Actions of a running broker after it has loaded its logs: retention, first appends, index files that it makes."""

import base64
import os
import shlex
import shutil
import subprocess

import pytest
from startups import EPOCH_MS, HOUR_MS, ID, PROPERTIES, fill, log, partitions, start, stop_cleanly

from kidx.cluster import ClusterMetadata, read_metadata
from kidx.cluster import metadata as cluster_metadata
from kidx.dialect import dialect_of
from kidx.errors import ToolError
from kidx.log import LogConfig, UnifiedLog
from kidx.rebuild import rebuild
from kidx.records import SimpleRecord, build_batch
from kidx.records.record import ControlRecordType
from kidx.repair import repair_paths
from kidx.startup import running
from kidx.startup.settings import Settings, read_properties
from kidx.startup.simulation import CheckpointedOffsets, regular_files

DAY_MS = 24 * HOUR_MS
SOON = EPOCH_MS + 3 * DAY_MS
LATE = EPOCH_MS + 30 * DAY_MS
RELEASES = ("3.9.2", "4.3.1")


filled = partitions(2)


@pytest.fixture
def data(filled, tmp_path):
    """Make a log directory of a broker after a clean stop, with files as old as their records."""
    target = stop_cleanly(filled, tmp_path / "data", {0: 48, 1: 48})
    for path in target.glob("orders-*/*"):
        os.utime(path, ns=(EPOCH_MS * 10**6, EPOCH_MS * 10**6))
    return target


def started(*paths, now=SOON, **options):
    return start(*paths, clock=lambda: now, **options)


def times(data, base=0):
    return data / "orders-0" / f"{base:020d}.timeindex"


# -- retention -------------------------------------------------------------------------------------------------------


def zeroed(path):
    path.write_bytes(bytes(path.stat().st_size))


def ends_with_zeros(path):
    path.write_bytes(path.read_bytes()[:-12] + bytes(12))


def of_another_partition(path):
    other = path.parents[1] / "older"
    fill(other, begin=EPOCH_MS - 30 * DAY_MS)
    shutil.copy(other / path.name, path)
    shutil.rmtree(other)


def empty(path):
    path.write_bytes(b"")
    old = (EPOCH_MS - 30 * DAY_MS) * 10**6
    os.utime(path.with_suffix(".log"), ns=(old, old))


def missing(path):
    empty(path)
    path.unlink()


@pytest.mark.thorough
@pytest.mark.parametrize("damage", [zeroed, ends_with_zeros, of_another_partition, empty, missing])
def test_retention_that_deletes_by_a_wrong_time_index_is_harm_and_a_repair_prevents_it(data, damage):
    damage(times(data))
    for release in RELEASES:
        found = started(data, release=release)
        (harm,) = found.later
        assert (found.answer, harm.effect, harm.files, harm.records) == (
            "no",
            "retention",
            (data / "orders-0" / log(0),),
            12,
        )
        assert "would lose records to retention minutes after the start" in found.line
        assert f"which is {EPOCH_MS + 135}, and so retention.ms=604800000 (Kafka's default)" in harm.reason
        assert harm.remedy.startswith(f"kidx repair {data / 'orders-0'} --kafka {release} before the start")
    assert repair_paths([data], release="3.9.2").changes
    found = started(data)
    assert (found.answer, found.later) == ("yes", ())


def test_segments_whose_records_are_old_are_no_loss(data):
    zeroed(times(data))
    assert started(data, now=LATE).later == ()


def test_a_segment_without_time_index_is_as_old_as_its_file(data):
    """Loading makes an empty time index, and retention takes the modification time of the log."""
    times(data).unlink()
    assert started(data).later == ()


def test_segments_after_a_wrong_one_are_kept_by_their_own_age(data):
    zeroed(times(data, 12))
    assert started(data).later == ()
    zeroed(times(data, 0))
    (harm,) = started(data).later
    assert [path.name for path in harm.files] == [log(0), log(12)]


def test_the_active_segment_is_rolled_and_deleted(data):
    for base in range(0, 48, 12):
        zeroed(times(data, base))
    (harm,) = started(data).later
    assert ([path.name for path in harm.files], harm.records) == ([log(0), log(12), log(24), log(36)], 48)


def test_a_log_that_cannot_be_repaired_is_to_be_copied_first(data):
    path = data / "orders-0" / log(0)
    content = bytearray(path.read_bytes())
    content[700] ^= 1
    path.write_bytes(content)
    os.utime(path, ns=(EPOCH_MS * 10**6, EPOCH_MS * 10**6))
    zeroed(times(data))
    (harm,) = started(data).later
    assert (harm.records, str(path) in harm.remedy, "kidx repair" in harm.remedy) == (10, True, False)


# -- settings --------------------------------------------------------------------------------------------------------


def compact(text):
    return b"\0" if text is None else bytes([len(text) + 1]) + text.encode()


def config_record(kind, resource, name, value):
    return b"\x01\x04\x00" + bytes([kind]) + b"".join(map(compact, (resource, name, value))) + b"\0"


def write_metadata(data, tmp_path, *records):
    metadata = data / "__cluster_metadata-0"
    metadata.mkdir()
    topic = b"\x01\x02\x00" + compact("orders") + base64.urlsafe_b64decode(f"{ID}==") + b"\0"
    batches = [
        build_batch([SimpleRecord(1, None, record)], base_offset=n) for n, record in enumerate((topic, *records))
    ]
    (metadata / log(0)).write_bytes(b"".join(batches))
    rebuild(metadata / log(0), tmp_path / "rebuilt", dialect="3.9.2")
    shutil.copytree(tmp_path / "rebuilt", metadata, dirs_exist_ok=True)


def test_the_settings_of_the_topic_come_first(data, tmp_path):
    zeroed(times(data))
    write_metadata(data, tmp_path, config_record(2, "orders", "retention.ms", "-1"))
    assert started(data).later == ()


def test_retention_of_both_tiers_is_said_to_be_omitted(data, tmp_path):
    zeroed(times(data))
    write_metadata(data, tmp_path, config_record(2, "orders", "remote.storage.enable", "true"))
    found = started(data)
    assert found.later == ()
    said = f"not checked: what the broker deletes of {data / 'orders-0'}, which has remote storage, server.properties"
    assert said in found.limits[0]
    assert found.to_json()["not_evaluated"]


def test_a_compacted_topic_has_no_retention(data, tmp_path):
    zeroed(times(data))
    write_metadata(data, tmp_path, config_record(2, "orders", "cleanup.policy", "compact"))
    assert started(data).later == ()


def test_the_broker_s_settings_come_before_server_properties_and_these_before_the_defaults(data, tmp_path):
    write_metadata(
        data,
        tmp_path,
        config_record(4, "", "log.retention.ms", "1000"),
        config_record(4, "1", "log.retention.ms", "2000"),
        config_record(2, "orders", "retention.bytes", "7"),
        config_record(2, "orders", "retention.bytes", None),
    )
    file = tmp_path / "server.properties"
    file.write_text("# a comment\nlog.retention.hours = 2\nlog.retention.bytes=5\nlog.roll.hours=3\n")
    properties = read_properties(file)
    found = [
        (each.config.retention_ms, each.source_of("retention.ms"))
        for node, given in ((1, properties), (2, properties))
        for each in [Settings(read_metadata([data]), node, given).of("orders", 4096)]
    ]
    assert found == [(2000, "the broker's setting"), (1000, "the cluster's setting")]
    elsewhere = Settings(ClusterMetadata(), None, properties).of("orders", 4096)
    assert (elsewhere.config.retention_ms, elsewhere.source_of("retention.ms")) == (2 * HOUR_MS, "server.properties")
    assert (elsewhere.config.retention_bytes, elsewhere.config.segment_ms) == (5, 3 * HOUR_MS)
    assert Settings(ClusterMetadata()).of("orders", 4096).source_of("retention.ms") == "Kafka's default"
    offsets = Settings(ClusterMetadata()).of("__consumer_offsets", 4096)
    assert offsets.config.deletes is False
    assert offsets.source_of("cleanup.policy") == "with which brokers create __consumer_offsets"


def test_the_metadata_of_the_cluster_are_read_once(data, tmp_path, monkeypatch):
    zeroed(times(data))
    write_metadata(data, tmp_path, config_record(2, "orders", "retention.ms", "-1"))
    read, directories = cluster_metadata._Reader.read, []

    def counted(self, directory, end):
        directories.append(directory)
        read(self, directory, end)

    monkeypatch.setattr(cluster_metadata._Reader, "read", counted)
    assert started(data).later == ()
    assert directories == [data / "__cluster_metadata-0"]


def test_settings_of_topics_are_in_zookeeper_and_can_be_given(data, tmp_path):
    (data / "meta.properties").write_text("version=0\nbroker.id=1\n")
    zeroed(times(data))
    found = started(data, release="2.8.2")
    assert [each.effect for each in found.later] == ["retention"]
    (said,) = found.limits
    assert "settings of topics, which ZooKeeper has (server.properties or Kafka's defaults are assumed" in said
    file = tmp_path / "server.properties"
    file.write_text("topic.orders.retention.ms=-1\ntopic.orders.x.retention.ms=5\n")
    assert not started(data, release="2.8.2", config=file).later
    file.write_text("topic.order.retention.ms=-1\n")
    assert started(data, release="2.8.2", config=file).later


def test_server_properties_are_given(data, tmp_path):
    file = tmp_path / "server.properties"
    file.write_text("log.retention.hours=-1\n")
    zeroed(times(data))
    found = started(data, config=file)
    assert (found.answer, found.later) == ("yes, but", ())
    assert found.limits == ["start: not checked: other brokers and controllers, free space and memory"]
    file.write_text("log.retention.hours=many\n")
    with pytest.raises(ToolError, match=r"log\.retention\.hours is not a number: 'many'"):
        started(data, config=file)
    with pytest.raises(ToolError, match="No such file"):
        started(data, config=tmp_path / "none")


# -- the first appends -----------------------------------------------------------------------------------------------


def torn(path):
    with path.open("r+b") as file:
        file.truncate(path.stat().st_size - 10)


def behind(data):
    def damage(path):
        with path.open("ab") as file:
            file.write(data)

    return damage


TAILS = {
    "torn": torn,
    "a length of 5000": behind((48).to_bytes(8, "big") + (5000).to_bytes(4, "big") + b"\0\0\0\0\2" + b"x" * 40),
    "eight zeros": behind(bytes(8)),
    "garbage": behind(b"\x7f" * 300),
}


@pytest.mark.parametrize("now", [EPOCH_MS + 7 * HOUR_MS, LATE])
@pytest.mark.parametrize("damage", TAILS.values(), ids=TAILS)
def test_appends_behind_bytes_that_nobody_can_pass_are_harm_and_the_command_prevents_it(data, damage, now):
    path = data / "orders-0" / log(36)
    damage(path)
    found = started(data, now=now)
    (harm,) = found.later
    assert (found.answer, harm.effect) == ("no", "appends")
    assert "1 partition would take new records that nobody can read" in found.line
    rolls = now == LATE and damage is not torn
    assert harm.reason.endswith("the broker rolls a new segment for them") == rolls
    subprocess.run(["sh", "-c", harm.remedy.partition(": ")[2]], check=True)
    assert list((data.parent / "data.aside").iterdir())
    found = started(data, now=now)
    assert (found.later, found.of("cut")) == ((), [])


def test_a_segment_with_the_records_of_an_earlier_one_is_moved_out_if_new_records_can_be_read_then(data):
    path = data / "orders-0" / log(36)
    shutil.copy(path.with_name(log(12)), path)
    (harm,) = started(data).later
    assert (harm.effect, "the broker rejects new records" in harm.reason) == ("appends", True)
    assert "before the start, move it out, without which the log has as many records: " in harm.remedy
    subprocess.run(["sh", "-c", harm.remedy.partition(": ")[2]], check=True)
    assert started(data).later == ()


def test_a_log_that_runs_ends_at_an_offset_and_not_at_a_position(data):
    path = data / "orders-0"
    checkpoints = CheckpointedOffsets(data).of(path)
    files = running.LogFiles(
        path, {name: path / name for name in regular_files(path)}, dialect_of("4.3.1"), checkpoints, LogConfig(), int
    )
    assert running.run(files).end == 48


@pytest.mark.parametrize("base", [12, 36])
def test_bytes_in_no_batch_make_a_log_too_large_for_retention_and_the_command_prevents_it(data, tmp_path, base):
    size = sum(path.stat().st_size for path in (data / "orders-0").glob("*.log"))
    write_metadata(data, tmp_path, config_record(2, "orders", "retention.bytes", str(size + 100)))
    assert started(data, now=EPOCH_MS + 7 * HOUR_MS).later == ()
    behind((48).to_bytes(8, "big") + (10**6).to_bytes(4, "big") + b"\0\0\0\0\2" + b"x" * 9000)(
        data / "orders-0" / log(base)
    )
    found = started(data, now=EPOCH_MS + 7 * HOUR_MS)
    harm = found.later[0]
    assert (found.answer, harm.effect, harm.records > 0) == ("no", "retention", True)
    assert (
        f"9,017 bytes of the log are in no batch, and with them it exceeds retention.bytes={size + 100}" in harm.reason
    )
    subprocess.run(["sh", "-c", harm.remedy.partition(": ")[2]], check=True)
    assert started(data, now=EPOCH_MS + 7 * HOUR_MS).later == ()


def test_segments_after_a_batch_that_ends_reading_count_for_retention_by_size(data, tmp_path):
    size = sum(path.stat().st_size for path in (data / "orders-0").glob("*.log"))
    write_metadata(data, tmp_path, config_record(2, "orders", "retention.bytes", str(size - 3000)))
    path = data / "orders-0" / log(12)
    content = bytearray(path.read_bytes())
    content[8:12] = (10**6).to_bytes(4, "big")  # of the first batch: the others are hidden, and still records
    path.write_bytes(content)
    assert all(each.effect != "retention" for each in started(data, now=EPOCH_MS + 7 * HOUR_MS).later)


def test_after_a_kill_the_recovery_cuts_the_tail(data):
    torn(data / "orders-0" / log(36))
    (data / ".kafka_cleanshutdown").unlink()
    assert started(data).later == ()


def test_a_time_index_that_makes_the_broker_refuse_records(data):
    """An entry of a later offset: the next entry would not follow it."""
    path = times(data, 36)
    entry = (EPOCH_MS + 6 * HOUR_MS).to_bytes(8, "big") + (5000).to_bytes(4, "big")
    path.write_bytes(entry)
    (harm,) = started(data).later
    assert (harm.effect, harm.reason.startswith("the broker rejects new records: ")) == ("appends", True)
    assert "kidx repair" in harm.remedy
    repair_paths([data], release="3.9.2")
    assert started(data).later == ()


# -- index files that the start makes --------------------------------------------------------------------------------


def test_a_copy_named_swap_is_taken_over_without_its_index_files(data):
    path = data / "orders-0" / log(12)
    shutil.copy2(path, f"{path}.swap")
    found = started(data)
    (harm,) = found.later
    assert (found.answer, harm.effect) == ("no", "indexes")
    assert "a search for" in harm.reason
    assert "1 partition would get wrong index files" in found.line
    command = harm.remedy.partition(": ")[2]
    assert shlex.split(command)[-2] == f"{path}.swap"
    subprocess.run(["sh", "-c", command], check=True)
    assert started(data).answer == "yes"


@pytest.mark.parametrize("index", [None, b"\1\2\3"])
def test_the_only_copy_named_swap_gets_its_index_files_by_a_command(index, data):
    """Without the copy, its records are lost."""
    path = data / "orders-0" / log(12)
    path.rename(f"{path}.swap")
    for suffix in (".index", ".timeindex"):
        path.with_suffix(suffix).unlink()
        if index is not None:
            path.with_suffix(f"{suffix}.swap").write_bytes(index)
    (harm,) = started(data).later
    assert (harm.effect, harm.remedy[:46]) == ("indexes", "before the start, let the copy replace its seg")
    subprocess.run(["sh", "-c", harm.remedy.partition("files: ")[2]], check=True)
    found = started(data)
    assert (found.starts, found.later, path.exists()) == (True, (), True)


def test_an_old_release_recovers_a_swapped_segment(data):
    path = data / "orders-0" / log(12)
    shutil.copy2(path, f"{path}.swap")
    assert started(data, release="2.8.2").later == ()


def test_a_swapped_segment_with_its_index_files_is_right(data):
    for suffix in (".log", ".index", ".timeindex"):
        path = (data / "orders-0" / log(12)).with_suffix(suffix)
        path.rename(f"{path}.swap")
    assert started(data).later == ()


# -- compaction ------------------------------------------------------------------------------------------------------


def test_compaction_takes_aborted_records_for_committed_ones_without_their_index(tmp_path, monkeypatch):
    """Key k is committed at offset 0 and aborted at 1; the marker is at 2."""
    data = tmp_path / "data"
    config = LogConfig(compacts=True, deletes=False, index_interval_bytes=200, segment_index_bytes=1200)
    with UnifiedLog(data / "orders-0", config, dialect="3.9.2", clock=lambda: EPOCH_MS) as written:
        written.append_as_leader(build_batch([(EPOCH_MS, b"k", b"committed")]), 0)
        aborted = build_batch(
            [(EPOCH_MS, b"k", b"aborted")], producer_id=7, producer_epoch=0, base_sequence=0, is_transactional=True
        )
        written.append_as_leader(aborted, 0)
        marker = build_batch(
            [(EPOCH_MS, ControlRecordType.ABORT.record_key, b"\0\0\0\0\0\0")],
            producer_id=7,
            producer_epoch=0,
            is_transactional=True,
            is_control=True,
        )
        written.append_as_leader(marker, 0, from_client=False)
        written.update_high_watermark(written.end_offset)
        written.roll()
        written.append_as_leader(build_batch([(EPOCH_MS, b"z", b"last")]), 0)
    (data / "orders-0" / "partition.metadata").write_text(f"version: 0\ntopic_id: {ID}")
    (data / "meta.properties").write_text(PROPERTIES)
    (data / ".kafka_cleanshutdown").write_text('{"version":0,"brokerEpoch":9}')
    write_metadata(data, tmp_path, config_record(2, "orders", "cleanup.policy", "compact"))
    assert started(data).later == ()
    transactions = data / "orders-0" / f"{0:020d}.txnindex"
    assert transactions.stat().st_size == 34
    transactions.unlink()
    found = started(data)
    (harm,) = found.later
    assert (found.answer, harm.effect, harm.records) == ("no", "compaction", 1)
    monkeypatch.setattr(running, "LARGEST_COMPACTED", 1)
    assert f"compaction of {data / 'orders-0'}, which has more than" in started(data).limits[0]
    assert "1 committed record with offsets 0 to 0" in harm.reason
    assert harm.remedy.startswith("kidx repair")
    repair_paths([data], release="3.9.2")
    assert started(data).later == ()
