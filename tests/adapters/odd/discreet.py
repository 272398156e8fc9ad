"""Says nothing about an index that is closed but that it is closed."""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))
from line_index import Adapter


class Odd(Adapter):
    def reply_to(self, request):
        if self.index is None and request["op"] not in ("start", "stop", "open"):
            return {"error": "closed", "message": "the index is closed"}
        reply = super().reply_to(request)
        if request["op"] in ("close", "delete"):
            self.index = None
        return reply


Odd().run()
