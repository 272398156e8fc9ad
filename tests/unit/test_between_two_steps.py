"""A look between two steps of a broker finds no corruption: appends, rolls, compaction, truncation, retention, starts.

``kidx.log`` executes the same steps as each release; so this is a test of all looks, not a race.
"""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys

import pytest
from file_steps import stepping
from thorough_params import thorough_param

from kidx.findings import HARMLESS
from kidx.log import LogConfig, UnifiedLog
from kidx.records import ControlRecordType, EndTransactionMarker, SimpleRecord, build_batch, end_transaction_marker
from kidx.verify import guarded as looking_again
from kidx.verify import verify_paths

ABORT = EndTransactionMarker(ControlRecordType.ABORT, 0)
FIRST = 1_700_000_000_000
HOLD = "import fcntl, sys; f = open(sys.argv[1], 'r+b'); fcntl.lockf(f, fcntl.LOCK_EX); print(flush=True); input()"
CHECKPOINTS = (
    "recovery-point-offset-checkpoint",
    "log-start-offset-checkpoint",
    "replication-offset-checkpoint",
    "cleaner-offset-checkpoint",
)


@contextlib.contextmanager
def held(disk):
    """Hold the lock of a log directory in another process, as a broker does."""
    (disk / ".lock").touch()
    with subprocess.Popen(
        [sys.executable, "-c", HOLD, str(disk / ".lock")], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as holder:
        assert holder.stdout is not None
        holder.stdout.readline()
        try:
            yield
        finally:
            holder.kill()


class Broker:
    """One log of a broker, and the checkpoints of its log directory; every batch is 100 ms later than the batch before.

    Args:
        disk: log directory.
        release: release of the broker.
        options: further settings of the topic.
    """

    def __init__(self, disk, release, **options):
        self.disk, self.release, self.now = disk, release, FIRST
        self.config = LogConfig(
            segment_bytes=700, segment_index_bytes=100, index_interval_bytes=100, retention_ms=10_000,
            delete_retention_ms=0, compacts=True, **options,
        )  # fmt: skip
        for name in CHECKPOINTS:
            (disk / name).touch()
        self.log = self.open(0, 0, clean=True)

    def open(self, start, point, *, clean):
        return UnifiedLog(
            self.disk / "t-0", self.config, log_start_offset=start, recovery_point=point, clean=clean,
            clock=lambda: self.now, dialect=self.release,
        )  # fmt: skip

    def batch(self, number, **options):
        self.now += 100
        records = [SimpleRecord(self.now, key.encode(), b"v" * 30) for key in (f"k{number % 4}", f"q{number % 3}")]
        return build_batch(records, **options)

    def append(self, count, epoch):
        for number in range(count):
            self.log.append_as_leader(self.batch(number), epoch)
        self.log.update_high_watermark(self.log.end_offset - 6)

    def abort(self, epoch):
        producer = {"producer_id": 7, "producer_epoch": 0}
        self.log.append_as_leader(self.batch(9, base_sequence=0, is_transactional=True, **producer), epoch)
        marker = end_transaction_marker(ABORT, offset=0, timestamp=self.now, **producer)
        self.log.append_as_leader(marker, epoch, from_client=False)
        self.log.update_high_watermark(self.log.end_offset)

    def checkpoint(self):
        for name, offset in zip(
            CHECKPOINTS, (self.log.recovery_point, self.log.start_offset, self.log.high_watermark), strict=False
        ):
            partial = self.disk / f"{name}.tmp"
            descriptor = os.open(partial, os.O_CREAT | os.O_WRONLY | os.O_TRUNC)
            os.pwrite(descriptor, f"0\n1\nt 0 {offset}\n".encode(), 0)
            os.close(descriptor)
            partial.replace(self.disk / name)

    def restart(self, *, clean):
        (self.log.close if clean else self.log.release_handles)()
        mark = self.disk / ".kafka_cleanshutdown"
        if clean:
            os.close(os.open(mark, os.O_CREAT | os.O_WRONLY))
            mark.unlink()
        self.log = self.open(self.log.start_offset, self.log.recovery_point, clean=clean)

    def live(self):
        """Append, roll, compact, delete records, truncate, let retention delete, start again in both ways."""
        self.append(14, 0)
        self.abort(1)
        self.checkpoint()
        self.log.clean()
        self.append(5, 2)
        self.log.delete_records(9)
        self.log.delete_old_segments()
        self.checkpoint()
        self.log.truncate_to(self.log.end_offset - 5)
        self.append(3, 3)
        self.checkpoint()
        self.now += 9_500
        self.log.delete_old_segments()
        self.checkpoint()
        self.restart(clean=True)
        self.append(3, 4)
        self.restart(clean=False)
        self.log.truncate_fully_and_start_at(100)
        self.append(2, 5)


@pytest.fixture
def disk(tmp_path, monkeypatch):
    monkeypatch.setattr(looking_again, "_PAUSES", (0.0,) * 5)
    (tmp_path / "data" / "t-0").mkdir(parents=True)
    return tmp_path / "data"


@pytest.mark.parametrize(
    ("release", "preallocate", "stride"),
    [
        ("3.9.2", False, 19),
        thorough_param("2.4.1", False, 1),
        thorough_param("2.8.2", False, 1),
        thorough_param("3.9.2", False, 1),
        thorough_param("4.0.0", False, 1),
        thorough_param("4.4.0", False, 1),
        thorough_param("4.4.0", True, 1),
    ],
)
def test_a_look_between_two_steps_of_a_living_broker_finds_no_damage(disk, release, preallocate, stride, monkeypatch):
    """With a stride of one, there is a look after each step; else after some, and after each new file."""
    seen, faults, steps = set(), [], []

    def look(step):
        steps.append(step)
        if len(steps) % stride and not step.startswith("create"):
            return
        found = verify_paths([disk])
        seen.update(file.verdict for file in found.files)
        faults.extend((step, str(each)) for each in found.findings if each.verdict not in HARMLESS)
        faults.extend((step, file.path, file.verdict) for file in found.files if file.verdict not in HARMLESS)

    broker = Broker(disk, release, preallocate=preallocate)
    with held(disk), stepping(monkeypatch, look, halves=not preallocate):
        broker.live()
    assert not faults
    assert len(steps) > 300
    assert "changing" in seen, "no look was between two steps that matter"


@pytest.mark.parametrize("release", [thorough_param("3.9.2"), thorough_param("4.4.0")])
def test_files_that_a_broker_wrote_before_are_judged_while_it_runs(disk, release):
    """Corruption below the recovery point is no state between two steps."""
    broker = Broker(disk, release)
    broker.append(20, 0)
    broker.checkpoint()
    first = disk / "t-0" / f"{0:020d}"
    os.truncate(first.with_suffix(".timeindex"), 12)
    os.truncate(first.with_suffix(".index"), 11)
    with held(disk):
        found = verify_paths([disk])
    assert {(each.clause, each.verdict) for each in found.findings if each.verdict not in HARMLESS} == {
        ("SEG-22", "broken"),
        ("OI-11", "broken"),
    }
