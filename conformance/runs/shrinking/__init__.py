"""Shrinking of traces: the same divergence with fewer operations, fewer arguments and smaller numbers."""

from conformance.runs.shrinking.search import SHRINK_SECONDS, ShrinkResult, shrink

__all__ = ["SHRINK_SECONDS", "ShrinkResult", "shrink"]
