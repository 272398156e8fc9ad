"""``kidx verify``, ``kidx lookup`` and ``kidx dump`` with a directory of remote storage."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
from remote_tier import bases_of, copy_segments, delete_local

GOLDEN = Path(__file__).parents[1] / "golden" / "4.3.1" / "transactions-0"


@pytest.fixture
def tiers(tmp_path):
    """Return a partition whose segments but the last are in remote storage alone."""
    partition = tmp_path / "data" / GOLDEN.name
    shutil.copytree(GOLDEN, partition)
    stored = copy_segments(partition, tmp_path / "remote", 3)
    delete_local(partition, 3)
    return partition, stored


def test_verify(kidx, tiers):
    partition, stored = tiers
    command = ["verify", str(partition.parent), "--remote", str(stored.parents[1]), "--kafka", "4.3.1"]
    sound = kidx(*command)
    assert sound.returncode == 0, sound.stdout + sound.stderr
    assert ".leader_epoch_checkpoint" in sound.stdout
    assert "in 2 partitions" in sound.stdout
    index = sorted(stored.glob("*.timeindex"))[1]
    index.write_bytes(index.read_bytes()[:-3])
    broken = kidx(*command)
    assert broken.returncode == 1
    assert index.name in broken.stdout
    assert "may I start the broker? yes" in broken.stdout.splitlines()[-1]
    wrong = kidx("verify", str(partition.parent), "--remote", str(partition))
    assert wrong.returncode == 2
    assert "has no remote segments" in wrong.stderr


def test_lookup(kidx, tiers):
    partition, stored = tiers
    command = ["lookup", str(partition), "--remote", str(stored), "--kafka", "4.3.1"]
    for offset in (0, bases_of(GOLDEN)[1]):
        found = kidx(*command, "--offset", str(offset), "--json", "--explain")
        assert found.returncode == 0, found.stderr
        document = json.loads(found.stdout)
        assert document["offset"] == offset
        assert document["explanation"]["segments"][-1]["tier"] == "remote"
    latest = kidx(*command, "--time", "latest-tiered", "--json")
    assert json.loads(latest.stdout)["offset"] == bases_of(GOLDEN)[-1] - 1
    explained = kidx(*command, "--timestamp", "1", "--explain")
    assert "remote: its largest timestamp" in explained.stdout


def test_dump(kidx, tiers):
    _, stored = tiers
    for suffix in ("log", "index", "timeindex", "txnindex"):
        remote = min(stored.glob(f"*.{suffix}"))
        local = GOLDEN / f"{remote.name[:20]}.{suffix}"
        lines = [kidx("dump", str(path), "--kafka", "4.3.1").stdout.splitlines()[1:] for path in (remote, local)]
        assert lines[0] == lines[1]
    whole = kidx("dump", str(stored.parent), "--kafka", "4.3.1")
    assert whole.returncode == 0, whole.stderr
    dumped = [path for path in stored.iterdir() if path.suffix != ".leader_epoch_checkpoint"]
    assert whole.stdout.count("Dumping ") == len(dumped)
