"""Is killed by a signal when it truncates."""

from __future__ import annotations

import os
import signal
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))
from line_index import Adapter


class Bad(Adapter):
    kinds = ("offset",)

    def reply_to(self, request):
        if request["op"] == "truncate_to":
            os.kill(os.getpid(), signal.SIGSEGV)
        return super().reply_to(request)


Bad().run()
