"""Reader of the state of the tested index, so that strategies can draw numbers near its keys and sizes.

Hypothesis draws values before the state of the index is known. So a strategy draws an :class:`AnchoredNumber`: an
anchor such as "the last key", and a small distance from it. The rule computes the number with an :class:`IndexProbe`.
An anchored number shrinks towards "last key, distance 0".
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple

from kidx.java_values import INT_MAX, LONG_MAX, LONG_MIN, to_int, to_long
from kidx.layout import ABORTED_TXN, OFFSET_INDEX, TIME_INDEX, WARM_SECTION_BYTES

if TYPE_CHECKING:
    from conformance.lockstep import Lockstep


class AnchoredNumber(NamedTuple):
    """Number that is computed when the rule runs: the number that ``anchor`` names, plus ``delta``."""

    anchor: str
    """Name of a number: a slot ("first", "middle", "warm", "last"), a size (``_COUNTS``), a constant (``_FIXED``),
    "base" for the base offset, or "last_relative" for the largest offset that the index can have."""
    delta: int
    """Distance from that number."""


class IndexProbe:
    """Keys, values and sizes of the open index, read from the file and state of kidx as the newest tested release.

    In a lockstep without participants (a benchmark of Hypothesis alone), everything is empty.

    Args:
        kind: kind of the index: "offset", "time" or "transaction".

    Attributes:
        entry_size: size of an entry in bytes.
        warm_entries: number of entries in the warm section, the end of the index that Kafka searches first.
        base_offset: base offset of the index; the rule that opens the index sets it.
        max_index_size: maximum size of the index in bytes; the rule that opens the index sets it.
    """

    def __init__(self, lockstep: Lockstep, kind: str) -> None:
        self._lockstep = lockstep
        layout = {"offset": OFFSET_INDEX, "time": TIME_INDEX, "transaction": ABORTED_TXN}[kind]
        self._kind = kind
        self._struct = layout.struct
        self.entry_size = layout.size
        self.warm_entries = WARM_SECTION_BYTES // layout.size
        self.base_offset = 0
        self.max_index_size = 0

    @property
    def entries(self) -> int:
        """Number of entries in memory."""
        groups = self._lockstep.groups
        state = groups[-1].observation.state if groups else None
        return 0 if state is None else max(state.entries, 0)

    @property
    def length(self) -> int:
        """Length of the file in bytes."""
        groups = self._lockstep.groups
        return len(groups[-1].files or b"") if groups else 0

    def entry(self, slot: int) -> tuple[int, int] | None:
        """Return key and value in a slot, with absolute offsets; None outside the file.

        They are (offset, position) in an offset index, (timestamp, offset) in a time index, and (last offset, first
        offset) in a transaction index.
        """
        groups = self._lockstep.groups
        file = groups[-1].files if groups else None
        start = slot * self.entry_size
        if file is None or slot < 0 or start + self.entry_size > len(file):
            return None
        fields = self._struct.unpack_from(file, start)
        if self._kind == "offset":
            return self.base_offset + fields[0], fields[1]
        if self._kind == "time":
            return fields[0], self.base_offset + fields[1]
        return fields[3], fields[2]

    def slot(self, anchor: str) -> int:
        """Return the slot of an anchor; "warm" is the first entry of the warm section."""
        entries = self.entries
        if anchor == "first":
            return 0
        if anchor == "middle":
            return entries // 2
        if anchor == "warm":
            return max(0, entries - 1 - self.warm_entries)
        return entries - 1

    def column(self, number: AnchoredNumber, column: int) -> int:
        """Return an anchored number as a Java ``long``, from a column of the entries: 0 is the key, 1 the value."""
        return to_long(self._anchor(number.anchor, column) + number.delta)

    def offset(self, number: AnchoredNumber) -> int:
        """Return an anchored offset as a Java ``long``."""
        return self.column(number, 1 if self._kind == "time" else 0)

    def size(self, number: AnchoredNumber) -> int:
        """Return an anchored size in bytes, possibly negative; the anchor is a number of entries, the delta bytes."""
        return to_int(self._entries(number.anchor) * self.entry_size + number.delta)

    def count(self, number: AnchoredNumber) -> int:
        """Return an anchored slot number as a Java ``int``."""
        return to_int(self._entries(number.anchor) + number.delta)

    def _anchor(self, anchor: str, column: int) -> int:
        if anchor in _FIXED:
            return _FIXED[anchor]
        if anchor == "base":
            return self.base_offset
        if anchor == "last_relative":
            return self.base_offset + INT_MAX
        entry = self.entry(self.slot(anchor))
        return self.base_offset if entry is None else entry[column]

    def _entries(self, anchor: str) -> int:
        count = _COUNTS.get(anchor)
        return 0 if count is None else count(self)


# Anchors of sizes and of slot numbers, as a number of entries.
_COUNTS: dict[str, Callable[[IndexProbe], int]] = {
    "used": lambda probe: probe.entries,
    "half": lambda probe: probe.entries // 2,
    "warm": lambda probe: probe.slot("warm"),
    "length": lambda probe: probe.length // probe.entry_size,
    "max": lambda probe: probe.max_index_size // probe.entry_size,
    "wrap": lambda probe: -(1 << 32) // probe.entry_size,  # n * entry_size wraps around 32 bits to a small number
    "int_min": lambda _: -(1 << 31),
}
_FIXED = {"zero": 0, "int_max": INT_MAX, "long_max": LONG_MAX, "long_min": LONG_MIN, "unsigned_max": (1 << 32) - 1}
