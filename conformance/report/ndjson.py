"""The event stream as it is: one JSON object a line, header first, footer last."""

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
    """Writes ``events.ndjson`` into a directory, a line for each event as it happens.

    Raises:
        ToolError: the directory cannot be written.
    """

    def __init__(self, directory: Path) -> None:
        self.path = directory / NAME
        try:
            directory.mkdir(parents=True, exist_ok=True)
            self._file = self.path.open("w", encoding="utf-8")
        except OSError as error:
            raise ToolError(f"the report {self.path} cannot be written: {error.strerror or error}") from error

    def __call__(self, event: Event) -> None:
        """Writes one event.

        Raises:
            ToolError: the disk is full, for instance.
        """
        try:
            self._file.write(json.dumps(event.to_json(), separators=(",", ":")) + "\n")
            self._file.flush()
        except OSError as error:
            raise ToolError(f"the report {self.path} cannot be written: {error.strerror or error}") from error

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        # A line that the disk had no room for is tried once more; its writer has got an error.
        with contextlib.suppress(OSError):
            self._file.close()
