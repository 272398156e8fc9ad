"""Writer for the output files of a command."""

from __future__ import annotations

from typing import TYPE_CHECKING

from conformance.errors import ToolError
from kidx.files import replacing

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path


def write_texts(texts: Mapping[Path, str]) -> None:
    """Write each file, which appears complete or not at all.

    Raises:
        ToolError: A file cannot be written.
    """
    for path, text in texts.items():
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            with replacing(path) as partial:
                partial.write_text(text, "utf-8")
        except OSError as error:
            raise ToolError(f"cannot write the report {path}: {error.strerror or error}") from error
