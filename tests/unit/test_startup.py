"""Predictions of a broker's start from its files, which remain unchanged. Real brokers: tests/broker."""

import base64
import json
import os
import shutil
import struct
import sys

import pytest
from startups import (
    DISKS,
    ELSEWHERE,
    EPOCH_MS,
    ID,
    PROPERTIES,
    RELEASE,
    change_record,
    flip,
    log,
    partition_record,
    start,
    stopped_broker,
    write_metadata,
    write_offsets,
)

from kidx.cli import main
from kidx.dialect import dialect_of
from kidx.findings import Finding
from kidx.records import build_batch
from kidx.records.record import ControlRecordType
from kidx.report.page import About, render
from kidx.scan import COMPILED
from kidx.startup import predict
from kidx.startup.checkpoints import UnreadableError, offsets_of, topic_id_of
from kidx.startup.directories import brokers_of
from kidx.startup.kraft import check_metadata_log
from kidx.startup.names import is_partition_name, unparsed_name
from kidx.startup.simulation import Checkpoints, load
from kidx.verify import Verification, verify_paths

filled, data = stopped_broker(3)


def stats(directory):
    return {
        str(path): (s.st_size, s.st_mtime_ns, s.st_ctime_ns, s.st_ino, s.st_mode, s.st_nlink)
        for path in [directory, *directory.rglob("*")]
        for s in [path.lstat()]
    }


# -- what becomes of a log -------------------------------------------------------------------------------------------


def test_a_healthy_directory_may_be_started(data):
    found = start(data)
    assert (found.answer, found.partitions, found.line) == ("yes", (), f"may I start the broker? yes{ELSEWHERE}")


def test_a_recovery_that_deletes_healthy_segments_is_predicted_with_the_files(data):
    (data / ".kafka_cleanshutdown").unlink()
    write_offsets(data / "recovery-point-offset-checkpoint", {0: 12, 1: 48, 2: 48})
    flip(data / "orders-0" / log(12), 700)
    before = stats(data)
    found = start(data)
    assert stats(data) == before
    (lost,) = found.partitions
    assert (found.answer, lost.outcome, lost.end) == ("no", "cut", (48, 16))
    assert [(change.file.name, bool(change.after)) for change in lost.changes] == [
        (log(12), True),
        (log(24), False),
        (log(36), False),
    ]
    assert lost.changes[1].after is None
    said = "\n".join(found.lines())
    assert "do not start the broker before these are copied" in said
    assert str(data / "orders-0" / log(36)) in said
    assert "end 48 → 16" in found.line
    assert said.index(str(data / "orders-0" / log(36))) < said.index("  then, if another broker leads the partition")


def test_a_start_that_rebuilds_a_missing_index_repairs_it(data):
    """Also after a clean stop: the loader recovers a segment that has no offset index."""
    (data / "orders-0" / f"{12:020d}.index").unlink()
    found = start(data)
    assert (found.answer, found.faults) == ("yes", 0)
    assert found.line == f"may I start the broker? yes: the start repairs 1 file of those above{ELSEWHERE}"


def test_faults_that_no_start_repairs_are_counted_separately(data):
    """The loader does not read an existing index of an inactive segment."""
    (data / "orders-0" / f"{12:020d}.index").unlink()
    index = data / "orders-0" / f"{24:020d}.index"
    entries = index.read_bytes()
    index.write_bytes(entries[:4] + b"\0\0\0\1" + entries[8:])
    found = start(data)
    assert found.rebuilt == {data / "orders-0" / f"{12:020d}.index"}
    assert found.line == (
        "may I start the broker? yes, but the start does not repair 1 file of those above; it loses no whole batch"
        f"{ELSEWHERE}"
    )


def test_a_torn_end_is_truncated_and_reported(data):
    (data / ".kafka_cleanshutdown").unlink()
    write_offsets(data / "recovery-point-offset-checkpoint", {0: 36, 1: 48, 2: 48})
    with (data / "orders-0" / log(36)).open("ab") as file:
        file.write(b"torn" * 50)
    (data / "orders-0" / f"{36:020d}.index").unlink()
    said = start(data).lines()
    expected = "no whole batch is lost, and the log ends at 48"
    assert any(f"{log(36)} cut to" in line and expected in line for line in said), said
    # With an index the partial batch is only a remark. The start truncates it in both cases.
    (data / "orders-0" / f"{36:020d}.index").write_bytes((data / "orders-1" / f"{36:020d}.index").read_bytes())
    said = start(data).lines()
    assert any(f"{log(36)} cut to" in line and expected in line for line in said), said


def test_one_obstacle_does_not_hide_the_others(data):
    """A partition without its topic id starts empty, also in a log directory that is given up before."""
    (data / "orders-0" / "leader-epoch-checkpoint").write_text("0\n3\n0 0\n")
    (data / "orders-1" / "partition.metadata").unlink()
    found = start(data)
    assert [each.directory.name for each in found.of("stray")] == ["orders-1"]
    assert found.line.endswith("; and then 1 partition would start empty, above")
    assert any("there is no partition.metadata" in line for line in found.lines())


def test_missing_checkpoints_are_reported_with_their_effect(data):
    for name in ("recovery-point-offset-checkpoint", "log-start-offset-checkpoint"):
        (data / name).unlink(missing_ok=True)
    found = start(data)
    assert found.answer == "yes"
    said = [line for line in found.lines() if "checkpoint: it is missing" in line]
    assert len(said) == 2
    assert any("deleted records are shown again" in line for line in said)


def test_the_same_corruption_before_the_recovery_point_or_after_a_clean_stop_loses_nothing(data):
    flip(data / "orders-0" / log(12), 700)
    assert start(data).answer == "yes, but"
    (data / ".kafka_cleanshutdown").unlink()
    assert start(data).answer == "yes, but"
    (data / "orders-0" / f"{12:020d}.index").unlink()


def test_a_sealed_segment_that_is_cut_loses_its_readable_batches_though_the_end_of_the_log_stays(data):
    """The loader recovers a segment without an index, wherever the recovery point is."""
    flip(data / "orders-0" / log(12), 700)
    (data / ".kafka_cleanshutdown").unlink()
    (data / "orders-0" / f"{12:020d}.index").unlink()
    found = start(data)
    (lost,) = found.partitions
    assert (found.answer, lost.outcome, lost.end, lost.readable) == ("no", "cut", (48, 48), 6)
    assert [str(change) for change in lost.changes] == [f"{log(12)} cut to 478 bytes"]


@pytest.mark.thorough
def test_the_effect_of_the_last_stop_is_reported(data):
    """The same corruption after a clean stop and after a kill has opposite answers."""
    write_offsets(data / "recovery-point-offset-checkpoint", {0: 12, 1: 48, 2: 48})
    assert not any("stopped cleanly" in line for line in start(data).lines())
    flip(data / "orders-0" / log(12), 700)
    found = start(data)
    assert found.answer == "yes, but"
    assert f"start: {data}: the broker was stopped cleanly" in found.lines()[0]
    (data / ".kafka_cleanshutdown").unlink()
    found = start(data)
    assert found.answer == "no"
    assert f"start: {data}: the broker was not stopped cleanly" in found.lines()[0]
    assert found.to_json()["clean_stops"] == []


