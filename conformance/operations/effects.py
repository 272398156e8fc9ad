"""Effects of operations on the file, segment, log or topic that they apply to, declared with their signatures."""

from __future__ import annotations

from enum import Enum


class Effect(Enum):
    """Effect of an operation; most operations have none of these."""

    OPENS = "opens"
    RELEASES = "releases"
    """Releases the files, so that the harness may corrupt them; truncating a file kills a process that maps it."""
    DAMAGES = "damages"
    """Corrupts files; executed by the harness while no implementation has the files open."""
