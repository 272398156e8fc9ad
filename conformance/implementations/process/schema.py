"""Types of the line protocol, and their JSON Schema: version 1 here, version 2 in ``log_messages``.

``python -m conformance.implementations.process.schema`` prints the schema: ``conformance/schemas/protocol.json``. It is
for readers and for other languages; the harness reads replies with :mod:`conformance.implementations.replies`, in a
microsecond and with clearer messages. A test compares the two.
"""

from __future__ import annotations

import sys
from typing import Annotated, Any, Final, Literal

import msgspec
from msgspec import Meta

from conformance.implementations.process.log_messages import REPLIES, Start
from conformance.implementations.process.log_schema import in_words, log_definitions, log_name
from conformance.operations import ERRORS
from conformance.operations.index import INDEX_OPS
from conformance.operations.index_capabilities import INDEX_CAPABILITIES
from conformance.operations.op import Shape
from conformance.operations.trace_document import schema_text
from kidx.java_numbers import INT_MAX, LONG_MAX, LONG_MIN

Object = dict[str, Any]
_Long = Annotated[int, Meta(ge=LONG_MIN, le=LONG_MAX)]
_Offset = Annotated[int, Meta(ge=0, le=LONG_MAX, description="An offset of a transaction.")]
_Pair = Annotated[
    list[_Long], Meta(min_length=2, max_length=2, description="[offset, position] or [timestamp, offset]")
]
_Transaction = Annotated[
    list[_Long],
    Meta(min_length=4, max_length=4, description="producer_id, first_offset, last_offset, last_stable_offset"),
]
_COLLECTED: Final[Object] = {"aborted": list[_Transaction], "complete": bool}
_ENTRIES = Annotated[_Long, Meta(description="The number of entries of the index.")]
_CAPACITY = Annotated[
    _Long, Meta(description="The entries that fit into the file: length divided by the size of an entry, rounded down.")
]
_FULL = Annotated[
    bool,
    Meta(
        description="True if entries has reached max_entries; in a time index, one less: the last slot is for the entry"
        " that ends a segment (skip_full_check)."
    ),
]
_STOP = 'Ends the process, with status 0. It may reply {"ok": null} before, and writes nothing else.'
_LENGTH = Annotated[_Long, Meta(description="Bytes of the file when it was opened or its length last changed.")]
_MAPPED: Final[Object] = {"entries": _ENTRIES, "max_entries": _CAPACITY, "full": _FULL, "length": _LENGTH}
_KINDS = Annotated[list[Literal["offset", "time", "transaction", "log"]], Meta(min_length=1)]
_INDEX_CAPABILITIES: Final[Any] = Annotated[
    list[Literal[tuple(INDEX_CAPABILITIES)]],  # type: ignore[misc]
    Meta(
        description="The capabilities of its indexes; by default all. A request that needs a missing one is never sent,"
        " and its clauses are unsupported. " + in_words(INDEX_CAPABILITIES)
    ),
]
_ABOUT: Final[Object] = {"name": Annotated[str, Meta(min_length=1)], "version": str, "language": str, "kinds": _KINDS}

_OK: Final[dict[Shape, Any]] = {
    Shape.NOTHING: None,
    Shape.FLAG: bool,
    Shape.PAIR: _Pair,
    Shape.MAYBE_PAIR: _Pair | None,
    Shape.COLLECTED: _COLLECTED,
}
_ORDER: Final = """
    open append maybe_append append_aborted lookup entry fetch_upper_bound collect_aborted truncate truncate_to reset
    resize trim sanity_check flush close delete
"""
"""Order of the operations in the schema since version 1; newer ones follow them."""
OPERATIONS: Final = {
    name: INDEX_OPS[name] for name in dict.fromkeys((*_ORDER.split(), *INDEX_OPS)) if INDEX_OPS[name].does
}
"""Operations on an index that the line protocol has."""
_LAST: Final = {
    "offset": (1, 1, "[offset] of the last entry, [base_offset] without one"),
    "time": (2, 2, "[timestamp, offset] of the last entry, [-1, base_offset] without one"),
    "transaction": (0, 1, "[last_offset] of the last append by this process, or []"),
}
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
"""Descriptions of the arguments, by name."""
_ARGUMENTS: Final[dict[tuple[str, str], Any]] = {
    ("open", "path"): Annotated[str, Meta(min_length=1)],
    ("resize", "size"): Annotated[int, Meta(ge=0, le=INT_MAX)],
    **{("append_aborted", name): _Offset for name in ("first_offset", "last_offset", "last_stable_offset")},
    **{("collect_aborted", name): _Offset for name in ("fetch_offset", "upper_bound")},
}
"""Arguments that have a smaller range here than in a trace."""
_REFUSAL: Final = {"$ref": "#/$defs/refusal"}
_UNSUPPORTED: Final = {"$ref": "#/$defs/unsupported"}


