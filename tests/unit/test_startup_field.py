"""Starts of brokers with corruption that an operator found, and what he has to read about them."""

from __future__ import annotations

import base64
import os
import shutil
from pathlib import Path

import pytest
from startups import (
    DISKS,
    ELSEWHERE,
    ID,
    RELEASE,
    flip,
    log,
    partition_record,
    partitions,
    start,
    stop_cleanly,
    write_metadata,
    write_offsets,
)

from kidx.cluster import ClusterMetadata, Replicas, Topic
from kidx.findings import Fault
from kidx.rebuild import rebuild
from kidx.records import SimpleRecord, build_batch
from kidx.startup import directories
from kidx.startup.partitions import Strays
from kidx.verify import verify_paths

METADATA = "__cluster_metadata-0"
_TOPIC = bytes.fromhex("010200") + b"\x07orders"
"""Begin of the record that makes the topic: frame, type, version, and a compact string."""


def topic_record():
    """Return the record that makes the topic."""
    return _TOPIC + base64.urlsafe_b64decode(f"{ID}==") + b"\x00"


filled = partitions(2)


@pytest.fixture
def data(filled, tmp_path):
    """Make a log directory of a broker of KRaft with KRaft's own log, after a clean stop."""
    target = stop_cleanly(filled, tmp_path / "data", {0: 48, 1: 48})
    write_offsets(target / "replication-offset-checkpoint", {0: 48, 1: 48})
    metadata = target / METADATA
    metadata.mkdir()
    batches = [build_batch([SimpleRecord(1, None, topic_record())], base_offset=0)]
    batches += [build_batch([SimpleRecord(2, None, b"\x01\x63\x00")], base_offset=n) for n in (1, 2)]
    (metadata / log(0)).write_bytes(b"".join(batches))
    rebuild(metadata / log(0), tmp_path / "rebuilt", dialect=RELEASE)
    shutil.copytree(tmp_path / "rebuilt", metadata, dirs_exist_ok=True)
    return target


def test_a_healthy_broker_with_its_own_log_may_start(data):
    found = start(data)
    assert (found.answer, found.line) == ("yes", "may I start the broker? yes")


def test_a_yes_names_what_was_not_checked(data):
    assumed = "server.properties (Kafka's defaults are assumed; --config FILE reads it)"
    said = f"start: not checked: {assumed}, other brokers and controllers, free space and memory"
    assert start(data).limits == [said]
    (data / "lost+found2").mkdir()
    assert start(data).limits == []


def test_the_epochs_of_a_partition_that_was_moved_may_begin_before_its_log(data):
    """A broker writes epochs later than it deletes segments, and no more after the copy became the partition."""
    for path in (data / "orders-0").glob(f"{0:020d}.*"):
        path.unlink()
    unassigned, one, other = (partition_record(0, (1,), (each,)) for each in (bytes(16), *DISKS))
    sibling = partition_record(1, (1,), DISKS[:1])
    for records, is_lost in ((one,), True), ((unassigned, one), True), ((unassigned, one, other), False):
        write_metadata(data, sibling, *records)
        assert bool(start(data).lost) == is_lost


