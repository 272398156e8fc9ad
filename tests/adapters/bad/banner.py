"""Greets before the first request."""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))
from line_index import Adapter


class Bad(Adapter):
    kinds = ("offset",)

    def run(self):
        sys.stdout.write("Welcome to my index 1.0\n")
        super().run()


Bad().run()
