"""Scratch directories: in memory if there is enough space, on disk otherwise, and always removed."""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path
from typing import NamedTuple

import pytest

from conformance import scratch
from conformance.errors import ToolError


class Usage(NamedTuple):
    """Result of ``shutil.disk_usage``."""

    total: int
    used: int
    free: int


def test_a_scratch_directory_is_empty_private_and_removed():
    with scratch.scratch_directory() as directory:
        assert directory.is_dir()
        assert list(directory.iterdir()) == []
        assert directory.stat().st_mode & 0o077 == 0
        (directory / "deep").mkdir()
        (directory / "deep" / "file").write_bytes(b"1")
    assert not directory.exists()


def test_it_is_removed_after_an_error_as_well():
    with pytest.raises(FileExistsError), scratch.scratch_directory() as directory:
        directory.mkdir()
    assert not directory.exists()


def test_a_directory_that_is_already_deleted_is_no_error():
    with scratch.scratch_directory() as directory:
        directory.rmdir()


@pytest.mark.parametrize(("free", "in_memory"), [(scratch.ENOUGH, True), (scratch.ENOUGH - 1, False)])
def test_memory_is_used_if_there_is_enough(monkeypatch, tmp_path, free, in_memory):
    memory = tmp_path / "memory"
    memory.mkdir()
    monkeypatch.setattr(scratch, "MEMORY", memory)
    monkeypatch.setattr(shutil, "disk_usage", lambda _: Usage(free, 0, free))
    with scratch.scratch_directory() as directory:
        assert (directory.parent == memory) == in_memory


def test_without_such_a_place_it_is_on_disk(monkeypatch, tmp_path):
    monkeypatch.setattr(scratch, "MEMORY", tmp_path / "missing")
    with scratch.scratch_directory() as directory:
        assert directory.parent == Path(tempfile.gettempdir())


def test_memory_that_cannot_be_written_is_not_used(monkeypatch, tmp_path):
    (tmp_path / "file").touch()
    monkeypatch.setattr(scratch, "MEMORY", tmp_path / "file")
    monkeypatch.setattr(shutil, "disk_usage", lambda _: Usage(1 << 40, 0, 1 << 40))
    with scratch.scratch_directory() as directory:
        assert directory.parent == Path(tempfile.gettempdir())


def test_no_usable_directory_is_one_line(monkeypatch):
    def refuse(**_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(tempfile, "TemporaryDirectory", refuse)
    with (
        pytest.raises(ToolError, match=r"^cannot create a scratch directory: No space left on device$"),
        scratch.scratch_directory(),
    ):
        pass


def test_all_can_be_removed_before_their_blocks_end():
    with scratch.scratch_directory() as first, scratch.scratch_directory() as second:
        (second / "file").write_bytes(b"content")
        scratch.remove_all()
        assert not first.exists()
        assert not second.exists()
