"""``kidx.read`` over both tiers: the records of the whole log, each once, in the order of their offsets."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from remote_tier import bases_of, copy_segments, delete_local

import kidx
from kidx.errors import ToolError

GOLDEN = Path(__file__).parents[1] / "golden" / "4.3.1"


@pytest.fixture(params=["transactions-0", "create-time-0", "restarted-0"])
def tiers(request, tmp_path):
    """Return a log whose older segments are only in remote storage, the remote storage, and the whole log."""
    whole, partition = (tmp_path / name / request.param for name in ("whole", "data"))
    for path in (whole, partition):
        shutil.copytree(GOLDEN / request.param, path)
    count = len(bases_of(whole)) - 1
    copy_segments(partition, tmp_path / "remote", count)
    delete_local(partition, count)
    return partition, tmp_path / "remote", whole


@pytest.mark.parametrize("isolation", ["read_uncommitted", "read_committed"])
def test_the_records_are_those_of_the_whole_log(tiers, isolation):
    partition, remote, whole = tiers
    expected = kidx.read(whole, isolation=isolation, headers=True).read_all()
    for path in (remote, f"local://{remote}"):
        found = kidx.read(partition, remote=path, isolation=isolation, headers=True).read_all()
        assert found.equals(expected)
    assert kidx.read(partition, isolation=isolation).read_all().num_rows < expected.num_rows


@pytest.mark.thorough
def test_offsets_and_times_reach_over_the_boundary(tiers):
    partition, remote, whole = tiers
    everything = kidx.read(whole, columns=["offset", "timestamp"]).read_all().to_pylist()
    boundary = bases_of(whole)[-1]
    for first in (0, 1, boundary - 1, boundary):
        for end in (boundary, boundary + 1, None):
            wanted = {"offsets": (first, end), "columns": ["offset", "timestamp"]}
            assert (
                kidx.read(partition, remote=remote, **wanted).read_all().equals(kidx.read(whole, **wanted).read_all())
            )
    for row in everything[:: max(1, len(everything) // 10)]:
        wanted = {"times": (row["timestamp"], None), "columns": ["offset", "timestamp"]}
        assert kidx.read(partition, remote=remote, **wanted).read_all().equals(kidx.read(whole, **wanted).read_all())


def test_an_offset_in_both_tiers_comes_once(tmp_path):
    whole = tmp_path / "data" / "transactions-0"
    shutil.copytree(GOLDEN / "transactions-0", whole)
    expected = kidx.read(whole).read_all()
    copy_segments(whole, tmp_path / "remote", 3)
    assert kidx.read(whole, remote=tmp_path / "remote").read_all().equals(expected)
    delete_local(whole, 2)
    assert kidx.read(whole, remote=tmp_path / "remote").read_all().equals(expected)


def test_segments_that_overlap_or_lie_within_others(tmp_path):
    """After an election, another broker copies segments that begin at other offsets."""
    whole = tmp_path / "data" / "create-time-0"
    shutil.copytree(GOLDEN / "create-time-0", whole)
    expected = kidx.read(whole).read_all()
    stored = copy_segments(whole, tmp_path / "remote", 2)
    delete_local(whole, 2)
    (stored / "README").touch()
    for path in list(stored.glob(f"{0:020d}-*")):  # a copy that failed: it ends with the first batches
        again = path.with_name(f"{path.name[:20]}-AAAAAAAAAAAAAAAAAAAAAA{path.suffix}")
        again.write_bytes(path.read_bytes()[:400] if path.suffix == ".log" else path.read_bytes()[:0])
        if path.suffix == ".leader_epoch_checkpoint":
            shutil.copyfile(path, again)
    assert kidx.read(whole, remote=tmp_path / "remote").read_all().equals(expected)


def test_index_entries_and_segments_of_both_tiers(tiers):
    partition, remote, whole = tiers
    for content in ("offset_index", "time_index", "txn_index", "batches"):
        columns = [name for name in kidx.read(whole, content).schema.names if name not in ("path", "segment")]
        found, expected = (
            kidx.read(path, content, columns=columns, **options).read_all()
            for path, options in ((partition, {"remote": remote}), (whole, {}))
        )
        assert found.equals(expected), content
    paths = kidx.read(partition, "segments", remote=remote, columns=["path"]).read_all()["path"].to_pylist()
    assert len(paths) == len(bases_of(whole))
    assert sum(path.startswith(str(remote)) for path in paths) == len(paths) - 1


def test_a_directory_that_is_not_remote_storage_is_rejected(tiers, tmp_path):
    partition, _, _ = tiers
    with pytest.raises(ToolError, match="has no remote segments"):
        kidx.read(partition, remote=tmp_path / "data").read_all()
