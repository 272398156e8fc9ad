"""Where the files of examples live: in memory, if the system has such a place.

A run flushes and resizes files some thousand times a second. What is compared are bytes, so a disk adds nothing but
waiting.
"""

from __future__ import annotations

import contextlib
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from conformance.errors import ToolError

MEMORY: Final = Path("/dev/shm")  # noqa: S108 -- the directory made in it is private
ENOUGH: Final = 64 << 20
"""Bytes that must be free in memory; an example needs a few hundred kilobytes for every release."""


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
    with made as name:
        yield Path(name)
