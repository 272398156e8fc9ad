"""Deadline for loops that wait for a condition."""

from __future__ import annotations

import time

PAUSE = 0.05
"""Seconds between two checks of the condition."""


class Deadline:
    """Moment on the monotonic clock, ``limit`` seconds from now."""

    def __init__(self, limit: float) -> None:
        self.limit = limit
        self._start = time.monotonic()

    @property
    def elapsed(self) -> float:
        """Seconds since the deadline was created."""
        return time.monotonic() - self._start

    @property
    def left(self) -> float:
        """Remaining seconds, never negative."""
        return max(0.0, self.limit - self.elapsed)

    def pause(self) -> bool:
        """Sleep briefly and return True; after the deadline, return False immediately."""
        if not self.left:
            return False
        time.sleep(min(PAUSE, self.left))
        return True
