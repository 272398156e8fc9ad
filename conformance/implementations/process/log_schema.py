"""Definitions of version 2 in ``conformance/schemas/protocol.json``, from the structures that read its replies."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec

from conformance.implementations.process import log_messages as messages
from conformance.operations.log import LOG_ERRORS
from conformance.operations.log_capabilities import CAPABILITIES

if TYPE_CHECKING:
    from collections.abc import Mapping

Object = dict[str, Any]


def log_name(request: type[messages.Request]) -> str:
    """Return the prefix of the definitions of a request and its reply: ``log_``, unlike for an index."""
    tag = messages.op_of(request)
    return tag if tag.endswith("_log") else f"log_{tag}"


def in_words(names: Mapping[str, str]) -> str:
    """Return names and their meanings as one text."""
    return " ".join(f"{name}: {meaning}." for name, meaning in names.items())


def log_definitions() -> Object:
    """Return the requests about a log, each with its reply."""
    found: Object = {
        "log_error_kind": {"description": in_words(LOG_ERRORS), "enum": list(LOG_ERRORS)},
        "log_refusal": {
            "description": "The operation raises an error.",
            "type": "object",
            "properties": {"error": {"$ref": "#/$defs/log_error_kind"}, "message": {"type": "string"}},
            "required": ["error"],
            "additionalProperties": False,
        },
        "capabilities": {"description": in_words(CAPABILITIES), "enum": list(CAPABILITIES)},
    }
    others = [{"$ref": "#/$defs/log_refusal"}, {"$ref": "#/$defs/unsupported"}]
    ends: dict[type[messages.Request], Any] = {messages.Start: messages.Introduction, messages.Stop: None}
    for request, ok in (messages.REPLIES | ends).items():
        name = log_name(request)
        found[f"{name}_request"] = _plain(request)
        reply = {
            "type": "object",
            "properties": {"ok": _plain(ok)},
            "required": ["ok"],
            "additionalProperties": False,
        }
        found[f"{name}_reply"] = reply if request in ends else {"anyOf": [reply, *others]}
    return found


def _plain(kind: Any) -> Object:
    """Return the schema of a type without references."""
    schema = msgspec.json.schema(kind)
    definitions = schema.pop("$defs", {})
    if "$ref" in schema:
        schema = definitions[schema["$ref"].rpartition("/")[2]]
        schema.pop("title")
    return schema