def test_readable_records_that_a_start_deletes_are_counted(data):
    (data / ".kafka_cleanshutdown").unlink()
    write_offsets(data / "recovery-point-offset-checkpoint", {0: 12, 1: 48, 2: 48})
    flip(data / "orders-0" / log(12), 700)
    found = start(data)
    (lost,) = found.partitions
    # Of six batches of two records, the third is corrupt and the cut is before it; two segments of 12 records follow.
    assert [change.records for change in lost.changes] == [6, 12, 12]
    assert "30 readable records would be deleted" in str(lost)
    assert "would lose 30 readable records" in found.line
    assert sum(each["readable_records"] for each in found.to_json()["partitions"][0]["segments"]) == 30


def test_a_repeated_offset_empties_the_segment_only_if_an_index_entry_has_it(data):
    (data / ".kafka_cleanshutdown").unlink()
    write_offsets(data / "recovery-point-offset-checkpoint", {0: 24, 1: 48, 2: 48})
    path = data / "orders-0" / log(24)
    content = bytearray(path.read_bytes())
    at = 3 * (len(content) // 6)
    content[at : at + 8] = (25).to_bytes(8, "big")
    path.write_bytes(content)
    (lost,) = start(data).partitions
    assert (lost.end, [str(change) for change in lost.changes]) == (
        (48, 24),
        [f"{log(24)} emptied", f"{log(36)} deleted"],
    )
    found = predict([data], verify_paths([data], release=RELEASE, processes=1), RELEASE, 4096)
    assert [each.outcome for each in found.partitions] == ["kept"]


def test_zeros_after_the_last_batch_after_a_clean_stop_prevent_the_start(data):
    with (data / "orders-1" / log(36)).open("ab") as file:
        file.write(bytes(4096))
    found = start(data)
    assert (found.answer, found.starts) == ("no", False)
    assert "would not start" in found.line
    assert "Found record size 0" in found.line
    assert str(data / "orders-1" / log(36)) in found.line


def test_an_end_that_is_mistaken_for_an_earlier_one_prevents_the_start(data):
    (data / "orders-2" / f"{36:020d}.index").write_bytes(b"\x00\x00\x00\x03\x00\x00\xff\xff")
    (lost,) = start(data).partitions
    assert (lost.outcome, lost.end, lost.changes) == ("cut", (48, 36), ())
    assert "the next appends would overlap" in lost.reason


def test_a_log_start_past_the_end_deletes_the_whole_log(data):
    write_offsets(data / "log-start-offset-checkpoint", {1: 1000})
    (lost,) = start(data).partitions
    assert (lost.directory.name, lost.outcome, lost.start[1], len(lost.changes)) == ("orders-1", "cut", 1000, 4)


def test_an_unsupported_simulation_is_unknown(data):
    with (data / "orders-0" / f"{12:020d}.txnindex").open("wb") as file:
        file.truncate(1 << 30)
    found = start(data)
    assert found.answer == "unknown"
    assert "too large to be simulated" in found.line


def test_a_crash_of_the_simulation_is_unknown_and_no_crash(data, monkeypatch):
    def crash(*_):
        raise RecursionError("too deep")

    monkeypatch.setattr("kidx.startup.simulation.load", crash)
    flip(data / "orders-0" / log(12), 700)
    found = start(data)
    assert found.answer == "unknown"
    assert "RecursionError: too deep" in found.line


def test_a_view_is_read_and_cut_in_memory_only(filled, tmp_path):
    """Also of an old release, whose segments are opened to be renamed."""
    directory = tmp_path / "orders-0"
    shutil.copytree(filled / "orders-0", directory)
    flip(directory / log(0), 700)
    for path in directory.iterdir():
        path.chmod(0o400)
    before = stats(directory)
    for release in ("2.4.0", "2.8.2", "3.9.2", "4.4.0"):
        found = load(directory, dialect_of(release), Checkpoints(clean=False), 200)
        assert (found.end, found.segments) == (4, {0: 478})
    assert stats(directory) == before


# -- what keeps a broker from starting -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "text", "said"),
    [
        ("orders-0/foo.log", "x", "does not begin with an offset"),
        ("orders-0/foo.index", "x", "does not begin with an offset"),
        ("orders-0/partition.metadata", "", "NullPointerException"),
        ("orders-0/partition.metadata", "version: 0\ntopic_id: !!", "IllegalArgumentException"),
        ("orders-0/partition.metadata", "hello\n", "no log directory is left"),
        ("orders-0/leader-epoch-checkpoint", "0\n1\nx 0\n", "not a number"),
        ("orders-0/leader-epoch-checkpoint", "hello\n", "no log directory is left"),
        ("orders-0/leader-epoch-checkpoint", "0\n1\n-3 0\n", "negative"),
        ("replication-offset-checkpoint", "hello\n", "no log directory is left"),
        ("cleaner-offset-checkpoint", "0\n9\norders 0 5\n", "it has 1 entry and not 9"),
        ("recovery-point-offset-checkpoint", "0\n1\norders 0 x\n", "line 3 is malformed"),
        ("log-start-offset-checkpoint", "1\n0\n", "its version is 1"),
        ("meta.properties", "hello\n", "no broker.id"),
        ("meta.properties", "version=7\n", "which no release knows"),
    ],
)
def test_a_file_that_keeps_the_broker_from_starting(data, name, text, said):
    (data / name).write_text(text)
    found = start(data)
    assert (found.answer, found.starts) == ("no", False)
    assert any(each.path == data / name for each in found.fatal)
    assert said in found.line


@pytest.mark.parametrize("release", ["2.8.2", "3.1.2", RELEASE])
def test_an_epoch_that_is_no_number_ends_the_broker(data, release):
    """Up to 3.0 it is an I/O error, which costs the log directory only from 3.2.1 on."""
    (data / "orders-0" / "leader-epoch-checkpoint").write_text("0\n1\nx 0\n")
    found = start(data, data, release=release)
    assert (list(found.offline), [each.path.name for each in found.fatal]) == ([], ["leader-epoch-checkpoint"])


def test_a_directory_in_the_place_of_new_epochs_costs_the_log_directory(data):
    new = data / "orders-0" / "leader-epoch-checkpoint.tmp"
    new.write_text("garbage")
    assert start(data).answer == "yes"
    new.unlink()
    new.mkdir()
    found = start(data)
    assert [why.path for why in found.offline.values()] == [new]
    assert "  move it out of the log directory" in found.lines()
    assert [each.path for each in start(data, release="2.8.2").fatal] == [new]


