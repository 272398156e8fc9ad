"""What a query read, and the conditions it pushed down: each task leaves a small file.

Spark counts nothing for sources in Python, and its plans do not show the conditions that those were given.
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
    """What a query cost: bytes read of logs and of index files, and the tasks that did it.

    Attributes:
        pushed: the conditions that the source used, such as ``offset > 20``.
    """

    log_bytes: int
    index_bytes: int
    tasks: int
    pushed: tuple[str, ...] = ()

    @property
    def bytes_read(self) -> int:
        """All of them."""
        return self.log_bytes + self.index_bytes


def leave(directory: str | None, kind: str, counter: Counter, pushed: Iterable[str] = ()) -> None:
    """Says what a task (``read``) or the planning of a query (``plan``) read: to the log, and to a directory if given.

    Args:
        directory: to write to; None for none.
        kind: ``read`` or ``plan``.
        counter: of what was read.
        pushed: conditions that the planning used.

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
        if kind == "plan":
            document["pushed"] = pushed
        (path / f"{kind}-{uuid.uuid4().hex}.json").write_text(json.dumps(document), "utf-8")


def totals(directory: str | Path) -> Totals:
    """What the queries with ``metrics=directory`` cost together, planning included."""
    documents = [json.loads(path.read_text("utf-8")) for path in sorted(Path(directory).glob("*.json"))]
    return Totals(
        sum(document["log_bytes"] for document in documents),
        sum(document["index_bytes"] for document in documents),
        sum(document["kind"] == "read" for document in documents),
        tuple(dict.fromkeys(each for document in documents for each in document.get("pushed", ()))),
    )
