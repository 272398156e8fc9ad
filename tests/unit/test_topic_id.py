"""Topic id of a log: ``partition.metadata``, assigned, read after a start, and corrupt (LG-90, LG-91)."""

from __future__ import annotations

import pytest

from kidx.discovery import PARTITION_METADATA
from kidx.log import UnifiedLog
from kidx.log.topic_id import InconsistentTopicIdError

ONE = "AAAAAAAAAAEAAAAAAAAAAQ"
OTHER = "AAAAAAAAAAEAAAAAAAAAAg"


def test_a_topic_id_survives_a_start_and_a_different_one_is_rejected(tmp_path):
    with UnifiedLog(tmp_path / "t-0") as log:
        assert log.topic_id is None
        log.assign_topic_id(ONE)
    assert (tmp_path / "t-0" / PARTITION_METADATA).read_text() == f"version: 0\ntopic_id: {ONE}"
    with UnifiedLog(tmp_path / "t-0") as log:
        log.assign_topic_id(ONE)
        with pytest.raises(InconsistentTopicIdError, match=OTHER):
            log.assign_topic_id(OTHER)
        assert log.topic_id == ONE


def test_a_release_before_topic_ids_neither_reads_nor_writes_one(tmp_path):
    with UnifiedLog(tmp_path / "t-0", dialect="2.7.2") as log:
        log.assign_topic_id(ONE)
        assert log.topic_id is None
    assert not (tmp_path / "t-0" / PARTITION_METADATA).exists()


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("", "closed"),
        ("version: 0\n", "closed"),
        ("version", "OSError"),
        (f"version: x\ntopic_id: {ONE}", "OSError"),
        (f"version: -1\ntopic_id: {ONE}", "OSError"),
        ("version: 0\ntopic_id: ", "OSError"),
        (f"version: 0\ntopic_id: {'A' * 22}", "OSError"),
        (f"version: 0\ntopic_id: {ONE[:-1]}", "invalid_argument"),
        (f"version: 0\ntopic_id: {ONE}=", "invalid_argument"),
    ],
)
def test_a_corrupt_file_keeps_the_log_from_opening(tmp_path, text, kind):
    UnifiedLog(tmp_path / "t-0").close()
    (tmp_path / "t-0" / PARTITION_METADATA).write_text(text)
    with pytest.raises((OSError, ValueError)) as caught:
        UnifiedLog(tmp_path / "t-0")
    assert getattr(caught.value, "kind", "OSError") == kind


@pytest.mark.parametrize(("release", "reads"), [("3.6.2", False), ("3.7.2", True)])
def test_a_newer_version_is_read_from_3_7(tmp_path, release, reads):
    UnifiedLog(tmp_path / "t-0").close()
    (tmp_path / "t-0" / PARTITION_METADATA).write_text(f"version: 1\r\ntopic_id: {ONE}==\r\n")
    if reads:
        assert UnifiedLog(tmp_path / "t-0", dialect=release).topic_id == ONE
    else:
        with pytest.raises(OSError, match="has version 1, not 0"):
            UnifiedLog(tmp_path / "t-0", dialect=release)
