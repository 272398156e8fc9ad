"""Segments that a start deletes or swaps in."""

import json
import shutil
import sys
from pathlib import Path

import pytest
from startups import EPOCH_MS, HOUR_MS, write_offsets

from kidx.cli import main
from kidx.dialect import DIALECTS
from kidx.log import LogConfig, UnifiedLog
from kidx.records import build_batch
from kidx.repair import advice
from kidx.startup.fates import fates
from kidx.startup.remedies import NO_TOPIC_SETTINGS, NOT_CONFIGURED
from kidx.verify import verify_paths

# -- Fates of segments in small logs; tests/broker/test_segment_fates.py compares them with real brokers -----------


@pytest.fixture
def data(tmp_path):
    """Make a log of five segments, each with one record; the fourth is older than the third."""
    with UnifiedLog(tmp_path / "data" / "t-0", LogConfig(), dialect="4.3.1", clock=lambda: EPOCH_MS) as log:
        for number, hours in enumerate((0, 1, 5, 2, 6)):
            if number:
                log.roll()
            batch = build_batch(
                [(EPOCH_MS + hours * HOUR_MS, b"k", b"v" * 100)], base_offset=number, partition_leader_epoch=0
            )
            log.append_as_follower(batch)
    return tmp_path / "data"


def fates_of(data, hours, **properties):
    settings = {name.replace("_", "."): str(value) for name, value in properties.items()}
    (found,) = fates([data / "t-0"], DIALECTS["4.3.1"], lambda: EPOCH_MS + hours * HOUR_MS, settings)
    return found


def test_each_segment_has_the_time_and_the_bytes_that_are_left(data):
    size = (data / "t-0" / f"{0:020d}.log").stat().st_size
    found = fates_of(data, 7, log_retention_ms=5 * HOUR_MS, log_retention_bytes=4 * size)
    assert [each.deleted_by for each in found.segments] == ["size", "time", None, None, None]
    kept = found.segments[2:]
    assert [each.expires for each in kept] == [EPOCH_MS + hours * HOUR_MS for hours in (10, 10, 11)]
    assert [each.after_bytes for each in kept] == [2 * size, 3 * size, 4 * size]
    assert "because an older segment has 1700018000000" in kept[1].why[0]
    assert kept[2].why[0] == "it is the active segment"
    assert found.limits == (0, 5, 5)


def test_what_is_below_the_log_start_goes_and_nothing_else_without_limits(data):
    write_offsets(data / "log-start-offset-checkpoint", {})
    (data / "log-start-offset-checkpoint").write_text("0\n1\nt 0 2\n")
    found = fates_of(data, 10_000, log_retention_ms=-1)
    assert [each.deleted_by for each in found.segments] == ["start", "start", None, None, None]
    assert found.segments[2].why == ("retention has no limit",)


def test_a_compacted_topic_has_its_dirty_range(data):
    (data / "cleaner-offset-checkpoint").write_text("0\n1\nt 0 3\n")
    found = fates_of(data, 10_000, log_cleanup_policy="compact")
    assert not any(each.deleted_by for each in found.segments)
    assert found.compaction == "compacted up to offset 3: offsets 3 to 5 are dirty"
    assert "the topic is compacted" in found.segments[0].why[0]


def test_assumed_settings_are_named(data):
    """The topic's own settings may be in a directory that was not given, so a default is no fact."""
    assert fates_of(data, 7).not_checked == (NO_TOPIC_SETTINGS,)
    (found,) = fates([data], DIALECTS["4.3.1"], lambda: EPOCH_MS)
    assert found.not_checked == (NO_TOPIC_SETTINGS, NOT_CONFIGURED)


def test_the_command_prints_a_line_or_an_object_per_segment(data, capfd, monkeypatch):
    for options in ([], ["--json"]):
        monkeypatch.setattr(sys, "argv", ["kidx", "explain", str(data), "--kafka", "4.3.1", *options])
        with pytest.raises(SystemExit) as left:
            main()
        assert left.value.code == 0
        out = capfd.readouterr().out
        if options:
            assert [each["deleted_by"] for each in json.loads(out)["segments"]] == ["time"] * 5
        else:
            assert out.count("goes at the next check: it is older than retention.ms") == 5
    monkeypatch.setattr(sys, "argv", ["kidx", "explain", str(data / "nothing")])
    with pytest.raises(SystemExit) as left:
        main()
    assert left.value.code == 2


# -- Segments with the suffix .swap, which the next start takes over in place of others ----------------------------


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