class TestMetadata:
    def test_a_cut_of_the_cluster_metadata_makes_strays_of_the_partitions(self, data):
        flip(data / METADATA / log(0), 80)
        found = start(data)
        assert found.answer == "no"
        outcomes = {each.directory.name: each.outcome for each in found.partitions}
        assert outcomes == {METADATA: "cut", "orders-0": "stray", "orders-1": "stray"}
        said = "\n".join(found.lines())
        assert "do not start it: restore __cluster_metadata-0 from a copy" in said
        assert "KRaft recovers its own log at every start" in said
        assert "2 partitions would start empty" in found.line
        assert "copy the" not in found.line

    def test_topics_before_the_cut_stay(self, data):
        path = data / METADATA / log(0)
        path.write_bytes(path.read_bytes()[:-3])
        found = start(data)
        assert {each.directory.name: each.outcome for each in found.partitions} in (
            {METADATA: "cut"},
            {METADATA: "kept"},
        )

    @pytest.mark.parametrize("records", [[], [b"\x01\x63\x00"]])
    def test_without_any_topic_all_partitions_are_strays(self, data, records):
        content = b"".join(build_batch([SimpleRecord(1, None, value)], base_offset=0) for value in records)
        (data / METADATA / log(0)).write_bytes(content)
        found = start(data)
        assert found.answer == "no"
        lost = found.of("stray")
        assert [each.directory.name for each in lost] == ["orders-0", "orders-1"]
        assert all("KRaft's metadata have no topic orders" in each.reason for each in lost)
        assert all(each.remedy.startswith("do not start it: restore __cluster_metadata-0") for each in lost)

    def test_a_topic_that_they_lack_is_a_stray(self, data):
        shutil.copytree(data / "orders-1", data / "other-0")
        (data / "other-0" / "partition.metadata").write_text("version: 0\ntopic_id: OXyGkVjsR02DyybEsRtGng")
        (stray,) = start(data).of("stray")
        assert stray.directory == data / "other-0"
        assert "KRaft's metadata have no topic other" in stray.reason

    def test_the_id_of_another_topic_with_this_partition_is_not_served(self, data):
        other = "OXyGkVjsR02DyybEsRtGng"
        path = data / "orders-1"
        topics = {"orders": Topic("orders", ID, None), "other": Topic("other", other, None)}
        one, two = (ClusterMetadata(topics, replicas={(other, n): Replicas((1,), ())}) for n in (1, 0))
        (refused,) = Strays({path: other}, one, 1, are_complete=True).find()
        assert (refused.directory, refused.outcome) == (path, "refused")
        assert refused.remedy.startswith("see whose records these are")
        (stray,) = Strays({path: other}, two, 1, are_complete=True).find()
        assert stray.outcome == "stray"

    def test_its_absence_is_a_condition(self, data):
        shutil.rmtree(data / METADATA)
        found = start(data)
        assert found.line == f"may I start the broker? yes{ELSEWHERE}"
        said = found.lines()
        (number,) = (number for number, line in enumerate(said) if "renames every partition" in line)
        assert METADATA in said[number]
        assert said[number + 1].startswith(
            "  if metadata.log.dir is elsewhere, name that directory, too; if not, restore"
        )


class TestProperties:
    @pytest.mark.parametrize("kept", [METADATA, "bootstrap.checkpoint"])
    def test_the_only_log_directory_without_properties(self, data, kept):
        (data / "meta.properties").unlink()
        if kept != METADATA:
            shutil.rmtree(data / METADATA)
            (data / kept).write_bytes(b"")
        found = start(data)
        assert found.answer == "no"
        assert "meta.properties: it is missing" in found.line
        assert any("without the line directory.id" in line for line in found.lines())

    @pytest.mark.parametrize(
        ("line", "said"),
        [("version=1", "its version is 0, and it has no broker.id"), ("cluster.id=c1", "it has no cluster.id")],
    )
    def test_a_log_directory_whose_properties_lack_a_line(self, data, tmp_path, line, said):
        other = tmp_path / "other"
        shutil.copytree(data / "orders-1", other / "orders-1")
        shutil.rmtree(data / "orders-1")
        (other / "meta.properties").write_text((data / "meta.properties").read_text().replace(f"{line}\n", ""))
        found = start(data, other)
        assert found.answer == "no"
        assert said in found.line
        assert bool(found.offline) == ("cluster" in line)

    def test_an_empty_state_of_the_quorum(self, data):
        (data / METADATA / "quorum-state").write_text("")
        assert "quorum-state: it is empty (EOFException)" in start(data).line
        (data / METADATA / "quorum-state").write_text('{"data_version":[]}')
        assert "quorum-state" not in start(data).line  # no version of which the mandatory fields are known
        (data / METADATA / "quorum-state").write_text("[" * 100_000)
        assert "quorum-state: it is no JSON" in start(data).line

    def test_copies_of_partitions_need_none(self, data):
        (data / "meta.properties").unlink()
        shutil.rmtree(data / METADATA)
        assert start(data).answer == "yes"


def test_a_foreign_topic_id_is_not_overwritten_without_a_look(data):
    foreign = "OXyGkVjsR02DyybEsRtGng"
    (data / "orders-1" / "partition.metadata").write_text(f"version: 0\ntopic_id: {foreign}")
    found = start(data)
    (stray,) = found.of("stray")
    assert stray.remedy.startswith("see first where this directory is from")
    assert stray.remedy.endswith(f"topic_id: {ID}")


