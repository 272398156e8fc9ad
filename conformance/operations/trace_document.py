"""Document of a trace as typed structures, and the JSON Schema that they describe.

``python -m conformance.operations.trace_document`` prints the schema: the file ``conformance/schemas/trace.json``.
"""

from __future__ import annotations

import inspect
import json
import re
import sys
from typing import Annotated, Any, Final, Literal

import msgspec
from msgspec import Meta, Struct, ValidationError

from conformance.events import renamed, with_renamed_failure
from conformance.operations.index import INDEX_OPS
from conformance.operations.index_steps import STEPS

FORMAT: Final = "kidx-trace"
VERSION: Final = 2
READABLE: Final = (1, 2)
"""Versions that this program reads."""

Aspect = Literal["outcome", "text", "state", "bytes"]
"""Part of a step in which two participants differ: outcome, text of the error message, state, or bytes of the files."""

Object = dict[str, Any]
"""Parsed JSON object."""

_MISSING: Final = re.compile(r"missing required field `(\w+)`")
_LOCATIONS: Final = re.compile(r"\.(\w+)|\[(\d+)\]")
"""The place of a value in msgspec's messages: ``.member`` and ``[number from 0]``."""


class Failure(Struct):
    """Divergence, as ``failure_json`` of :class:`conformance.lockstep.divergence.Divergence` returns it."""

    step: Annotated[int, Meta(ge=0, description="0-based index into steps.")]
    participant: str
    release: str
    against: Literal["kidx", "model", "oracle", "refusal"]
    """The other side: the reference (``kidx``), the ``model``, or a scan of the log (``oracle``). The last value means
    that an operation failed that must succeed."""
    aspects: Annotated[list[Aspect], Meta(min_length=1)]
    expected: Annotated[Any, Meta(description="First aspect according to the other side; bytes are hexadecimal.")]
    actual: Annotated[Any, Meta(description="First aspect according to the implementation.")]
    clauses: list[str]


class Step(Struct):
    """Step of a trace; :func:`conformance.operations.trace_steps.check_steps` checks its arguments."""

    op: str


class Document(Struct):
    """Whole document of a trace."""

    format: Literal["kidx-trace"]
    version: Literal[2]
    machine: Annotated[str, Meta(min_length=1)]
    release: Annotated[str, Meta(pattern=r"^[0-9]+\.[0-9]+\.[0-9]+$")]
    steps: Annotated[list[Step], Meta(min_length=1)]
    id: Annotated[str, Meta(pattern="^[0-9a-f]{12}$", description="Depends on machine, release and steps only.")] = ""
    title: str = ""
    failure: Failure | None = None
    provenance: Annotated[Object, Meta(description="Versions, seed and profile.")] = {}


def upgraded(document: Object) -> Object:
    """Return a document of version 1 as one of version 2; any other document is returned unchanged."""
    if document.get("version") != 1:
        return document
    return with_renamed_failure(renamed(document, {"made_by": "provenance"}) | {"version": VERSION})


def check_document(document: Object) -> None:
    """Raise an error if a document is not a trace.

    Raises:
        ValueError: Members are missing or of another type; the message names each of them.
    """
    try:
        msgspec.convert(document, Document)
    except ValidationError as error:
        wrong = [*filter(None, (_wrong_member(document, each) for each in msgspec.structs.fields(Document)))]
        raise ValueError("; ".join(wrong) or _error_message(str(error), document)) from None


def _wrong_member(document: Object, member: msgspec.structs.FieldInfo) -> str:
    """Return the error of one member of a document; an empty text if the member is right."""
    alone = {name: value for name, value in document.items() if name == member.name}
    try:
        msgspec.convert(alone, msgspec.defstruct("Alone", [(member.name, member.type, *_default(member))]))
    except ValidationError as error:
        return _error_message(str(error), alone)
    return ""


def _default(member: msgspec.structs.FieldInfo) -> tuple[None, ...]:
    return () if member.required else (None,)


def _error_message(message: str, document: Object) -> str:
    """Return an error message with the name of the member that msgspec rejects, and its value."""
    if missing := _MISSING.search(message):
        return f"{missing[1]} is missing"
    place = message.rpartition(" - at `$")[2]
    value: Any = document
    name = "the trace"
    for member, index in _LOCATIONS.findall(place):
        value = value[member] if member else value[int(index)]
        name = member or f"{name.removesuffix('s')} {int(index) + 1}"
    return f"{name} is {value!r:.80}: {message[:1].lower()}{message[1:]}"


_BOUNDS: Final = frozenset({"minimum", "maximum", "maxLength", "default", "title"})
"""The keywords that the schema omits, because the reader of a trace checks the ranges of numbers."""


def schema() -> Object:
    """Return the JSON Schema of a trace."""
    definitions = msgspec.json.schema_components([Document, *(STEPS[name] for name in INDEX_OPS)])[1]
    document, failure = definitions.pop("Document"), definitions.pop("Failure")
    del definitions["Step"]
    for step in definitions.values():
        del step["title"]
        step["properties"] = {name: _without_bounds(argument) for name, argument in step["properties"].items()}
    others = {"properties": {"op": {"not": {"enum": list(INDEX_OPS)}}}}
    step = {
        "description": "An operation on an index with all arguments, or an operation of another machine without them.",
        "type": "object",
        "properties": {"op": {"type": "string"}},
        "required": ["op"],
        "anyOf": [*({"$ref": f"#/$defs/{name}"} for name in INDEX_OPS), others],
    }
    members = document["properties"] | {"steps": {"type": "array", "items": {"$ref": "#/$defs/step"}, "minItems": 1}}
    members["failure"] = {"anyOf": [{"type": "null"}, {"$ref": "#/$defs/failure"}]}
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "$id": "urn:kidx:trace:2",
        "title": "A trace",
        "description": "The recorded operations of one example and the divergence that they produced. A step is a"
        " request of the line protocol, or an operation of the harness: bulk append, crash, corruption of the file.",
        "type": "object",
        "properties": {name: _without_bounds(member) for name, member in members.items()},
        "required": document["required"],
        "additionalProperties": False,
        "$defs": {"step": step, "failure": failure, **definitions},
    }


def _without_bounds(member: Object) -> Object:
    return {key: value for key, value in member.items() if key not in _BOUNDS}


def schema_text(document: Object) -> str:
    """Return the content of a file of ``conformance/schemas``, with one definition per line."""
    document = _of_any_msgspec(document)
    definitions = document["$defs"]
    lines = [f"{json.dumps(key)}: {json.dumps(value)}" for key, value in document.items() if key != "$defs"]
    body = ",\n    ".join(f"{json.dumps(key)}: {json.dumps(value)}" for key, value in definitions.items())
    return "{\n  " + ",\n  ".join([*lines, f'"$defs": {{\n    {body}\n  }}']) + "\n}\n"


def _of_any_msgspec(value: Any) -> Any:
    """Return a schema without what only some versions of msgspec generate: indented descriptions, empty defaults."""
    match value:
        case dict():
            members = {name: _of_any_msgspec(each) for name, each in value.items() if (name, each) != ("default", {})}
            if isinstance(members.get("description"), str):
                members["description"] = inspect.cleandoc(members["description"])
            return members
        case list():
            return [_of_any_msgspec(each) for each in value]
        case _:
            return value


if __name__ == "__main__":
    sys.stdout.write(schema_text(schema()))
