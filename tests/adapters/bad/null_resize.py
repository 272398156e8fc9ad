"""Answers null where it should say whether the file was resized."""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))
from line_index import Adapter


class Bad(Adapter):
    kinds = ("offset",)

    def reply_to(self, request):
        reply = super().reply_to(request)
        return {"ok": None} if request["op"] == "resize" else reply


Bad().run()
