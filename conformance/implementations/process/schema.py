"""JSON Schema of the line protocol, derived from the structures that write requests and read replies.

``python -m conformance.implementations.process.schema`` prints the schema, which is
``conformance/schemas/protocol.json``, for readers and for other languages.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any, Final

import msgspec

from conformance.implementations.process.index_messages import VERSION as INDEX_VERSION
from conformance.implementations.process.log_messages import VERSION as LOG_VERSION
from conformance.implementations.process.messages import Request, Stop, Version, in_words, op_of
from conformance.operations.trace_document import schema_text

if TYPE_CHECKING:
    from collections.abc import Mapping

Object = dict[str, Any]

_WORDS: Final = {
    "kind": "offset (.index), time (.timeindex) or transaction (.txnindex).",
    "path": "An absolute path.",
    "base_offset": "The first offset of the segment: files hold offsets relative to it.",
    "max_index_size": "Size of a new file of zeros, in complete entries; an existing file is not changed.",
    "writable": "false: the file is only read.",
    "offset": "An offset in the log (not relative).",
    "position": "The position of the batch in the segment's .log file, in bytes.",
    "timestamp": "Milliseconds since 1970.",
    "skip_full_check": "true: the last slot may be used.",
    "target": "An offset, or a timestamp.",
    "n": "The number of a slot, from 0 on.",
    "fetch_size": "Maximum size of a fetch, in bytes.",
    "producer_id": "The producer of the transaction.",
    "size": "Bytes.",
}
"""Descriptions of the arguments of a request about an index, by name."""


def definition_name(version: Version, request: type[Request]) -> str:
    """Return the prefix of the definitions of a request and its reply; about a log it begins with ``log_``."""
    op = op_of(request)
    return op if version is INDEX_VERSION or op.endswith("_log") else f"log_{op}"


def schema() -> Object:
    """Return the JSON Schema of the protocol."""
    of_log = [each for each in dict.fromkeys((type(LOG_VERSION.start), *LOG_VERSION.replies)) if each is not Stop]
    names = [
        definition_name(version, each)
        for version, all_ in ((INDEX_VERSION, INDEX_VERSION.replies), (LOG_VERSION, of_log))
        for each in all_
    ]
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "$id": "urn:kidx:line-protocol:1",
        "title": "Line protocol, versions 1 and 2",
        "description": "Requests come on standard input, replies go to standard output, one JSON object per line;"
        " standard error is free. docs/protocol.md explains it in prose. A document of this schema is a request; its"
        " reply is the definition of the same"
        " name that ends in _reply. Integers are written without fraction and exponent. Version 1 is about an index;"
        " version 2 is about a log: start of protocol 2, open_log, and the definitions that begin with log_. Read"
        " 64-bit integers exactly: a double loses digits beyond 2**53.",
        "anyOf": [{"$ref": f"#/$defs/{name}_request"} for name in names],
        "$defs": _of_index() | _of_log(),
    }


def _of_index() -> Object:
    unsupported = _closed("unsupported", {"const": True})
    more = {"unsupported": {"description": "The implementation lacks this operation.", **unsupported}}
    found = _definitions(INDEX_VERSION, "", more)
    found["start_reply"]["properties"]["ok"]["additionalProperties"] = True
    for name in (name for name in found if name.endswith("_request")):
        for argument, described in found[name]["properties"].items():
            if len(described.get("enum", ())) == 1:
                found[name]["properties"][argument] = {"const": described["enum"][0]}
            elif argument in _WORDS:
                described["description"] = _WORDS[argument]
    return found


def _of_log() -> Object:
    return _definitions(LOG_VERSION, "log_", {"capabilities": _names(LOG_VERSION.capabilities)})


def _definitions(version: Version, prefix: str, more: Object) -> Object:
    """Return the definitions of a version's requests and replies, and ``more`` definitions."""
    refusal = {
        "description": "The operation raises an error.",
        "type": "object",
        "properties": {"error": {"$ref": f"#/$defs/{prefix}error_kind"}, "message": {"type": "string"}},
        "required": ["error"],
        "additionalProperties": False,
    }
    found = {f"{prefix}error_kind": _names(version.errors), f"{prefix}refusal": refusal, **more}
    others = [{"$ref": f"#/$defs/{prefix}refusal"}, {"$ref": "#/$defs/unsupported"}]
    for request, ok in version.replies.items():
        name = definition_name(version, request)
        found[f"{name}_request"] = _plain(request)
        if isinstance(ok, dict):
            found |= _states(ok, others)
            continue
        reply = _closed("ok", _plain(ok, described=version is LOG_VERSION))
        found[f"{name}_reply"] = reply if request in (type(version.start), Stop) else {"anyOf": [reply, *others]}
    return found


def _states(states: dict[str, Any], others: list[Object]) -> Object:
    """Return the definitions of the state for each kind of index, and of the replies that contain it."""
    found: Object = {}
    for kind, state in states.items():
        state_reply = _closed("ok", {"$ref": f"#/$defs/{kind}_state"})
        found[f"{kind}_state"] = _plain(state)
        found[f"{kind}_state_reply"] = {
            "description": f"For a closed or deleted index; for an open one see open_{kind}_state_reply.",
            "anyOf": [state_reply, *others],
        }
        found[f"open_{kind}_state_reply"] = {
            "description": "For an open index, which always returns its state.",
            "anyOf": [state_reply, others[-1]],
        }
    return found | {"state_reply": {"anyOf": [{"$ref": f"#/$defs/{kind}_state_reply"} for kind in states]}}


def _names(names: Mapping[str, str]) -> Object:
    return {"description": in_words(names), "enum": list(names)}


def _closed(name: str, kind: Object) -> Object:
    """Return an object with this member and no others."""
    return {"type": "object", "properties": {name: kind}, "required": [name], "additionalProperties": False}


def _plain(kind: Any, *, described: bool = True) -> Object:
    """Return the schema of a type without references; without descriptions of structures unless ``described``."""
    schema = msgspec.json.schema(kind)
    definitions = schema.pop("$defs", {})
    if "$ref" in schema:
        schema = definitions[schema["$ref"].rpartition("/")[2]]
        schema.pop("title")
        if not described:
            schema.pop("description", None)
    return schema


if __name__ == "__main__":
    sys.stdout.write(schema_text(schema()))
