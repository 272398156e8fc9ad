"""Keeps numbers in doubles, and writes them with a fraction."""

from __future__ import annotations

import json
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))
from line_index import Adapter


class Bad(Adapter):
    kinds = ("offset",)

    def parse(self, line):
        return {k: int(v) if isinstance(v, float) else v for k, v in json.loads(line, parse_int=float).items()}

    def reply_to(self, request):
        reply = super().reply_to(request)
        if isinstance(reply.get("ok"), tuple):
            reply["ok"] = [float(number) for number in reply["ok"]]
        return reply


Bad().run()
