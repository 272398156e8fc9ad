"""Offset and time index for the line protocol whose files grow with their entries: nothing is preallocated.

    conformance run -i "exec:python tests/adapters/growing_index.py" --machine offset --machine time

``--silent`` omits the capabilities from the introduction, like a program of the time before they had names. ``--defect
NAME``: ``lookup`` returns the entry before, ``restart`` loses the last entry when a file is opened.
"""

from __future__ import annotations

import json
import os
import struct
import sys
from bisect import bisect_right
from typing import Any

Json = dict[str, Any]


class RefusalError(Exception):
    pass


def wrapped(number: int) -> int:
    return (number + (1 << 63)) % (1 << 64) - (1 << 63)


class Growing:
    def __init__(self, kind: str, path: str, base_offset: int, max_index_size: int, defect: str) -> None:
        self.kind, self.base, self.defect = kind, base_offset, defect
        self.entry = struct.Struct({"offset": ">ii", "time": ">qi"}[kind])
        self.room = max_index_size // self.entry.size
        self.file = os.open(path, os.O_RDWR | os.O_CREAT)
        length = os.fstat(self.file).st_size
        data = os.pread(self.file, length - length % self.entry.size, 0)
        self.entries = [self.absolute(*pair) for pair in self.entry.iter_unpack(data)]
        if defect == "restart" and self.entries:
            self.entries.pop()

    @property
    def most(self) -> int:
        return max(self.room, len(self.entries))

    def absolute(self, first: int, second: int) -> tuple[int, int]:
        offset = wrapped(self.base + (first if self.kind == "offset" else second))
        return (offset, second) if self.kind == "offset" else (first, offset)

    def add(self, first: int, second: int, *, limit: int) -> None:
        offset = first if self.kind == "offset" else second
        if len(self.entries) >= limit:
            raise RefusalError("full")
        if self.entries and self.kind == "offset" and offset <= self.entries[-1][0]:
            raise RefusalError("out of order")
        if self.entries and self.kind == "time" and (offset < self.entries[-1][1] or first < self.entries[-1][0]):
            raise RefusalError("out of order")
        if self.kind == "time" and first <= (self.entries[-1][0] if self.entries else -1):
            return
        if not 0 <= offset - self.base < 1 << 31:
            raise RefusalError("too far from the base offset")
        pair = (offset - self.base, second) if self.kind == "offset" else (first, offset - self.base)
        os.pwrite(self.file, self.entry.pack(*pair), len(self.entries) * self.entry.size)
        self.entries.append((first, second))

    def lookup(self, target: int) -> list[int]:
        at = bisect_right([entry[0] for entry in self.entries], target) - 1 - (self.defect == "lookup")
        return list(self.entries[at] if at >= 0 else (self.base, 0) if self.kind == "offset" else (-1, self.base))

    def truncate_to(self, offset: int) -> None:
        column = 0 if self.kind == "offset" else 1
        self.entries = [entry for entry in self.entries if entry[column] < offset]
        os.truncate(self.file, len(self.entries) * self.entry.size)

    def state(self) -> Json:
        size = len(self.entries)
        last = self.entries[-1] if size else (self.base, 0) if self.kind == "offset" else (-1, self.base)
        length = size * self.entry.size
        told = list(last[:1] if self.kind == "offset" else last)
        return {"entries": size, "max_entries": self.most, "full": size >= self.most, "length": length, "last": told}


class Adapter:
    """Adapter for one index."""

    def __init__(self, arguments: list[str]) -> None:
        self.silent = "--silent" in arguments
        self.defect = arguments[arguments.index("--defect") + 1] if "--defect" in arguments else ""
        self.index: Any = None

    def reply_to(self, op: str, request: Json) -> Json:
        method = getattr(self, f"do_{op}", None)
        if method is None or (op == "open" and request["kind"] == "transaction"):
            return {"unsupported": True}
        try:
            return {"ok": method(**request)}
        except (RefusalError, OSError) as error:
            return {"error": "illegal_state", "message": str(error)}

    def do_start(self, protocol: int) -> Json:  # noqa: ARG002
        about: Json = {"name": "growing", "version": "1", "language": "python", "kinds": ["offset", "time"]}
        return about if self.silent else {**about, "index_capabilities": []}

    def do_open(self, kind: str, path: str, base_offset: int, max_index_size: int, writable: bool) -> None:  # noqa: ARG002
        self.index = Growing(kind, path, base_offset, max_index_size, self.defect)

    def do_append(self, offset: int, position: int) -> None:
        self.index.add(offset, position, limit=self.index.most)

    def do_maybe_append(self, timestamp: int, offset: int, skip_full_check: bool) -> None:
        self.index.add(timestamp, offset, limit=self.index.most - (not skip_full_check))

    def do_lookup(self, target: int) -> list[int]:
        return self.index.lookup(target)

    def do_truncate_to(self, offset: int) -> None:
        self.index.truncate_to(offset)

    def do_state(self) -> Json:
        return self.index.state()

    def do_close(self) -> None:
        os.close(self.index.file)

    def do_stop(self) -> None:
        pass


def main() -> None:
    adapter = Adapter(sys.argv[1:])
    for line in sys.stdin:
        request = json.loads(line)
        op = request.pop("op")
        sys.stdout.write(json.dumps(adapter.reply_to(op, request)) + "\n")
        sys.stdout.flush()
        if op == "stop":
            break


if __name__ == "__main__":
    main()
