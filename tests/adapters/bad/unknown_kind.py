"""Refuses with a word that the protocol does not have."""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))
from line_index import Adapter


class Bad(Adapter):
    kinds = ("offset",)

    def reply_to(self, request):
        reply = super().reply_to(request)
        return {"error": "IllegalArgumentException", "message": "no"} if "error" in reply else reply


Bad().run()
