"""The ways the harness can fail to do its work at all, as opposed to finding a divergence.

A command line prints ``str(error)`` as one line on stderr and exits 2, so every message here is one
complete sentence for the person at the terminal: what could not be done, with which file, release or
address, and, where there is one, the way out.
"""

from __future__ import annotations

from kidx.errors import ToolError
from kidx.java import JavaNotFoundError

__all__ = [
    "CacheError",
    "CoverageError",
    "FetchError",
    "HashMismatchError",
    "JavaNotFoundError",
    "NotDrivenError",
    "ToolError",
    "UnknownReleaseError",
]


class UnknownReleaseError(ToolError):
    """A Kafka release was asked for that has no lock file; the message lists those that have."""


class NotDrivenError(ToolError):
    """A machine has no way of driving an implementation: an index behind a pipe has no segment, a broker no index."""


class CoverageError(ToolError):
    """The generator of the harness has left out what this run demanded; its verdict has been printed before."""


class FetchError(ToolError):
    """A locked jar is not in the cache and could not be brought there."""


class HashMismatchError(FetchError):
    """What arrived is not what was locked; nothing of it was kept."""


class CacheError(FetchError):
    """The cache directory cannot hold the jars: not writable, not a directory, or full."""
