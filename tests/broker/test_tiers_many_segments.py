"""A broker with hundreds of remote segments: its answers, what its consumers read, and faults planted in its files."""

from __future__ import annotations

import shutil
import struct
from pathlib import Path

import many_segments
import pytest
from many_segments import TOPIC

import kidx
from conformance.scratch import scratch_directory
from conformance.studies.tiers.study import TIERS
from kidx.lookup import TieredLog
from kidx.verify import verify_paths
from kidx.verify.remote import verify_remote

pytestmark = [pytest.mark.broker, pytest.mark.thorough, pytest.mark.timeout(900)]
SEGMENTS = 200
"""Least number of remote segments."""


@pytest.fixture(
    scope="module",
    params=[pytest.param(release, marks=pytest.mark.in_turn(6)) for release in TIERS.releases],
)
def broker(request):
    """Return the release, the directory of a stopped broker, and what it answered."""
    with scratch_directory() as directory:
        yield request.param, directory, many_segments.run(request.param, directory, segments=SEGMENTS + 50)


def test_every_answer_across_tiers_is_the_broker_s(broker):
    release, directory, answered = broker
    wrong = {}
    with TieredLog(directory / "data" / f"{TOPIC}-0", directory / "remote", release) as log:
        assert len(log.remote) >= SEGMENTS
        assert log.start_offset == 3 < log.local_start < log.end_offset
        for target, answer in answered.answers.items():
            found = log.fetch_offset_by_timestamp(target)
            mine = (None, None, None) if found is None else (found.offset, found.timestamp, found.leader_epoch)
            theirs = (answer.offset, answer.timestamp, answer.leader_epoch)
            if answer.error is not None or mine != theirs:
                wrong[target] = mine, answer
    assert wrong == {}
    assert len(answered.answers) > 5000
    specials = {target for target in answered.answers if target < 0}
    assert specials >= {-1, -2, -3, -4, -5}


def test_the_records_are_what_a_consumer_read(broker):
    _, directory, answered = broker
    columns = ["offset", "timestamp", "key", "value"]
    for isolation in ("read_uncommitted", "read_committed"):
        table = kidx.read(
            directory / "data", remote=directory / "remote", topics=TOPIC, isolation=isolation, columns=columns
        ).read_all()
        stamps = [stamp // 1000 for stamp in table["timestamp"].cast("int64").to_pylist()]
        found = list(
            zip(table["offset"].to_pylist(), stamps, table["key"].to_pylist(), table["value"].to_pylist(), strict=True)
        )
        assert found == answered.read[isolation], isolation
        assert len(found) > 2000


def flip(position):
    def change(data):
        return data[:position] + bytes([data[position] ^ 0x41]) + data[position + 1 :]

    return change


def first_time(data):
    return struct.pack(">q", 1) + data[8:]


def second_position(data):
    offset, position = struct.unpack_from(">ii", data, 8)
    return data[:8] + struct.pack(">ii", offset, position + 1) + data[16:]


FAULTS = {
    "log": (flip(100), lambda data: data[:-10], lambda data: data + b"x" * 70, lambda _: b"", None),
    "index": (second_position, lambda data: data[:-3], lambda data: data + bytes(8), None),
    "timeindex": (first_time, lambda data: data[:-1], lambda data: data + bytes(24), None),
    "txnindex": (flip(12), flip(29), lambda data: data[:-1], lambda data: data * 2, None),
    "snapshot": (flip(3), flip(20), lambda data: data[:-1], lambda _: b"", None),
    "leader_epoch_checkpoint": (lambda _: b"0\n1\n7 0\n", lambda _: b"?", lambda data: data[:-4], None),
}
"""Changes of a file by its suffix; None deletes it."""


def test_every_planted_fault_is_found_and_no_other(broker, tmp_path):
    release, directory, _ = broker
    data, remote = directory / "data", tmp_path / "remote"
    assert verify_paths([data / f"{TOPIC}-0"], release=release, processes=1).exit_code == 0
    shutil.copytree(directory / "remote", remote)
    sound = verify_remote([data], str(remote), release=release)
    assert [str(finding) for finding in sound.faults()] == []
    assert sound.segments >= SEGMENTS

    (partition,) = remote.glob(f"*/{TOPIC}-0-*")
    segments = sorted(path.stem for path in partition.glob("*.log"))
    aborts = [number for number, name in enumerate(segments) if (partition / f"{name}.txnindex").exists()]
    around = {number + delta for number in aborts for delta in (-1, 0, 1)}
    with_aborts = iter([segments[number] for number in aborts])
    free = iter([segments[number] for number in range(2, len(segments) - 2, 2) if number not in around])
    planted = set()
    for suffix, changes in FAULTS.items():
        for change in changes:
            path = partition / f"{next(with_aborts if suffix == 'txnindex' else free)}.{suffix}"
            if change is None:
                path.unlink()
            else:
                path.write_bytes(change(path.read_bytes()))
            planted.add(path.name)
    lost = next(free)
    for path in partition.glob(f"{lost}.*"):
        path.unlink()
    (partition / "README").touch()

    result = verify_remote([data], str(remote), release=release)
    found = {Path(finding.path).name for finding in result.faults()}
    assert planted - found == set()
    # Other findings are about files of the same segments: a wrong log differs from its index. The broker's metadata say
    # that the lost segment was copied.
    assert {name.partition(".")[0] for name in found - {partition.name}} == {
        lost,
        *(name.partition(".")[0] for name in planted),
    }
    assert [each.path.name for each in result.left_out if "no file of" in each.message] == ["README"]
    assert result.exit_code == 1