def test_a_directory_in_the_place_of_the_newest_producer_snapshot_costs_the_log_directory(data):
    (data / "orders-0" / f"{500:020d}.snapshot").mkdir()  # past the end: it is not read
    (data / "orders-0" / f"{36:020d}.snapshot").unlink(missing_ok=True)
    (data / "orders-0" / f"{36:020d}.snapshot").mkdir()
    newest = data / "orders-0" / f"{48:020d}.snapshot"
    newest.touch()
    assert "offline" not in "".join(start(data).lines())
    newest.unlink()
    newest.mkdir()
    first = newest.with_name(f"{36:020d}.snapshot")  # of the last two segments, and then of the end
    assert [why.path for why in start(data).offline.values()] == [first]
    first.rmdir()
    assert [why.path for why in start(data).offline.values()] == [newest]


@pytest.mark.parametrize(("release", "ends"), [("3.9.2", None), ("4.0.0", (48, 36))])
def test_a_recovery_that_cannot_write_a_snapshot_empties_the_segment_from_4_0_on(data, release, ends):
    """The snapshot of the producers at the end; a broker takes the I/O error for one of the segment."""
    (data / ".kafka_cleanshutdown").unlink()
    write_offsets(data / "recovery-point-offset-checkpoint", {0: 36, 1: 48})
    (data / "orders-0" / f"{48:020d}.snapshot").unlink(missing_ok=True)
    (data / "orders-0" / f"{48:020d}.snapshot").mkdir()
    found = start(data, release=release)
    assert [each.end for each in found.of("cut")] == ([] if ends is None else [ends])
    assert len(found.offline) == (ends is None)


@pytest.mark.parametrize("release", ["2.7.2", "2.8.2", RELEASE])
@pytest.mark.parametrize("entry", ["0 -5", "-3 0"])
def test_a_negative_epoch_or_offset_ends_the_broker_in_each_release_that_checks_them(data, entry, release):
    """It is an IllegalArgumentException, and no I/O error that costs the log directory only."""
    path = data / "orders-0" / "leader-epoch-checkpoint"
    path.write_text(f"0\n1\n{entry}\n")
    assert [each.path for each in start(data, data, release=release).fatal] == [path]


@pytest.mark.parametrize("name", ["lost+found", "backup", "orders-x", "x-delete"])
def test_a_directory_that_is_no_partition_prevents_the_start(data, name):
    (data / name).mkdir()
    found = start(data)
    assert [each.path for each in found.fatal] == [data / name]


def test_a_partition_that_was_renamed_is_not_to_be_moved_out(data):
    (data / "orders-0").rename(data / "orders-0.bak")
    (blocker,) = start(data).fatal
    assert "give it back its name" in blocker.remedy
    (data / "notes").mkdir()
    assert [each.remedy for each in start(data).fatal if each.path.name == "notes"] == [
        "move it out of the log directory"
    ]


def test_a_directory_without_broker_files_may_contain_anything(filled, tmp_path):
    shutil.copytree(filled, tmp_path / "copy")
    (tmp_path / "copy" / "notes").mkdir()
    assert start(tmp_path / "copy").answer == "yes"


def test_one_of_two_log_directories_goes_offline_and_the_metadata_one_stops_the_broker(data, tmp_path):
    other = tmp_path / "other"
    shutil.copytree(data, other)
    for number in range(3):
        (other / f"orders-{number}").rename(other / f"orders-{number + 3}")
    (other / "replication-offset-checkpoint").write_text("hello\n")
    found = start(data, other)
    assert (found.starts, list(found.offline), found.answer) == (True, [other], "no")
    assert "would give up" in found.line
    shutil.copytree(other / "orders-3", other / "__cluster_metadata-0")
    assert not start(data, other).starts


def test_a_partition_in_two_log_directories_and_properties_of_another_broker(data, tmp_path):
    other = tmp_path / "other"
    shutil.copytree(data, other)
    assert "lies in" in start(data, other).line
    for number in range(3):
        (other / f"orders-{number}").rename(other / f"orders-{number + 3}")
    assert start(data, other).answer == "yes"
    (other / "meta.properties").write_text(PROPERTIES.replace("node.id=1", "node.id=7"))
    assert "node.id" in start(data, other).line
    (other / "meta.properties").write_text(PROPERTIES.replace("c1", "c2"))
    assert "cluster.id" in start(data, other).line
    (other / "meta.properties").unlink()
    assert "meta.properties: it is missing" in start(data, other).line


def test_two_brokers_are_two_brokers(data, tmp_path):
    """The same partition on two nodes is a replica."""
    other = tmp_path / "other"
    shutil.copytree(data, other)
    (other / "meta.properties").write_text(PROPERTIES.replace("node.id=1", "node.id=2"))
    (other / ".kafka_cleanshutdown").write_text('{"version":0,"brokerEpoch":12}')
    assert brokers_of([data, other]) == [[data], [other]]
    assert start(data, other).answer == "yes"


def test_log_directories_with_different_ids_may_belong_to_one_broker(data, tmp_path):
    """Before 3.7, no broker epoch decides; where no topic has an id, a cluster id does not, either."""
    other = tmp_path / "other"
    shutil.copytree(data, other)
    for directory, begin in ((data, 0), (other, 3)):
        (directory / ".kafka_cleanshutdown").write_text("")
        for number in range(3):
            (directory / f"orders-{number}" / "partition.metadata").unlink()
            (directory / f"orders-{number}").rename(directory / f"orders-{number + begin}")
        write_offsets(directory / "recovery-point-offset-checkpoint", {number + begin: 48 for number in range(3)})
    condition = f"if {data} and {other} are of different brokers".replace(" and ", ", ")
    for ids in ("broker.id=7\ncluster.id=c1\n", "broker.id=1\ncluster.id=c2\n"):
        (data / "meta.properties").write_text("version=0\nbroker.id=1\ncluster.id=c1\n")
        (other / "meta.properties").write_text(f"version=0\n{ids}")
        found = start(data, other, release="3.6.2")
        assert (found.answer, found.apart) == ("yes", (data, other))
        assert found.line.endswith(condition)
    shutil.copytree(data / "orders-0", other / "orders-0")  # a replica
    assert not start(data, other, release="3.6.2").apart


@pytest.mark.parametrize(("replica", "starts"), [(1, False), (7, True)])
def test_the_metadata_of_kraft_know_whose_log_directory_it_is(data, tmp_path, replica, starts):
    other = tmp_path / "other"
    other.mkdir()
    (data / "orders-2").rename(other / "orders-2")
    (other / ".kafka_cleanshutdown").write_text("")
    write_offsets(other / "recovery-point-offset-checkpoint", {2: 48})
    (other / "meta.properties").write_text(PROPERTIES.replace("node.id=1", "node.id=7"))
    write_metadata(data, *(partition_record(number, [1]) for number in range(2)), partition_record(2, [replica]))
    found = start(data, other, release="3.6.2")
    assert (found.starts, [each.path.name for each in found.fatal]) == (starts, [] if starts else ["meta.properties"])


