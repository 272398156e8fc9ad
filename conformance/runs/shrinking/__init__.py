"""Shrinking of traces: the same divergence with fewer operations, fewer arguments and smaller numbers."""

from conformance.runs.shrinking.search import SECONDS, ShrinkResult, shrink

__all__ = ["SECONDS", "ShrinkResult", "shrink"]
