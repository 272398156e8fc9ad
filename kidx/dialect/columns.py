"""The columns of the table of releases: what one release says of itself."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Literal

IndexRules = Literal["X1", "X2", "X3", "X4", "X5", "X6"]
AppendRule = Literal["A1", "A2"]
LeaderRule = Literal["L1", "L2", "L3", "L4"]
MaxLookup = Literal["M0", "M1", "M2"]
Shutdown = Literal["C1", "C2", "C3"]


def version_of(release: str) -> tuple[int, ...]:
    """``"3.9.2"`` as ``(3, 9, 2)``.

    Raises:
        ValueError: not numbers with dots between them.
    """
    return tuple(int(part) for part in release.split("."))


@dataclass(frozen=True)
class Columns:
    """The behaviours of one release.

    Attributes:
        release: the Kafka version, e.g. ``"3.9.2"``.
        index: X1–X6, the index objects (clauses AI, OI, TI, TX).
        append: A1 one entry an append call, A2 one a batch (SEG-3, SEG-4).
        leader_timestamp: L1–L4, which offset goes with the largest timestamp on the leader (SEG-8).
        max_lookup: M0–M2, what ListOffsets(-3) means (LO-9, LO-10).
        shutdown: C1–C3, what a clean close writes (SEG-24).
        translate: whether ``translateOffset`` answers with the batch's last or base offset (SEG-50).
        list_offsets_versions: lowest and highest version of the ListOffsets request (clauses LO).
    """

    release: str
    index: IndexRules
    append: AppendRule
    leader_timestamp: LeaderRule
    max_lookup: MaxLookup
    shutdown: Shutdown
    translate: Literal["last", "base"]
    list_offsets_versions: tuple[int, int]

    @cached_property
    def version(self) -> tuple[int, ...]:
        """The release as numbers, for ordering."""
        return version_of(self.release)
