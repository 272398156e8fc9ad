"""Tells its state without saying whether the index is full, after every operation but the first ones."""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))
from line_index import Adapter


class Bad(Adapter):
    kinds = ("offset",)

    def reply_to(self, request):
        self.truncated = getattr(self, "truncated", False) or request["op"] == "truncate_to"
        return super().reply_to(request)

    def state(self):
        state = super().state()
        if self.truncated:
            state.pop("full", None)
        return state


Bad().run()
