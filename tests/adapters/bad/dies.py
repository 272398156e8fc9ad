"""Dies on the third request of its life."""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))
from line_index import Adapter


class Bad(Adapter):
    kinds = ("offset",)

    requests = 0

    def reply_to(self, request):
        self.requests += 1
        if self.requests == 3:
            sys.stderr.write("panic: index out of range [5] with length 5\n")
            sys.exit(3)
        return super().reply_to(request)


Bad().run()
