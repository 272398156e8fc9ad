"""Archive of a directory, such as ``3.9.2.tar.xz``; equal files give equal archives."""

from __future__ import annotations

import io
import lzma
import tarfile
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

ARCHIVE: Final = ".tar.xz"


def write_archive(target: Path, files: Mapping[str, Path]) -> None:
    """Write an archive, sorted by name, without times, owners or modes.

    Args:
        target: path of the archive.
        files: files by their names in the archive.
    """
    with lzma.open(target, "wb", preset=9) as packed, tarfile.open(fileobj=packed, mode="w") as archive:
        for name, path in sorted(files.items()):
            data = path.read_bytes()
            entry = tarfile.TarInfo(name)
            entry.size, entry.mode = len(data), 0o644
            archive.addfile(entry, io.BytesIO(data))


def pack(directory: Path) -> Path:
    """Write the archive of a directory next to it, and return its path."""
    target = directory.with_name(f"{directory.name}{ARCHIVE}")
    paths = (path for path in directory.rglob("*") if path.is_file())
    write_archive(target, {path.relative_to(directory.parent).as_posix(): path for path in paths})
    return target


def unpack(archive: Path, directory: Path) -> None:
    """Extract an archive below a directory."""
    with tarfile.open(archive) as packed:
        packed.extractall(directory, filter="data")
