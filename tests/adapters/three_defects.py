"""Python index with three defects, each in another operation, one of them in old releases only.

conformance run -i python:tests.adapters.three_defects:open_index --kafka 3.9.1 --kafka 4.4.0
"""

from __future__ import annotations

from kidx import OffsetIndex, TimeIndex, TransactionIndex


class _TwoDefects(OffsetIndex):
    def lookup(self, target):
        """Return the position of the next byte."""
        offset, position = super().lookup(target)
        return offset, position + 1

    def truncate_to(self, offset):
        """Keep the entry with the offset itself."""
        super().truncate_to(offset + 1)


class _OneDefect(TimeIndex):
    def lookup(self, target):
        """Return the offset next to the right one."""
        timestamp, offset = super().lookup(target)
        return timestamp, offset ^ 1


def open_index(kind, path, base_offset, max_index_size, writable, release="4.4.0"):
    """Open an index; the transaction index is right, and so is the time index of new releases."""
    if kind == "transaction":
        return TransactionIndex(base_offset, path, dialect=release)
    index = _TwoDefects if kind == "offset" else _OneDefect if release.startswith("3.") else TimeIndex
    return index(path, base_offset, max_index_size, writable, dialect=release)
