"""Traces made short: the same difference with fewer operations, fewer arguments and smaller numbers."""

from conformance.runs.shrinking.search import SECONDS, Shrunk, shrink

__all__ = ["SECONDS", "Shrunk", "shrink"]
