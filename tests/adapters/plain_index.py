"""Offset and time index written from docs/understand and docs/protocol.md alone: without kidx and Kafka's quirks.

    conformance run -i python:tests.adapters.plain_index:open_index --machine offset --kafka all --level must

It does what the pages say and nothing that only Kafka does: an index opened read-only rejects whatever would change it;
an open that fails, or a resize that is rejected, leaves everything unchanged; a rejected append writes nothing; the
upper bound of a fetch may be the first entry; a closed index rejects everything; a closed file has no unused bytes.
"""

from __future__ import annotations

import os
import struct
from bisect import bisect_left, bisect_right
from pathlib import Path


class RejectedError(Exception):
    """Rejected request; its kind is the same for all, because level must does not compare kinds."""

    kind = "illegal_state"


class _Index:
    """Base of both kinds: a file of entries, and the entries in memory.

    Attributes:
        layout: The layout of an entry.
        column: The column of an entry with the offset.
    """

    layout: struct.Struct
    column: int

    def __init__(self, path, base_offset, max_index_size, writable):
        self.path, self.base, self.writable = Path(path), base_offset, writable
        self.size = max_index_size // self.layout.size * self.layout.size
        self.is_open = True
        exists = self.path.exists()
        if not exists and (not writable or self.size < self.layout.size):
            raise RejectedError("there is no such index")
        if not exists:
            with self.path.open("wb") as file:
                file.truncate(self.size)
        self.length = self.path.stat().st_size
        with self.path.open("rb") as file:
            data = file.read() if exists else b""
        whole = len(data) // self.layout.size * self.layout.size
        self.rows = [self._absolute(row) for row in self.layout.iter_unpack(data[:whole])]

    def _absolute(self, row):
        offset = (self.base + row[self.column] + 2**63) % 2**64 - 2**63
        return (offset, row[1]) if self.column == 0 else (row[0], offset)

    # -- state --

    @property
    def entries(self):
        return len(self.rows)

    @property
    def max_entries(self):
        return self.length // self.layout.size

    def _last(self):
        return self.rows[-1] if self.rows else self.nothing_here

    # -- reading --

    def _opened(self):
        if not self.is_open:
            raise RejectedError("closed")

    def _changed(self):
        self._opened()
        if not self.writable:
            raise RejectedError("opened to be read")

    def lookup(self, target):
        self._opened()
        at = bisect_right([row[0] for row in self.rows], target)
        return self.rows[at - 1] if at else self.nothing_here

    def entry(self, n):
        self._opened()
        if not 0 <= n < len(self.rows):
            raise RejectedError("no such entry")
        return self.rows[n]

    def sanity_check(self):
        self._opened()
        if self.length % self.layout.size or (self.rows and self.rows[-1][self.column] < self.base):
            raise RejectedError("corrupt")

    # -- changing --

    def _write(self, first, second):
        offset = (first, second)[self.column]
        if not 0 <= offset - self.base < 2**31:
            raise RejectedError("too far from the base offset")
        relative = offset - self.base
        row = (relative, second) if self.column == 0 else (first, relative)
        with self.path.open("r+b") as file:
            file.seek(len(self.rows) * self.layout.size)
            file.write(self.layout.pack(*row))
        self.rows.append((first, second))

    def truncate_to(self, offset):
        self._changed()
        self.rows = [row for row in self.rows if row[self.column] < offset]
        with self.path.open("r+b") as file:  # the removed entries are no entries of a reader after a crash
            file.seek(len(self.rows) * self.layout.size)
            file.write(bytes(max(0, self.length - file.tell())))

    def truncate(self):
        self._changed()
        self.rows = []
        with self.path.open("r+b") as file:
            file.write(bytes(self.length))

    def reset(self):
        self.truncate()
        self._set_length(self.size)

    def _set_length(self, length):
        if length == self.length:
            return False
        os.truncate(self.path, length)
        self.length = length
        return True

    def resize(self, size):
        self._changed()
        length = size // self.layout.size * self.layout.size
        if length < len(self.rows) * self.layout.size:
            raise RejectedError("entries would be lost")
        return self._set_length(length)

    def trim_to_valid_size(self):
        self._changed()
        self._set_length(len(self.rows) * self.layout.size)

    def flush(self):
        self._opened()

    # -- the file --

    def close(self):
        if self.is_open and self.path.exists():
            self._set_length(len(self.rows) * self.layout.size)
        self.is_open = False

    def close_handler(self):
        self.is_open = False

    def delete_if_exists(self):
        self.is_open = False
        if not self.path.exists():
            return False
        self.path.unlink()
        return True

    def rename_to(self, path):
        self._opened()
        self.path = self.path.rename(path)


class Offsets(_Index):
    layout = struct.Struct(">ii")
    column = 0

    @property
    def nothing_here(self):
        return self.base, 0

    @property
    def is_full(self):
        return len(self.rows) >= self.max_entries

    @property
    def last_offset(self):
        return self._last()[0]

    def append(self, offset, position):
        self._changed()
        if self.is_full or (self.rows and offset <= self.rows[-1][0]):
            raise RejectedError("full, or out of order")
        self._write(offset, position)

    def fetch_upper_bound_offset(self, fetch_offset, fetch_size):
        self._opened()
        at = bisect_left([row[1] for row in self.rows], fetch_offset[1] + fetch_size)
        return self.rows[at] if at < len(self.rows) else None


class Times(_Index):
    layout = struct.Struct(">qi")
    column = 1

    @property
    def nothing_here(self):
        return -1, self.base

    @property
    def is_full(self):
        return len(self.rows) >= self.max_entries - 1

    @property
    def last_entry(self):
        return self._last()

    def maybe_append(self, timestamp, offset, skip_full_check=False):
        self._changed()
        if len(self.rows) >= self.max_entries or (self.is_full and not skip_full_check):
            raise RejectedError("full")
        if self.rows and (timestamp < self.rows[-1][0] or offset < self.rows[-1][1]):
            raise RejectedError("out of order")
        if timestamp > self._last()[0]:
            self._write(timestamp, offset)


def open_index(kind, path, base_offset, max_index_size, writable):
    if kind == "transaction":
        raise NotImplementedError
    return {"offset": Offsets, "time": Times}[kind](path, base_offset, max_index_size, writable)
