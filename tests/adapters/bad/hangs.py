"""Never answers a lookup, nor anything after it."""

from __future__ import annotations

import signal
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))
from line_index import Adapter


class Bad(Adapter):
    kinds = ("offset",)

    def reply_to(self, request):
        if request["op"] in ("lookup", "collect_aborted"):
            sys.stderr.write("waiting for a lock\n")
            while True:
                signal.pause()
        return super().reply_to(request)


Bad().run()
