"""The line protocol as types, and the JSON Schema that they describe: version 1 here, 2 in ``log_messages``.

``python -m conformance.implementations.process.schema`` prints the schema: ``conformance/schemas/protocol.json``. It is
for readers and for other languages; the harness reads replies with :mod:`conformance.implementations.replies`, in a
microsecond and in words of its own. A test holds the two to each other.
"""

from __future__ import annotations

import sys
from typing import Annotated, Any, Final, Literal

import msgspec
from msgspec import Meta

from conformance.implementations.process.log_messages import REPLIES, Start
from conformance.implementations.process.log_schema import log_definitions, log_name
from conformance.operations import ERROR_KINDS, SIGNATURES
from conformance.operations.index_steps import type_of
from conformance.operations.trace_document import schema_text
from kidx.java_numbers import INT_MAX, LONG_MAX, LONG_MIN

Object = dict[str, Any]
_Long = Annotated[
    int,
    Meta(
        ge=LONG_MIN,
        le=LONG_MAX,
        description="An integer of 64 bits: read it as one, a double loses digits beyond 2**53.",
    ),
]
_Offset = Annotated[int, Meta(ge=0, le=LONG_MAX, description="An offset of a transaction.")]
_Pair = Annotated[list[_Long], Meta(min_length=2, max_length=2)]
_Transaction = Annotated[
    list[_Long],
    Meta(min_length=4, max_length=4, description="producer_id, first_offset, last_offset, last_stable_offset"),
]
_COLLECTED: Final[Object] = {"aborted": list[_Transaction], "complete": bool}
_MAPPED: Final[Object] = {"entries": _Long, "max_entries": _Long, "full": bool, "length": _Long}
_KINDS = Annotated[list[Literal["offset", "time", "transaction", "log"]], Meta(min_length=1)]
_ABOUT: Final[Object] = {"name": Annotated[str, Meta(min_length=1)], "version": str, "language": str, "kinds": _KINDS}

_OPEN: Final = (
    "Opens the file, or creates it. No other index is open then. A transaction index ignores max_index_size and"
    " writable."
)
OPERATIONS: Final[dict[str, tuple[Any, str]]] = {
    "open": (None, _OPEN),
    "append": (None, "Offset index: adds an entry."),
    "maybe_append": (None, "Time index: adds an entry if its timestamp is larger than the last one."),
    "append_aborted": (None, "Transaction index: adds a record."),
    "lookup": (_Pair, "The last entry whose key is at or below the target: [offset, position] or [timestamp, offset]."),
    "entry": (_Pair, "The entry in a slot: [offset, position] or [timestamp, offset]."),
    "fetch_upper_bound": (
        _Pair | None,
        "Offset index: the first entry at or behind position + fetch_size, null if there is none.",
    ),
    "collect_aborted": (_COLLECTED, "Transaction index: what a fetch has to hide."),
    "truncate": (None, "Removes all entries."),
    "truncate_to": (None, "Removes what is at or beyond an offset."),
    "reset": (None, "Removes everything."),
    "resize": (bool, "Changes the length of the file; true if that was necessary."),
    "trim": (None, "Cuts the file behind the last entry."),
    "sanity_check": (None, "Refuses (corrupt) a file that cannot be right."),
    "flush": (None, "Writes to disk."),
    "close": (None, "Lets go of the file. Further calls may come, and are answered."),
    "delete": (bool, "Closes and deletes the file; true if there was one."),
}
"""By operation: the type of the ``ok`` of its reply, and what it does."""
_LAST: Final = {
    "offset": (1, 1, "[offset]"),
    "time": (2, 2, "[timestamp, offset]"),
    "transaction": (0, 1, "[offset] that this process has appended last, or []"),
}
_ARGUMENTS: Final[dict[tuple[str, str], Any]] = {
    ("open", "path"): Annotated[str, Meta(min_length=1, description="An absolute path.")],
    ("resize", "size"): Annotated[int, Meta(ge=0, le=INT_MAX, description="Bytes.")],
    **{("append_aborted", name): _Offset for name in ("first_offset", "last_offset", "last_stable_offset")},
    **{("collect_aborted", name): _Offset for name in ("fetch_offset", "upper_bound")},
}
"""The arguments that are less here than in a trace."""
_REFUSAL: Final = {"$ref": "#/$defs/refusal"}
_UNSUPPORTED: Final = {"$ref": "#/$defs/unsupported"}


