"""Files of findings that a command replays: JSON, named by a hash of the content."""

from __future__ import annotations

import hashlib
import json
from typing import TYPE_CHECKING

from conformance.errors import ToolError
from kidx.files import replacing

if TYPE_CHECKING:
    from pathlib import Path

    from conformance.operations import Json


def save_json(content: Json, directory: Path, stem: str, kind: str) -> Path:
    """Write a file, which appears complete or not at all, and return its path.

    Args:
        directory: directory of the file; created if missing.
        stem: beginning of the file's name, before the hash.
        kind: kind of the finding, for messages.

    Raises:
        ToolError: the directory cannot be written.
    """
    text = json.dumps(content, indent=1) + "\n"
    path = directory / f"{stem}-{hashlib.sha256(text.encode()).hexdigest()[:12]}.json"
    try:
        directory.mkdir(parents=True, exist_ok=True)
        with replacing(path) as partial:
            partial.write_text(text)
    except OSError as error:
        raise ToolError(f"cannot write the {kind} {path}: {error.strerror or error}") from error
    return path
