"""Generator of ``kidx/messages/messages.json``: ``python -m conformance.kafka.messages FILE``.

The file has the fields of the records that brokers write to internal topics and metadata logs: names, types, versions
and defaults, by the release in which they changed. Kafka's jars contain these definitions as JSON.
"""

from __future__ import annotations

import json
import re
import sys
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

from conformance.kafka.jar_fetch import class_path
from conformance.kafka.releases import RELEASES

_JARS: Final = re.compile(r"(kafka(?:_2|-group-coordinator|-transaction-coordinator|-metadata|-storage|-clients))[-.]")
"""Jars with definitions."""
_GROUPS: Final = {
    "kafka-metadata": "metadata",
    "kafka-storage": "remote",
    "kafka-clients": "client",
    "kafka-group-coordinator": "coordinator",
    "kafka-transaction-coordinator": "coordinator",
    "kafka_2": "coordinator",
}
"""The group of the definitions in each jar."""
_NAMES: Final = {
    "metadata": re.compile(r"\w+Record"),
    "remote": re.compile(r"Remote\w+Record"),
    "coordinator": re.compile(r"\w+(?:Key|Value)"),
    "client": re.compile(
        r"LeaderChangeMessage|Snapshot(?:Header|Footer)Record|KRaftVersionRecord|VotersRecord"
        r"|ConsumerProtocol(?:Subscription|Assignment)"
    ),
}
"""The names of the definitions that are included, by group."""
_COMMENT: Final = re.compile(r"^\s*//.*$", re.MULTILINE)

Json = dict[str, Any]


def messages_of(release: str) -> dict[str, dict[str, Json]]:
    """Return the messages of a locked release, by group, such as ``metadata``, and name."""
    found: dict[str, dict[str, Json]] = {group: {} for group in sorted(set(_GROUPS.values()))}
    for jar in class_path(release, "log"):
        named = _JARS.match(Path(jar).name)
        if named is not None:
            group = _GROUPS[named[1]]
            for definition in _definitions(Path(jar)):
                if _NAMES[group].fullmatch(definition["name"]):
                    found[group][definition["name"]] = _message(definition)
    return found


def _definitions(jar: Path) -> Iterator[Json]:
    decoder = json.JSONDecoder()
    with zipfile.ZipFile(jar) as files:
        for name in files.namelist():
            if name.endswith(".json") and ("message/" in name or "metadata/" in name):
                # Some of Kafka's files end with a superfluous brace, which raw_decode ignores.
                definition, _ = decoder.raw_decode(_COMMENT.sub("", files.read(name).decode()).strip())
                if definition["type"] not in {"request", "response", "header"}:
                    yield definition


def _message(definition: Json) -> Json:
    structures = {each["name"]: each["fields"] for each in definition.get("commonStructs", ())}
    return {
        "key": definition.get("apiKey"),
        "versions": definition["validVersions"],
        "flexible": definition.get("flexibleVersions", "none"),
        "fields": [_field(field, structures) for field in definition["fields"]],
    }


def _field(field: Json, structures: dict[str, list[Json]]) -> Json:
    kind = field["type"]
    inner = field.get("fields") or structures.get(kind.removeprefix("[]"))
    result = {
        "name": field["name"][0].lower() + field["name"][1:],
        "type": kind if inner is None else f"{'[]' if kind.startswith('[]') else ''}struct",
        "versions": field.get("versions") or field["taggedVersions"],
    }
    for key, kafka_key in (("nullable", "nullableVersions"), ("tagged", "taggedVersions")):
        if kafka_key in field:
            result[key] = field[kafka_key]
    if "tag" in field:
        result["tag"] = int(field["tag"])
    if "tag" in field and "default" in field:
        result["default"] = _default(field["default"], kind)
    if inner is not None:
        result["of"] = kind.removeprefix("[]")
        result["fields"] = [_field(each, structures) for each in inner]
    return result


def _default(given: Any, kind: str) -> Any:
    """Return the default of a field; the definitions have it as text or as a number."""
    if given == "null":
        return None
    if kind == "bool":
        return given in ("true", True)
    if kind.startswith(("int", "uint")):
        return int(given, 0) if isinstance(given, str) else given
    return given


def history() -> dict[str, dict[str, list[tuple[str, Json | None]]]]:
    """Return the messages of all releases by group and name, each as (first release, definition) for every change.

    The definition is None if the message was removed in that release.
    """
    found: dict[str, dict[str, list[tuple[str, Json | None]]]] = {}
    for release in RELEASES:
        now = messages_of(release)
        for group, messages in now.items():
            known = found.setdefault(group, {})
            for name in sorted(known.keys() | messages.keys()):
                states = known.setdefault(name, [])
                message = messages.get(name)
                if message != (states[-1][1] if states else None):
                    states.append((release, message))
    return found


def text() -> str:
    """Return the content of the file, with one message per line."""
    lines = []
    for group, messages in sorted(history().items()):
        own = [f"  {json.dumps(name)}: {json.dumps(states)}" for name, states in sorted(messages.items())]
        lines.append(f" {json.dumps(group)}: {{\n" + ",\n".join(own) + "\n }")
    return "{\n" + ",\n".join(lines) + "\n}\n"


if __name__ == "__main__":
    Path(sys.argv[1]).write_text(text(), "utf-8")
