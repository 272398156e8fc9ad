"""Does not end: neither on stop nor when its input ends."""

from __future__ import annotations

import signal
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))
from line_index import Adapter


class Bad(Adapter):
    kinds = ("offset",)

    def run(self):
        super().run()
        while True:
            signal.pause()


Bad().run()
