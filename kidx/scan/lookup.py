"""Many lookups in one call, with the results of :meth:`kidx.OffsetIndex.lookup` and :meth:`kidx.TimeIndex.lookup`.

If keys increase, as in every valid index, the slot of a target does not depend on the search, and so it is guessed:
entries are distributed evenly enough that a lookup touches two or three of them, and a lookup close to the last one
finds them in the cache. Otherwise each target is searched for as a broker does.
"""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from kidx.index.search import Keys, warm_search
from kidx.layout import OFFSET_INDEX, TIME_INDEX, WARM_SECTION_BYTES
from kidx.scan.jit import COMPILED, kernels_loaded

if TYPE_CHECKING:
    from kidx.scan.entries import IndexContent

Array = np.ndarray[Any, Any]

_LONG: Final = struct.Struct("=q")
_MANY: Final = 100_000
"""Number of lookups from which loading numba pays off."""


class BulkLookup:
    """Lookups in one index, all entries of which are in memory: 16 bytes each, and 8 for the keys.

    Args:
        content: content of a ``.index`` or ``.timeindex``, from :func:`kidx.scan.read_index`.
        base_offset: base offset of the segment.

    Attributes:
        ordered: True if keys increase strictly.
    """

    def __init__(self, content: IndexContent, base_offset: int) -> None:
        self._dtype: Any = content.entries.dtype
        key, value = self._dtype.names
        self._keys = np.ascontiguousarray(content.entries[key])
        self._values = np.ascontiguousarray(content.entries[value])
        self._width = OFFSET_INDEX.size if key == "offset" else TIME_INDEX.size
        # The result for a target below all entries.
        self._none = (base_offset, 0) if key == "offset" else (-1, base_offset)
        self.ordered = bool((self._keys[1:] > self._keys[:-1]).all())

    def slots(self, targets: Array, *, compiled: bool | None = None) -> Array:
        """Return the slot of the entry found for each target; -1 if no entry is at or below it.

        Args:
            targets: int64, shape (n,), in any order.
            compiled: True for the compiled kernel, False for the plain one; by default the faster one for this number.
        """
        requested = np.ascontiguousarray(targets, np.int64)
        if self._compiled(len(requested)) if compiled is None else compiled:
            from kidx.scan import entry_kernels  # noqa: PLC0415 -- numba takes a second to load

            return entry_kernels.lookup_slots(
                self._keys, requested, WARM_SECTION_BYTES // self._width, ordered=self.ordered
            )
        if self.ordered:
            return np.searchsorted(self._keys, requested, side="right") - 1
        return self._search(requested)

    @staticmethod
    def _compiled(count: int) -> bool:
        return COMPILED and (count >= _MANY or kernels_loaded())

    def _search(self, targets: Array) -> Array:
        """Return the slots found by a broker's search, over keys with the same distance as in the file."""
        padded = np.zeros(len(self._keys), np.dtype([("key", "i8"), ("rest", f"V{self._width - _LONG.size}")]))
        padded["key"] = self._keys
        keys = Keys(_LONG.unpack_from, padded.tobytes(), self._width, 0)
        found = [warm_search(keys, len(self._keys), target)[0] for target in targets.tolist()]
        return np.array(found, np.int64)

    def lookup(self, targets: Array, *, compiled: bool | None = None) -> Array:
        """Return the results: ``offset, position`` (``.index``) or ``timestamp, offset`` (``.timeindex``), shape (n,).

        As in Kafka's lookup, the result for a target below all entries is (base offset, 0) or (-1, base offset).
        """
        slots = self.slots(targets, compiled=compiled)
        if self._compiled(len(slots)) if compiled is None else compiled:
            from kidx.scan import entry_kernels  # noqa: PLC0415 -- loaded already

            result: Array = entry_kernels.gather_entries(self._keys, self._values, slots, self._none).view(self._dtype)[
                :, 0
            ]
            return result
        found = np.empty(len(slots), self._dtype)
        first, second = self._dtype.names
        if len(self._keys):
            below = slots < 0
            found[first], found[second] = self._keys[slots], self._values[slots]
            if below.any():
                found[first][below], found[second][below] = self._none
        else:
            found[first], found[second] = self._none
        return found
