"""Indexes that trim their file to its entries when they are closed, as every release before 4.4.0 does."""

from __future__ import annotations

from kidx import OffsetIndex


class Trimming(OffsetIndex):
    """Index without a defect, except that it trims the preallocated tail that 4.4.0 keeps on close."""

    def close(self):
        if self._mmap is not None:
            self.trim_to_valid_size()
        super().close()


class TrimmingOffByOne(Trimming):
    """Trimming index whose lookup is wrong as well."""

    def lookup(self, target):
        return super().lookup(target - 1)


def open_index(kind, path, base_offset, max_index_size, writable):
    assert kind == "offset"
    return Trimming(path, base_offset, max_index_size, writable)


def open_off_by_one(kind, path, base_offset, max_index_size, writable):
    assert kind == "offset"
    return TrimmingOffByOne(path, base_offset, max_index_size, writable)
