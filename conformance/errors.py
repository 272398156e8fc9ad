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
    """Request for a Kafka release without a lock file; the message lists the locked releases."""


class NotDrivenError(ToolError):
    """Implementation that a machine cannot drive, such as a broker with the machine of an index."""


class CoverageError(ToolError):
    """Examples that miss a row of the coverage tables, raised after the verdict if the run demands coverage."""


class FetchError(ToolError):
    """Locked jar that is not in the cache and could not be downloaded."""


class HashMismatchError(FetchError):
    """Downloaded file whose hash differs from the lock; the file was deleted."""


class CacheError(FetchError):
    """Cache directory that cannot store the jars: not writable, not a directory, or full."""
