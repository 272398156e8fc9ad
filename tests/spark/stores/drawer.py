"""A user's own file system for fsspec: a directory, with checksums, whose reader dies once on request.

``DRAWER`` names the directory; a file called ``kill`` in it ends the process that fetches the next file, and is
deleted.
"""

from __future__ import annotations

import hashlib
import os
import signal
from pathlib import Path

from fsspec import AbstractFileSystem


class Drawer(AbstractFileSystem):
    protocol = "drawer"

    @property
    def top(self):
        return Path(os.environ["DRAWER"])

    def _at(self, path):
        return self.top / self._strip_protocol(path).strip("/")

    def info(self, path, **_):
        found = self._at(path)
        name = self._strip_protocol(path)
        if found.is_dir():
            return {"name": name, "type": "directory", "size": 0}
        content = found.read_bytes()  # FileNotFoundError if there is nothing
        return {"name": name, "type": "file", "size": len(content), "etag": hashlib.sha256(content).hexdigest()}

    def ls(self, path, detail=True, **_):
        if not self._at(path).exists():
            raise FileNotFoundError(path)
        below = sorted(self._at(path).iterdir()) if self._at(path).is_dir() else [self._at(path)]
        names = [str(each.relative_to(self.top)) for each in below]
        return [self.info(name) for name in names] if detail else names

    def _open(self, path, mode="rb", **_):
        return self._at(path).open(mode)

    def get_file(self, rpath, lpath, **options):
        if (self.top / "kill").exists() and rpath.endswith(".log"):
            (self.top / "kill").unlink()
            os.kill(os.getpid(), signal.SIGKILL)
        super().get_file(rpath, lpath, **options)

    def mkdir(self, path, create_parents=True, **_):
        self._at(path).mkdir(parents=create_parents, exist_ok=True)

    def makedirs(self, path, exist_ok=False):
        self._at(path).mkdir(parents=True, exist_ok=exist_ok)

    def rm_file(self, path):
        self._at(path).unlink()
