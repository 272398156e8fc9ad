"""Dies when it should look up or truncate, or at once, with last words that look like those of a run that conforms."""

from __future__ import annotations

import os
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))
from line_index import Adapter

WORDS = f"\x1b[2J\x1b[H\r\n{os.environ.get('VERDICT', 'conforms')}\n"


class Bad(Adapter):
    kinds = ("offset",)

    def reply_to(self, request):
        if request["op"] in ("lookup", "truncate"):
            sys.stderr.write(WORDS)
            sys.exit(3)
        return super().reply_to(request)


if "--at-once" in sys.argv:
    sys.exit(WORDS)
Bad().run()
