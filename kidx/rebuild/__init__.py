"""Rebuild of index files from a log, as a release's recovery does it."""

from kidx.rebuild.segment import Rebuilt, base_offset_of, rebuild

__all__ = ["Rebuilt", "base_offset_of", "rebuild"]
