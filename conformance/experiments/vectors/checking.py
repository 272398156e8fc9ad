"""Check of test vectors: every step and query is executed again, and every file is compared."""

from __future__ import annotations

import hashlib
import json
from typing import TYPE_CHECKING, Any

from conformance.errors import ToolError
from conformance.experiments.vectors.document import load_document
from conformance.experiments.vectors.writing import (
    DOCUMENT,
    REPLY,
    SOUND,
    TABLE,
    VectorExecutors,
    rows_of,
    sound_rows_of,
)
from conformance.operations import Operation
from conformance.scratch import scratch_directory

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

    from conformance.experiments.vectors.document import Vector
    from conformance.experiments.vectors.writing import VectorExecutor
    from conformance.kafka.jar_fetch import Progress
    from conformance.operations import Json


def wrong_answers(vector: Vector, executor: VectorExecutor) -> Iterator[str]:
    """Yield a line for each answer and each file in which an implementation differs from a vector."""
    executor.begin()
    try:
        yield from _wrong(vector, "history", executor)
        found = {name: hashlib.sha256(content).hexdigest() for name, content in executor.files().items()}
        for name in sorted(found.keys() | vector.files.keys()):
            if found.get(name) != vector.files.get(name):
                yield f"{vector.name}: file {name} differs"
        executor.state = None
        yield from _wrong(vector, "opening", executor)
        yield from _wrong(vector, "queries", executor)
    finally:
        executor.participant.end()


def wrong_readings(vector: Vector, files: Mapping[str, bytes], executor: VectorExecutor) -> Iterator[str]:
    """Yield a line for each wrong answer of an implementation that opens the given files, without the history."""
    executor.begin()
    try:
        for name, content in files.items():
            path = executor.participant.directory / name
            path.parent.mkdir(exist_ok=True)
            path.write_bytes(content)
        yield from _wrong(vector, "opening", executor)
        yield from _wrong(vector, "queries", executor)
    finally:
        executor.participant.end()


def _wrong(vector: Vector, part: str, executor: VectorExecutor) -> Iterator[str]:
    for number, step in enumerate(getattr(vector, part), 1):
        request = {name: value for name, value in step.items() if name not in REPLY - {"op"}}
        try:
            operation = Operation.from_json(request)
        except ValueError as error:
            raise ToolError(f"{vector.name}, {part} {number}: {error}") from error
        given = executor.perform(operation)
        if given != step:
            yield f"{vector.name}: {part} {number}: {operation}: {_reply(step)} instead of {_reply(given)}"


def _reply(step: Json) -> str:
    reply: dict[str, Any] = {name: value for name, value in step.items() if name in REPLY - {"op"}}
    return json.dumps(reply)


def check_release(root: Path, progress: Progress | None = None) -> Iterator[str]:
    """Yield a line for each wrong answer and wrong file in the directory of a release.

    Raises:
        ToolError: the directory has no document of vectors, or Java or jars are missing.
    """
    document = load_document(root / DOCUMENT)
    where = document.release
    sound = []
    with scratch_directory() as scratch:
        executors = VectorExecutors(document.release, scratch, progress)
        for vector in document.vectors:
            yield from (f"{where} {line}" for line in wrong_answers(vector, executors[vector.machine]))
            files = {}
            for name, digest in vector.files.items():
                path = root / vector.name / name
                files[name] = path.read_bytes() if path.is_file() else b""
                if not path.is_file() or hashlib.sha256(files[name]).hexdigest() != digest:
                    yield f"{where} {vector.name}: {path} is not the file of the document"
            sound.append(sound_rows_of(vector, files))
    tables = {TABLE: "".join(map(rows_of, document.vectors)), SOUND: "".join(sound)}
    for table in (root / name for name in tables):
        if not table.is_file() or table.read_text("utf-8") != tables[table.name]:
            yield f"{where} {table} does not have the queries of the document"
