"""Scratch directories for the files of examples: in memory, if the system has a suitable file system.

A run flushes and resizes files some thousand times a second. Only bytes are compared, so a disk would only add waiting
time.
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

from platformdirs import user_state_path

from conformance.errors import ToolError

MEMORY: Final = Path("/dev/shm")  # noqa: S108 -- the directory created in it is private
ENOUGH: Final = 64 << 20
"""Bytes that must be free in memory; an example needs a few hundred kilobytes for every release."""

_REMOVE_LATER: Final = 'n=0; while kill -0 "$0" && [ $n -lt 50 ]; do sleep 0.1; n=$((n+1)); done 2>&-; rm -rf -- "$@"'
"""Shell command that removes the directories ``$@`` when the process ``$0`` has ended, or after five seconds."""
_DIRECTORIES: Final[set[tempfile.TemporaryDirectory[str]]] = set()
"""Scratch directories of this process that exist."""


@contextlib.contextmanager
def scratch_directory() -> Iterator[Path]:
    """Yield an empty private directory, which is removed at the end.

    Raises:
        ToolError: The directory cannot be created.
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
            raise ToolError(f"cannot create a scratch directory: {error.strerror or error}") from error
    _DIRECTORIES.add(made)
    try:
        with made as name:
            yield Path(name)
    finally:
        _DIRECTORIES.discard(made)


def remove_all() -> None:
    """Remove all scratch directories of this process, which is about to end without leaving its ``with`` blocks."""
    left = []
    for made in list(_DIRECTORIES):
        made.cleanup()
        if Path(made.name).exists():
            left.append(made.name)
    if left:  # a thread that cannot be stopped still writes files
        words = ["/bin/sh", "-c", _REMOVE_LATER, str(os.getpid()), *left]
        subprocess.Popen(words, start_new_session=True)  # noqa: S603 -- no argument comes from outside


def state_directory() -> Path:
    """Return the directory for traces, and for results of runs on Spark, if no report directory is given."""
    return user_state_path("kidx")
