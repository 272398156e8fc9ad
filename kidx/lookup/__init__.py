"""Lookup of offsets in the files of a partition as its broker would do it, without opening them for writing."""

from __future__ import annotations

from kidx.lookup.explain import Explanation, explain_across_tiers, explain_offset, explain_timestamp
from kidx.lookup.read_only_log import ReadOnlyLog
from kidx.lookup.tiered_log import TieredLog

__all__ = [
    "Explanation",
    "ReadOnlyLog",
    "TieredLog",
    "explain_across_tiers",
    "explain_offset",
    "explain_timestamp",
]
