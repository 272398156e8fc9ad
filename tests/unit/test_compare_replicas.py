"""Two directories of one partition: the same records, the first difference, the favoured side, the truncation."""

import json
import shutil
import sys

import pytest
from startups import EPOCH_MS

from kidx.cli import main
from kidx.errors import ToolError
from kidx.log import LogConfig, UnifiedLog
from kidx.records import build_batch
from kidx.verify.replicas import compare_replicas


def replica(directory, epochs, *, values=(), start=0, roll=3):
    """Write a replica with a batch of two records for each leader epoch; ``values`` are other contents by number."""
    with UnifiedLog(directory / "t-0", LogConfig(), dialect="4.3.1", clock=lambda: EPOCH_MS) as log:
        for number, epoch in enumerate(epochs):
            if number and number % roll == 0:
                log.roll()
            value = dict(values).get(number, b"v%d" % number)
            records = [(EPOCH_MS, b"k%d" % each, value) for each in range(2)]
            log.append_as_follower(build_batch(records, base_offset=2 * number, partition_leader_epoch=epoch))
    for path in list((directory / "t-0").glob("*.log"))[:]:
        if int(path.stem) < start:
            for each in directory.glob(f"t-0/{path.stem}.*"):
                each.unlink()
    return directory / "t-0"


def test_the_same_records_in_other_segments_are_the_same(tmp_path):
    one = replica(tmp_path / "one", [0] * 9)
    two = replica(tmp_path / "two", [0] * 9, roll=2, start=4)
    found = compare_replicas(one, two)
    assert (found.first, found.compared, found.only, found.favoured) == (None, 7, 0, None)
    assert found.lines()[-1] == "7 batches are the same, up to offset 18"


def test_a_batch_that_fails_its_checksum_is_not_the_same(tmp_path):
    one, two = replica(tmp_path / "one", [0] * 9), replica(tmp_path / "two", [0] * 9)
    path = min(two.glob("*.log"))
    content = bytearray(path.read_bytes())
    content[-1] ^= 1  # in the last batch of the first segment
    path.write_bytes(content)
    found = compare_replicas(one, two)
    assert (found.exit_code, found.first, found.compared) == (1, 4, 2)
    assert ", which it fails" in found.batches[1]


def test_a_shorter_replica_is_behind_and_the_longer_one_favoured(tmp_path):
    one, two = replica(tmp_path / "one", [0] * 9), replica(tmp_path / "two", [0] * 6)
    found = compare_replicas(one, two)
    assert (found.first, found.favoured.directory) == (None, one)
    assert (found.truncation(found.one), found.truncation(found.two)) == (12, 12)
    assert f"if {two} leads, {one} is truncated from 18 to 12" in found.lines()


@pytest.mark.parametrize(
    ("mine", "yours", "favoured", "truncated"),
    [
        # One led in epoch 1 and wrote batches 3 and 4; two led in epoch 2 and wrote batch 3.
        ([0, 0, 0, 1, 1], [0, 0, 0, 2], "two", (6, 6)),
        # Both know epoch 1, which ended earlier for two (KIP-279): only what follows it leaves.
        ([0, 0, 1, 1, 1], [0, 0, 1, 2], "two", (6, 6)),
    ],
)
def test_diverged_replicas_have_their_first_difference_and_the_truncation(tmp_path, mine, yours, favoured, truncated):
    one = replica(tmp_path / "one", mine)
    two = replica(tmp_path / "two", yours, values={3: b"other"})
    found = compare_replicas(one, two)
    assert (found.first, found.compared) == (6, 3)
    assert found.favoured.directory == (one if favoured == "one" else two)
    assert (found.truncation(found.two), found.truncation(found.one)) == truncated
    assert "leader epoch 2" in found.batches[1]


