"""Python classes for ``python:MODULE:FACTORY`` with right answers, which do odd things at the paths of their files."""

from __future__ import annotations

import shutil
import tempfile
import weakref
from pathlib import Path

from kidx import OffsetIndex


class _Elsewhere(OffsetIndex):
    """Index whose file is in another directory, like one that keeps its entries in memory."""

    def __init__(self, path, *arguments):
        own = tempfile.mkdtemp(prefix="odd-")
        weakref.finalize(self, shutil.rmtree, own, ignore_errors=True)
        super().__init__(f"{own}/{Path(path).name}", *arguments)


class _Changing(OffsetIndex):
    """Index that changes its directory after each append."""

    def append(self, offset, position):
        super().append(offset, position)
        self.change(Path(self.path))


class _Vanishing(_Changing):
    def change(self, path):
        path.unlink(missing_ok=True)


class _Directory(_Changing):
    def change(self, path):
        if path.is_file():
            path.unlink()
            path.mkdir()
            (path / "inside").touch()


class _Homeless(_Changing):
    def change(self, path):
        shutil.rmtree(path.parent, ignore_errors=True)


class _Additional(_Changing):
    def change(self, path):
        path.with_suffix(".new").mkdir(exist_ok=True)


def _factory(kind):
    def open_index(_, path, base_offset, max_index_size, writable):
        return kind(path, base_offset, max_index_size, writable)

    return open_index


elsewhere, vanishing, directory = _factory(_Elsewhere), _factory(_Vanishing), _factory(_Directory)
homeless, additional = _factory(_Homeless), _factory(_Additional)
