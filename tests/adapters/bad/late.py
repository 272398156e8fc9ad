"""Answers a request when the next one comes: it looks one line ahead."""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))
from line_index import Adapter


class Bad(Adapter):
    kinds = ("offset",)

    def run(self):
        lines = iter(sys.stdin)
        self.write(self.reply_to(self.parse(next(lines))))
        held = None
        for line in lines:
            if held is not None:
                self.write(self.reply_to(self.parse(held)))
            held = line


Bad().run()