def test_a_lost_segment_is_a_difference_and_a_compacted_one_is_not(tmp_path):
    one = replica(tmp_path / "one", [0] * 9)
    lost = tmp_path / "lost" / "t-0"
    shutil.copytree(one, lost)
    for path in lost.glob(f"{6:020d}.*"):
        path.unlink()
    found = compare_replicas(one, lost)
    assert (found.first, found.batches[1]) == (6, "no batch before offset 12")
    log = one / f"{6:020d}.log"
    first = log.read_bytes()
    batch = build_batch([(EPOCH_MS, b"k1", b"v3")], base_offset=6, offsets=[7], last_offset=7, partition_leader_epoch=0)
    log.write_bytes(batch + first[len(first) // 3 :])
    found = compare_replicas(one, lost)
    assert (found.first, found.only, found.one.is_cleaned) == (None, 3, True)
    assert "which compaction explains" in found.lines()[2]


def compact(directory):
    """Remove a record of the second batch, as a cleaner does: the batch keeps its offsets."""
    path = directory / f"{0:020d}.log"
    data = path.read_bytes()
    size = len(data) // 3
    batch = build_batch([(EPOCH_MS, b"k1", b"v1")], base_offset=2, offsets=[3], last_offset=3, partition_leader_epoch=0)
    path.write_bytes(data[:size] + batch + data[2 * size :])


def test_batches_that_overlap_are_a_difference_in_compacted_replicas_too(tmp_path):
    """No cleaner changes the first or the last offset of a batch."""
    one, two = replica(tmp_path / "one", [0] * 9), replica(tmp_path / "two", [0] * 9)
    compact(one)
    assert compare_replicas(one, two).exit_code == 0
    log = two / f"{12:020d}.log"
    data = log.read_bytes()
    size = len(data) // 3
    shifted = build_batch([(EPOCH_MS, b"k", b"v")] * 2, base_offset=13, partition_leader_epoch=0)
    log.write_bytes(shifted + data[2 * size :])
    found = compare_replicas(one, two)
    assert (found.first, found.exit_code, found.one.is_cleaned) == (12, 1, True)
    assert (found.batches[0][:19], found.batches[1][:19]) == ("offsets 12 to 13, c", "offsets 13 to 14, c")


@pytest.mark.parametrize("both", [False, True])
def test_a_batch_that_is_there_twice_is_named(both, tmp_path):
    one = replica(tmp_path / "one", [0] * 9)
    two = tmp_path / "two" / "t-0"
    compact(one)
    log = one / f"{6:020d}.log"
    data = log.read_bytes()
    size = len(data) // 3
    shutil.copytree(one, two)
    for path in (one, two) if both else (two,):
        (path / log.name).write_bytes(data[: 2 * size] + data[size:])
    found = compare_replicas(one, two)
    assert (found.first, found.exit_code) == (None if both else 8, 1)
    assert (found.one.overlaps, found.two.overlaps) == (int(both), 1)
    (said, *more) = [line for line in found.lines() if "of earlier batches" in line]
    assert said.startswith(f"{one if both else two}: 1 batch with offsets of earlier batches, first offsets 8 to 9, ")
    assert said.endswith(f"leader epoch 0, {log.name} at byte {2 * size}")
    assert len(more) == int(both)
    assert found.to_json()["replicas"][1]["overlapping_batches"] == 1


def test_the_command(tmp_path, capfd, monkeypatch):
    one, two = replica(tmp_path / "one", [0, 0, 0, 1]), replica(tmp_path / "two", [0, 0, 0, 2], values={3: b"x"})
    for arguments, code in (((one, two), 1), ((one, one), 0), ((one, tmp_path), 2)):
        monkeypatch.setattr(sys, "argv", ["kidx", "compare-replicas", *map(str, arguments), "--json"])
        with pytest.raises(SystemExit) as left:
            main()
        assert left.value.code == code
        out = capfd.readouterr().out
        assert (json.loads(out)["same"] if out else None) == {0: True, 1: False, 2: None}[code]
    with pytest.raises(ToolError, match="is not the directory of one partition"):
        compare_replicas(one, tmp_path / "nothing")
