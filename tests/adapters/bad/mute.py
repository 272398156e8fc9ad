"""Reads its input and never says a word."""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))
from line_index import Adapter


class Bad(Adapter):
    kinds = ("offset",)

    def write(self, _):
        sys.stderr.write("not telling\n")


Bad().run()
