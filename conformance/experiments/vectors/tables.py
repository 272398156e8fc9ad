"""Tables of a release's test vectors without JSON: all queries, and the queries about sound index files."""

from __future__ import annotations

import json
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Final

from conformance.experiments.vectors.queries import LAYOUTS, entries_of
from kidx.java_numbers import INT_MAX

if TYPE_CHECKING:
    from collections.abc import Mapping

    from conformance.experiments.vectors.document import Vector
    from conformance.operations import Json

TABLE: Final = "queries.tsv"
SOUND: Final = "sound.tsv"
REPLY: Final = frozenset({"op", "ok", "error", "message", "state", "unsupported"})
"""Members of a step that are not arguments: the operation's name, and the reply."""

# Queries about index files in the second table.
_OF_READERS: Final = ("lookup", "entry", "fetch_upper_bound", "collect_aborted")


def rows_of(vector: Vector) -> str:
    """Return the queries of a vector as lines with tabs.

    The columns are: name; machine; path of the index file, or of the directory of the segment or log; base offset;
    operation; arguments, separated by commas; answer as JSON without blanks, or ``error`` and its kind.
    """
    path = _path(vector)
    rows = []
    for step in vector.queries:
        numbers = ",".join(map(str, _numbers(step)))
        columns = (vector.name, vector.machine, path, vector.base_offset, step["op"], numbers, _answer(step))
        rows.append("\t".join(map(str, columns)) + "\n")
    return "".join(rows)


def sound_rows_of(vector: Vector, files: Mapping[str, bytes]) -> str:
    """Return the queries about a sound index file as lines with tabs; nothing for other files.

    The columns are: kind; path; base offset; operation; arguments; answer. Arguments and answer are numbers that are
    separated by blanks. An answer without an entry is empty. Of a query for aborted transactions, the answer has the
    four numbers of each. Queries whose answer depends on the path of Kafka's binary search are omitted: upper bounds
    of a position that an entry has, or of a position beyond 31 bits.

    Args:
        vector: the vector.
        files: content of its files, by name.
    """
    entries = _sound_entries(vector, files)
    if entries is None:
        return ""
    positions = {entry[1] for entry in entries}
    rows = []
    for step in vector.queries:
        numbers = _numbers(step)
        bound = sum(numbers[1:])
        depends_on_path = step["op"] == "fetch_upper_bound" and (bound > INT_MAX or bound in positions)
        if step["op"] in _OF_READERS and "error" not in step and not depends_on_path:
            columns = (vector.machine, _path(vector), vector.base_offset, step["op"], _words(numbers), _flat(step))
            rows.append("\t".join(map(str, columns)) + "\n")
    return "".join(rows)


def _sound_entries(vector: Vector, files: Mapping[str, bytes]) -> list[Any] | None:
    """Return the entries of an index file that Kafka accepts and whose entries ascend, or None for other files."""
    accepted = any(step["op"] == "sanity_check" and "error" not in step for step in vector.queries)
    if vector.machine not in LAYOUTS or len(files) != 1 or not accepted:
        return None
    (content,) = files.values()
    layout = LAYOUTS[vector.machine]
    entries = entries_of(layout, content)
    # No transaction begins before the last stable offset of an earlier entry. The other kinds ascend in both numbers.
    fields = ((4, 2),) if vector.machine == "transaction" else ((0, 0), (1, 1))
    strictly = vector.machine != "transaction"
    ascend = all(x[i] < y[j] or (x[i] == y[j] and not strictly) for x, y in pairwise(entries) for i, j in fields)
    return entries if ascend and len(content) % layout.size == 0 else None


def _path(vector: Vector) -> str:
    if vector.machine in ("log", "cleaned"):
        return f"{vector.name}/t-0"
    one_file = len(vector.files) == 1 and vector.machine != "segment"
    return f"{vector.name}/{next(iter(vector.files))}" if one_file else vector.name


def _numbers(step: Json) -> list[int]:
    arguments = (value for name, value in step.items() if name not in REPLY)
    return [n for value in arguments for n in (value if isinstance(value, list) else [value])]


def _answer(step: Json) -> str:
    if "error" in step:
        return f"error {step['error']}"
    value: Any = step.get("ok")
    if step["op"] == "list_offsets":
        (value,) = value
    return json.dumps(value, separators=(",", ":"))


def _flat(step: Json) -> str:
    value: Any = step["ok"]
    if step["op"] == "collect_aborted":
        return _words(n for transaction in value["aborted"] for n in transaction)
    return _words(value or ())


def _words(numbers: Any) -> str:
    return " ".join(map(str, numbers))
