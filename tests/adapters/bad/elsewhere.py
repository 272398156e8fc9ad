"""Keeps its files in another directory."""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))
from line_index import Adapter


class Bad(Adapter):
    kinds = ("offset",)

    def open(self, kind, path, *arguments, **named):
        directory = Path(path).parents[1] / "elsewhere"
        directory.mkdir(exist_ok=True)
        path = directory / Path(path).name
        path.unlink(missing_ok=True)
        super().open(kind, str(path), *arguments, **named)


Bad().run()
