"""Remote storage in the layout of Aiven's plugin: objects that the plugin wrote, and corrupt ones."""

from __future__ import annotations

import base64
import json
import pickle
import shutil
from pathlib import Path

import pytest
import zstandard
from remote_tier import TOPIC_ID, copy_segments, delete_local

import kidx
from kidx.errors import ToolError
from kidx.lookup import TieredLog
from kidx.remote.aiven import ManifestError, parse_manifest
from kidx.remote.directory import read_remote
from kidx.verify.remote import verify_remote

GOLDEN = Path(__file__).parents[1] / "golden"
RELEASE = "4.3.1"
SUFFIXES = ("log", "index", "timeindex", "txnindex", "snapshot", "leader_epoch_checkpoint")


@pytest.fixture
def local(tmp_path):
    """Return a partition whose older segments are in remote storage alone, and its remote files."""
    partition = tmp_path / "data" / "transactions-0"
    shutil.copytree(GOLDEN / RELEASE / "transactions-0", partition)
    files = copy_segments(partition, tmp_path / "remote", 3)
    delete_local(partition, 3)
    return partition, files


@pytest.fixture(params=["plain", "compressed"])
def objects(request, tmp_path):
    """Return a root of objects of the same segments."""
    root = tmp_path / request.param
    shutil.copytree(GOLDEN / "objects" / request.param, root)
    return root


def object_of(root, suffix, number=0):
    return sorted(root.rglob(f"*.{suffix}"))[number]


def faults(local, root):
    result = verify_remote([local[0].parent], str(root), release=RELEASE, processes=1)
    return {(Path(each.path).name.partition(".")[2], each.verdict) for each in result.faults()}, result


class TestReading:
    def test_every_file_is_the_one_that_was_copied(self, local, objects, tmp_path):
        (partition,) = read_remote(str(objects)).partitions
        assert (partition.topic, partition.partition, partition.topic_id) == ("transactions", 0, TOPIC_ID)
        assert len(partition.segments) == 3
        for segment in partition.segments:
            assert not segment.missing
            for suffix in SUFFIXES:
                path = local[1] / Path(segment.path(suffix)).name
                assert path.exists() == (suffix in segment.files)
                if path.exists():
                    data = path.read_bytes()
                    assert segment.files[suffix].size == len(data)
                    assert segment.store.read_all(segment.path(suffix)) == data
                    segment.store.fetch(segment.path(suffix), tmp_path / "copy")
                    assert (tmp_path / "copy").read_bytes() == data
                else:
                    assert segment.store.entry(segment.path(suffix)) is None

    def test_every_range_of_a_log(self, local, objects):
        (partition,) = read_remote(str(objects)).partitions
        segment = partition.segments[1]
        data = (local[1] / Path(segment.path("log")).name).read_bytes()
        ends = sorted({0, 1, 999, 1000, 1001, 1999, 2999, 3000, 3001, len(data) - 1, len(data), len(data) + 5})
        with segment.store.open(segment.path("log")) as reader:
            assert reader.size == len(data)
            for start in ends:
                for end in ends:
                    assert reader.read(start, end - start) == data[start:end] if start < end else True

    @pytest.mark.parametrize("up", [0, 1, 2])
    def test_any_level_can_be_named(self, objects, up):
        directory = object_of(objects, "log").parent
        (partition,) = read_remote(str([directory, *directory.parents][up])).partitions
        assert partition.directory == str(directory)

    def test_a_url_of_fsspec(self, local, objects):
        assert faults(local, f"local://{objects}")[0] == set()

    def test_a_store_is_pickled_to_other_processes(self, objects):
        (partition,) = read_remote(str(objects)).partitions
        segment = partition.segments[0]
        again = pickle.loads(pickle.dumps(segment.store))  # noqa: S301 -- its own bytes
        assert again.read_all(segment.path("index")) == segment.store.read_all(segment.path("index"))

    def test_two_layouts_under_one_path(self, local, objects):
        shutil.copytree(local[1], objects / local[1].name)
        with pytest.raises(ToolError, match="two layouts"):
            read_remote(str(objects))

    def test_encrypted_segments_are_refused(self):
        with pytest.raises(ToolError, match="the segment is encrypted"):
            read_remote(str(GOLDEN / "objects" / "encrypted"))


