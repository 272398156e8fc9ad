"""A Python class with three defects, each in another operation: one offset too low, one entry too many, one byte short.

conformance run -i python:tests.adapters.three_defects:open_index --machine offset
"""

from __future__ import annotations

from kidx import OffsetIndex, TimeIndex, TransactionIndex


class _ThreeDefects(OffsetIndex):
    def lookup(self, target):
        """Answers with the position of the next byte."""
        found = super().lookup(target)
        return found[0], found[1] + 1

    def truncate_to(self, offset):
        """Keeps the entry that has the offset itself."""
        super().truncate_to(offset + 1)

    def resize(self, size):
        """Makes the file one entry larger than it should be."""
        return super().resize(size + 8)


def open_index(kind, path, base_offset, max_index_size, writable, release="4.4.0"):
    """The offset index is wrong, the others are not."""
    if kind == "transaction":
        return TransactionIndex(base_offset, path, dialect=release)
    index = _ThreeDefects if kind == "offset" else TimeIndex
    return index(path, base_offset, max_index_size, writable, dialect=release)
