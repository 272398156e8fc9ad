"""Event stream in a file: one JSON object per line, header first, footer last."""

from __future__ import annotations

import contextlib
import json
from typing import TYPE_CHECKING, Self

from conformance.errors import ToolError

if TYPE_CHECKING:
    from pathlib import Path

    from conformance.events import Event

NAME = "events.ndjson"


class NdjsonWriter:
    """Writer of ``events.ndjson`` in a directory, with one line per event, written immediately.

    Raises:
        ToolError: the directory cannot be written.
    """

    def __init__(self, directory: Path) -> None:
        self.path = directory / NAME
        if directory.exists() and not directory.is_dir():
            raise ToolError(f"cannot write the report: {directory} is not a directory")
        try:
            directory.mkdir(parents=True, exist_ok=True)
            self._file = self.path.open("w", encoding="utf-8")
        except OSError as error:
            raise ToolError(f"cannot write the report {self.path}: {error.strerror or error}") from error

    def __call__(self, event: Event) -> None:
        """Write one event.

        Raises:
            ToolError: the event cannot be written, e.g. because the disk is full.
        """
        try:
            self._file.write(json.dumps(event.to_json(), separators=(",", ":")) + "\n")
            self._file.flush()
        except OSError as error:
            raise ToolError(f"cannot write the report {self.path}: {error.strerror or error}") from error

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        # close() retries a line that did not fit on the disk; the error has already been raised.
        with contextlib.suppress(OSError):
            self._file.close()
