"""Has no state, and no lookup; says so. There is nothing wrong with that."""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))
from line_index import Adapter


class Odd(Adapter):
    def reply_to(self, request):
        return {"unsupported": True} if request["op"] in ("state", "lookup") else super().reply_to(request)


Odd().run()