def test_a_partition_of_another_topic_becomes_a_stray(data):
    (data / "orders-0" / "partition.metadata").unlink()
    (data / "orders-1" / "partition.metadata").write_text(f"version: 7\ntopic_id: {ID}")
    assert [each.directory.name for each in start(data).of("stray")] == ["orders-0"]
    (data / "orders-0" / "partition.metadata").write_text("version: 0\ntopic_id: AAAAAAAAAAAAAAAAAAAAZw")
    found = start(data)
    assert [each.directory.name for each in found.of("stray")] == ["orders-0"]
    assert "starts empty" in found.line
    (data / "meta.properties").write_text("version=0\ncluster.id=c1\nbroker.id=1\n")
    assert not start(data).of("stray")
    assert [each.directory.name for each in start(data).of("refused")] == ["orders-0"]


def test_the_log_of_kraft_is_recovered_and_its_newest_snapshot_read(data):
    metadata = data / "__cluster_metadata-0"
    shutil.copytree(data / "orders-0", metadata)
    batch = build_batch([(EPOCH_MS, None, b"x" * 40)])
    newest = metadata / f"{30:020d}-0000000001.checkpoint"
    (metadata / f"{10:020d}-0000000001.checkpoint").write_bytes(b"an old one is not read")
    footer = build_batch([(EPOCH_MS, ControlRecordType.SNAPSHOT_FOOTER.record_key, b"\0\0")], is_control=True)
    newest.write_bytes(batch + footer)
    assert check_metadata_log(metadata, dialect_of(RELEASE)) == ([], [])
    newest.write_bytes(batch)
    assert "without the control record" in check_metadata_log(metadata, dialect_of(RELEASE))[0][0].reason
    newest.write_bytes(batch + batch[:-10])
    assert "in the middle of a batch" in check_metadata_log(metadata, dialect_of(RELEASE))[0][0].reason
    newest.write_bytes(batch[:-1] + b"y")
    assert start(data).fatal[0].path == newest
    assert "move this file away" in start(data).fatal[0].remedy
    for path in metadata.glob(f"{0:020d}*"):
        path.unlink()
    assert "restore __cluster_metadata-0" in start(data).fatal[0].remedy  # the log begins at 12, and a snapshot is lost
    (metadata / f"{20:020d}-0000000001.checkpoint").write_bytes(batch + footer)
    assert "move this file away" in start(data).fatal[0].remedy
    for path in metadata.glob("*.checkpoint"):
        path.unlink()
    (metadata / "quorum-state").write_text("hello")
    assert "no JSON" in start(data).line
    assert start(data, release="3.7.2").starts  # which removes it
    (metadata / "quorum-state").write_text('{"leaderId":1,"data_version":1}')
    for release in ("3.7.2", RELEASE):
        assert "it has no leaderEpoch, which is mandatory in version 1" in start(data, release=release).line
    (metadata / "quorum-state").write_text(
        '{"leaderId":1,"leaderEpoch":1,"votedId":-1,"votedDirectoryId":"AAAAAAAAAAAAAAAAAAAAAA","data_version":1}\n'
    )
    (data / "bootstrap.checkpoint").write_text("hello")
    assert start(data).fatal[0].path == data / "bootstrap.checkpoint"
    (data / "bootstrap.checkpoint").unlink()
    flip(metadata / log(12), 700)
    (lost,) = start(data).of("cut")
    assert (lost.directory, lost.end) == (metadata, (48, 16))


@pytest.mark.parametrize("missing", ["half of a batch", "the footer"])
def test_a_snapshot_that_ends_early_ends_the_broker_if_the_log_needs_what_it_lacks(data, missing):
    """A broker loads the complete batches: the same cut snapshot ended one broker, and another started."""
    metadata = data / "__cluster_metadata-0"
    metadata.mkdir()
    header = build_batch([(1, ControlRecordType.SNAPSHOT_HEADER.record_key, b"\0\0")], is_control=True)
    newest = metadata / f"{30:020d}-0000000001.checkpoint"
    newest.write_bytes(header + (build_batch([(1, None, b"x" * 90)])[:-40] if missing == "half of a batch" else b""))
    no_op, unfenced = b"\1\x14\0\0", b"\1\x08\0" + struct.pack(">iqb", 1, 5, 0)
    for value, said in (no_op, ""), (unfenced, "the log after it names broker 1, which it lacks"):
        (metadata / log(0)).write_bytes(build_batch([(1, None, value)], base_offset=30))
        fatal, survived = check_metadata_log(metadata, dialect_of(RELEASE))
        assert [each.path for each in (*fatal, *survived)] == [newest]
        assert bool(fatal) == bool(said)
        assert said in (fatal or survived)[0].reason
    newest.write_bytes(header[:40])
    assert check_metadata_log(metadata, dialect_of(RELEASE))[0]


# -- the command -----------------------------------------------------------------------------------------------------


def verify(capfd, monkeypatch, *arguments):
    monkeypatch.setattr(sys, "argv", ["kidx", "verify", *map(str, arguments)])
    with pytest.raises(SystemExit) as left:
        main()
    return left.value.code, capfd.readouterr().out


def test_the_answer_is_the_last_line_and_in_json_and_on_the_page(data, tmp_path, capfd, monkeypatch):
    (data / "orders-0" / "foo.log").write_text("x")
    code, text = verify(capfd, monkeypatch, data, "--kafka", RELEASE, "--html", tmp_path / "page.html")
    assert code == 1
    assert text.splitlines()[-1].startswith("may I start the broker? no: a broker of Kafka 3.9.2 would not start: ")
    assert "may I start the broker? no" in (tmp_path / "page.html").read_text("utf-8")
    code, text = verify(capfd, monkeypatch, data, "--kafka", RELEASE, "--json")
    found = json.loads(text)
    assert (code, found["verdict"], found["start"]["answer"]) == (1, "exact", "no")
    assert found["start"]["would_not_start"][0]["path"] == str(data / "orders-0" / "foo.log")


def test_a_running_broker_is_not_predicted(data, capfd, monkeypatch):
    (data / ".lock").touch()
    monkeypatch.setattr("kidx.startup.prediction.lock_owner", lambda path: 17 if path == data else None)
    code, text = verify(capfd, monkeypatch, data, "--kafka", RELEASE)
    assert code == 0
    assert text.splitlines()[-1].startswith(f"may I start the broker? it is running: it holds the lock of {data}")


def test_changing_files_belong_to_a_running_broker(data):
    result = verify_paths([data], release=RELEASE, processes=1)
    path = str(data / "orders-0" / log(36))
    result.findings.append(Finding(path, "orders", 0, 36, log(36), "RB-4", "changing", message="it changes"))
    found = predict([data], result, RELEASE)
    assert (found.answer, found.lines()) == ("running", [found.line])
    assert "it is running: files changed" in found.line


def test_a_single_file_has_no_such_answer(data, capfd, monkeypatch):
    code, text = verify(capfd, monkeypatch, data / "orders-0" / log(0), "--kafka", RELEASE)
    assert code == 0
    assert "may I start" not in text


# -- names and checkpoints -------------------------------------------------------------------------------------------


