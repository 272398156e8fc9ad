"""Remote storage next to local logs: its layout, verification, and lookups across tiers."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from remote_tier import TOPIC_ID, bases_of, copy_segments, delete_local, id_of

from kidx.errors import ToolError
from kidx.lookup import ReadOnlyLog, TieredLog, explain_across_tiers, explain_offset
from kidx.remote.directory import parse_remote_partition, read_remote
from kidx.remote.stored import is_within, with_records
from kidx.verify.remote import verify_remote

GOLDEN = Path(__file__).parents[1] / "golden"
RELEASE = "4.3.1"


@pytest.fixture(params=["transactions-0", "create-time-0", "restarted-0"])
def tiers(request, tmp_path):
    """Return a partition whose segments but the last are in remote storage alone, and the whole log."""
    whole = tmp_path / "whole" / request.param
    shutil.copytree(GOLDEN / RELEASE / request.param, whole)
    partition = tmp_path / "data" / request.param
    shutil.copytree(whole, partition)
    count = len(bases_of(partition)) - 1
    assert count >= 1
    stored = copy_segments(partition, tmp_path / "remote", count)
    delete_local(partition, count)
    return partition, stored, whole


def faults(partition, stored):
    result = verify_remote([partition.parent], str(stored.parents[1]), release=RELEASE, processes=1)
    return {(Path(finding.path).name, finding.verdict) for finding in result.faults()}, result


def file_of(stored, suffix, number=0):
    return sorted(stored.glob(f"*.{suffix}"))[number]


class TestLayout:
    @pytest.mark.parametrize(
        ("name", "parsed"),
        [
            (f"orders-0-{TOPIC_ID}", ("orders", 0, TOPIC_ID)),
            ("a-b-12-A-cdefghijklmnopqrst-1", ("a-b", 12, "A-cdefghijklmnopqrst-1")),
            ("orders-0", None),
            (f"orders-{TOPIC_ID}", None),
            (f"orders-99999999999-{TOPIC_ID}", None),
        ],
    )
    def test_names_of_partitions(self, name, parsed):
        assert parse_remote_partition(name) == parsed

    @pytest.mark.parametrize("up", [0, 1, 2])
    def test_any_level_can_be_named(self, tiers, up):
        _, stored, _ = tiers
        path = [stored, *stored.parents][up]
        (partition,) = read_remote(str(path)).partitions
        assert partition.directory == str(stored)
        assert partition.topic_id == TOPIC_ID
        assert all(not segment.missing for segment in partition.segments)

    def test_a_url_of_fsspec(self, tiers):
        _, stored, _ = tiers
        (partition,) = read_remote(f"local://{stored.parents[1]}").partitions
        (here,) = read_remote(str(stored.parents[1])).partitions
        facts = [(each.base_offset, each.id, each.end_offset, each.epochs) for each in partition.segments]
        assert facts == [(each.base_offset, each.id, each.end_offset, each.epochs) for each in here.segments]

    def test_ends_and_timestamps_are_those_of_the_log(self, tiers):
        _, stored, whole = tiers
        (partition,) = read_remote(str(stored)).partitions
        bases = bases_of(whole)
        assert [each.end_offset for each in partition.segments] == bases[1:]
        with ReadOnlyLog(whole, RELEASE) as log:
            largest = [each.largest_timestamp for each in log.segments[:-1]]
        assert [each.largest_timestamp for each in partition.segments] == largest

    def test_a_path_without_remote_segments(self, tmp_path):
        with pytest.raises(ToolError, match="has no remote segments"):
            read_remote(str(tmp_path))
        with pytest.raises(ToolError, match="is missing"):
            read_remote(str(tmp_path / "none"))


class TestLineage:
    """As ``isRemoteSegmentWithinLeaderEpochs``: the log has epoch 1 from 0, 2 from 10, and 4 from 20."""

    @pytest.mark.parametrize(
        ("epochs", "end", "is_own"),
        [
            ({1: 0}, 10, True),
            ({1: 5}, 8, True),
            ({1: 0}, 11, False),  # the log has epoch 2 from offset 10 on
            ({1: 0, 2: 10}, 15, True),
            ({1: 0, 2: 9}, 15, False),
            ({2: 9}, 15, False),
            ({2: 12}, 20, True),
            ({3: 20}, 25, False),
            ({2: 15, 4: 20}, 30, True),
            ({2: 15, 4: 20}, 31, False),  # past the end of the log
            ({0: 0}, 5, False),
            ({5: 20}, 25, False),
        ],
    )
    def test_segments_of_the_log(self, epochs, end, is_own):
        assert is_within(epochs, end, {1: 0, 2: 10, 4: 20}, 30) is is_own

    def test_epochs_without_records_do_not_count(self):
        assert with_records({1: 0, 2: 10, 3: 10, 4: 20}) == {1: 0, 3: 10, 4: 20}


class TestVerify:
    def test_a_sound_remote_tier_has_no_fault(self, tiers):
        partition, stored, _ = tiers
        found, result = faults(partition, stored)
        assert found == set()
        assert result.exit_code == 0
        assert result.segments == len(list(stored.glob("*.log")))
        assert result.left_out == []

    @pytest.mark.parametrize("suffix", ["log", "index", "timeindex", "snapshot", "leader_epoch_checkpoint"])
    def test_a_missing_file(self, tiers, suffix):
        partition, stored, _ = tiers
        path = file_of(stored, suffix)
        path.unlink()
        found, _ = faults(partition, stored)
        assert (path.name, "missing") in found
        assert {name for name, _ in found} == {path.name}

    @pytest.mark.parametrize("suffix", ["log", "index", "timeindex", "snapshot"])
    def test_a_flipped_bit(self, tiers, suffix):
        partition, stored, _ = tiers
        path = file_of(stored, suffix)
        data = bytearray(path.read_bytes())
        if len(data) < 8:
            pytest.skip("the file is empty")
        data[0] ^= 1
        path.write_bytes(data)
        found, _ = faults(partition, stored)
        assert path.name in {name for name, _ in found}

    def test_a_wrong_epoch(self, tiers):
        partition, stored, _ = tiers
        path = file_of(stored, "leader_epoch_checkpoint")
        path.write_text("0\n1\n7 0\n", "utf-8")
        assert faults(partition, stored)[0] == {(path.name, "broken")}
        path.write_text("1\n", "utf-8")
        assert faults(partition, stored)[0] == {(path.name, "unreadable")}

    def test_a_lost_segment_is_a_gap(self, tiers):
        partition, stored, whole = tiers
        for path in stored.glob(f"{bases_of(whole)[-2]:020d}-*"):
            path.unlink()
        if not list(stored.glob("*.log")):
            stored.joinpath("README").touch()
        found, result = faults(partition, stored)
        assert found == {(stored.name, "missing")}
        (finding,) = result.faults()
        assert finding.expected == f"offsets {bases_of(whole)[-2]} to {bases_of(whole)[-1] - 1}"

    def test_a_partition_that_remote_storage_does_not_have(self, tiers):
        partition, stored, _ = tiers
        stored.rename(stored.with_name(f"other-0-{TOPIC_ID}"))
        found, result = faults(partition, stored)
        assert found == {(partition.name, "missing")}
        assert [each.message for each in result.left_out] == [
            "the given paths have no replica of this remote partition"
        ]

    def test_a_copy_that_failed_and_was_repeated(self, tiers):
        partition, stored, _ = tiers
        log = file_of(stored, "log")
        shutil.copyfile(log, log.with_name(f"{log.name[:20]}-{id_of('again')}.log"))
        found, result = faults(partition, stored)
        assert found == set()
        assert any("a copy that failed" in finding.message for finding in result.findings)

    def test_topics_of_one_name_are_told_apart_by_their_ids(self, tiers):
        partition, stored, _ = tiers
        shutil.copytree(stored, stored.with_name(f"{partition.name}-{id_of('deleted')}"))
        assert faults(partition, stored)[0] == set()
        (partition / "partition.metadata").unlink()
        found, result = faults(partition, stored)
        assert found == {(partition.name, "unreadable")}
        assert result.exit_code == 1 or not result.files

    def test_strays_are_named(self, tiers):
        partition, stored, _ = tiers
        for path in (stored / "README", stored / "x.log", stored.parent / "lost", stored.parents[1] / ".DS_Store"):
            path.touch()
        found, result = faults(partition, stored)
        assert found == set()
        assert {each.path.name for each in result.left_out} == {"README", "x.log", "lost", ".DS_Store"}

    def test_a_url_gives_the_same(self, tiers):
        partition, stored, _ = tiers
        file_of(stored, "index").write_bytes(b"\xff" * 16)
        (here, _), url = faults(partition, stored), f"local://{stored.parents[1]}"
        result = verify_remote([partition.parent], url, release=RELEASE, processes=2)
        assert {(Path(finding.path).name, finding.verdict) for finding in result.faults()} == here
        assert all(str(stored) in file.path for file in result.files)


class TestLookup:
    @pytest.mark.thorough
    def test_every_answer_is_that_of_the_whole_log(self, tiers):
        partition, stored, whole = tiers
        with TieredLog(partition, str(stored), RELEASE) as log, ReadOnlyLog(whole, RELEASE) as full:
            start, end = full.start_offset, full.end_offset
            assert (log.start_offset, log.end_offset) == (start, end)
            assert log.local_start == bases_of(whole)[-1] == log.highest_remote + 1
            stamps = {
                r.timestamp
                for s in full.segments
                for b in s.batches()
                for r in b.offset_timestamps()
                if r.timestamp > 0
            }
            for stamp in sorted({each + delta for each in stamps for delta in (-1, 0, 1)}):
                found = log.fetch_offset_by_timestamp(stamp)
                assert found == full.fetch_offset_by_timestamp(stamp), stamp
                assert explain_across_tiers(log, stamp).answer == found
            for offset in range(start, end):
                assert explain_offset(log, offset).answer == explain_offset(full, offset).answer, offset
            assert log.fetch_offset_by_timestamp(-2) == full.fetch_offset_by_timestamp(-2)
            assert log.fetch_offset_by_timestamp(-4).offset == log.local_start
            assert log.fetch_offset_by_timestamp(-5).offset == log.highest_remote
            assert log.fetch_offset_by_timestamp(-6).offset == log.local_start

    def test_the_first_candidate_ends_the_search(self, tmp_path):
        """With the log start above its latest records, the first remote segment hides all later ones."""
        whole = tmp_path / "whole" / "transactions-0"
        shutil.copytree(GOLDEN / RELEASE / "transactions-0", whole)
        bases = bases_of(whole)
        remote = copy_segments(whole, tmp_path / "remote", 3)
        with ReadOnlyLog(whole, RELEASE) as full:
            target = full.segments[1].largest_timestamp
            record = full.fetch_offset_by_timestamp(target)
        delete_local(whole, 3)
        checkpoint = whole.parent / "log-start-offset-checkpoint"
        checkpoint.write_text(f"0\n1\ntransactions 0 {record.offset + 1}\n", "utf-8")
        with TieredLog(whole, str(remote), RELEASE) as log:
            visited = [visit.segment.base_offset for visit in log.path_to(target) if visit.start is not None]
            found = log.fetch_offset_by_timestamp(target)
        # The records of the following segment are late enough, and are ignored.
        assert visited == [bases[1], bases[3]]
        assert found.offset >= bases[3]

    def test_a_release_without_tiers(self, tiers):
        partition, stored, _ = tiers
        with pytest.raises(ToolError, match=r"3\.5\.2 has no tiered storage"):
            TieredLog(partition, str(stored), "3.5.2")

    def test_a_copy_that_is_still_local_is_searched_locally_from_4_0(self, tmp_path):
        whole = tmp_path / "whole" / "transactions-0"
        shutil.copytree(GOLDEN / RELEASE / "transactions-0", whole)
        remote = copy_segments(whole, tmp_path / "remote", 3)
        for release, tier in (("3.9.2", "remote"), ("4.0.0", "local")):
            with TieredLog(whole, str(remote), release) as log:
                (visit, *_) = (each for each in log.path_to(0) if each.start is not None)
                assert visit.segment.tier == tier
