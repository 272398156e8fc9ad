"""Metadata of remote segments from a broker's ``__remote_log_metadata``, and what the tools make of them.

``tests/support/tiered_logs.py`` has recorded the two tiers of a broker, once while a segment was copied, and once while
one was deleted.
"""

from __future__ import annotations

import base64
import shutil
from collections import Counter
from pathlib import Path

import pytest
from remote_tier import id_of

import kidx
from kidx.errors import ToolError
from kidx.log.epochs import read_epochs
from kidx.lookup import TieredLog
from kidx.remote.directory import add_metadata, read_remote
from kidx.remote.errors import RemoteStorageError
from kidx.remote.metadata import TOPIC, PartitionState, RemoteLogMetadata, SegmentState, read_metadata
from kidx.storage import Store
from kidx.verify.remote import verify_remote

GOLDEN = Path(__file__).parents[1] / "golden" / "tiers"
RELEASE = "4.3.1"
PARTITION = "tiered-0"
BEGUN = {"copying": SegmentState.COPY_SEGMENT_STARTED, "deleting": SegmentState.DELETE_SEGMENT_STARTED}


@pytest.fixture(params=list(BEGUN))
def moment(request, tmp_path):
    """Return the name of a recording, and a copy of its directory."""
    return request.param, copied(request.param, tmp_path)


@pytest.fixture
def broker(tmp_path):
    return copied("deleting", tmp_path)


def copied(name, tmp_path):
    """Copy a recording; the log start, which the broker would have noted a minute later, is the one of its epochs."""
    shutil.copytree(GOLDEN / name, tmp_path / "broker")
    data = tmp_path / "broker" / "data"
    start = read_epochs(data / PARTITION / "leader-epoch-checkpoint")[0].start_offset
    (data / "log-start-offset-checkpoint").write_text(f"0\n1\ntiered 0 {start}\n", "utf-8")
    return tmp_path / "broker"


def metadata_of(broker):
    return read_metadata([(Store(str(broker / "data")), str(broker / "data"))], RELEASE)


def segments_of(broker):
    """Return the metadata of each segment, by state."""
    ((_, partition),) = metadata_of(broker).partitions.items()
    assert partition.is_complete
    assert partition.state is None
    found = {}
    for each in partition.segments.values():
        found.setdefault(each.state, []).append(each)
    return found


def files_of(broker, segment):
    return list(broker.glob(f"remote/*/*/*-{segment.id}.*"))


def verified(broker):
    result = verify_remote([broker / "data"], broker / "remote", release=RELEASE, processes=1)
    return {(Path(each.path).name, each.verdict) for each in result.faults()}, result


def forget_metadata(broker):
    shutil.rmtree(broker / "data" / f"{TOPIC}-0")


def test_states_are_those_of_the_files(moment):
    name, broker = moment
    found = segments_of(broker)
    assert set(found) == {
        BEGUN[name],
        SegmentState.COPY_SEGMENT_FINISHED,
        SegmentState.DELETE_SEGMENT_FINISHED,
    }
    assert all(len(files_of(broker, each)) == 5 for each in found[SegmentState.COPY_SEGMENT_FINISHED])
    assert not any(files_of(broker, each) for each in found[SegmentState.DELETE_SEGMENT_FINISHED])


def test_offsets_epochs_sizes_and_times_are_those_of_the_files(moment):
    _, broker = moment
    copied = {each.id: each for each in segments_of(broker)[SegmentState.COPY_SEGMENT_FINISHED]}
    (partition,) = read_remote(broker / "remote").partitions
    listed = {each.id: each for each in partition.segments if each.id in copied}
    assert listed.keys() == copied.keys()
    for id_, segment in listed.items():
        noted = copied[id_]
        assert segment.noted is None
        assert (segment.base_offset, segment.end_offset) == (noted.start_offset, noted.last_offset + 1)
        assert (segment.size, segment.largest_timestamp) == (noted.size, noted.max_timestamp)
        assert {epoch: max(start, segment.base_offset) for epoch, start in segment.epochs.items()} == noted.epochs
        assert noted.custom is None


