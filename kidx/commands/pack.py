"""``python -m kidx.commands.pack kidx.pyz``: the program in one file, for hosts with Python and without pip.

The file has kidx and the packages that its reading commands need, as they are installed here. Compiled parts cannot be
imported from an archive: at its first run, the program unpacks itself into the user's cache.
"""

from __future__ import annotations

import hashlib
import re
import sys
import sysconfig
import zipfile
from collections.abc import Iterator
from importlib.metadata import Distribution, PackageNotFoundError, distribution
from pathlib import Path
from typing import Final

import kidx
from kidx.printable import counted, shell_word

NEEDED: Final = ("cramjam", "google-crc32c", "msgspec", "numpy", "platformdirs", "rich", "typer", "zstandard")
"""Packages that ``kidx verify`` imports; what they require in turn is found in their metadata."""
_SKIPPED: Final = re.compile(r"(^|/)(\.\.|__pycache__|tests?)(/|$)|\.(pyi|pyc|h|a|lib)$")
"""Files of packages that no program imports."""
_REQUIRED: Final = re.compile(r"[A-Za-z0-9._-]+")
_DATE: Final = (1980, 1, 1, 0, 0, 0)
"""Time of each file in the archive: the same files are the same archive."""
_LIBRARY: Final = "lib"

_MAIN: Final = '''\
"""Unpacks the archive once, and runs kidx from there."""
import os, shutil, sys, sysconfig, tempfile, zipfile

here = (*sys.version_info[:2], sysconfig.get_platform())
if here != {made_for!r}:
    sys.exit("kidx: this file was made for Python %s.%s on %s; here is Python %s.%s on %s" % ({made_for!r} + here))
archive = os.path.dirname(os.path.abspath(__file__))
cache = os.environ.get("XDG_CACHE_HOME") or os.path.join(os.path.expanduser("~"), ".cache")
place = os.path.join(cache, "kidx", "pyz-{digest}")
try:
    if not os.path.isdir(place):
        os.makedirs(os.path.dirname(place), mode=0o700, exist_ok=True)
        new = tempfile.mkdtemp(dir=os.path.dirname(place))
        try:
            zipfile.ZipFile(archive).extractall(new)
            os.rename(new, place)
        except OSError:
            shutil.rmtree(new, ignore_errors=True)
            if not os.path.isdir(place):  # else another process was first
                raise
except OSError as error:
    sys.exit("kidx: cannot unpack into %s: %s; XDG_CACHE_HOME names another directory" % (place, error.strerror))
start = "import sys; sys.path.insert(0, %r); from kidx.__main__ import main; main()" % os.path.join(place, "{library}")
os.execv(sys.executable, [sys.executable, "-I", "-S", "-c", start, *sys.argv[1:]])
'''


def pack(target: Path) -> int:
    """Write the archive, and return the number of its files.

    Raises:
        PackageNotFoundError: a package is not installed.
        OSError: the archive cannot be written.
    """
    files = dict(sorted({**_own_files(), **dict(_files_of(NEEDED))}.items()))
    digest = hashlib.sha256()
    for name, path in files.items():
        digest.update(f"{name}\0{hashlib.sha256(path.read_bytes()).hexdigest()}\n".encode())
    made_for = (*sys.version_info[:2], sysconfig.get_platform())
    main = _MAIN.format(made_for=made_for, digest=digest.hexdigest()[:16], library=_LIBRARY)
    with target.open("wb") as file:
        file.write(b"#!/usr/bin/env python3\n")
        with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
            archive.writestr(zipfile.ZipInfo("__main__.py", _DATE), main)
            for name, path in files.items():
                info = zipfile.ZipInfo(f"{_LIBRARY}/{name}", _DATE)
                info.compress_type = zipfile.ZIP_DEFLATED
                archive.writestr(info, path.read_bytes())
    target.chmod(0o755)
    return len(files)


def _own_files() -> dict[str, Path]:
    package = Path(kidx.__file__).parent
    found = {str(path.relative_to(package.parent)): path for path in package.rglob("*") if path.is_file()}
    own = distribution("kidx")
    metadata = next(path for path in own.files or () if path.name == "METADATA")
    found[str(metadata)] = Path(str(own.locate_file(metadata)))  # for --version
    return {name: path for name, path in found.items() if not _SKIPPED.search(name)}


def _files_of(names: tuple[str, ...]) -> Iterator[tuple[str, Path]]:
    """Yield the files of installed packages and of all that they require, by their names in the archive."""
    waiting, seen = list(names), set()
    while waiting:
        name = waiting.pop()
        if name in seen:
            continue
        seen.add(name)
        try:
            found = distribution(name)
        except PackageNotFoundError:
            if name in names:
                raise
            continue  # of another platform
        waiting += _required_by(found)
        for path in found.files or ():
            if not _SKIPPED.search(str(path)):
                yield str(path), Path(str(found.locate_file(path)))


def _required_by(found: Distribution) -> Iterator[str]:
    for line in found.requires or ():
        name = _REQUIRED.match(line)
        if name is not None and "extra ==" not in line:
            yield name[0]


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit("usage: python -m kidx.commands.pack kidx.pyz")
    place = Path(sys.argv[1])
    number = pack(place)
    sys.stdout.write(f"{shell_word(place)}: {counted(number, 'file')}, {place.stat().st_size >> 20} MiB\n")