class TestLostRecords:
    def test_a_high_watermark_past_the_end(self, data):
        (data / "recovery-point-offset-checkpoint").unlink()
        write_offsets(data / "replication-offset-checkpoint", {0: 48, 1: 60})
        found = start(data)
        assert found.line == "may I start the broker? yes, but 1 partition lost records before, see above"
        (lost,) = found.lost
        assert lost.path == data / "orders-1"
        assert "has the high watermark 60, but its log ends at 48" in lost.reason

    def test_they_stay_reported_after_a_kill(self, data):
        (data / ".kafka_cleanshutdown").unlink()
        (data / "replication-offset-checkpoint").unlink()
        write_offsets(data / "recovery-point-offset-checkpoint", {0: 48, 1: 60})
        found = start(data)
        assert found.answer == "yes, but"
        assert "is flushed up to 60, but its log ends at 48" in found.lost[0].reason

    def test_a_recovery_point_that_the_high_watermark_contradicts_is_no_loss_after_a_clean_stop(self, data):
        write_offsets(data / "replication-offset-checkpoint", {0: 48, 1: 48})
        write_offsets(data / "recovery-point-offset-checkpoint", {0: 48, 1: 2**62})
        assert start(data).lost == ()
        (remark,) = (each for each in verify_paths([data]).findings if each.kind == Fault.END_TRUNCATED)
        assert "the recovery point is wrong; or" in remark.message
        (data / ".kafka_cleanshutdown").unlink()
        (lost,) = start(data).lost
        assert "records were lost (or the recovery point is wrong: the high watermark is 48)" in lost.reason

    def test_a_high_watermark_that_the_recovery_point_contradicts_is_no_loss_after_a_clean_stop(self, data):
        write_offsets(data / "replication-offset-checkpoint", {0: 48, 1: 60})
        assert start(data).lost == ()
        (remark,) = (each for each in verify_paths([data]).findings if each.kind == Fault.END_TRUNCATED)
        assert "the high watermark is wrong; or both are of an older copy" in remark.message
        (data / ".kafka_cleanshutdown").unlink()
        assert start(data).lost


class TestKeepingTheLog:
    def test_a_recovery_point_past_the_corrupt_batch_is_offered_and_keeps_all(self, data):
        (data / ".kafka_cleanshutdown").unlink()
        (data / "recovery-point-offset-checkpoint").unlink()
        flip(data / "orders-0" / log(12), 700)
        (cut,) = (each for each in start(data).partitions if each.outcome == "cut")
        assert cut.instead.startswith(r"printf '0\n1\norders 0 48\n' > ")
        write_offsets(data / "recovery-point-offset-checkpoint", {0: 48})
        again = start(data)
        assert (again.answer, again.of("cut")) == ("yes, but", [])

    def test_a_corrupt_batch_in_the_last_segment_is_cut_anyway(self, data):
        (data / ".kafka_cleanshutdown").unlink()
        flip(data / "orders-0" / log(36), 700)
        (cut,) = start(data).of("cut")
        assert cut.instead == ""


class TestOwners:
    """Tests run as root, or own all files: other owners are pretended by what ``stat`` returns."""

    @pytest.fixture
    def owned(self, monkeypatch):
        real, odd = os.stat, {}

        def stat(path, *arguments, **options):
            found = real(path, *arguments, **options)
            status = list(found)
            mode, user = odd.get(str(path), (None, 1000))
            status[0] = status[0] if mode is None else status[0] & ~0o777 | mode
            status[4] = status[5] = user
            return os.stat_result(status, {"st_mtime_ns": found.st_mtime_ns})

        monkeypatch.setattr(Path, "stat", stat)
        return odd

    def test_a_file_of_another_user_takes_the_log_directory_offline(self, data, owned):
        path = data / "orders-0" / log(12)
        owned[str(path)] = 0o600, 0
        why = directories.inaccessible(data)
        assert why.path == path
        assert "belongs to root" in why.reason
        assert start(data).answer == "no"

    def test_a_file_that_all_may_use_is_no_obstacle(self, data, owned):
        owned[str(data / "orders-0" / log(12))] = 0o666, 0
        assert directories.inaccessible(data) is None

    def test_files_of_root_are_taken_for_a_broker_that_runs_as_root(self, data, monkeypatch):
        monkeypatch.setattr(directories, "_ROOT", os.getuid())
        assert directories.inaccessible(data) is None


def test_the_default_release_is_named_as_such(data):
    (data / "lost+found2").mkdir()
    assert "which is the default: --kafka names another" in start(data, release=None).line
    assert "the default" not in start(data, release=RELEASE).line


def test_a_first_segment_that_no_broker_has_deleted_is_a_loss(data):
    for path in (data / "orders-1").glob(f"{0:020d}.*"):
        path.unlink()
    found = start(data)
    assert found.line == "may I start the broker? yes, but 1 partition lost records before, see above"
    (lost,) = found.lost
    assert lost.path == data / "orders-1"
    assert "begins at offset 0, but its log at 12" in lost.reason
    (data / "orders-1" / "leader-epoch-checkpoint").write_text("0\n1\n0 12\n")  # as a broker notes it
    assert start(data).answer == "yes"
