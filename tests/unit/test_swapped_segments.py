"""Segments with the suffix .swap, which the next start takes over in place of others."""

import shutil
from pathlib import Path

import pytest

from kidx.repair import advice
from kidx.verify import verify_paths

GOLDEN = Path(__file__).parents[1] / "golden" / "3.9.2"
TOPIC = "transactions-0"


@pytest.fixture
def partition(tmp_path):
    """Make a log directory of a broker after a clean stop, with one partition."""
    directory = tmp_path / "data" / TOPIC
    shutil.copytree(GOLDEN / TOPIC, directory)
    (tmp_path / "data" / ".kafka_cleanshutdown").touch()
    return directory


def mark(partition, log, suffixes=(".log", ".index", ".timeindex", ".txnindex")):
    for suffix in suffixes:
        path = partition / f"{log.stem}{suffix}"
        if path.exists():
            path.rename(f"{path}.swap")


def faults(partition, release="3.9.2"):
    return [(each.file, each.verdict) for each in verify_paths([partition.parent], release=release).faults()]


@pytest.fixture
def first(partition):
    """Return the first log with aborted transactions."""
    return min(path.with_suffix(".log") for path in partition.glob("*.txnindex") if path.stat().st_size)


def test_the_last_segment_is_no_lost_end(partition):
    assert faults(partition) == []
    log = max(partition.glob("*.log"))
    end = int(log.stem) + 1
    (partition.parent / "recovery-point-offset-checkpoint").write_text(f"0\n1\n{TOPIC.replace('-', ' ')} {end}\n")
    mark(partition, log)
    assert faults(partition) == []


def test_aborted_transactions_without_their_index_would_become_visible(partition, first):
    mark(partition, first)
    assert faults(partition) == []
    (partition / f"{first.stem}.txnindex.swap").unlink()
    assert faults(partition) == [(f"{first.stem}.txnindex.swap", "missing")]
    assert faults(partition, "2.8.2") == [], "this release recovers the segment, and so rebuilds the file"


def test_an_index_of_the_replaced_segment_does_not_count(partition, first):
    for suffix in (".log", ".index", ".timeindex"):
        shutil.copy(first.with_suffix(suffix), partition / f"{first.stem}{suffix}.swap")
    assert faults(partition) == [(f"{first.stem}.txnindex.swap", "missing")]


def test_a_broken_index_has_its_own_remedy(partition, first):
    mark(partition, first)
    index = partition / f"{first.stem}.index.swap"
    content = index.read_bytes()
    index.write_bytes(content[:4] + b"\0\0\0\1" + content[8:])
    result = verify_paths([partition.parent], release="3.9.2")
    assert index.name in {each.file for each in result.faults()}
    assert "take .swap off the names of its files" in advice(result, [partition.parent]).reason
