"""JSON Schema of a line of ``events.ndjson``, generated from the event classes.

``python -m conformance.report.schema`` prints it: the file ``conformance/schemas/events.json``. Fields that are not in
the schema come from a later version; a reader ignores them, and events of unknown name as well.
"""

from __future__ import annotations

import sys
from typing import Any

import msgspec

from conformance.events import KINDS
from conformance.operations.trace_document import schema_text


def schema() -> dict[str, Any]:
    """Return the JSON Schema of an event."""
    definitions = msgspec.json.schema_components(KINDS.values())[1]
    for name, definition in definitions.items():
        del definition["title"]
        definition["description"] = definition["description"].partition("\n")[0]
        definition["properties"] = {"event": {"const": name}, **definition["properties"]}
        definition["required"] = ["event", *definition["required"]]
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "$id": "urn:kidx:events:2",
        "title": "An event",
        "description": "A line of events.ndjson. The first event of a run is RunStarted, the last one RunFinished.",
        "anyOf": [{"$ref": f"#/$defs/{name}"} for name in KINDS],
        "$defs": definitions,
    }


if __name__ == "__main__":
    sys.stdout.write(schema_text(schema()))
