"""Page about the line protocol: prose, and tables from the JSON Schema of the requests.

It is ``PROTOCOL.md`` of the adapters that ``conformance init`` writes, and ``docs/protocol.md`` of this repository.
"""

from __future__ import annotations

from importlib.resources import files
from typing import TYPE_CHECKING, Any, Final

from conformance.implementations.process.schema import schema
from conformance.operations import ERRORS
from conformance.operations.index_capabilities import INDEX_CAPABILITIES
from conformance.operations.log import LOG_ERRORS
from conformance.operations.log_capabilities import CAPABILITIES

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

_WORDS: Final = {"null": "`null`", "boolean": "`true` or `false`", "integer": "an integer", "string": "a text"}
_LINKS: Final = {"start": "see above", "state": "see below"}
"""Texts that replace the description of ``ok``, by request."""


def protocol_page() -> str:
    """Return the page in Markdown."""
    text = (files(__package__) / "PROTOCOL.md.txt").read_text("utf-8")
    definitions = schema()["$defs"]
    requests = [name.removesuffix("_request") for name in definitions if name.endswith("_request")]
    of_log = [name for name in requests if name.startswith("log_") or name == "open_log"]
    state = definitions["log_state_reply"]["anyOf"][0]["properties"]["ok"]["properties"]
    of_index = definitions["time_state"]["properties"]
    only_mapped = of_index.keys() - definitions["transaction_state"]["properties"].keys()
    notes = {name: f"{_kind(of_index[name])}. A transaction index does not have this field." for name in only_mapped}
    parts = {
        "@INDEX@": _table(definitions, (name for name in requests if name not in of_log)),
        "@STATE@": _fields(of_index, **notes, last=_last(definitions)),
        "@INDEX_CAPABILITIES@": _list(INDEX_CAPABILITIES),
        "@ERRORS@": _list(ERRORS),
        "@LOG@": _table(definitions, of_log),
        "@LOG_STATE@": _fields(state),
        "@CAPABILITIES@": _list(CAPABILITIES),
        "@LOG_ERRORS@": _list(LOG_ERRORS),
    }
    for mark, part in parts.items():
        text = text.replace(mark, part)
    return text


def _list(words: Mapping[str, str]) -> str:
    return "\n".join(f"- `{name}`: {meaning}." for name, meaning in words.items())


def _table(definitions: dict[str, Any], names: Iterable[str]) -> str:
    """Return a row for each request."""
    rows = ["| request | what it does | `ok` |", "|---|---|---|"]
    notes: dict[str, str] = {}
    for name in names:
        request = definitions[f"{name}_request"]
        op, *arguments = request["properties"]
        called = (request["properties"][op].get("enum") or [request["properties"][op]["const"]])[0]
        shown = " ".join(f"`{word}`" for word in (called, *arguments))
        does = " ".join(request["description"].split())
        rows.append(f"| {shown} | {does} | {_LINKS.get(called) or _ok(definitions[f'{name}_reply'])} |")
        for argument in arguments:
            described = request["properties"][argument].get("description")
            if described and notes.setdefault(argument, described) != described:
                notes[f"{argument}` of `{called}"] = described
    return "\n".join([*rows, "", *(f"- `{argument}`: {meaning}" for argument, meaning in sorted(notes.items()))])


def _ok(reply: dict[str, Any]) -> str:
    """Describe the ``ok`` value of a reply."""
    return _kind(next(iter(reply.get("anyOf", [reply])))["properties"]["ok"])


def _kind(ok: dict[str, Any]) -> str:
    if "description" in ok:
        return str(ok["description"]).rstrip(".")
    if "anyOf" in ok:
        return " or ".join(map(_kind, ok["anyOf"]))
    if ok["type"] == "object":
        return "; ".join(f"`{name}`: {_kind(kind)}" for name, kind in ok["properties"].items())
    if ok["type"] == "array":
        return f"an array of {_kind(ok['items'])}"
    return _WORDS[ok["type"]]


def _last(definitions: dict[str, Any]) -> str:
    kinds = ("offset", "time", "transaction")
    return (
        "; ".join(f"{kind}: {definitions[f'{kind}_state']['properties']['last']['description']}" for kind in kinds)
        + "."
    )


def _fields(properties: dict[str, Any], **more: str) -> str:
    said = {name: more.get(name) or f"{_kind(kind)}." for name, kind in properties.items()}
    return "\n".join(f"- `{name}`: {meaning}" for name, meaning in said.items())
