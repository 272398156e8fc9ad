"""Files that commands write, each complete or not at all; findings are named by a hash of their content."""

from __future__ import annotations

import hashlib
import json
from typing import TYPE_CHECKING

from conformance.errors import ToolError
from kidx.files import replacing

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from conformance.operations import Json


def write_texts(texts: Mapping[Path, str], kind: str = "report") -> None:
    """Write each file.

    Args:
        kind: kind of the files, for messages.

    Raises:
        ToolError: a file cannot be written.
    """
    for path, text in texts.items():
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            with replacing(path) as partial:
                partial.write_text(text, "utf-8")
        except OSError as error:
            raise ToolError(f"cannot write the {kind} {path}: {error.strerror or error}") from error


def save_json(content: Json, directory: Path, stem: str, kind: str) -> Path:
    """Write a file that a command replays, and return its path.

    Args:
        stem: beginning of the file's name, before the hash.
        kind: kind of the finding, for messages.

    Raises:
        ToolError: the directory cannot be written.
    """
    text = json.dumps(content, indent=1) + "\n"
    path = directory / f"{stem}-{hashlib.sha256(text.encode()).hexdigest()[:12]}.json"
    write_texts({path: text}, kind)
    return path
