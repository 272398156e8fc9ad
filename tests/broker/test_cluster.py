"""Three brokers of one release: what leader and followers answer, and what is in their files."""

from __future__ import annotations

import json
import shutil
import struct
import sys

import pytest

from conformance import cli
from conformance.errors import ToolError
from conformance.experiments.cluster import Segment, Topic, compare_replicas, grouped
from conformance.kafka.broker.cluster import LocalCluster
from kidx.dialect import dialect_of
from kidx.rebuild import rebuild
from kidx.records import SimpleRecord, build_batch, iter_batches

# With ZooKeeper, one entry an append, and leaders that name the record: as much as there is to explain.
RELEASE = "2.4.1"


@pytest.mark.broker
@pytest.mark.thorough
def test_replicas_have_the_same_results_and_exact_or_explained_indexes(monkeypatch, capsys):
    monkeypatch.setattr(sys, "argv", ["conformance", "cluster", "--kafka", RELEASE, "--json"])
    with pytest.raises(SystemExit) as ended:
        cli.main()
    document = json.loads(capsys.readouterr().out)
    (cluster,) = document["clusters"]
    assert cluster["mismatches"] == []
    assert (ended.value.code, document["verdict"]) == (0, "conforms")
    assert cluster["mode"] == "zookeeper"
    assert cluster["followers_answers"] > 1000
    assert cluster["refusals"] > 50
    assert {file["verdict"] for file in cluster["files"]} == {"exact", "sound"}
    assert {file["replica"] for file in cluster["files"]} == {1, 2, 3}
    assert cluster["reasons"]["SEG-7"] > 0
    assert not all(file["as_leader"] for file in cluster["files"])


# -- without a broker ------------------------------------------------------------------------------------------------

INTERVAL = 200


def batches(count):
    """Make a log of small batches of equal size."""
    return [build_batch([SimpleRecord(1000 + n, None, b"v" * 30)], base_offset=n) for n in range(count)]


@pytest.fixture
def replicas(tmp_path):
    """Make two replicas of a log, with the indexes that recovery writes."""
    data = batches(20)
    for replica in ("1", "2"):
        directory = tmp_path / replica / "t-0"
        directory.mkdir(parents=True)
        log = directory / f"{0:020}.log"
        log.write_bytes(b"".join(data))
        rebuild(log, tmp_path / "rebuilt", dialect="3.9.0", index_interval_bytes=INTERVAL)
        shutil.copytree(tmp_path / "rebuilt", directory, dirs_exist_ok=True)
    return {1: tmp_path / "1" / "t-0", 2: tmp_path / "2" / "t-0"}


def compared(replicas, release="3.9.0", **known):
    topic = Topic("t", [1000 + n for n in range(20)], **known)
    return compare_replicas(topic, 1, replicas, dialect_of(release), INTERVAL)


def overwrite(replicas, data):
    (replicas[2] / f"{0:020}.index").write_bytes(data)


def entries(*groups):
    """Return the index of a follower that appended these groups of batches, given as (first, last, indexed)."""
    size = len(batches(1)[0])
    return b"".join(struct.pack(">ii", last, first * size) for first, last, indexed in groups if indexed)


def test_equal_replicas_are_exact(replicas):
    files, mismatches = compared(replicas)
    assert not mismatches
    assert {(file.verdict, file.as_leader) for file in files} == {("exact", True)}


def test_batches_appended_together_have_one_entry_and_are_explained(replicas):
    overwrite(replicas, entries((0, 4, False), (5, 9, True), (10, 19, True)))
    files, mismatches = compared(replicas)
    assert not mismatches
    (sound,) = [file for file in files if file.verdict == "sound"]
    assert sound.why == "SEG-3: 2 entries are appends of several batches"
    assert not sound.as_leader


def test_an_index_that_no_grouping_explains_is_broken(replicas):
    whole = entries((0, 4, False), (5, 9, True), (10, 19, True))
    for data in (
        entries((0, 0, False), (1, 9, True), (10, 19, True)),  # too early: no more than the interval before it
        entries(
            (0, 4, False), (5, 9, True), (11, 19, True)
        ),  # batch 10 came after more than the interval, and has none
        whole[:-8],  # so did all later batches
        struct.pack(">ii", 9, 7),  # no batch begins there
    ):
        overwrite(replicas, data)
        _, mismatches = compared(replicas)
        assert "SEG-30" in {mismatch.clause for mismatch in mismatches}


def test_a_release_that_indexes_every_batch_has_no_such_excuse(replicas):
    overwrite(replicas, entries((0, 4, False), (5, 9, True), (10, 19, True)))
    _, mismatches = compared(replicas, "4.3.1")
    assert {mismatch.clause for mismatch in mismatches} == {"SEG-30"}


def test_an_interruption_within_the_segment_tolerates_sound_entries_only(replicas):
    recovered = (replicas[1] / f"{0:020}.index").read_bytes()
    overwrite(replicas, recovered[8:])
    files, mismatches = compared(replicas, "4.3.1", interrupted={2: [4]})
    assert not mismatches
    assert [file.why for file in files if file.verdict == "sound"] == ["SEG-7: broker 2 was interrupted at offset 4"]
    overwrite(replicas, recovered[8:16] + recovered[8:])
    _, mismatches = compared(replicas, "4.3.1", interrupted={2: [4]})
    assert "OI-3" in {mismatch.clause for mismatch in mismatches}


def test_logs_that_differ_are_a_mismatch(replicas):
    log = replicas[2] / f"{0:020}.log"
    log.write_bytes(log.read_bytes()[: -len(batches(1)[0])])
    _, mismatches = compared(replicas)
    assert "RB-1" in {mismatch.clause for mismatch in mismatches}


def test_groups_are_read_from_the_entries(tmp_path):
    log = tmp_path / f"{0:020}.log"
    log.write_bytes(b"".join(batches(6)))
    segment = Segment(log, list(iter_batches(log.read_bytes())))
    log.with_suffix(".index").write_bytes(entries((3, 3, True)))
    assert grouped(segment, INTERVAL) == "batches without an entry came together"
    assert grouped(segment, 10) == ""


def test_a_mode_missing_in_a_release_is_one_line():
    with pytest.raises(ToolError, match="does not run with zookeeper"):
        LocalCluster("4.3.1", mode="zookeeper")
