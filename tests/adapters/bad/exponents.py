"""Keeps numbers in doubles, and writes large ones with an exponent, as Go does of any number it has no type for."""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))
from line_index import Adapter


class Bad(Adapter):
    kinds = ("offset",)

    def write(self, reply):
        self.send(re.sub(r"\d{17,}", lambda found: f"{float(found[0]):e}", json.dumps(reply)) + "\n")


Bad().run()
