"""The commands demo and cache, and remote partitions."""

from __future__ import annotations

import json
import re
import shutil
import struct
from pathlib import Path

import pytest
from remote_tier import bases_of, copy_segments, delete_local

from kidx.commands.demo import RELEASE, write_demo
from kidx.remote import RemoteIndexCache
from kidx.startup import predict
from kidx.verify import verify_paths

# -- ``kidx demo``: its commands, and its log directory ------------------------------------------------------------


def test_each_step_does_what_it_says(in_process, tmp_path):
    """A time index is found broken, a lookup in it is wrong, and after a repair of a copy both are right."""
    directory = tmp_path / "new"
    done = in_process("kidx", "demo", directory, work=tmp_path)
    assert (done.returncode, done.stderr) == (0, "")
    _, found, wrong, _, repaired, verified, right = done.stdout.split("\n# ")
    assert "\nBROKEN: 1 of 14 files" in found
    assert "next: kidx repair data/orders-0 --kafka" in found
    assert "answer        offset 80, timestamp 1767610800000 (2026-01-05T11:00:00Z)" in wrong
    assert "\nREPAIRED: 1 index file rebuilt and verified" in repaired
    assert "\nEXACT: 14 files" in verified
    assert "\n1767607200000: offset 40, timestamp 1767607200000" in right
    assert sorted(path.name for path in directory.iterdir()) == ["copy", "data"]
    again = in_process("kidx", "demo", directory, work=tmp_path)
    assert (again.returncode, again.stderr) == (2, f"kidx: {directory} exists already; choose a new directory\n")


def test_its_log_directory_has_one_fault_and_is_else_that_of_a_broker(tmp_path):
    write_demo(tmp_path)
    found = verify_paths([tmp_path], release=RELEASE, processes=1)
    assert [*found.faulty_paths] == [str(tmp_path / "orders-0" / f"{40:020}.timeindex")]
    start = predict([tmp_path], found, RELEASE)
    assert start.answer == "yes, but"
    assert not [line for line in start.lines() if re.search("missing|stray", line)]


# -- ``kidx verify`` and ``kidx repair`` where a log directory has a cache of remote index files -------------------


GOLDEN = Path(__file__).parents[1] / "golden" / "4.3.1"
ID = "b-_UbGhWQSyTrDfNnQxAAw"
SOUND = f"100_{ID}"
DAMAGED = "7_AAAAAAAAAAAAAAAAAAAAbA"


@pytest.fixture
def disk(tmp_path):
    """Make a log directory of a broker with tiers, with two cached segments, and a leftover file."""
    shutil.copytree(GOLDEN / "create-time-0", tmp_path / "disk" / "create-time-0")
    (tmp_path / "disk" / ".lock").touch()
    cache = tmp_path / "disk" / "remote-log-index-cache"
    cache.mkdir()
    for prefix, start in ((SOUND, 100), (DAMAGED, 7)):
        (cache / f"{prefix}.index").write_bytes(struct.pack(">2i", 5, 61))
        (cache / f"{prefix}.timeindex").write_bytes(struct.pack(">qi", 1000, 5))
        (cache / f"{prefix}.txnindex").write_bytes(struct.pack(">h4q", 0, 1, start, start + 1, start + 2))
    (cache / f"{DAMAGED}.timeindex").write_bytes(struct.pack(">qiqi", 1000, 5, 0, 0))
    (cache / "README").touch()
    return tmp_path / "disk"


def names(disk):
    return sorted(path.name for path in (disk / "remote-log-index-cache").iterdir())


def test_verify_reports_that_the_broker_does_not_start_and_the_remedy(disk, kidx):
    before = names(disk)
    done = kidx("verify", disk, "--kafka", "4.3.1")
    assert done.returncode == 1
    cache = disk / "remote-log-index-cache"
    assert f"start: {cache / 'README'}: is not a file of the cache" in done.stdout
    assert f"start: {cache / DAMAGED}.timeindex: is corrupt: its last timestamp is 0" in done.stdout
    last = done.stdout.splitlines()[-1]
    assert last.startswith("may I start the broker? no: a broker of Kafka 4.3.1 would not start:")
    assert names(disk) == before
    told = json.loads(kidx("verify", disk, "--kafka", "4.3.1", "--json").stdout)
    assert [Path(each["path"]).name for each in told["start"]["would_not_start"]] == ["README", f"{DAMAGED}.timeindex"]


def test_repair_deletes_copies_and_nothing_else(disk, kidx):
    before = names(disk)
    tried = kidx("repair", disk, "--kafka", "4.3.1", "--dry-run")
    assert tried.returncode == 1
    assert f"would be deleted    {disk}/remote-log-index-cache/{DAMAGED}.timeindex" in tried.stdout
    assert names(disk) == before
    done = kidx("repair", disk, "--kafka", "4.3.1")
    assert done.returncode == 1
    assert f"remains    {disk}/remote-log-index-cache/README: is not a file of the cache" in done.stdout
    assert names(disk) == sorted(set(before) - {f"{DAMAGED}.timeindex"})
    (disk / "remote-log-index-cache" / "README").unlink()
    assert kidx("repair", disk, "--kafka", "4.3.1").returncode == 0
    assert kidx("verify", disk, "--kafka", "4.3.1").stdout.splitlines()[-1] == "may I start the broker? yes"
    cache = RemoteIndexCache(disk, None, max_size=1 << 20, dialect="4.3.1")
    assert [entry.offset_index.base_offset for entry in cache.entries.values()] == [100]


def test_an_older_release_has_no_such_cache(disk, kidx):
    """It takes the directory for a partition with a wrong name."""
    done = kidx("repair", disk / "create-time-0", "--kafka", "3.5.2")
    assert "README" not in done.stdout


# -- ``kidx verify``, ``kidx lookup`` and ``kidx dump`` with a directory of remote storage -------------------------


TRANSACTIONS = Path(__file__).parents[1] / "golden" / "4.3.1" / "transactions-0"


@pytest.fixture
def tiers(tmp_path):
    """Return a partition whose segments but the last are in remote storage alone."""
    partition = tmp_path / "data" / TRANSACTIONS.name
    shutil.copytree(TRANSACTIONS, partition)
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
    for offset in (0, bases_of(TRANSACTIONS)[1]):
        found = kidx(*command, "--offset", str(offset), "--json", "--explain")
        assert found.returncode == 0, found.stderr
        document = json.loads(found.stdout)
        assert document["offset"] == offset
        assert document["explanation"]["segments"][-1]["tier"] == "remote"
    latest = kidx(*command, "--time", "latest-tiered", "--json")
    assert json.loads(latest.stdout)["offset"] == bases_of(TRANSACTIONS)[-1] - 1
    explained = kidx(*command, "--timestamp", "1", "--explain")
    assert "remote: its largest timestamp" in explained.stdout


def test_dump(kidx, tiers):
    _, stored = tiers
    for suffix in ("log", "index", "timeindex", "txnindex"):
        remote = min(stored.glob(f"*.{suffix}"))
        local = TRANSACTIONS / f"{remote.name[:20]}.{suffix}"
        lines = [kidx("dump", str(path), "--kafka", "4.3.1").stdout.splitlines()[1:] for path in (remote, local)]
        assert lines[0] == lines[1]
    whole = kidx("dump", str(stored.parent), "--kafka", "4.3.1")
    assert whole.returncode == 0, whole.stderr
    dumped = [path for path in stored.iterdir() if path.suffix != ".leader_epoch_checkpoint"]
    assert whole.stdout.count("Dumping ") == len(dumped)
