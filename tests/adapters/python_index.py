"""Python classes for ``python:MODULE:FACTORY``: kidx, once unchanged and several times with one defect.

conformance run -i python:tests.adapters.python_index:open_index
"""

from __future__ import annotations

from kidx import OffsetIndex, TimeIndex, TransactionIndex
from kidx.errors import InvalidOffsetError


def open_index(kind, path, base_offset, max_index_size, writable, release="4.4.0"):
    """Open an index without a defect."""
    if kind == "transaction":
        return TransactionIndex(base_offset, path, dialect=release)
    index = OffsetIndex if kind == "offset" else TimeIndex
    return index(path, base_offset, max_index_size, writable, dialect=release)


class _OffByOne(OffsetIndex):
    def lookup(self, target):
        return super().lookup(target - 1)


class _TimeOffByOne(TimeIndex):
    def lookup(self, target):
        return super().lookup(target - 1)


class _Crashing(OffsetIndex):
    def truncate_to(self, offset):
        raise KeyError(offset)


class _Vague(OffsetIndex):
    def entry(self, n):
        return [float(number) for number in super().entry(n)]


class _Plain(OffsetIndex):
    """Index that raises Python's own exceptions."""

    def append(self, offset, position):
        try:
            super().append(offset, position)
        except InvalidOffsetError:
            raise
        except OverflowError:
            raise OverflowError(offset) from None
        except ValueError:
            raise ValueError("full") from None


class _Small:
    """Index with only the methods needed to append and look up."""

    def __init__(self, index):
        self._index = index
        self.append = index.append
        self.lookup = index.lookup
        self.close = index.close
        self.close_handler = index.close_handler
        self.truncate = index.truncate


class _Forgetful(OffsetIndex):
    """Index without state after it is closed."""

    @property
    def last_offset(self):
        if self._mmap is None:
            raise ValueError("mmap closed or invalid")
        return super().last_offset


def open_off_by_one(kind, path, *arguments):
    return _offset(_OffByOne, kind, path, *arguments)


def open_both_off_by_one(kind, path, base_offset, max_index_size, writable, release="4.4.0"):
    """Open indexes of both kinds with one common defect."""
    index = _OffByOne if kind == "offset" else _TimeOffByOne
    return index(path, base_offset, max_index_size, writable, dialect=release)


def open_crashing(kind, path, *arguments):
    return _offset(_Crashing, kind, path, *arguments)


def open_vague(kind, path, *arguments):
    return _offset(_Vague, kind, path, *arguments)


def open_plain(kind, path, *arguments):
    return _offset(_Plain, kind, path, *arguments)


def open_forgetful(kind, path, *arguments):
    return _offset(_Forgetful, kind, path, *arguments)


def open_small(kind, path, *arguments):
    return _Small(_offset(OffsetIndex, kind, path, *arguments))


not_callable = 42


def _offset(index, kind, path, *arguments):
    if kind != "offset":
        raise NotImplementedError(kind)
    return index(path, *arguments)


def open_nothing(kind, *arguments):
    raise NotImplementedError(kind)