def _schema(kind: Any) -> Object:
    return _closed(kind) if isinstance(kind, dict) else msgspec.json.schema(kind)


def _closed(members: Object, **required: Any) -> Object:
    """Return an object with these members and no others."""
    properties = {name: {"const": value} for name, value in required.items()}
    properties |= {name: _schema(kind) for name, kind in members.items()}
    return {"type": "object", "properties": properties, "required": [*properties], "additionalProperties": False}


def _request(name: str, does: str, arguments: Object | None = None, **members: Any) -> Object:
    return {"description": does, **_closed(arguments or {}, op=name, **members)}


def _definitions() -> Object:
    found: Object = {
        "error_kind": {"description": in_words(ERRORS), "enum": list(ERRORS)},
        "refusal": {
            "description": "The operation raises an error.",
            "type": "object",
            "properties": {"error": {"$ref": "#/$defs/error_kind"}, "message": {"type": "string"}},
            "required": ["error"],
            "additionalProperties": False,
        },
        "unsupported": {"description": "The implementation lacks this operation.", **_closed({}, unsupported=True)},
        "start_request": _request("start", "Starts a process; the first request.", protocol=1),
        "start_reply": _closed({"ok": _ABOUT}),
    }
    about = found["start_reply"]["properties"]["ok"]
    about["properties"]["index_capabilities"] = _schema(_INDEX_CAPABILITIES)
    about["additionalProperties"] = True
    for name, each in OPERATIONS.items():
        arguments = {argument: _ARGUMENTS.get((name, argument)) or kind for argument, kind in each.arguments.items()}
        found[f"{name}_request"] = _request(name, each.does, arguments)
        for argument, words in _WORDS.items():
            if argument in arguments:
                found[f"{name}_request"]["properties"][argument]["description"] = words
        found[f"{name}_reply"] = {"anyOf": [_closed({"ok": _OK[each.gives]}), _REFUSAL, _UNSUPPORTED]}
    found["state_request"] = _request(
        "state",
        "Returns the state of the index; sent after every operation. An open index returns it or declares state as"
        " unsupported (open_offset_state_reply and so on); only a closed or deleted one may reply with an error.",
    )
    for kind, (least, most, words) in _LAST.items():
        last = Annotated[list[_Long], Meta(min_length=least, max_length=most, description=words)]
        found[f"{kind}_state"] = _closed(
            {**({"entries": _ENTRIES} if kind == "transaction" else _MAPPED)} | {"last": last}
        )
        told = _closed({})
        told.update(properties={"ok": {"$ref": f"#/$defs/{kind}_state"}}, required=["ok"])
        found[f"{kind}_state_reply"] = {
            "description": f"For a closed or deleted index; for an open one see open_{kind}_state_reply.",
            "anyOf": [told, _REFUSAL, _UNSUPPORTED],
        }
        found[f"open_{kind}_state_reply"] = {
            "description": "For an open index, which always returns its state.",
            "anyOf": [told, _UNSUPPORTED],
        }
    found["state_reply"] = {"anyOf": [{"$ref": f"#/$defs/{kind}_state_reply"} for kind in _LAST]}
    found["stop_request"] = _request("stop", _STOP)
    found["stop_reply"] = _closed({"ok": None})
    return found | log_definitions()


def _names() -> list[str]:
    return ["start", *OPERATIONS, "state", "stop", log_name(Start), *map(log_name, REPLIES)]


def schema() -> Object:
    """Return the JSON Schema of the protocol."""
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
        "anyOf": [{"$ref": f"#/$defs/{name}_request"} for name in _names()],
        "$defs": _definitions(),
    }


if __name__ == "__main__":
    sys.stdout.write(schema_text(schema()))