def test_names():
    assert unparsed_name(["README", f"{5:020d}.log", "5.log", "-3.index", "foo.log.deleted", "x.log.bak"]) is None
    assert unparsed_name(["a.log"]) == "a.log"
    assert unparsed_name([f"{10**19}.log"]) == f"{10**19}.log"
    good = ["a-0", "a-b-1", "a-0.abc-delete", "a--1", "a-0.x-future", "a-00", "a-+1", "a-\u0663", "a-0.x-y-stray"]
    bad = ["a", "-0", "a-", "a-x", "a-99999999999", "a-delete", "a-0.b.c-delete", "a b-0.x-delete", "a-1_0"]
    assert [name for name in good if not is_partition_name(name)] == []
    assert [name for name in bad if is_partition_name(name)] == []


@pytest.mark.parametrize(("release", "starts"), [("3.6.2", False), ("3.7.2", True)])
def test_a_newer_version_of_partition_metadata_is_read_from_3_7(data, release, starts):
    """A broker of 3.6.2 took the log directory offline, one of 4.3.1 did not."""
    (data / "orders-0" / "partition.metadata").write_text(f"version: 7\ntopic_id: {ID}")
    found = start(data, release=release)
    assert found.starts is starts
    assert ("has version 7, not 0" in found.line) is not starts


def test_checkpoints_as_a_broker_reads_them(tmp_path):
    path = tmp_path / "checkpoint"
    assert offsets_of(path) == {}
    for text, found in (
        ("", {}),
        ("0\n", {}),
        ("0\n1\na  7\t9\n", {("a", 7): 9}),
        ("0\r\n1\ra 7 9 \t\r\n", {("a", 7): 9}),
        ("0\n1\na\v7\f9", {("a", 7): 9}),
    ):
        path.write_bytes(text.encode())
        assert offsets_of(path) == found
    path.write_text("0\n1\n a 7 9\n")
    with pytest.raises(UnreadableError, match="line 3 is malformed"):
        offsets_of(path)
    path.write_text("x\n")
    with pytest.raises(UnreadableError, match="line 1 is not a version"):
        offsets_of(path)
    path.unlink()
    path.mkdir()
    with pytest.raises(UnreadableError):
        offsets_of(path)
    metadata = tmp_path / "partition.metadata"
    for text, fatal in (
        ("version: -1\n", False),
        ("version: 0\n", True),
        ("version: 0\nx\n", False),
        ("v: x\n", False),
    ):
        metadata.write_text(text)
        with pytest.raises(UnreadableError) as refused:
            topic_id_of(tmp_path)
        assert refused.value.fatal is fatal


# -- what the operator reads -----------------------------------------------------------------------------------------


def broken_index(data, partition="orders-1"):
    path = data / partition / f"{24:020d}.index"
    entries = path.read_bytes()
    path.write_bytes(entries[:4] + b"\0\0\0\1" + entries[8:])
    return path


@pytest.mark.thorough
def test_obstacles_to_a_start_precede_the_steps_and_no_step_contradicts_them(data, capfd, monkeypatch):
    (data / ".kafka_cleanshutdown").unlink()
    write_offsets(data / "recovery-point-offset-checkpoint", {0: 12, 1: 48, 2: 48})
    flip(data / "orders-0" / log(12), 700)
    broken_index(data)
    _, text = verify(capfd, monkeypatch, data, "--kafka", RELEASE)
    assert text.index("do not start the broker before these are copied") < text.index("\nnext: ")
    assert text.splitlines()[-1].startswith("may I start the broker? no: 1 partition would lose 30 readable records, ")
    assert text.splitlines()[-1].endswith(": copy the 3 files above first, then start it")
    steps = text.partition("\nnext: ")[2]
    assert ". start the broker\n" not in steps
    assert "\n  1. follow the steps above under start: first, in their order\n" in steps
    assert "verify again: start the broker when the last line says yes" in steps
    assert "replica" not in steps, "what to do about orders-0 is said above"
    assert text.count("if another broker leads the partition") == 1
    flip(data / "orders-0" / log(12), 700)
    _, text = verify(capfd, monkeypatch, data, "--kafka", RELEASE)
    assert ". start the broker\n" in text


def test_all_counts_are_of_files(data, capfd, monkeypatch):
    path = data / "orders-1" / f"{24:020d}.index"
    path.write_bytes(b"".join(bytes((0, 0, 0, number, 0, 0, 0, number)) for number in range(1, 6)))
    _, text = verify(capfd, monkeypatch, data, "--kafka", RELEASE)
    assert len(verify_paths([data], processes=1).faults()) > 1
    assert "\nBROKEN: 1 of " in text
    assert "the start does not repair 1 file of those above" in text


def test_the_same_reason_is_printed_once(data):
    for number in range(3):
        (data / f"orders-{number}" / "partition.metadata").unlink()
    found = start(data)
    of_strays = [line for line in found.lines() if "there is no partition.metadata" in line]
    assert len(of_strays) == 2, "once for the three, once in the answer"
    assert all(str(data / f"orders-{number}") in line for number in range(3) for line in of_strays)
    assert "copy partition.metadata from another partition of orders" in found.lines()[1]


def test_all_that_would_take_a_log_directory_offline_is_named(data):
    for number in range(2):
        (data / f"orders-{number}" / "partition.metadata").write_text("hello\n")
    (data / "cleaner-offset-checkpoint").write_text("hello\n")
    found = start(data)
    said = "\n".join(found.lines()[:-1])
    for path in ("orders-0/partition.metadata", "orders-1/partition.metadata", "cleaner-offset-checkpoint"):
        assert (
            said.count(f"start: {data / path}")
            + said.count(f"start: then {data / path}")
            + said.count(f"goes offline: {data / path}")
            == 1
        ), said
    assert {each.path.name for each in found.further} == {"partition.metadata", "cleaner-offset-checkpoint"}
    assert "move it away: the broker begins a new one" in said


def test_topic_ids_are_from_the_metadata_of_kraft(data):
    """Both partitions have a topic id, and it differs from the id that the topic has now."""
    metadata = data / "__cluster_metadata-0"
    metadata.mkdir()
    other = bytes(range(16))
    records = [
        b"\1\2\0" + b"\7orders" + base64.urlsafe_b64decode(ID + "==") + b"\0",
        b"\1\x09\0" + base64.urlsafe_b64decode(ID + "==") + b"\0",
        b"\1\2\0" + b"\7orders" + other + b"\0",
    ]
    (metadata / log(0)).write_bytes(build_batch([(EPOCH_MS, None, value) for value in records]))
    found = start(data)
    assert [each.directory.name for each in found.of("renamed")] == ["orders-0", "orders-1", "orders-2"]
    assert (
        "deleted on purpose (offset 1 of __cluster_metadata-0); the topic orders of today is another"
        in found.lines()[0]
    )
    (metadata / log(0)).write_bytes(build_batch([(EPOCH_MS, None, records[2])]))
    found = start(data)
    assert [each.directory.name for each in found.of("stray")] == ["orders-0", "orders-1", "orders-2"]
    assert f"topic_id: {base64.urlsafe_b64encode(other).decode().rstrip('=')}" in "\n".join(found.lines())
    (metadata / log(0)).write_bytes(build_batch([(EPOCH_MS, None, records[0])]))
    assert not start(data).of("stray")


