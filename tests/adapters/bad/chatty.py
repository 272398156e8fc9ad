"""Answers every append twice."""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))
from line_index import Adapter


class Bad(Adapter):
    kinds = ("offset",)

    copies = 1

    def reply_to(self, request):
        self.copies = 2 if "append" in request["op"] else 1
        return super().reply_to(request)

    def send(self, text):
        super().send(text * self.copies)  # in one piece: a reader of the one sees the other


Bad().run()
