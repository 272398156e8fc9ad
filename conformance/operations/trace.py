"""A trace: the recorded operations of one run, as JSON that is independent of Hypothesis.

The document (JSON Schema: ``conformance/schemas/trace.json``)::

    {"format": "kidx-trace", "version": 1, "id": "5f0c2a9be31d", "machine": "offset", "release": "3.9.2",
     "steps": [{"op": "open", "kind": "offset", ...}, ...],
     "title": "...",                                        what it shows, in words; may be missing
     "failure": {"step": 3, "party": "...", ...} or null,   the difference that it was recorded for
     "made_by": {"kidx": "0.1.0", "hypothesis": "6.170.15", "seed": 1, "profile": "ci"}}

Each step is the request of the line protocol; ``open`` and ``rename`` name a file in the implementation's directory.
"""

from __future__ import annotations

import hashlib
import json
import os
from dataclasses import dataclass, field
from pathlib import Path

from conformance.errors import ToolError
from conformance.operations import Json, Operation
from conformance.operations.trace_document import FORMAT, VERSION, check_document
from conformance.operations.trace_steps import check_steps
from kidx.files import replacing


class TraceError(ToolError):
    """A trace cannot be read."""


@dataclass(frozen=True)
class Trace:
    """Operations to be performed in lockstep, and the difference that they once showed.

    Attributes:
        machine: which machine recorded it.
        release: the release it was recorded against.
        operations: the steps.
        failure: the difference, as ``failure_json`` of the divergence gives it; None if the trace shows agreement.
        title: what it shows, in words.
        made_by: versions, seed and profile.
    """

    machine: str
    release: str
    operations: tuple[Operation, ...]
    failure: Json | None = None
    title: str = ""
    made_by: Json = field(default_factory=dict)

    @property
    def id(self) -> str:
        """Twelve hexadecimal digits that depend on the steps and the release only."""
        steps = [operation.to_json() for operation in self.operations]
        text = json.dumps([self.machine, self.release, steps], sort_keys=True)
        return hashlib.sha256(text.encode()).hexdigest()[:12]

    def to_json(self) -> Json:
        """The document."""
        document: Json = {"format": FORMAT, "version": VERSION, "id": self.id}
        if self.title:
            document["title"] = self.title
        return document | {
            "machine": self.machine,
            "release": self.release,
            "steps": [operation.to_json() for operation in self.operations],
            "failure": self.failure,
            "made_by": self.made_by,
        }

    def save(self, directory: Path) -> Path:
        """Writes ``<machine>-<id>.json``, a step a line, and returns its path.

        The file appears with all of its content. A file with the same steps stays as it is. Processes that find a trace
        at the same time each write a file of their own, and any of them may be the last to rename it.

        Raises:
            ToolError: the directory cannot be written.
        """
        path = directory / f"{self.machine}-{self.id}.json"
        document = self.to_json()
        steps = document.pop("steps")
        lines = [f"{json.dumps(key)}: {json.dumps(value)}" for key, value in document.items()]
        body = ",\n    ".join(json.dumps(step) for step in steps)
        lines.insert(-2, f'"steps": [\n    {body}\n  ]')
        content = ("{\n  " + ",\n  ".join(lines) + "\n}\n").encode()
        try:
            directory.mkdir(parents=True, exist_ok=True)
            if not path.is_file() or path.read_bytes() != content:
                with replacing(path) as partial:
                    partial.write_bytes(content)
        except OSError as error:
            raise ToolError(f"the trace {path} cannot be written: {error.strerror or error}") from error
        return path

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Trace:
        """Reads a trace.

        Raises:
            TraceError: the file cannot be read, is not a trace, or has another version.
        """
        try:
            document = json.loads(Path(path).read_text("utf-8"))
        except OSError as error:
            raise TraceError(f"the trace {path} cannot be read: {error.strerror or error}") from error
        except (ValueError, RecursionError) as error:
            raise TraceError(f"the trace {path} is not JSON: {error}") from error
        return cls.from_document(document, str(path))

    @classmethod
    def from_document(cls, document: object, where: str) -> Trace:
        """Return the trace of a document.

        Args:
            document: what was read.
            where: its place, for messages.

        Raises:
            TraceError: it is not a trace, or has another version.
        """
        if not isinstance(document, dict) or document.get("format") != FORMAT:
            raise TraceError(f"{where} is not a trace: its format is not {FORMAT!r}")
        if document.get("version") != VERSION:
            found = document.get("version")
            raise TraceError(f"{where} is a trace of version {found!r}; this program reads version {VERSION}")
        try:
            return _from_json(document)
        except ValueError as error:
            raise TraceError(f"the trace {where} cannot be performed: {error}") from error


def _from_json(document: Json) -> Trace:
    """A trace from its document.

    Raises:
        ValueError: a member is missing or of another type, or a step cannot be performed.
    """
    check_document(document)
    operations = tuple(map(Operation.from_json, document["steps"]))
    check_steps(document["machine"], operations)
    return Trace(
        document["machine"],
        document["release"],
        operations,
        document.get("failure"),
        document.get("title", ""),
        document.get("made_by", {}),
    )
