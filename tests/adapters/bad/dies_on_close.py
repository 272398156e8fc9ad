"""Dies when it is asked to close."""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))
from line_index import Adapter


class Bad(Adapter):
    kinds = ("offset",)

    def reply_to(self, request):
        if request["op"] == "close":
            sys.exit("could not close")
        return super().reply_to(request)


Bad().run()