RESERVED = [bytes(15) + bytes([number]) for number in range(3)]
"""DirectoryId.MIGRATING, UNASSIGNED and LOST."""


@pytest.mark.thorough
@pytest.mark.parametrize("damage", ["deleted", "renamed", "emptied"])
def test_a_partition_of_the_metadata_that_is_on_no_disk_comes_up_empty(data, damage):
    write_metadata(data, *(partition_record(number, [2, 1]) for number in range(3)))
    assert start(data).answer != "no"
    path = data / "orders-1"
    if damage == "renamed":
        path.rename(data / f"orders-1.{'0' * 32}-stray")
    else:
        shutil.rmtree(path)
    if damage == "emptied":
        path.mkdir()
    found = start(data)
    of_topic = [(each.directory, each.outcome) for each in found.partitions if each.directory.name.startswith("orders")]
    assert (found.answer, of_topic) == ("no", [(path, "empty")])
    assert "no: 1 partition would start empty" in found.line
    assert any("find its directory and put it back" in line for line in found.lines())


def test_a_partition_that_is_a_link_to_nothing_takes_its_log_directory_offline(data, tmp_path):
    """The broker cannot create the directory; where the metadata do not have the partition, it ignores the link."""
    path = data / "orders-1"
    path.rename(tmp_path / "elsewhere")
    path.symlink_to(tmp_path / "nowhere")
    write_metadata(data, partition_record(0, [2, 1]))
    assert start(data).starts
    write_metadata(data, *(partition_record(number, [2, 1]) for number in range(3)))
    found = start(data)
    assert (found.answer, list(found.offline)) == ("no", [data])
    assert f"{path}: it is a link to a directory that does not exist" in found.line
    assert found.of("empty") == []


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("records", "checkpointed"),
    [
        ([partition_record(0, [2, 3])], True),  # of other brokers
        ([partition_record(0, [1]), change_record(0, [2])], True),  # was moved to a different disk
        ([partition_record(0, [1]), b"\1\x09\0" + base64.urlsafe_b64decode(ID + "==") + b"\0"], True),  # was deleted
        ([partition_record(0, [1])], False),  # was created while the broker stopped
        ([], True),
    ],
)
def test_a_partition_that_the_broker_need_not_have_is_no_loss(data, records, checkpointed):
    shutil.rmtree(data / "orders-0")
    write_offsets(data / "recovery-point-offset-checkpoint", {0: 48, 1: 48, 2: 48} if checkpointed else {0: 0, 1: 48})
    write_metadata(data, *records)
    assert not start(data).of("empty")


def test_partitions_in_a_log_directory_that_was_not_looked_at_are_a_remark(data):
    ids = [base64.urlsafe_b64encode(disk).decode().rstrip("=") for disk in DISKS]
    (data / "meta.properties").write_text(f"{PROPERTIES}directory.id={ids[0]}\n")
    write_metadata(data, *(partition_record(number, [1], DISKS[number > 2 :][:1]) for number in range(5)))
    found = start(data)
    assert found.answer != "no"
    (said,) = (line for line in found.lines() if "which was not verified" in line)
    assert f"it has orders-3 and 1 more in the log directory with the id {ids[1]}" in said


@pytest.mark.parametrize("disk", RESERVED)
def test_a_reserved_directory_id_names_no_log_directory(data, disk):
    """A partition that was created while the broker was stopped has the id of UNASSIGNED."""
    (data / "meta.properties").write_text(f"{PROPERTIES}directory.id={ID}\n")
    write_metadata(data, *(partition_record(number, [1], [disk]) for number in range(4)))
    found = start(data)
    assert not [line for line in found.lines() if "which was not verified" in line]


@pytest.mark.thorough
@pytest.mark.parametrize("disks", [DISKS[:1], *([each] for each in RESERVED), []])
def test_a_log_directory_that_has_lost_its_id_is_a_remark(data, disks):
    write_metadata(data, *(partition_record(number, [1], disks) for number in range(3)))
    found = start(data)
    assert found.answer != "no"
    said = [line for line in found.lines() if "may serve them minutes later only" in line]
    assert len(said) == (disks == DISKS[:1])


def test_an_empty_log_directory_of_kraft_prevents_the_start(data, tmp_path):
    """Its disk is not mounted, for example."""
    other = tmp_path / "other"
    (other / "lost+found").mkdir(parents=True)
    found = start(data, other)
    assert [each.path for each in found.fatal] == [other / "meta.properties"]
    assert "  see whether its disk is not mounted" in "\n".join(found.lines())
    (data / "meta.properties").write_text(PROPERTIES.replace("version=1", "version=0"))
    assert start(data, other).answer != "no"  # without KRaft, a broker writes the file


def test_a_log_of_another_segment_that_prevents_the_start_has_instructions(data):
    (data / ".kafka_cleanshutdown").unlink()
    shutil.copy(data / "orders-0" / log(0), data / "orders-0" / log(60))
    found = start(data)
    assert [each.path for each in found.fatal] == [data / "orders-0"]
    assert f"&& mv -n {data / 'orders-0' / log(60)} {data}.aside/orders-0" in "\n".join(found.lines())


def test_logs_that_were_deleted_before_the_first_one_prevent_the_start(data, capfd, monkeypatch):
    """Their index files exist: ``find -name '*.log' -mtime +7 -delete`` was run, for example."""
    for base in (0, 12, 24):
        (data / "orders-1" / log(base)).unlink()
    (data / "orders-1" / f"{24:020d}.log.1.gz").write_bytes(b"x")
    result = verify_paths([data], release=RELEASE, processes=1)
    missing = [finding for finding in result.faults() if finding.path.endswith(".log")]
    assert [(each.clause, each.verdict, each.base_offset) for each in missing] == [
        ("LG-5", "missing", base) for base in (0, 12, 24)
    ]
    assert "see '00000000000000000024.log.1.gz' next to it" in missing[2].message
    found = start(data)
    (lost,) = found.partitions
    assert (found.answer, lost.outcome, lost.start, lost.end) == ("no", "cut", (0, 36), (48, 48))
    assert "start 0 → 36" in found.line
    assert any("restore the missing files" in line for line in found.lines())
    code, text = verify(capfd, monkeypatch, data, "--kafka", RELEASE)
    assert (code, "\nMISSING, DO NOT START: 3 of " in text) == (1, True)


def test_a_partition_that_has_lost_all_its_logs_is_no_copy_of_index_files(data):
    """A copy has no checkpoint of leader epochs."""
    path = data / "orders-1"
    for base in (0, 12, 24, 36):
        (path / log(base)).unlink()
    assert len(verify_paths([data], release=RELEASE, processes=1).faults()) == 4
    (path / "leader-epoch-checkpoint").unlink()
    assert not verify_paths([path], release=RELEASE, processes=1).faults()


