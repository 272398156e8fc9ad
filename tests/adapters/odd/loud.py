"""Writes more to stderr than a pipe holds before every reply; there is nothing wrong with that."""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))
from line_index import Adapter


class Odd(Adapter):
    def write(self, reply):
        sys.stderr.write("x" * 200_000 + "\n")
        super().write(reply)


Odd().run()
