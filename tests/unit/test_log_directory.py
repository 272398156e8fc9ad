"""Directory of a log: renamed, deleted, and on a disk that fails (LG-92 to LG-97)."""

from __future__ import annotations

from contextlib import nullcontext

import pytest

from kidx.log import UnifiedLog
from kidx.log.errors import FailedLogError
from kidx.records import build_batch

BATCH = build_batch([(1, None, b"value")], base_offset=0, partition_leader_epoch=0)
FUTURE = "t-0.0123456789abcdef0123456789abcdef-future"
DELETED = "t-0.0123456789abcdef0123456789abcdef-delete"


def contents(path) -> dict[str, bytes]:
    return {file.name: file.read_bytes() for file in path.iterdir()}


def test_a_renamed_log_writes_all_its_files_to_the_new_directory(tmp_path):
    with UnifiedLog(tmp_path / "t-0") as log:
        log.append_as_leader(BATCH, 0)
        before = contents(tmp_path / "t-0")
        log.rename_directory(FUTURE)
        assert contents(tmp_path / FUTURE) == before
        log.append_as_leader(BATCH, 1)
        log.roll()
        assert log.end_offset_for_epoch(0) == (0, 1)
    assert [path.name for path in tmp_path.iterdir()] == [FUTURE]
    assert {"00000000000000000002.log", "00000000000000000002.snapshot"} <= set(contents(tmp_path / FUTURE))
    with UnifiedLog(tmp_path / FUTURE) as log:
        assert (log.end_offset, log.end_offset_for_epoch(0)) == (2, (0, 1))


@pytest.mark.parametrize(("release", "epoch_end"), [("3.2.3", (0, 1)), ("3.3.2", None)])
def test_a_log_that_will_be_deleted_forgets_its_epochs_from_3_3_on(tmp_path, release, epoch_end):
    log = UnifiedLog(tmp_path / "t-0", dialect=release)
    log.append_as_leader(BATCH, 0)
    log.rename_directory(DELETED, deletes=True)
    assert log.end_offset_for_epoch(0) == epoch_end
    log.delete()
    assert not any(tmp_path.iterdir())


def test_a_log_on_a_failed_disk_rejects_everything_and_does_not_change(tmp_path):
    log = UnifiedLog(tmp_path / "t-0")
    log.append_as_leader(BATCH, 0)
    log.fail()
    before = contents(tmp_path / "t-0")
    for call in (
        lambda: log.append_as_leader(BATCH, 0),
        lambda: log.append_as_follower(BATCH, 0),
        log.roll,
        lambda: log.truncate_to(0),
        lambda: log.truncate_fully_and_start_at(5),
        lambda: log.delete_records(0),
        log.close,
    ):
        with pytest.raises(FailedLogError, match="t-0"):
            call()
    assert (contents(tmp_path / "t-0"), log.end_offset) == (before, 1)


@pytest.mark.parametrize(("release", "is_deleted"), [("4.3.1", False), ("4.4.0", True)])
def test_a_log_on_a_failed_disk_is_deleted_from_4_4_on(tmp_path, release, is_deleted):
    log = UnifiedLog(tmp_path / "t-0", dialect=release)
    log.append_as_leader(BATCH, 0)
    log.fail()
    with nullcontext() if is_deleted else pytest.raises(FailedLogError, match="t-0"):
        log.delete()
    assert (tmp_path / "t-0").exists() != is_deleted