@pytest.mark.parametrize("reason", ["deleted", "log start", "covered", "empty"])
def test_an_index_file_without_a_log_is_not_always_a_loss(data, reason):
    path = data / "orders-1"
    (path / log(0)).unlink()
    if reason == "deleted":  # by the broker, which was killed in the meantime
        (path / f"{log(0)}.deleted").touch()
    elif reason == "log start":
        write_offsets(data / "log-start-offset-checkpoint", {1: 12})
    elif reason == "covered":
        for suffix in (".index", ".timeindex"):
            (path / f"{0:020d}{suffix}").rename(path / f"{14:020d}{suffix}")
    else:
        for suffix in (".index", ".timeindex"):
            (path / f"{0:020d}{suffix}").write_bytes(b"")
    assert not verify_paths([data], release=RELEASE, processes=1).faults()


def test_log_directories_with_one_id_prevent_the_start_since_directories_have_ids(data, tmp_path):
    other = tmp_path / "other"
    other.mkdir()
    shutil.move(data / "orders-2", other)
    for directory in (data, other):
        (directory / "meta.properties").write_text(f"{PROPERTIES}directory.id={ID}\n")
        (directory / ".kafka_cleanshutdown").touch()
    found = start(data, other)
    assert (found.answer, [each.path for each in found.fatal]) == ("no", [other / "meta.properties"])
    assert "it has the directory.id of" in found.line
    assert start(data, other, release="3.6.2").answer == "yes"


def test_a_mark_of_a_clean_stop_that_others_contradict_is_a_remark(data, tmp_path):
    other = tmp_path / "other"
    other.mkdir()
    shutil.move(data / "orders-2", other)
    (other / "meta.properties").write_text(PROPERTIES)
    assert any("They are not of the same stop" in line for line in start(data, other).lines())
    (other / ".kafka_cleanshutdown").touch()
    assert not any("They are not of the same stop" in line for line in start(data, other).lines())
    for number in range(2):
        with (data / f"orders-{number}" / f"{36:020d}.index").open("ab") as file:
            file.write(bytes(80))
    (said,) = (line for line in start(data, other).lines() if "are not trimmed, as after a kill" in line)
    assert said.startswith(f"start: {data}: ")


def test_a_log_that_a_recovery_would_repair_has_the_instructions(data):
    with (data / "orders-0" / log(36)).open("ab") as file:
        file.write(bytes(4096))
    found = start(data)
    assert found.fatal
    assert f"&& mv -n {data}/.kafka_cleanshutdown {data}.aside" in "\n".join(found.lines())
    (data / ".kafka_cleanshutdown").unlink()
    assert start(data).answer != "no"


def test_skipped_files_with_one_reason_are_one_line(data, capfd, monkeypatch):
    for number in range(4):
        shutil.copytree(data / "orders-0", data / f"gone-{number}.0123456789abcdef0123456789abcdef-delete")
    _, text = verify(capfd, monkeypatch, data, "--kafka", RELEASE)
    (line,) = (line for line in text.splitlines() if line.startswith("skipped"))
    assert "4 paths, such as" in line
    _, text = verify(capfd, monkeypatch, data, "--kafka", RELEASE, "--verbose")
    assert sum(line.startswith("skipped") for line in text.splitlines()) == 4


def test_a_missing_index_is_reported_as_rebuilt_by_a_start_and_nothing_else(data, capfd, monkeypatch):
    (data / "orders-0" / f"{12:020d}.index").unlink()
    _, text = verify(capfd, monkeypatch, data, "--kafka", RELEASE)
    assert "a start rebuilds it" in text
    assert "a start rebuilds 1 index file of these automatically" in text
    assert "do not count on a restart" not in text
    assert text.splitlines()[-1].endswith(f"yes: the start repairs 1 file of those above{ELSEWHERE}")


@pytest.mark.parametrize("mark", ["delete", "stray"])
def test_a_marked_directory_needs_no_action(data, mark, capfd, monkeypatch):
    path = data / f"orders-2.0123456789abcdef0123456789abcdef-{mark}"
    (data / "orders-2").rename(path)
    (path / f"{12:020d}.index").unlink()
    code, text = verify(capfd, monkeypatch, data, "--kafka", RELEASE, "--marked")
    assert code == 1
    steps = text.partition("\nnext: ")[2]
    assert "nothing is to be done: no broker serves it" in steps
    assert str(path) in steps
    assert "kidx repair" not in text


def test_the_page_has_obstacles_before_the_steps(data, tmp_path, capfd, monkeypatch):
    (data / "orders-0" / "foo.log").write_text("x")
    broken_index(data)
    verify(capfd, monkeypatch, data, "--kafka", RELEASE, "--html", tmp_path / "page.html")
    page = (tmp_path / "page.html").read_text("utf-8")
    reasons, _, steps = page.partition("Before a start")[2].partition("What to do next")
    assert "foo.log: its name does not begin" in reasons
    assert "kidx repair" in steps


def test_the_page_folds_what_a_start_does_to_many_partitions():
    """Each has its advice below it; advice for all of them remains visible."""
    lines = []
    for number in range(7):
        lines += [f"start: t-{number}: cut", "  copy these:", f"    t-{number}/0.log"]
    about = About("3.9.2", reasons=[*lines, "  then start it"])
    page = render(Verification(), about).partition("Before a start")[2].partition("</section>")[0]
    shown, _, folded = page.partition("<details")
    assert "<li>start: t-0: cut<p>copy these:</p><ul><li><code>t-0/0.log</code></li></ul></li>" in shown
    assert [f"t-{number}/0.log" in folded for number in range(7)] == [False] * 5 + [True] * 2
    assert "<summary>2 more</summary>" in folded
    assert page.count("then start it") == 1
    assert folded.partition("</details>")[2].strip() == "<p>then start it</p>"


CACHED = "100_b-_UbGhWQSyTrDfNnQxAAw"


@pytest.fixture
def cache(data):
    """Make the cache of remote index files, with one segment."""
    directory = data / "remote-log-index-cache"
    directory.mkdir()
    (directory / f"{CACHED}.index").write_bytes(struct.pack(">2i", 5, 61))
    (directory / f"{CACHED}.timeindex").write_bytes(struct.pack(">qi", 1000, 5))
    (directory / f"{CACHED}.txnindex").write_bytes(b"")
    return directory


def test_a_sound_cache_does_not_prevent_the_start(data, cache):
    for name in (f"{CACHED}.index.tmp", f"{CACHED}.bak", "7_AAAAAAAAAAAAAAAAAAAAbA.index"):
        (cache / name).write_bytes(b"x")
    assert start(data).answer == "yes"


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("README", b""),
        (".DS_Store", b""),
        ("0_notauuid.index", b""),
        (f"{CACHED}.index", b"x"),
        (f"{CACHED}.timeindex", struct.pack(">qiqi", 1000, 5, 0, 0)),
        (f"{CACHED}.txnindex", bytes(34)),
        (f"{CACHED}.txnindex", b"\0\1" + bytes(32)),
    ],
)
def test_a_file_in_the_cache_keeps_a_broker_from_starting(name, content, data, cache):
    (cache / name).write_bytes(content)
    before = sorted((path.name, path.read_bytes()) for path in cache.iterdir())
    found = start(data, release="4.4.0")
    assert found.answer == "no"
    assert [blocker.path for blocker in found.fatal] == [cache / name]
    assert ("delete it" if name.startswith(CACHED) else "move it") in found.lines()[0]
    assert sorted((path.name, path.read_bytes()) for path in cache.iterdir()) == before
    assert start(data, release="3.5.2").fatal[0].path == cache  # the name is no partition's name


