"""Copies of the files that a repair will change, and the script that puts them back."""

from __future__ import annotations

import contextlib
import filecmp
import os
import shlex
import shutil
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from kidx.errors import ToolError
from kidx.files import sync
from kidx.printable import encodable, shell_word

_FILES: Final = "files"
_SCRIPT: Final = "restore.sh"
_BEGINNING: Final = """#!/bin/sh
# Puts back the files that kidx repair changes. Stop the broker first. It can be run again.
set -e
cd "$(dirname "$0")"
"""


@dataclass(frozen=True, slots=True)
class Backup:
    """Backup of a repair.

    Attributes:
        directory: absolute path of the directory with the copies.
        copied: files that were copied.
        size: number of bytes in the copies.
    """

    directory: Path
    copied: tuple[Path, ...]
    size: int

    @property
    def restore(self) -> str:
        """Shell command that puts the files back, and removes the files that the repair creates."""
        return f"sh {shell_word(self.directory / _SCRIPT)}"

    def to_json(self) -> dict[str, Any]:
        """Return an object of ``kidx repair --json``."""
        return {
            "directory": encodable(str(self.directory)),
            "files": [encodable(str(path)) for path in self.copied],
            "restore": encodable(self.restore),
        }


def check_place(directory: Path, log_directories: Iterable[Path]) -> None:
    """Check that a backup can be written into a directory.

    Raises:
        ToolError: it is not empty, or in a log directory, where a broker would not start because of it.
    """
    real = directory.resolve()
    for each in log_directories:
        if real.is_relative_to(each.resolve()):
            raise ToolError(f"the backup {shell_word(directory)} would be in the log directory {shell_word(each)}")
    try:
        is_empty = not os.path.lexists(directory) or not any(directory.iterdir())
    except OSError as error:
        raise ToolError(f"the backup {shell_word(directory)} cannot be written: {error.strerror}") from error
    if not is_empty:
        raise ToolError(f"the backup {shell_word(directory)} is not empty: name a new directory")


def back_up(paths: Iterable[Path], directory: Path) -> Backup:
    """Copy files into a new or empty directory, compare each copy, and write the script that restores them.

    Args:
        paths: files that will be replaced, removed or created.
        directory: directory of the backup.

    Raises:
        ToolError: a file cannot be copied; nothing of the backup is left then.
    """
    directory = directory.absolute()
    every = sorted({path.absolute() for path in paths})
    present = [path for path in every if path.exists()]
    size = 0
    with _removed_after_an_error(directory):
        for path in present:
            copy = directory / _FILES / path.relative_to("/")
            copy.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(path, copy)
            status = path.stat()
            os.chown(copy, status.st_uid, status.st_gid)
            sync(copy)
            if not filecmp.cmp(path, copy, shallow=False):
                raise ToolError(f"the copy of {shell_word(path)} in the backup has other bytes")
            size += status.st_size
        lines = [_words("cp", "-p", "--", path.relative_to("/"), path) for path in present]
        lines += [_words("rm", "-f", "--", path) for path in every if path not in present]
        script = directory / _SCRIPT
        script.write_bytes(_BEGINNING.encode() + b"".join(lines))
        sync(script)
        for folder in (directory, *(each for each in directory.rglob("*") if each.is_dir())):
            sync(folder)
    return Backup(directory, tuple(present), size)


def _words(*words: str | Path) -> bytes:
    """Return a line of the script; a relative path is in the directory of the copies."""
    named = (f"{_FILES}/{each}" if isinstance(each, Path) and not each.is_absolute() else str(each) for each in words)
    return os.fsencode(" ".join(map(shlex.quote, named))) + b"\n"


@contextlib.contextmanager
def _removed_after_an_error(directory: Path) -> Iterator[None]:
    """Make the directory of a backup, and remove what is in it if the backup fails."""
    is_new = not directory.exists()
    try:
        directory.mkdir(parents=True, exist_ok=True)
        yield
    except (OSError, ToolError) as error:
        for name in (_FILES, _SCRIPT):
            with contextlib.suppress(OSError):
                shutil.rmtree(directory / name) if name == _FILES else (directory / name).unlink()
        if is_new:
            with contextlib.suppress(OSError):
                directory.rmdir()
        if isinstance(error, ToolError):
            raise
        words = error.strerror or str(error)
        raise ToolError(f"the backup cannot be written, and nothing was changed: {words}") from error
