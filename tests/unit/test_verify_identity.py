"""Losses that KRaft's metadata or other files explain, and losses that nothing explains."""

import os
import shutil
import sys

import pytest
from startups import EPOCH_MS, RELEASE, log, partition_record, partitions, start, stop_cleanly, write_metadata

from kidx.cli import main
from kidx.discovery import discover
from kidx.verify import verify_paths
from kidx.verify.identity import identified

HIGH_WATERMARKS = "replication-offset-checkpoint"


def config_record(topic, name, value):
    """Return a ConfigRecord of a topic; each text has fewer than 127 characters."""
    texts = b"".join(bytes([len(text) + 1]) + text.encode() for text in (topic, name, value))
    return b"\1\4\0\2" + texts + b"\0"


filled = partitions(1)


@pytest.fixture
def data(filled, tmp_path):
    """Make a log directory of a broker that was killed."""
    target = stop_cleanly(filled, tmp_path / "data", {0: 12})
    (target / ".kafka_cleanshutdown").unlink()
    (target / HIGH_WATERMARKS).write_text("0\n1\norders 0 48\n")
    (target / "log-start-offset-checkpoint").write_text("0\n0\n")
    write_metadata(target, partition_record(0, [1]))
    return target


def drop(data, *bases):
    for base in bases:
        for path in (data / "orders-0").glob(f"{base:020d}.*"):
            path.unlink()


def findings(data, clause):
    return [each for each in verify_paths([data], release=RELEASE, processes=1).findings if each.clause == clause]


def exit_code(data, monkeypatch):
    monkeypatch.setattr(sys, "argv", ["kidx", "verify", str(data), "--kafka", RELEASE])
    with pytest.raises(SystemExit) as ended:
        main()
    return ended.value.code


def test_a_loss_without_another_explanation_is_in_the_verdict_and_in_the_exit_code(data, monkeypatch, capfd):
    (data / ".kafka_cleanshutdown").write_text("")
    shutil.rmtree(data / "__cluster_metadata-0")  # it has no index files
    assert exit_code(data, monkeypatch) == 0
    capfd.readouterr()
    drop(data, 24, 36)
    assert exit_code(data, monkeypatch) == 1
    said = capfd.readouterr().out
    assert "SOUND, RECORDS LOST in 1 partition: " in said
    assert "yes, but 1 partition lost records before" in said


@pytest.mark.parametrize("checkpoint", [HIGH_WATERMARKS, "recovery-point-offset-checkpoint"])
def test_a_checkpoint_that_is_older_than_its_topic_says_nothing_about_it(data, checkpoint):
    """The topic was deleted and created again, and the broker was killed before it wrote the checkpoint again."""
    for name in (HIGH_WATERMARKS, "recovery-point-offset-checkpoint"):
        (data / name).write_text(f"0\n1\norders 0 {300 if name == checkpoint else 12}\n")
    assert [each.path for each in start(data).lost] == [data / "orders-0"]
    os.utime(data / checkpoint, (EPOCH_MS / 1000 - 1, EPOCH_MS / 1000 - 1))
    assert start(data).lost == ()
    (said,) = findings(data, "LG-12")
    assert (said.file, said.verdict, "earlier topic of this name" in said.message) == (checkpoint, "sound", True)
    os.utime(data / checkpoint, (EPOCH_MS / 1000 + 1, EPOCH_MS / 1000 + 1))
    assert start(data).lost != ()


def test_segments_that_retention_deleted_are_no_loss(data):
    """The broker was killed before it wrote the checkpoint of epochs."""
    paths = sorted((data / "orders-0").glob(f"{0:020d}.*"))
    for path in paths:
        path.rename(f"{path}.deleted")
    assert start(data).lost == ()
    assert "deleted by retention" in findings(data, "LG-12")[0].message
    for path in paths:
        path.with_name(f"{path.name}.deleted").unlink()
    assert [each.path for each in start(data).lost] == [data / "orders-0"]
    record = config_record("orders", "remote.storage.enable", "true")
    write_metadata(data, partition_record(0, [1]), record)
    assert start(data).lost == ()
    assert "remote storage" in findings(data, "LG-12")[0].message


def test_a_gap_after_an_empty_segment_of_a_compacted_topic_is_no_loss(data):
    """The cleaner's checkpoint is empty, so that the metadata alone say that the topic is compacted."""
    for suffix in (".log", ".index", ".timeindex"):
        (data / "orders-0" / f"{0:020d}{suffix}").write_bytes(b"")
    (data / "cleaner-offset-checkpoint").write_text("")
    assert {each.verdict for each in findings(data, "LG-5")} == {"broken"}
    write_metadata(data, partition_record(0, [1]), config_record("orders", "cleanup.policy", "compact,delete"))
    assert {each.verdict for each in findings(data, "LG-5")} == {"sound"}
    (data / "cleaner-offset-checkpoint").write_text("0\n1\nothers 0 40\n")  # this one was never compacted
    assert {each.verdict for each in findings(data, "LG-5")} == {"broken"}
    assert (data / "orders-0" / log(12)).exists()


@pytest.mark.parametrize("parts", [1, 2])
def test_the_listing_of_a_fleet_has_what_the_metadata_explain(parts, data, monkeypatch):
    pa = pytest.importorskip("pyarrow")
    from kidx.spark.fleet import listing
    from kidx.spark.fleet.listing import Request, list_roots, partition_of, roots_of

    os.utime(data / HIGH_WATERMARKS, (EPOCH_MS / 1000 - 1, EPOCH_MS / 1000 - 1))
    write_metadata(data, partition_record(0, [1]), config_record("orders", "cleanup.policy", "compact"))
    monkeypatch.setattr(listing, "_PARTITIONS_AT_ONCE", 2 // parts)
    roots = roots_of([data], {})
    assert len(roots) == parts
    numbers = iter([pa.RecordBatch.from_pydict({"number": range(parts)})])
    rows = [row for batch in list_roots(roots, Request(), numbers) for row in batch.to_pylist()]
    assert len(rows) == 2
    listed = {row["place"]: partition_of(row, data / row["place"].rpartition("/")[2]) for row in rows}
    known = {str(each.directory): each for each in identified(discover([data])).partitions}
    assert listed == known
    orders = listed[str(data / "orders-0")]
    assert (orders.earlier, orders.high_watermark, orders.may_have_gaps) == (((HIGH_WATERMARKS, 48),), None, True)
