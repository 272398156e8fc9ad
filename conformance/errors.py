"""Errors that keep the harness from running, as opposed to divergences.

A command line prints ``str(error)`` as one line on stderr and exits with 2. So every message is one complete sentence
for the person at the terminal: what failed, with which file, release or address, and a remedy if there is one.
"""

from __future__ import annotations

from typing import ClassVar

from kidx.errors import ToolError
from kidx.java import JavaNotFoundError

__all__ = [
    "CacheError",
    "CoverageError",
    "FetchError",
    "HashMismatchError",
    "IncompleteError",
    "JavaNotFoundError",
    "NotDrivenError",
    "NothingComparedError",
    "ToolError",
    "UnknownReleaseError",
]


class UnknownReleaseError(ToolError):
    """Request for a Kafka release without a lock file (its jars with their hashes); the message lists the others."""


class NotDrivenError(ToolError):
    """Implementation that a machine (a generator of operations) cannot drive, such as a broker with ``offset``."""


class CoverageError(ToolError):
    """Run that demands coverage, and whose examples never exercised a row of :mod:`conformance.attribution`.

    It is raised after the verdict.
    """


class NothingComparedError(ToolError):
    """Program that has compared nothing with at least one participant, so that it has no verdict about it."""


class IncompleteError(ToolError):
    """Program without a difference that has compared less than was requested; the exit code is 3."""

    exit_code: ClassVar[int] = 3


class FetchError(ToolError):
    """Jar of a lock file that is not in the cache and could not be downloaded."""


class HashMismatchError(FetchError):
    """Downloaded file whose hash differs from the hash in the lock file; the download was deleted."""


class CacheError(FetchError):
    """Cache directory that cannot store the jars: not writable, not a directory, or full."""