class TestVerify:
    def test_a_copy_or_a_deletion_that_has_begun_is_no_fault(self, moment):
        name, broker = moment
        (begun,) = segments_of(broker)[BEGUN[name]][:1]
        for number in range(len(files_of(broker, begun)) + 1):
            found, result = verified(broker)
            assert found == set()
            assert result.exit_code == 0
            remarks = [each.message for each in result.findings if begun.id in each.path]
            assert (f"state {BEGUN[name].name}" in "".join(remarks)) == bool(files_of(broker, begun)), number
            for path in files_of(broker, begun)[:1]:
                path.unlink()

    def test_a_deleted_segment_whose_files_remain_is_no_fault_either(self, broker):
        gone, copied = (
            segments_of(broker)[state][0]
            for state in (SegmentState.DELETE_SEGMENT_FINISHED, SegmentState.COPY_SEGMENT_FINISHED)
        )
        for path in files_of(broker, copied)[:3]:
            shutil.copyfile(path, path.with_name(f"{gone.start_offset:020d}-{gone.id}{path.suffix}"))
        found, result = verified(broker)
        assert found == set()
        assert any("DELETE_SEGMENT_FINISHED" in each.message for each in result.findings)
        forget_metadata(broker)
        assert verified(broker)[0]

    def test_a_copied_segment_without_files_is_a_fault_that_only_the_metadata_show(self, broker):
        lost = max(segments_of(broker)[SegmentState.COPY_SEGMENT_FINISHED], key=lambda each: each.start_offset)
        for path in files_of(broker, lost):
            path.unlink()
        found, result = verified(broker)
        assert found == {(f"{lost.start_offset:020d}-{lost.id}.log", "missing")}
        assert result.exit_code == 1
        assert len(result.faults()) == 1

    @pytest.mark.parametrize("suffix", ["log", "index", "snapshot"])
    def test_a_copied_segment_without_one_file(self, broker, suffix):
        """Its copy has finished, so that it is a fault while the broker runs and the local log still has it, too."""
        segment = max(segments_of(broker)[SegmentState.COPY_SEGMENT_FINISHED], key=lambda each: each.start_offset)
        (path,) = (each for each in files_of(broker, segment) if each.suffix == f".{suffix}")
        path.unlink()
        assert (path.name, "missing") in verified(broker)[0]

    def test_a_log_that_ends_too_early(self, broker):
        segment = segments_of(broker)[SegmentState.COPY_SEGMENT_FINISHED][-1]
        (path,) = (each for each in files_of(broker, segment) if each.suffix == ".log")
        path.write_bytes(path.read_bytes()[: path.stat().st_size // 4])
        found, result = verified(broker)
        assert (path.name, "broken") in found
        assert any(
            f"offset {segment.last_offset} as the segment's last one" in each.message for each in result.faults()
        )

    def test_a_segment_without_metadata_is_read_by_no_broker(self, broker):
        segment = segments_of(broker)[SegmentState.COPY_SEGMENT_FINISHED][-1]
        for path in files_of(broker, segment):
            path.with_name(path.name.replace(segment.id, id_of("unknown"))).write_bytes(b"\xff" * 100)
        found, result = verified(broker)
        assert found == set()
        assert any(f"{TOPIC} has no record of the segment" in each.message for each in result.findings)

    def test_metadata_that_begin_later_or_are_corrupt_do_not_tell_what_is_missing(self, broker):
        segment = segments_of(broker)[SegmentState.COPY_SEGMENT_FINISHED][-1]
        (log,) = (broker / "data" / f"{TOPIC}-0").glob("*.log")
        content = log.read_bytes()
        log.write_bytes(content[:-30])
        assert segment.id in {each.id for p in metadata_of(broker).partitions.values() for each in p.segments.values()}
        log.write_bytes(content[: len(content) // 2] + b"\xff" * (len(content) // 2))
        assert not any(each.is_complete for each in metadata_of(broker).partitions.values())
        log.write_bytes(content)
        log.rename(log.with_name(f"{7:020d}.log"))
        (partition,) = metadata_of(broker).partitions.values()
        assert not partition.is_complete


class TestLookup:
    def test_a_broker_reads_the_copied_segments_alone(self, moment):
        name, broker = moment
        copied = segments_of(broker)[SegmentState.COPY_SEGMENT_FINISHED]
        with TieredLog(broker / "data" / PARTITION, broker / "remote", RELEASE) as log:
            assert {each.id for each in log.remote} == {each.id for each in copied}
            assert log.highest_remote == max(each.last_offset for each in copied)
            for each in copied:
                if each.start_offset >= log.start_offset:
                    found = log.fetch_offset_by_timestamp(each.max_timestamp)
                    assert found.offset in range(each.start_offset, each.last_offset + 1)
        (begun,) = segments_of(broker)[BEGUN[name]][:1]
        had = {path.suffix for path in files_of(broker, begun)}
        forget_metadata(broker)
        with TieredLog(broker / "data" / PARTITION, broker / "remote", RELEASE) as log:
            # Without metadata, a segment with all its files counts as copied.
            assert (begun.id in {each.id for each in log.remote}) == (len(had) == 5)

    def test_a_lost_segment_is_an_error(self, broker):
        with TieredLog(broker / "data" / PARTITION, broker / "remote", RELEASE) as log:
            lost = next(each for each in log.remote if each.base_offset >= log.start_offset)
        for path in files_of(broker, lost):
            path.unlink()
        with TieredLog(broker / "data" / PARTITION, broker / "remote", RELEASE) as log:
            with pytest.raises(RemoteStorageError, match="is missing in remote storage"):
                log.fetch_offset_by_timestamp(lost.largest_timestamp)
            assert log.highest_remote >= lost.noted.last_offset


class TestRead:
    def test_records_of_both_tiers(self, moment):
        _, broker = moment
        table = kidx.read(broker / "data", topics="tiered", remote=broker / "remote", columns=["offset"]).read_all()
        with TieredLog(broker / "data" / PARTITION, broker / "remote", RELEASE) as log:
            assert table["offset"].to_pylist() == list(range(log.start_offset, 200))

    def test_a_lost_segment_is_an_error(self, broker):
        lost = min(segments_of(broker)[SegmentState.COPY_SEGMENT_FINISHED], key=lambda each: each.start_offset)
        for path in files_of(broker, lost):
            path.unlink()
        with pytest.raises(
            ToolError, match=rf"{lost.id}.log is missing, although {TOPIC} says that the segment was copied"
        ):
            kidx.read(broker / "data", topics="tiered", remote=broker / "remote").read_all()


ID = {"topicIdPartition": {"id": "A" * 22, "name": "t", "partition": 3}, "id": "B" * 22}


class TestRecords:
    """Records as ``RemoteLogMetadataCache`` takes them."""

    def test_states_follow_each_other(self):
        metadata = RemoteLogMetadata()
        update = {"remoteLogSegmentId": ID, "remoteLogSegmentState": 1, "customMetadata": None}
        metadata.add("RemoteLogSegmentMetadataUpdateRecord", update)
        assert metadata.of("A" * 22, 3).segments == {}, "the broker ignores an update of an unknown segment"
        first = {
            "remoteLogSegmentId": ID,
            "startOffset": 5,
            "endOffset": 9,
            "maxTimestampMs": 77,
            "segmentSizeInBytes": 100,
            "segmentLeaderEpochs": [{"leaderEpoch": 2, "offset": 5}],
            "customMetadata": None,
            "remoteLogSegmentState": 0,
        }
        metadata.add("RemoteLogSegmentMetadataRecord", first)
        metadata.add(
            "RemoteLogSegmentMetadataUpdateRecord", update | {"customMetadata": base64.b64encode(b"xy").decode()}
        )
        (segment,) = metadata.of("A" * 22, 3).segments.values()
        assert (segment.is_readable, segment.custom, segment.epochs) == (True, b"xy", {2: 5})
        metadata.add("RemoteLogSegmentMetadataUpdateRecord", update | {"remoteLogSegmentState": 2})
        (segment,) = metadata.of("A" * 22, 3).segments.values()
        assert (segment.is_readable, segment.custom, segment.state_name) == (False, b"xy", "DELETE_SEGMENT_STARTED")
        metadata.add("RemoteLogSegmentMetadataUpdateRecord", update | {"remoteLogSegmentState": 9})
        (segment,) = metadata.of("A" * 22, 3).segments.values()
        assert (segment.is_readable, segment.state_name) == (False, "an unknown state")

    def test_a_deleted_partition(self, broker):
        metadata = metadata_of(broker)
        found = read_remote(broker / "remote")
        (stored,) = found.partitions
        key = {"id": stored.topic_id, "name": stored.topic, "partition": stored.partition}
        metadata.add("RemotePartitionDeleteMetadataRecord", {"topicIdPartition": key, "remotePartitionDeleteState": 1})
        add_metadata(found, metadata)
        (stored,) = found.partitions
        assert stored.noted.state is PartitionState.DELETE_PARTITION_STARTED
        assert all("DELETE_PARTITION_STARTED" in stored.why_unread(each) for each in stored.segments)

    def test_snapshots_do_not_have_their_partition(self):
        metadata = RemoteLogMetadata()
        assert metadata.add("RemoteLogSegmentMetadataSnapshotRecord", {"segmentId": "B" * 22}) is None
        assert metadata.partitions == {}


def test_of_several_replicas_the_longest_is_read(broker, tmp_path):
    short = tmp_path / "other" / f"{TOPIC}-0"
    shutil.copytree(broker / "data" / f"{TOPIC}-0", short)
    (log,) = short.glob("*.log")
    log.write_bytes(log.read_bytes()[:2000])
    places = [(Store(str(path)), str(path)) for path in (short.parent, broker / "data", tmp_path / "none")]
    counts = [
        Counter(each.state for p in read_metadata(some).partitions.values() for each in p.segments.values())
        for some in (places, places[::-1], places[1:])
    ]
    assert counts[0] == counts[1] == counts[2]
    assert read_metadata(places[:1]).partitions != read_metadata(places).partitions


def test_a_url_gives_the_same(broker):
    url = Store(f"local://{broker / 'data'}")
    assert read_metadata([(url, url.root)]).partitions == metadata_of(broker).partitions
