"""A Python index with three defects, each in another operation, and one of them in old releases only.

conformance run -i python:tests.adapters.three_defects:open_index --machine offset
"""

from __future__ import annotations

from kidx import OffsetIndex, TimeIndex, TransactionIndex


class _TwoDefects(OffsetIndex):
    def lookup(self, target):
        """Answers with the position of the next byte."""
        offset, position = super().lookup(target)
        return offset, position + 1

    def truncate_to(self, offset):
        """Keeps the entry that has the offset itself."""
        super().truncate_to(offset + 1)


class _ThreeDefects(_TwoDefects):
    def entry(self, n):
        """Counts entries from one."""
        return super().entry(n + 1)


def open_index(kind, path, base_offset, max_index_size, writable, release="4.4.0"):
    """The offset index is wrong, the others are not."""
    if kind == "transaction":
        return TransactionIndex(base_offset, path, dialect=release)
    index = TimeIndex
    if kind == "offset":
        index = _ThreeDefects if release.startswith("3.") else _TwoDefects
    return index(path, base_offset, max_index_size, writable, dialect=release)
