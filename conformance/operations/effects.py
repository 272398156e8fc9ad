"""What an operation does to the file, segment, log or topic that it is about; stated beside its signature."""

from __future__ import annotations

from enum import Enum


class Effect(Enum):
    """The effect of an operation; most have none of these."""

    OPENS = "opens"
    RELEASES = "releases"
    """Releases the files, so that the harness may damage them; damage to a mapped file kills the process."""
    DAMAGES = "damages"
    """Performed by the harness, on files that nothing has open."""
