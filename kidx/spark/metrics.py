"""Metrics of a query, with the conditions that Spark pushed down to it: each task writes a small file.

Spark has no counters for sources in Python, and its plans do not show the conditions that they use.
"""

from __future__ import annotations

import json
import logging
import uuid
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from kidx.tables.indexes import Counter

_logger: Final = logging.getLogger("kidx.spark")


@dataclass(frozen=True)
class Totals:
    """Cost of a query: bytes read of logs and of index files, and the number of its tasks.

    Attributes:
        pushed: conditions that the source used, such as ``offset > 20``.
        rows: number of rows that the tasks gave Spark.
        segments: number of segments of all tasks; one that is cut counts for each task that reads of it.
        skipped: number of segments that the planning found to have nothing that is requested.
    """

    log_bytes: int
    index_bytes: int
    tasks: int
    pushed: tuple[str, ...] = ()
    rows: int = 0
    segments: int = 0
    skipped: int = 0

    @property
    def bytes_read(self) -> int:
        """Number of bytes read of all files."""
        return self.log_bytes + self.index_bytes


def record_metrics(
    directory: str | None, kind: str, counter: Counter, pushed: Iterable[str] = (), *, rows: int = 0, segments: int = 0
) -> None:
    """Record the reads of a task (``read``) or of the planning of a query (``plan``) in the log, and in a file.

    Args:
        directory: directory for the file; None to write no file.
        kind: ``read`` or ``plan``.
        counter: counter of the reads.
        pushed: conditions that the planning used.
        rows: number of rows that the task gave Spark.
        segments: number of segments of the task.

    Raises:
        OSError: the file cannot be written.
    """
    pushed = list(pushed)
    _logger.info("%s: %d bytes of logs, %d of index files", kind, counter.log_bytes, counter.index_bytes)
    if kind == "plan":
        _logger.info("pushed down: %s", " and ".join(pushed) or "nothing")
    if directory is not None:
        path = Path(directory)
        path.mkdir(parents=True, exist_ok=True)
        document: dict[str, Any] = {"kind": kind, "log_bytes": counter.log_bytes, "index_bytes": counter.index_bytes}
        document |= (
            {"pushed": pushed, "skipped": counter.skipped} if kind == "plan" else {"rows": rows, "segments": segments}
        )
        (path / f"{kind}-{uuid.uuid4().hex}.json").write_text(json.dumps(document), "utf-8")


def totals(directory: str | Path) -> Totals:
    """Return the total cost of the queries with ``metrics=directory``, planning included."""
    documents = [json.loads(path.read_text("utf-8")) for path in sorted(Path(directory).glob("*.json"))]
    return Totals(
        sum(document["log_bytes"] for document in documents),
        sum(document["index_bytes"] for document in documents),
        sum(document["kind"] == "read" for document in documents),
        tuple(dict.fromkeys(each for document in documents for each in document.get("pushed", ()))),
        *(sum(document.get(name, 0) for document in documents) for name in ("rows", "segments", "skipped")),
    )
