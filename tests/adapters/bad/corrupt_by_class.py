"""Says of a damaged file which class of exception it was, instead of which kind."""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))
from line_index import Adapter


class Bad(Adapter):
    kinds = ("offset",)

    def reply_to(self, request):
        reply = super().reply_to(request)
        return {**reply, "error": "CorruptIndexException"} if reply.get("error") == "corrupt" else reply


Bad().run()
