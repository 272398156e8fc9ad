"""Errors that keep the harness from running, as opposed to divergences.

A command line prints ``str(error)`` as one line on stderr and exits with 2. So every message is one complete sentence
for the person at the terminal: what failed, with which file, release or address, and a remedy if there is one.
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
    """Request for a Kafka release that has no lock file; the message lists the locked ones."""


class NotDrivenError(ToolError):
    """Implementation that a machine cannot drive: a program with indexes has no segment, a broker no index."""


class CoverageError(ToolError):
    """Missed coverage that the run demanded of the harness's generator; its verdict has been printed before."""


class FetchError(ToolError):
    """Locked jar that is not in the cache and could not be downloaded."""


class HashMismatchError(FetchError):
    """Downloaded file that is not the locked one; it was deleted."""


class CacheError(FetchError):
    """Cache directory that cannot store the jars: not writable, not a directory, or full."""
