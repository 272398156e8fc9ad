"""Losses of a start: what the batches alone show before it, compared with the simulated log after it."""

import shutil
import subprocess
import sys

import pytest
from startups import (
    ELSEWHERE,
    EPOCH_MS,
    flip,
    log,
    partition_record,
    start,
    stopped_broker,
    write_metadata,
    write_offsets,
)

from kidx.cli import main
from kidx.layout import RECORD_BATCH
from kidx.records import build_batch, file_batches
from kidx.records.builder import write_checksum
from kidx.startup import PartitionStart, Start
from kidx.startup.gravity import is_failure
from kidx.startup.readable import LoggedRecords, Loss, Piece
from kidx.verify import Verification

RECOVERY = "recovery-point-offset-checkpoint"


filled, data = stopped_broker(1)


def kill(data, recovery_point=0):
    (data / ".kafka_cleanshutdown").unlink()
    write_offsets(data / RECOVERY, {0: recovery_point})


def batch(first, values):
    stamped = [(EPOCH_MS + number, None, value) for number, value in enumerate(values)]
    return build_batch(stamped, base_offset=first, partition_leader_epoch=0)


def append(path, data):
    with path.open("ab") as file:
        file.write(data)


def lost(data):
    (found,) = start(data).partitions
    return found.lost


# -- before and after, by different rules ----------------------------------------------------------------------------


@pytest.mark.thorough
@pytest.mark.parametrize(("first", "end", "hidden"), [(0, 7, 41), (38, 45, 3)])
def test_an_earlier_batch_at_the_tail_hides_the_records_after_its_offsets(data, first, end, hidden):
    """The start reads the end from the last batch; offset 0 is of another partition, 38 of this segment."""
    append(data / "orders-0" / log(36), batch(first, [b"foreign"] * 7))
    found = start(data)
    (each,) = found.partitions
    assert (found.answer, each.outcome, each.end, each.changes) == ("no", "cut", (48, end), ())
    assert each.lost == Loss(hidden, hidden, end, 47)
    assert f"would lose {hidden} readable records, {each.directory} (end 48 → {end})" in found.line
    assert each.to_json()["ends"] == {"readable": 48, "served": end, "flushed": 48}
    assert each.to_json()["lost"] == {"records": hidden, "offsets": hidden, "first_offset": end, "last_offset": 47}


def test_a_batch_of_another_partition_is_no_record_of_this_log(data):
    """No start changes that nobody finds it under its offset."""
    path = data / "orders-0" / log(36)
    content = bytearray(path.read_bytes())
    at = len(content) // 6
    content[at : at + 8] = (5000).to_bytes(8, "big")  # no checksum covers it
    path.write_bytes(content)
    found = start(data)
    assert [(each.outcome, each.lost) for each in found.partitions] == [("kept", Loss())]
    assert found.partitions[0].end == (48, 48)


def test_a_log_start_that_moves_back_is_no_loss(data):
    """A kill between the deletions and the renames of a compaction: the start completes the renames."""
    for suffix in ("log", "index", "timeindex"):
        path = data / "orders-0" / f"{0:020d}.{suffix}"
        path.rename(f"{path}.swap")
    kill(data, 36)
    found = start(data)
    assert (found.answer, found.line) == ("yes", f"may I start the broker? yes{ELSEWHERE}")
    assert [(each.outcome, each.start) for each in found.partitions] == [("kept", (12, 0))]


def test_the_only_copy_of_a_segment_that_a_start_deletes_is_renamed_first(data):
    """An earlier .cleaned file makes the start take the .swap file for the rest of an unfinished compaction."""
    topic = data / "orders-0"
    for suffix in ("log", "index", "timeindex"):
        path = topic / f"{24:020d}.{suffix}"
        path.rename(f"{path}.swap")
    (topic / f"{12:020d}.index.cleaned").touch()
    found = start(data)
    (each,) = found.partitions
    assert each.reason == f"the start deletes {log(24)}.swap, though no other file has all its records"
    assert "12 readable records would be deleted, of offsets 24 to 35" in str(each)
    command = f"mv -n {topic / log(24)}.swap {topic / log(24)}"
    assert f"{command}  # no readable record is lost" in each.remedy
    subprocess.run(["sh", "-c", command], check=True)
    assert start(data).line.startswith("may I start the broker? yes")


