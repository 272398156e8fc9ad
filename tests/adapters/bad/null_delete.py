"""Answers null where it should say whether there was a file, as long as the index is open."""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))
from line_index import Adapter


class Bad(Adapter):
    kinds = ("offset",)

    def reply_to(self, request):
        deletes_open = request["op"] == "delete" and self.index is not None
        reply = super().reply_to(request) if request["op"] != "delete" or deletes_open else {"error": "closed"}
        if request["op"] in ("close", "delete"):
            self.index = None
        if self.index is None and request["op"] == "state":
            return {"error": "closed"}
        return {"ok": None} if deletes_open else reply

    def answer(self, operation, request):
        if operation == "state" and self.index is None:
            return {"error": "closed"}
        return super().answer(operation, request)


Bad().run()
