"""Document of a release's test vectors as typed structures, and its JSON Schema.

``python -m conformance.experiments.vectors.document`` prints the schema: the file ``conformance/schemas/vectors.json``.
"""

from __future__ import annotations

import json
import sys
from typing import TYPE_CHECKING, Annotated, Any, Literal

import msgspec
from msgspec import Meta, Struct, ValidationError

from conformance.errors import ToolError
from conformance.operations.trace_document import schema_text

if TYPE_CHECKING:
    from pathlib import Path

Step = Annotated[
    dict[str, Any],
    Meta(
        description="A request of a trace with its reply: ok with the value, or error with the kind and perhaps the"
        " message of Kafka's exception; the corruption of closed files has neither. A state is given where it changes.",
        extra_json_schema={"required": ["op"], "properties": {"op": {"type": "string"}, "error": {"type": "string"}}},
    ),
]
Digest = Annotated[str, Meta(pattern="^[0-9a-f]{64}$", description="SHA-256 of the file.")]


class Vector(Struct, forbid_unknown_fields=True):
    """Files, their history, and queries about them."""

    name: Annotated[
        str, Meta(pattern="^[a-z]+-[0-9a-z-]+$", description="Also the name of the directory with its files.")
    ]
    title: str
    machine: Literal["offset", "time", "transaction", "segment", "log", "cleaned", "cache", "tiered"]
    clauses: Annotated[list[str], Meta(description="The clauses that its steps and queries show.")]
    base_offset: Annotated[int, Meta(description="Base offset of the index file or the segment; 0 for other vectors.")]
    files: Annotated[
        dict[str, Digest], Meta(description="Every file after the history, except files of remote segments.")
    ]
    history: Annotated[list[Step], Meta(description="Every step from an empty directory to these files.")]
    opening: Annotated[list[Step], Meta(description="Opens the files; empty if there are no queries.")]
    queries: Annotated[list[Step], Meta(description="Steps that change nothing.")]


class Document(Struct, forbid_unknown_fields=True):
    """All vectors of a release."""

    format: Literal["kidx-vectors"]
    version: Literal[1]
    release: Annotated[str, Meta(pattern=r"^[0-9]+\.[0-9]+\.[0-9]+$")]
    vectors: list[Vector]


def load_document(path: Path) -> Document:
    """Return the document in a file.

    Raises:
        ToolError: the file cannot be read, or is no document of vectors.
    """
    try:
        return msgspec.json.decode(path.read_bytes(), type=Document)
    except OSError as error:
        raise ToolError(f"cannot read {path}: {error.strerror}") from error
    except (ValidationError, msgspec.DecodeError, UnicodeDecodeError) as error:
        raise ToolError(f"{path} is not a document of vectors: {error}") from error


def document_text(document: Document) -> str:
    """Return the document as text, with one step per line."""
    plain = msgspec.to_builtins(document)
    vectors = []
    for vector in plain.pop("vectors"):
        members = []
        for name, value in vector.items():
            if name in ("history", "opening", "queries") and value:
                lines = ",\n".join(f"   {json.dumps(step)}" for step in value)
                members.append(f'  "{name}": [\n{lines}\n  ]')
            else:
                members.append(f'  "{name}": {json.dumps(value)}')
        vectors.append(" {\n" + ",\n".join(members) + "\n }")
    head = "".join(f'"{name}": {json.dumps(value)},\n' for name, value in plain.items())
    return "{\n" + head + '"vectors": [\n' + ",\n".join(vectors) + "\n]\n}\n"


def schema() -> dict[str, Any]:
    """Return the JSON Schema of a document."""
    definitions = msgspec.json.schema_components([Document])[1]
    root = definitions.pop("Document")
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "$id": "urn:kidx:vectors:1",
        **root,
        "title": "Test vectors of a release",
        "$defs": definitions,
    }


if __name__ == "__main__":
    sys.stdout.write(schema_text(schema()))