class TestTiers:
    def test_look_ups_have_the_results_of_the_other_layout(self, local, objects):
        partition, files = local
        with TieredLog(partition, str(objects), RELEASE) as log, TieredLog(partition, str(files), RELEASE) as other:
            assert log.start_offset == other.start_offset < log.local_start
            stamps = {segment.largest_timestamp for segment in other.all_segments}
            for target in sorted({each + delta for each in stamps for delta in (-1, 0, 1)} | {-2, -4, -5, 0}):
                assert log.fetch_offset_by_timestamp(target) == other.fetch_offset_by_timestamp(target)

    def test_records_of_both_tiers(self, local, objects):
        partition, files = local
        rows = [
            kidx.read(str(partition.parent), topics="transactions", remote=str(remote)).read_all().to_pylist()
            for remote in (objects, files.parents[1])
        ]
        assert rows[0] == rows[1]
        assert rows[0][0]["offset"] == 0


class TestVerify:
    def test_sound_objects_have_no_fault(self, local, objects):
        found, result = faults(local, objects)
        assert found == set()
        assert result.segments == 3
        assert result.left_out == []

    @pytest.mark.parametrize("suffix", ["log", "indexes", "rsm-manifest"])
    def test_a_missing_object(self, local, objects, suffix):
        object_of(objects, suffix).unlink()
        found, _ = faults(local, objects)
        assert (suffix, "missing") in found

    @pytest.mark.parametrize(
        "damage",
        [
            b"",
            b"{}",
            b"[" * 100_000,
            lambda data: data.replace(b'"version":"1"', b'"version":"2"'),
            lambda data: data.replace(b'"originalChunkSize":', b'"originalChunkSize":-'),
            lambda data: data.replace(b'"originalFileSize":', b'"originalFileSize":1'),
            lambda data: data.replace(b'"position":8,', b'"position":8000,'),
        ],
        ids=["empty", "no-fields", "nested", "version", "negative", "size", "place"],
    )
    def test_a_damaged_manifest_is_one_finding(self, local, objects, damage):
        path = object_of(objects, "rsm-manifest")
        path.write_bytes(damage(path.read_bytes()) if callable(damage) else damage)
        found, result = faults(local, objects)
        assert ("log", "unreadable") in found
        assert result.segments == 3

    def test_a_damaged_chunk(self, local, objects):
        path = object_of(objects, "log", 1)
        data = bytearray(path.read_bytes())
        data[len(data) // 2] ^= 1
        path.write_bytes(data)
        assert faults(local, objects)[0] & {("log", "unreadable"), ("log", "broken")}

    def test_a_short_object(self, local, objects):
        for suffix in ("log", "indexes"):
            path = object_of(objects, suffix, 1)
            path.write_bytes(path.read_bytes()[:-1])
        assert ("log", "unreadable") in faults(local, objects)[0]

    def test_a_damaged_index_is_found_in_the_object(self, local, objects):
        path = object_of(objects, "indexes", 1)
        data = bytearray(path.read_bytes())
        data[0] ^= 1
        path.write_bytes(data)
        assert ("index", "broken") in faults(local, objects)[0]


class TestManifest:
    def manifest(self, packed, *, size=2500, compression=True):
        text = base64.b64encode(zstandard.compress(packed)).decode()
        chunks = {"type": "variable", "originalChunkSize": 1000, "originalFileSize": size, "transformedChunks": text}
        place = {"position": 0, "size": 0}
        places = dict.fromkeys(("offset", "timestamp", "producerSnapshot", "leaderEpoch"), place)
        document = {"version": "1", "chunkIndex": chunks, "segmentIndexes": places, "compression": compression}
        return parse_manifest(json.dumps(document).encode(), "m")

    def test_sizes_of_chunks(self):
        packed = bytes.fromhex("00000003 000003e8 02 0000 0101 00000007")
        chunks = self.manifest(packed).log
        assert [chunks.stored(number) for number in range(3)] == [(0, 1000), (1000, 1257), (2257, 7)]

    @pytest.mark.parametrize(
        ("packed", "why"),
        [
            ("", "no readable list"),
            ("00000003", "no readable list"),
            ("7fffffff 000003e8 01", "no readable list"),
            ("7fffffff 000003e8 00 00000007", "chunks"),
            ("00000003 fffffff0 01 00 00 00000007", "negative"),
            ("00000002 000003e8 01 00 00000007", "2 chunks of a log that has 3"),
            ("ffffffff", "0 chunks"),
        ],
    )
    def test_a_hostile_list_of_chunks(self, packed, why):
        with pytest.raises(ManifestError, match=why):
            self.manifest(bytes.fromhex(packed))

    def test_a_list_that_expands_is_refused_by_its_size(self):
        with pytest.raises(ManifestError, match="exceeds"):
            self.manifest(bytes(20 << 20))
