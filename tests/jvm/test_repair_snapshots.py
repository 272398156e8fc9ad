"""A .txnindex of a log whose beginning is gone: kidx repairs it to what Kafka's own recovery writes."""

from __future__ import annotations

import shutil

import pytest
from thorough_params import thorough_except

from conformance.implementations.jvm.log import JvmLog
from conformance.operations import Operation
from conformance.operations.log import TOPIC_DIRECTORY
from kidx.discovery import CLEAN_SHUTDOWN, START_OFFSETS
from kidx.layout import ABORTED_TXN
from kidx.repair import repair_paths

pytestmark = pytest.mark.jvm

SETTINGS = {"segment.bytes": 1 << 20, "segment.index.bytes": 1200, "index.interval.bytes": 0, "retention.ms": -1}


def data(base, producer, sequence):
    return {
        "base": base, "epoch": 0, "records": [[0, 1000], [1, 1001]], "transactional": True,
        "producer": [producer, 0, sequence],
    }  # fmt: skip


def marker(base, producer, kind):
    return {"base": base, "epoch": 0, "records": [[0, 1002]], "marker": kind, "producer": [producer, 0, -1]}


def execute(log, *operations):
    for name, *arguments in operations:
        assert log.perform(Operation(name, tuple(arguments))).outcome.error is None, name


def opened(start=0):
    return ("open_log", SETTINGS, start, 0, False, 10_000)


@pytest.mark.parametrize("release", thorough_except(["2.4.1", "4.4.0"], ["2.4.1", "2.8.2", "3.9.2", "4.4.0"]))
@pytest.mark.parametrize("snapshot", ["whole", "corrupt", "gone", "below the log start"])
def test_transactions_from_before_the_log_are_known_from_its_snapshots(release, snapshot, scratch):
    log = JvmLog(release)
    log.begin(scratch)
    execute(
        log,
        opened(),
        ("append_as_follower", [data(0, 1, 0), data(2, 2, 0)], 0),
        ("roll_log",),
        ("append_as_follower", [data(4, 1, 2), data(6, 3, 0)], 0),
        ("roll_log",),
        ("append_as_follower", [marker(8, 1, "abort"), data(9, 3, 2), marker(11, 3, "abort")], 0),
        ("append_as_follower", [marker(12, 2, "commit")], 0),
        ("close_log", False),
    )
    directory = scratch / TOPIC_DIRECTORY
    for path in directory.glob(f"{0:020d}.*"):
        path.unlink()  # as retention does
    last = directory / f"{8:020d}.txnindex"
    assert last.stat().st_size == 2 * ABORTED_TXN.size
    last.unlink()
    for path in directory.glob("*.snapshot"):
        if int(path.stem) > 8 or snapshot == "gone":
            path.unlink()
        elif snapshot == "corrupt" and int(path.stem) == 8:
            path.write_bytes(path.read_bytes()[:-1] + b"?")
    assert list(directory.glob("*.snapshot")) or snapshot == "gone"
    copy = scratch / "copy" / "t-0"
    shutil.copytree(directory, copy)
    start = 8 if snapshot == "below the log start" else 0
    (copy.parent / CLEAN_SHUTDOWN).touch()  # else a broker that was killed may have written the entries later
    (copy.parent / START_OFFSETS).write_text(f"0\n1\nt 0 {start}\n", "utf-8")

    execute(log, opened(start), ("crash_log",))
    log.end()
    repaired = repair_paths([copy], release=release)
    assert [change.action for change in repaired.changes if change.path.endswith(".txnindex")] == ["created"]
    assert not repaired.remaining
    assert (copy / last.name).read_bytes() == last.read_bytes()
    first_offsets = [first for _, _, first, *_ in ABORTED_TXN.struct.iter_unpack(last.read_bytes())]
    left = [8, 9] if release == "2.4.1" else [9]  # 2.4 writes a marker down whose beginning it does not know
    assert first_offsets == {"gone": [4, 6], "below the log start": left}.get(snapshot, [0, 6])
