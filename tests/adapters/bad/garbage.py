"""Prints a debugging line to stdout after it has answered a lookup."""

from __future__ import annotations

import json
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))
from line_index import Adapter


class Bad(Adapter):
    kinds = ("offset",)

    def write(self, reply):
        found = reply.get("ok")
        # In one piece: a reader of the reply sees the rest.
        self.send(
            f"{json.dumps(reply)}\nDEBUG found {found}\n" if isinstance(found, tuple) else f"{json.dumps(reply)}\n"
        )


Bad().run()
