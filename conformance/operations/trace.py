"""Trace: the recorded operations of one example, as JSON that is independent of Hypothesis.

The document (JSON Schema: ``conformance/schemas/trace.json``)::

    {"format": "kidx-trace", "version": 2, "id": "5f0c2a9be31d", "machine": "offset", "release": "3.9.2",
     "steps": [{"op": "open", "kind": "offset", ...}, ...],
     "title": "...",                                        a description; optional
     "failure": {"step": 3, "participant": "...", ...} or null,   the divergence that was recorded
     "provenance": {"kidx": "0.1.0", "hypothesis": "6.170.15", "seed": 1, "profile": "ci"}}

Each step is a request of the line protocol. The paths of ``open`` and ``rename`` are in the implementation's directory.
"""

from __future__ import annotations

import hashlib
import json
import os
from dataclasses import dataclass, field
from pathlib import Path

from conformance.errors import ToolError
from conformance.operations import Json, Operation
from conformance.operations.trace_document import FORMAT, READABLE, VERSION, check_document, upgraded
from conformance.operations.trace_steps import check_steps
from kidx.files import replacing


class TraceError(ToolError):
    """Trace that cannot be read."""


@dataclass(frozen=True)
class Trace:
    """Operations to be executed in lockstep, and the divergence that they once produced.

    Attributes:
        machine: The machine that recorded the trace.
        release: The release with which the implementation was compared.
        operations: The steps.
        failure: The divergence that was recorded, as JSON; None if all participants agreed.
        title: A description of the trace.
        provenance: The versions, the seed and the profile of the run.
    """

    machine: str
    release: str
    operations: tuple[Operation, ...]
    failure: Json | None = None
    title: str = ""
    provenance: Json = field(default_factory=dict)

    @property
    def id(self) -> str:
        """Twelve hexadecimal digits that depend only on machine, release and steps."""
        steps = [operation.to_json() for operation in self.operations]
        text = json.dumps([self.machine, self.release, steps], sort_keys=True)
        return hashlib.sha256(text.encode()).hexdigest()[:12]

    def to_json(self) -> Json:
        """Return the document."""
        document: Json = {"format": FORMAT, "version": VERSION, "id": self.id}
        if self.title:
            document["title"] = self.title
        return document | {
            "machine": self.machine,
            "release": self.release,
            "steps": [operation.to_json() for operation in self.operations],
            "failure": self.failure,
            "provenance": self.provenance,
        }

    def save(self, directory: Path) -> Path:
        """Write ``<machine>-<id>.json``, with one step per line, and return its path.

        The file appears with its whole content. A file that already has this content is not rewritten. If several
        processes save the same trace concurrently, the file of the last one remains.

        Raises:
            ToolError: The directory cannot be written to.
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
            raise ToolError(f"cannot write the trace {path}: {error.strerror or error}") from error
        return path

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Trace:
        """Read a trace.

        Raises:
            TraceError: The file cannot be read, is not a trace, or has an unknown version.
        """
        try:
            document = json.loads(Path(path).read_text("utf-8"))
        except OSError as error:
            raise TraceError(f"cannot read the trace {path}: {error.strerror or error}") from error
        except (ValueError, RecursionError) as error:
            raise TraceError(f"the trace {path} is not JSON: {error}") from error
        return cls.from_document(document, str(path))

    @classmethod
    def from_document(cls, document: object, where: str) -> Trace:
        """Return the trace of a document.

        Args:
            document: The parsed JSON.
            where: The location of the document, for messages.

        Raises:
            TraceError: The document is not a trace, or has an unknown version.
        """
        if not isinstance(document, dict) or document.get("format") != FORMAT:
            raise TraceError(f"{where} is not a trace: its format is not {FORMAT!r}")
        if document.get("version") not in READABLE:
            found, known = document.get("version"), " and ".join(map(str, READABLE))
            raise TraceError(f"{where} is a trace of version {found!r}; this program reads versions {known}")
        try:
            return _from_json(upgraded(document))
        except ValueError as error:
            raise TraceError(f"the trace {where} cannot be executed: {error}") from error


def _from_json(document: Json) -> Trace:
    """Return the trace of a document.

    Raises:
        ValueError: A member is missing or of another type, or a step cannot be executed.
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
        document.get("provenance", {}),
    )