def test_every_wrong_file_of_a_cache_is_named(data, cache):
    (cache / "a").touch()
    (cache / "b").touch()
    (cache / f"{CACHED}.index").write_bytes(b"xyz")
    assert [blocker.path.name for blocker in start(data).fatal] == ["a", "b", f"{CACHED}.index"]


def test_leftovers_that_no_release_reads_are_skipped(data, cache):
    """From 4.1 on a start deletes them before it checks names."""
    (cache / "README.tmp").touch()
    assert start(data, release="4.1.0").answer == "yes"
    assert start(data, release="4.0.2").answer == "no"


def swap(data, base=12):
    for suffix in ("log", "index", "timeindex"):
        path = data / "orders-0" / f"{base:020d}.{suffix}"
        path.rename(path.with_name(f"{path.name}.swap"))


def test_segments_that_a_start_swaps_in_are_no_gap_and_their_content_is_verified(data, capfd, monkeypatch):
    swap(data)
    code, text = verify(capfd, monkeypatch, data, "--kafka", RELEASE)
    assert (code, text.splitlines()[-1]) == (0, f"may I start the broker? yes{ELSEWHERE}")
    flip(data / "orders-0" / f"{log(12)}.swap", 700)
    code, text = verify(capfd, monkeypatch, data, "--kafka", RELEASE)
    assert code == 1
    (fault,) = verify_paths([data], processes=1).faults()
    assert (fault.clause, fault.file, fault.base_offset) == ("RB-1", f"{log(12)}.swap", 12)
    index = data / "orders-0" / f"{12:020d}.index.swap"
    index.write_bytes(index.read_bytes()[:4] + b"\0\0\0\1" + index.read_bytes()[8:])
    assert index.name in {each.file for each in verify_paths([data], processes=1).faults()}


KINDS = ("log", "index", "timeindex")


def named(data, *marks):
    """Rename the files of the first segment in turn: log, index and time index get a mark each."""
    for kind, mark in zip(KINDS, marks, strict=True):
        path = data / "orders-0" / f"{0:020d}.{kind}"
        path.rename(path.with_name(f"{path.name}{mark}"))


def test_a_new_segment_that_a_start_would_delete_is_to_be_renamed_first(data, capfd, monkeypatch):
    """PF-16: a power failure lost one rename of the cleaner, and kept later ones."""
    named(data, ".cleaned", ".swap", ".swap")
    code, text = verify(capfd, monkeypatch, data, "--kafka", RELEASE)
    assert (code, "may I start the broker? no: 1 partition would lose 12 readable records" in text) == (1, True)
    assert f"type mv {log(0)}.cleaned {log(0)} in this directory" in text.replace("\n", " ")
    topic = data / "orders-0"
    (topic / f"{log(0)}.cleaned").rename(topic / log(0))
    for path in topic.glob("*.swap"):
        path.rename(path.with_suffix(""))
    assert verify(capfd, monkeypatch, data, "--kafka", RELEASE)[0] == 0


def test_an_index_that_a_start_would_replace_alone_is_to_be_removed_first(data):
    index = data / "orders-0" / f"{0:020d}.index"
    shutil.copy(index, f"{index}.swap")
    (fault,) = verify_paths([data], processes=1).faults()
    assert (fault.clause, fault.file) == ("PF-16", f"{index.name}.swap")
    assert f"type rm {index.name}.swap in this directory" in fault.message


def test_no_loss_of_renames_is_reported_after_a_kill_of_a_cleaner(data):
    """The first of the cleaner's renames are found after a kill, in their order, and a start completes the rest."""
    paths = [data / "orders-0" / f"{0:020d}.{kind}" for kind in KINDS]
    for path in paths:
        shutil.copy(path, f"{path}.cleaned")
    for old, new in ((".cleaned", ".swap"), ("", ".deleted"), (".swap", "")):
        for path in paths:
            assert "PF-16" not in {fault.clause for fault in verify_paths([data], processes=1).faults()}
            path.with_name(f"{path.name}{old}").rename(f"{path}{new}")
    assert verify_paths([data], processes=1).faults() == []


def test_a_log_start_past_the_end_has_instructions_to_keep_the_log(data):
    write_offsets(data / "log-start-offset-checkpoint", {1: 999})
    found = start(data)
    said = "\n".join(found.lines())
    assert f"sed -E -i -e '2s/.*/0/' -e '/^orders[[:space:]]+1[[:space:]]/d' {data}/log-start-offset-checkpoint" in said
    assert "are copied" not in said
    assert "the log start, 999, is past its end, 48" in found.line
    write_offsets(data / "log-start-offset-checkpoint", {})
    assert start(data).answer == "yes"


def test_a_disk_of_another_cluster_must_not_be_relabelled(data, tmp_path):
    other = tmp_path / "other"
    other.mkdir()
    shutil.move(data / "orders-2", other / "orders-2")
    (other / "meta.properties").write_text(PROPERTIES.replace("c1", "c2"))
    found = start(data, other)
    assert found.answer == "no"
    assert "see first whether this is the disk of another broker" in "\n".join(found.lines())


def test_an_end_that_would_be_mistaken_for_an_earlier_one_has_two_remedies(data, capfd, monkeypatch):
    path = data / "orders-1" / log(36)
    os.truncate(path, path.stat().st_size - 300)
    _, text = verify(capfd, monkeypatch, data, "--kafka", RELEASE)
    assert f"&& mv -n {data}/.kafka_cleanshutdown {data}.aside" in text
    assert "if another broker leads the partition" in text


@pytest.mark.parametrize("compiled", [False, True])
@pytest.mark.parametrize(
    ("second", "said"),
    [
        ({"is_transactional": True, "is_control": True}, "a control record without a key"),
        ({}, "Expected transactional write from producer 7"),
    ],
    ids=["a control batch without a marker", "a batch outside its open transaction"],
)
def test_a_batch_from_which_no_start_can_rebuild_the_producers_keeps_the_broker_from_starting(
    data, second, said, compiled, monkeypatch
):
    """Seen with brokers 3.9.2 and 4.3.1 after a kill; here after a clean stop, too, for there are no snapshots."""
    monkeypatch.setattr("kidx.scan.blocks.worth_compiling", lambda _: compiled and COMPILED)
    path = data / "orders-0" / log(36)
    whole = {"producer_id": 7, "producer_epoch": 0, "partition_leader_epoch": 0}
    batches = [{"is_transactional": True, "base_sequence": 0}, {"base_sequence": 1} | second]
    with path.open("ab") as file:
        for number, some in enumerate(batches):
            file.write(build_batch([(EPOCH_MS, None, b"value")], base_offset=48 + number, **whole | some))
    for clean in (True, False):
        if not clean:
            (data / ".kafka_cleanshutdown").unlink()
        found = start(data)
        assert found.answer == "no"
        assert said in found.line
