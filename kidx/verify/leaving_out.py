"""Directories of deleted topics and strays: skipped without ``--marked``, because no broker serves them."""

from __future__ import annotations

from typing import Final

from kidx.discovery import DELETE, STRAY, Found, Problem

_WHAT_THEY_ARE: Final = {
    DELETE: "its topic was deleted: a broker deletes it after file.delete.delay.ms, or when it starts",
    STRAY: "a stray: at its start the broker found that the cluster does not have this partition there; no client can "
    "read it",
}


def without_marked(found: Found) -> Found:
    """Return the discovery, in which deleted and stray partitions are among the skipped paths."""
    marked = [partition for partition in found.partitions if partition.is_marked]
    said = [Problem(each.directory, f"{_WHAT_THEY_ARE[each.state]}; --marked verifies it") for each in marked]
    kept = [partition for partition in found.partitions if not partition.is_marked]
    return Found(kept, found.problems, [*found.left_out, *said])
