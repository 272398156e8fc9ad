"""Adapters that are unusual, and right: ``odd.py NAME``."""

from __future__ import annotations

import sys

from line_index import Adapter


class Discreet(Adapter):
    """Adapter that reports nothing about a closed index except that it is closed."""

    def reply_to(self, request):
        if self.index is None and request["op"] not in ("start", "stop", "open"):
            return {"error": "closed", "message": "the index is closed"}
        reply = super().reply_to(request)
        if request["op"] in ("close", "delete"):
            self.index = None
        return reply


class Loud(Adapter):
    """Adapter that writes more to stderr than a pipe holds before every reply, which is allowed."""

    def write(self, reply):
        sys.stderr.write("x" * 200_000 + "\n")
        super().write(reply)


class Reticent(Adapter):
    """Adapter without state and lookup, which it declares; that is allowed."""

    def reply_to(self, request):
        return {"unsupported": True} if request["op"] in ("state", "lookup") else super().reply_to(request)


if __name__ == "__main__":
    globals()[sys.argv[1].title()]().run()