@pytest.mark.thorough
def test_records_that_a_compaction_removed_are_not_lost_but_those_behind_a_torn_one_are(data):
    topic = data / "orders-0"
    content = (topic / log(0)).read_bytes()
    swap = topic / f"{log(0)}.swap"
    swap.write_bytes(content[: len(content) // 6 * 4])
    kill(data, 36)
    assert not any(each.lost for each in start(data).partitions)
    append(swap, content[: len(content) // 12])  # torn: it is not what the compaction wrote
    assert lost(data) == Loss(4, 4, 8, 11)


def test_a_shorter_copy_that_replaces_a_segment_loses_its_records_if_the_topic_is_not_compacted(data):
    topic = data / "orders-0"
    content = (topic / log(12)).read_bytes()
    swap = topic / f"{log(12)}.swap"
    swap.write_bytes(content[: len(content) // 6 * 4])
    write_metadata(data, partition_record(0, [1]))
    found = start(data)
    (each,) = (each for each in found.partitions if each.directory == topic)
    assert (found.answer, each.lost) == ("no", Loss(4, 4, 20, 23))
    assert f"mv -n {swap} " in each.instead
    assert "# no readable record is lost" in each.instead
    (data / "cleaner-offset-checkpoint").write_text("0\n1\norders 0 36\n")
    assert not any(each.lost for each in start(data).partitions)
    said = "\n".join(start(data).lines())
    assert "and 4 readable records of them will be gone: if the topic is compacted, the compaction removed them" in said
    assert "no other batch is lost" in said


def test_a_batch_that_counts_records_which_it_does_not_have_has_none_to_lose(data):
    path = data / "orders-0" / log(36)
    content = bytearray(path.read_bytes())
    last = 5 * (len(content) // 6)
    RECORD_BATCH.set(content, "record_count", 130, last)
    write_checksum(content, last)
    path.write_bytes(content)
    assert LoggedRecords(path.parent).lost([], 0, 0, 0) == Loss(46, 48, 0, 47)


@pytest.mark.thorough
def test_a_loss_without_another_end_is_told_with_its_offsets(data):
    flip(data / "orders-0" / log(12), 700)
    (data / "orders-0" / f"{12:020d}.index").unlink()
    found = start(data)
    assert f"would lose 6 readable records, {data / 'orders-0'} (offsets 16 to 23): copy" in found.line
    assert "()" not in found.line


@pytest.mark.thorough
def test_three_ends_have_three_names(data):
    """Batches after a header of zeros are found through the index, but not by reading on."""
    path = data / "orders-0" / log(36)
    content = bytearray(path.read_bytes())
    size = len(content) // 6
    content[3 * size : 3 * size + 61] = bytes(61)
    path.write_bytes(content)
    found = start(data)
    assert [(each.outcome, each.end) for each in found.partitions] == [("kept", (48, 48))]
    assert found.partitions[0].to_json()["ends"] == {"readable": 42, "served": 48, "flushed": 48}
    kill(data, 36)
    (each,) = start(data).partitions
    assert (each.end, each.lost) == ((48, 42), Loss(4, 4, 44, 47))
    assert each.to_json()["ends"] == {"readable": 42, "served": 42, "flushed": 36}


# -- segments that a start splits ------------------------------------------------------------------------------------

FAR = 1 << 31


def spread(path, number):
    """Raise the offsets of all batches from one on; no checksum covers them."""
    content = bytearray(path.read_bytes())
    for batch in list(file_batches(path))[number:]:
        content[batch.position : batch.position + 8] = (batch.base_offset + FAR).to_bytes(8, "big")
    path.write_bytes(content)


@pytest.mark.thorough
@pytest.mark.parametrize("release", ["2.8.2", "3.9.2", "4.3.1"])
@pytest.mark.parametrize("without_index", [False, True])
def test_a_segment_whose_offsets_are_too_far_apart_is_split_and_keeps_its_records(data, release, without_index):
    path = data / "orders-0" / log(36)
    spread(path, 4)
    if without_index:
        path.with_suffix(".index").unlink()
    else:
        kill(data, 36)
    found = start(data, release=release)
    (each,) = found.partitions
    assert (each.outcome, each.lost, each.end) == ("kept", Loss(), (FAR + 48, FAR + 48))
    assert f"the offsets of {path.name} are more than 2147483647 apart: the start splits it" in "\n".join(found.lines())
    assert "would" not in found.line


def test_a_segment_that_begins_too_far_from_its_name_is_split_without_an_end(data):
    path = data / "orders-0" / log(36)
    spread(path, 0)
    path.with_suffix(".index").unlink()
    found = start(data)
    assert "is split again and again, so that loading never ends" in found.line
    kill(data, 36)
    path.with_suffix(".index").write_bytes(b"")
    assert start(data).partitions[0].end == (FAR + 48, FAR + 48)


def test_a_segment_with_a_torn_end_cannot_be_split(data):
    path = data / "orders-0" / log(36)
    spread(path, 4)
    append(path, b"torn" * 10)
    kill(data, 36)
    assert "has no batch at" in start(data).line


def test_what_a_split_has_replaced_is_still_there_until_the_start(data):
    """A power failure lost the first piece: the start deletes the only file with its records."""
    path = data / "orders-0" / log(36)
    spread(path, 4)
    batches = list(file_batches(path))
    (data / "orders-0" / log(FAR + 44)).write_bytes(b"".join(each.to_bytes() for each in batches[4:]))
    path.rename(f"{path}.deleted")
    kill(data, 36)
    found = start(data)
    (each,) = found.partitions
    assert (each.outcome, each.lost) == ("cut", Loss(8, 8, 36, 43))
    said = "\n".join(found.lines())
    assert f"mv -n {path}.deleted {path}  # no readable record is lost" in said


# -- what a start rebuilds -------------------------------------------------------------------------------------------


def test_an_empty_index_that_a_start_makes_is_not_missing_any_more(data, tmp_path):
    """A log without an entry has an empty index."""
    small = tmp_path / "small"
    shutil.copytree(data, small)
    for path in (small / "orders-0").glob("*.log"):
        if path.name != log(0):
            for suffix in (".log", ".index", ".timeindex"):
                path.with_suffix(suffix).unlink()
    path = small / "orders-0" / log(0)
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 6])
    path.with_suffix(".index").unlink()
    path.with_suffix(".timeindex").write_bytes(b"")
    write_offsets(small / RECOVERY, {0: 2})
    found = start(small)
    assert path.with_suffix(".index") in found.rebuilt
    assert found.faults == 0


@pytest.mark.parametrize(("killed", "rebuilt"), [(None, False), (0, True), (12, False)])
def test_leader_epochs_are_rebuilt_if_all_segments_with_them_are_recovered(data, killed, rebuilt):
    path = data / "orders-0" / "leader-epoch-checkpoint"
    path.unlink()
    if killed is not None:
        kill(data, killed)
    found = start(data)
    assert ((path in found.rebuilt), found.faults) == (rebuilt, 0 if rebuilt else 1)


# -- checkpoints that are empty --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "effect"),
    [
        (RECOVERY, "the broker recovers every log of the directory from its beginning, if it was not stopped cleanly"),
        ("log-start-offset-checkpoint", "that deleted records are shown again, orders-0 from offset 0 and not 3"),
    ],
)
def test_an_empty_checkpoint_has_the_effect_of_a_missing_one(data, name, effect):
    kill(data)
    (data / "orders-0" / "leader-epoch-checkpoint").write_text("0\n1\n0 3\n")
    write_offsets(data / "log-start-offset-checkpoint", {0: 3})
    assert not any(effect in line for line in start(data).lines())
    (data / name).write_text("")
    assert any(f"{name}: it is empty: " in line and effect in line for line in start(data).lines())
    (data / name).unlink()
    assert any(f"{name}: it is missing: " in line and effect in line for line in start(data).lines())


def test_empty_checkpoints_of_a_new_log_directory_are_not_reported(data):
    (data / RECOVERY).write_text("")
    (data / "log-start-offset-checkpoint").write_text("")
    assert start(data).missing == (start(data).missing[-1],)  # KRaft's own log is elsewhere


# -- the records of a log --------------------------------------------------------------------------------------------


def test_what_is_not_kept_is_counted_once_and_in_the_range_of_its_segment(data):
    topic = data / "orders-0"
    append(topic / log(0), batch(10, [b"again", b"again", b"too far"]))  # offset 12 is of the next segment
    logged = LoggedRecords(topic)
    kept = [Piece(base, topic / log(base), size) for base, size in logged.sizes.items()]
    assert logged.lost(kept, 0, 0, 48) == Loss()
    assert logged.lost([], 0, 0, 48) == Loss(48, 48, 0, 47)
    assert logged.lost(kept[1:], 0, 12, 48) == Loss(12, 12, 0, 11)
    assert logged.lost(kept[1:], 5, 12, 48) == Loss(7, 7, 5, 11)
    assert logged.lost(kept[1:], 99, 12, 48) == Loss(12, 12, 0, 11)
    assert logged.lost(kept[:3], 0, 0, 40) == Loss(12, 12, 36, 47)
    assert logged.lost([*kept[:3], Piece(36, topic / log(36), kept[3].size - 1)], 0, 0, 48) == Loss(2, 2, 46, 47)


@pytest.mark.parametrize("delta", [-5, -1, 0])
def test_a_batch_whose_last_offset_is_too_small_has_all_its_records(data, delta):
    topic = data / "orders-0"
    path = topic / log(36)
    content = bytearray(path.read_bytes())
    size = len(content) // 6
    RECORD_BATCH.set(content, "last_offset_delta", delta, 3 * size)
    write_checksum(content, 3 * size, 4 * size)
    path.write_bytes(content)
    logged = LoggedRecords(topic)
    assert logged.lost([], 0, 0, 48) == Loss(48, 48, 0, 47)
    kept = [Piece(base, topic / log(base), size) for base, size in logged.sizes.items() if base < 36]
    assert logged.lost(kept, 0, 0, 36) == Loss(12, 12, 36, 47)


@pytest.mark.parametrize("at", [16, 100])  # the format, which no checksum covers; a record
def test_a_batch_that_fails_its_checksum_has_offsets_but_no_readable_record(data, at):
    topic = data / "orders-0"
    flip(topic / log(0), at)
    logged = LoggedRecords(topic)
    kept = [Piece(base, topic / log(base), size) for base, size in logged.sizes.items() if base]
    assert logged.lost(kept, 0, 12, 48) == Loss(10, 12, 0, 11)


def test_a_consumer_does_not_arrive_at_records_after_a_hole(data):
    path = data / "orders-0" / log(12)
    content = bytearray(path.read_bytes())
    size = len(content) // 6
    content[size : 2 * size] = bytes(size)
    path.write_bytes(content)
    logged = LoggedRecords(data / "orders-0")
    assert (logged.records, logged.reached) == (46, 38)


# -- the end in a lookup ---------------------------------------------------------------------------------------------


def test_lookups_see_the_end_that_a_start_recovers(data, capfd, monkeypatch):
    """A kill tore the last batch, and an index entry that points at it hides all records of the segment."""
    path = data / "orders-0" / log(36)
    index = path.with_suffix(".index")
    size = path.stat().st_size // 6
    entry = (11).to_bytes(4, "big") + (5 * size).to_bytes(4, "big")
    index.write_bytes(index.read_bytes()[:-8] + entry)
    path.write_bytes(path.read_bytes()[:-30])

    def latest():
        monkeypatch.setattr(sys, "argv", ["kidx", "lookup", str(data / "orders-0"), "--time", "latest"])
        with pytest.raises(SystemExit):
            main()
        return capfd.readouterr()

    assert latest().out.startswith("-1: offset 36,")  # a start after a clean stop trusts the index
    kill(data, 36)
    found = latest()
    assert found.out.startswith("-1: offset 46,")
    assert "46 is the end of" in found.err
    assert [each.end for each in start(data).partitions] == [(46, 46)]


@pytest.mark.parametrize(
    ("watermark", "replicas", "is_lost"),
    [(48, [1, 2], False), (49, [1, 2], True), (None, [1, 2], True), (48, [1], True)],
)
def test_a_log_that_a_leader_had_truncated_before_a_kill_has_lost_nothing(data, watermark, replicas, is_lost):
    """The recovery point is written after the truncation; up to then it is past the end of the log."""
    kill(data, 60)
    write_offsets(data / "replication-offset-checkpoint", {} if watermark is None else {0: watermark})
    write_metadata(data, partition_record(0, replicas))
    assert [each.path.name for each in start(data).lost] == ["orders-0"] * is_lost


def test_an_unknown_effect_is_not_green(tmp_path):
    unknown = Start("4.3.1", partitions=(PartitionStart(tmp_path / "orders-0", "unknown", "it is too large"),))
    assert unknown.answer == "unknown"
    assert is_failure(Verification(), unknown, "start")
    assert not is_failure(Verification(), Start("4.3.1"), "remark")
