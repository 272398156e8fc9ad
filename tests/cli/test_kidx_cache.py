"""``kidx verify`` and ``kidx repair`` where a log directory has a cache of remote index files."""

from __future__ import annotations

import json
import shutil
import struct
from pathlib import Path

import pytest

from kidx.remote import RemoteIndexCache

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