def _schema(kind: Any) -> Object:
    return _closed(kind) if isinstance(kind, dict) else msgspec.json.schema(kind)


def _closed(members: Object, **required: Any) -> Object:
    """An object of these members and no others."""
    properties = {name: {"const": value} for name, value in required.items()}
    properties |= {name: _schema(kind) for name, kind in members.items()}
    return {"type": "object", "properties": properties, "required": [*properties], "additionalProperties": False}


def _request(name: str, does: str, arguments: Object | None = None, **members: Any) -> Object:
    return {"description": does, **_closed(arguments or {}, op=name, **members)}


def _definitions() -> Object:
    found: Object = {
        "error_kind": {"enum": list(ERROR_KINDS)},
        "refusal": {
            "description": "The operation is refused.",
            "type": "object",
            "properties": {"error": {"$ref": "#/$defs/error_kind"}, "message": {"type": "string"}},
            "required": ["error"],
            "additionalProperties": False,
        },
        "unsupported": {"description": "The implementation lacks this operation.", **_closed({}, unsupported=True)},
        "start_request": _request("start", "The first request of a process.", protocol=1),
        "start_reply": _closed({"ok": _ABOUT}),
    }
    found["start_reply"]["properties"]["ok"]["additionalProperties"] = True
    for name, (ok, does) in OPERATIONS.items():
        arguments = {a: _ARGUMENTS.get((name, a)) or type_of(name, a) for a in SIGNATURES[name]}
        found[f"{name}_request"] = _request(name, does, arguments)
        found[f"{name}_reply"] = {"anyOf": [_closed({"ok": ok}), _REFUSAL, _UNSUPPORTED]}
    found["state_request"] = _request(
        "state",
        "What the index says of itself; sent after every operation. An index that is open tells it or declares state as"
        " unsupported (open_offset_state_reply and so on); only of one that is closed or deleted may it be refused.",
    )
    for kind, (least, most, words) in _LAST.items():
        last = Annotated[list[_Long], Meta(min_length=least, max_length=most, description=words)]
        found[f"{kind}_state"] = _closed({**({"entries": _Long} if kind == "transaction" else _MAPPED), "last": last})
        told = _closed({})
        told.update(properties={"ok": {"$ref": f"#/$defs/{kind}_state"}}, required=["ok"])
        found[f"{kind}_state_reply"] = {
            "description": f"Of an index that is closed or deleted; of an open one see open_{kind}_state_reply.",
            "anyOf": [told, _REFUSAL, _UNSUPPORTED],
        }
        found[f"open_{kind}_state_reply"] = {
            "description": "Of an index that is open: nothing keeps it from telling its state.",
            "anyOf": [told, _UNSUPPORTED],
        }
    found["state_reply"] = {"anyOf": [{"$ref": f"#/$defs/{kind}_state_reply"} for kind in _LAST]}
    found["stop_request"] = _request("stop", "The process ends, with status 0. A reply is not waited for.")
    found["stop_reply"] = _closed({"ok": None})
    return found | log_definitions()


def _names() -> list[str]:
    return ["start", *OPERATIONS, "state", "stop", log_name(Start), *map(log_name, REPLIES)]


def schema() -> Object:
    """The JSON Schema of the protocol."""
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "$id": "urn:kidx:line-protocol:1",
        "title": "Line protocol, versions 1 and 2",
        "description": "Requests come on standard input, replies go to standard output, one JSON object a line;"
        " standard error is free. A document of this schema is a request; its reply is the definition of the same"
        " name that ends in _reply. Integers are written without fraction and exponent. Version 1 is about an index;"
        " version 2 is about a log: start of protocol 2, open_log, and the definitions that begin with log_. Read"
        " integers of 64 bits as such: a double loses digits beyond 2**53.",
        "anyOf": [{"$ref": f"#/$defs/{name}_request"} for name in _names()],
        "$defs": _definitions(),
    }


if __name__ == "__main__":
    sys.stdout.write(schema_text(schema()))
