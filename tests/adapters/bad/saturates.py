"""Keeps numbers in doubles, and makes integers of them as Java and Rust do: the largest long survives."""

from __future__ import annotations

import json
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))
from line_index import Adapter


class Bad(Adapter):
    kinds = ("offset",)

    def parse(self, line):
        return {k: clamp(v) if isinstance(v, float) else v for k, v in json.loads(line, parse_int=float).items()}


def clamp(number):
    return max(-(2**63), min(2**63 - 1, int(number)))


Bad().run()
