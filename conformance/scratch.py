"""Where the files of examples live: in memory, if the system has such a place.

A run flushes and resizes files some thousand times a second. What is compared are bytes, so a disk adds nothing but
waiting.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from conformance.errors import ToolError

MEMORY: Final = Path("/dev/shm")  # noqa: S108 -- the directory made in it is private
ENOUGH: Final = 64 << 20
"""Bytes that must be free in memory; an example needs a few hundred kilobytes for every release."""


_WHEN_ENDED: Final = 'n=0; while kill -0 "$0" && [ $n -lt 50 ]; do sleep 0.1; n=$((n+1)); done 2>&-; rm -rf -- "$@"'
"""Removes directories when a process has ended, or after five seconds."""
_MADE: Final[set[tempfile.TemporaryDirectory[str]]] = set()


@contextlib.contextmanager
def scratch_directory() -> Iterator[Path]:
    """An empty private directory, removed at the end.

    Raises:
        ToolError: none can be made.
    """
    base = None
    with contextlib.suppress(OSError):
        if shutil.disk_usage(MEMORY).free >= ENOUGH:
            base = MEMORY
    try:
        made = tempfile.TemporaryDirectory(prefix="kidx-", dir=base, ignore_cleanup_errors=True)
    except OSError:
        try:
            made = tempfile.TemporaryDirectory(prefix="kidx-", ignore_cleanup_errors=True)
        except OSError as error:
            raise ToolError(f"no scratch directory can be made: {error.strerror or error}") from error
    _MADE.add(made)
    try:
        with made as name:
            yield Path(name)
    finally:
        _MADE.discard(made)


def remove_all() -> None:
    """Removes all scratch directories of this process, which is about to end without leaving its blocks."""
    left = []
    for made in list(_MADE):
        made.cleanup()
        if Path(made.name).exists():
            left.append(made.name)
    if left:  # a thread that nothing can stop still makes files
        words = ["/bin/sh", "-c", _WHEN_ENDED, str(os.getpid()), *left]
        subprocess.Popen(words, start_new_session=True)  # noqa: S603 -- all of it is ours
