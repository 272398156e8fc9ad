"""Line-protocol adapter in Python: kidx over pipes.

An example for ``exec:`` in Python; ``bad.py`` breaks it. It shows all that an adapter has to do: read a line, execute
it, write a line, flush.

    conformance smoke -i "exec:python tests/adapters/line_index.py --release {release}"
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from typing import Any

from kidx import AbortedTxn, OffsetIndex, OffsetPosition, TimeIndex, TransactionIndex
from kidx.errors import KidxError

Json = dict[str, Any]

# The arguments of each operation, and the method that executes it.
METHODS: dict[str, tuple[tuple[str, ...], str]] = {
    "append": (("offset", "position"), "append"),
    "maybe_append": (("timestamp", "offset", "skip_full_check"), "maybe_append"),
    "append_aborted": (("producer_id", "first_offset", "last_offset", "last_stable_offset"), "append"),
    "lookup": (("target",), "lookup"),
    "entry": (("n",), "entry"),
    "fetch_upper_bound": (("offset", "position", "fetch_size"), "fetch_upper_bound_offset"),
    "collect_aborted": (("fetch_offset", "upper_bound"), "collect_aborted_txns"),
    "truncate": ((), "truncate"),
    "truncate_to": (("offset",), "truncate_to"),
    "reset": ((), "reset"),
    "resize": (("size",), "resize"),
    "trim": ((), "trim_to_valid_size"),
    "sanity_check": ((), "sanity_check"),
    "flush": ((), "flush"),
    "close": ((), "close"),
    "delete": ((), "delete_if_exists"),
}


class Adapter:
    """Adapter for one index at a time."""

    name = "line-index"
    kinds = ("offset", "time", "transaction")

    def __init__(self, release: str = "4.4.0") -> None:
        self.release = release
        self.index: Any = None

    def run(self) -> None:
        for line in sys.stdin:
            request = self.parse(line)
            self.write(self.reply_to(request))
            if request["op"] == "stop":
                break

    def parse(self, line: str) -> Json:
        return json.loads(line)

    def write(self, reply: Json) -> None:
        self.send(json.dumps(reply) + "\n")

    def send(self, text: str) -> None:
        sys.stdout.write(text)
        sys.stdout.flush()

    def reply_to(self, request: Json) -> Json:
        try:
            return self.answer(request["op"], request)
        except KidxError as error:
            return {"error": error.kind, "message": str(error)}
        except OSError as error:
            return {"error": "io", "message": str(error)}

    def answer(self, operation: str, request: Json) -> Json:
        value: Any = None
        if operation == "start":
            value = {"name": self.name, "version": "1.0", "language": "python", "kinds": self.kinds}
        elif operation == "open":
            self.open(**{name: value for name, value in request.items() if name != "op"})
        elif operation == "state":
            value = self.state()
        elif operation in METHODS:
            value = self.call(operation, request)
        elif operation != "stop":
            return {"unsupported": True}
        return {"ok": value}

    def open(self, kind: str, path: str, base_offset: int, max_index_size: int, writable: bool) -> None:
        self.index = None
        if kind == "transaction":
            self.index = TransactionIndex(base_offset, path, dialect=self.release)
        else:
            index = OffsetIndex if kind == "offset" else TimeIndex
            self.index = index(path, base_offset, max_index_size, writable, dialect=self.release)

    def call(self, operation: str, request: Json) -> Any:
        names, name = METHODS[operation]
        method: Callable[..., Any] = getattr(self.index, name)
        arguments = [request[name] for name in names]
        if operation == "append_aborted":
            method(AbortedTxn(*arguments))
            return None
        if operation == "fetch_upper_bound":
            return method(OffsetPosition(*arguments[:2]), arguments[2])
        value = method(*arguments)
        if operation == "collect_aborted":
            return {"aborted": value.aborted_transactions, "complete": value.is_complete}
        return value

    def state(self) -> Json:
        index = self.index
        if isinstance(index, TransactionIndex):
            return {"entries": len(index), "last": [] if index.last_offset is None else [index.last_offset]}
        last = [index.last_offset] if isinstance(index, OffsetIndex) else index.last_entry
        return {
            "entries": index.entries,
            "max_entries": index.max_entries,
            "full": index.is_full,
            "length": index.length,
            "last": last,
        }


if __name__ == "__main__":
    Adapter(*sys.argv[2:]).run()
