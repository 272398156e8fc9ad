"""Offset index that ends its program when it is full; after a restart its lookups are wrong.

conformance run -i "exec:python tests/adapters/crashing_index.py" --machine offset
"""

from __future__ import annotations

import json
import os
import sys

from kidx import OffsetIndex


class WrongBehindIt(OffsetIndex):
    def lookup(self, target):
        """Return the entry before the right one."""
        return super().lookup(target - 1)


class Crashing(WrongBehindIt):
    def append(self, offset, position):
        if self.is_full:
            raise KeyError("the index is full")
        super().append(offset, position)


class CrashingLookups(OffsetIndex):
    def lookup(self, target):
        raise KeyError(target)

    def truncate(self):
        """Truncate nothing."""


class CrashingBelowZero(OffsetIndex):
    def lookup(self, target):
        """Return the first entry instead of nothing, unless the target is negative."""
        if target < 0:
            raise KeyError(target)
        return self.entry(0) if self.entries else super().lookup(target)


def open_crashing_below_zero(_, path, base_offset, max_index_size, writable):
    """Open an index whose lookups raise an unexpected exception for negative targets."""
    return CrashingBelowZero(path, base_offset, max_index_size, writable)


def open_crashing_lookups(_, path, base_offset, max_index_size, writable):
    """Open an index whose lookups raise an unexpected exception."""
    return CrashingLookups(path, base_offset, max_index_size, writable)


def open_index(kind, path, base_offset, max_index_size, writable):
    """Open the index in the harness's own process, where it raises an unexpected exception."""
    assert kind == "offset"
    return Crashing(path, base_offset, max_index_size, writable)


def answer(request, opened):
    operation = request.pop("op")
    if operation == "start":
        return {"name": "crashing", "version": "1", "language": "python", "kinds": ["offset"]}
    if operation == "open":
        del request["kind"]
        opened[:] = [WrongBehindIt(**request)]
    elif operation == "append":
        if opened[0].is_full:
            os._exit(3)
        opened[0].append(**request)
    elif operation == "lookup":
        return list(opened[0].lookup(request["target"]))
    elif operation == "close":
        opened[0].close()
    elif operation != "stop":
        return None
    return ()


def main():
    opened = []
    for line in sys.stdin:
        try:
            found = answer(json.loads(line), opened)
            reply = {"unsupported": True} if found is None else {"ok": found or None}
        except Exception as error:  # noqa: BLE001 -- an error of any kind
            reply = {"error": "invalid_offset", "message": str(error)}
        sys.stdout.write(json.dumps(reply) + "\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main()
