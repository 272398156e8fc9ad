"""Does not survive a damaged file."""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))
from line_index import Adapter


class Bad(Adapter):
    kinds = ("offset",)

    def reply_to(self, request):
        reply = super().reply_to(request)
        if reply.get("error") == "corrupt":
            sys.exit("uncaught: corrupt index")
        return reply


Bad().run()
