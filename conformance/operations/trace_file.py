"""Files with many traces, such as ``offset.ndjson``: one document per line, in the order of their ids.

The package has such files for its regression traces, one per machine, and for the traces that kill mutants. ``FILE#ID``
names a trace in such a file. ``python -m conformance.operations.trace_file FILE TRACE ...`` adds traces.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Final

from conformance.operations.trace import Trace, TraceError
from kidx.files import replacing

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from importlib.resources.abc import Traversable

    from conformance.operations import Json

SUFFIX: Final = ".ndjson"


def load_traces(path: Traversable) -> tuple[Trace, ...]:
    """Return the traces of a file, in the order of its lines.

    Raises:
        TraceError: The file cannot be read, or a line is not a trace.
    """
    return tuple(Trace.from_document(document, where) for where, document in _documents(path))


def find_in_file(path: Traversable, name: str) -> Trace | None:
    """Return the trace with an id; None if the file does not contain it.

    Args:
        name: The id, or machine and id as in ``offset-5f0c2a9be31d``.

    Raises:
        TraceError: The file cannot be read, or the line is not a trace.
    """
    for where, document in _documents(path):
        own = document.get("id") if isinstance(document, dict) else None
        if own is not None and name in (own, f"{document.get('machine')}-{own}"):
            return Trace.from_document(document, where)
    return None


def only_trace(path: Path, name: str) -> Trace:
    """Return one trace of a file.

    Args:
        name: The id of the trace; may be empty if the file has one trace.

    Raises:
        TraceError: The file does not have that trace, or cannot be read.
    """
    if name:
        if found := find_in_file(path, name):
            return found
        raise TraceError(f"{path} has no trace {name!r}")
    traces = load_traces(path)
    if len(traces) != 1:
        raise TraceError(f"{path} has {len(traces)} traces: name one as {path}#ID")
    return traces[0]


def save_traces(path: Path, traces: Iterable[Trace]) -> None:
    """Write a new file that has each trace once, sorted by id."""
    documents = sorted((trace.to_json() for trace in traces), key=lambda document: str(document["id"]))
    lines = dict.fromkeys(map(json.dumps, documents))
    with replacing(path) as partial:
        partial.write_text("".join(f"{line}\n" for line in lines), "utf-8")


def _documents(path: Traversable) -> Iterator[tuple[str, Json]]:
    """Yield the documents of a file, each after its location (``FILE:LINE``).

    Raises:
        TraceError: The file cannot be read, or a line is not JSON.
    """
    try:
        lines = path.read_text("utf-8").split("\n")
    except OSError as error:
        raise TraceError(f"cannot read the traces {path}: {error.strerror or error}") from error
    except ValueError as error:
        raise TraceError(f"the traces {path} are not text: {error}") from error
    for number, line in enumerate(lines, 1):
        where = f"{path}:{number}"
        if not line:
            continue
        try:
            yield where, json.loads(line)
        except (ValueError, RecursionError) as error:
            raise TraceError(f"the trace {where} is not JSON: {error}") from error


if __name__ == "__main__":
    target = Path(sys.argv[1])
    existing = load_traces(target) if target.exists() else ()
    save_traces(target, [*existing, *map(Trace.load, sys.argv[2:])])
