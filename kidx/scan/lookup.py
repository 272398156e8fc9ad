"""Many look-ups at once, with the answers of :meth:`kidx.OffsetIndex.lookup` and :meth:`kidx.TimeIndex.lookup`.

Where keys increase, as they do in every index that is not broken, the slot of a target does not depend on how it is
searched for, and so it is guessed: entries lie evenly enough that a look-up touches two or three of them, and one that
follows its neighbour finds them in the cache. Elsewhere each target is searched for as a broker does.
"""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from kidx.index.search import Keys, warm_search
from kidx.layout import OFFSET_INDEX, TIME_INDEX, WARM_SECTION_BYTES
from kidx.scan.compiled import COMPILED, kernels_loaded

if TYPE_CHECKING:
    from kidx.scan.entries import IndexContent

Array = np.ndarray[Any, Any]

_LONG: Final = struct.Struct("=q")
_MANY: Final = 100_000
"""Look-ups from which on loading numba pays."""


class BulkLookup:
    """Answers look-ups in one index, all entries of which are in memory: 16 bytes each, and 8 for the keys.

    Args:
        content: of a ``.index`` or ``.timeindex``, by :func:`kidx.scan.read_index`.
        base_offset: of the segment.

    Attributes:
        ordered: whether keys increase strictly.
    """

    def __init__(self, content: IndexContent, base_offset: int) -> None:
        self._dtype: Any = content.entries.dtype
        key, value = self._dtype.names
        self._keys = np.ascontiguousarray(content.entries[key])
        self._values = np.ascontiguousarray(content.entries[value])
        self._width = OFFSET_INDEX.size if key == "offset" else TIME_INDEX.size
        self._none = (base_offset, 0) if key == "offset" else (-1, base_offset)
        self.ordered = bool((self._keys[1:] > self._keys[:-1]).all())

    def slots(self, targets: Array, *, compiled: bool | None = None) -> Array:
        """The slot of the entry that answers each target; -1 where no entry is at or below it.

        Args:
            targets: int64, shape (n,), in any order.
            compiled: by the compiled kernel or the plain one; by default whichever is faster for so many.
        """
        wanted = np.ascontiguousarray(targets, np.int64)
        if self._compiled(len(wanted)) if compiled is None else compiled:
            from kidx.scan import entry_kernels  # noqa: PLC0415 -- numba takes a second to load

            return entry_kernels.lookup_slots(
                self._keys, wanted, WARM_SECTION_BYTES // self._width, ordered=self.ordered
            )
        if self.ordered:
            return np.searchsorted(self._keys, wanted, side="right") - 1
        return self._searched(wanted)

    @staticmethod
    def _compiled(count: int) -> bool:
        return COMPILED and (count >= _MANY or kernels_loaded())

    def _searched(self, targets: Array) -> Array:
        """By the search of a broker, over keys that lie as far apart as in the file."""
        padded = np.zeros(len(self._keys), np.dtype([("key", "i8"), ("rest", f"V{self._width - _LONG.size}")]))
        padded["key"] = self._keys
        keys = Keys(_LONG.unpack_from, padded.tobytes(), self._width, 0)
        found = [warm_search(keys, len(self._keys), target)[0] for target in targets.tolist()]
        return np.array(found, np.int64)

    def lookup(self, targets: Array, *, compiled: bool | None = None) -> Array:
        """The answers: ``offset, position`` (``.index``) or ``timestamp, offset`` (``.timeindex``), shape (n,).

        As with Kafka's look-up, a target below all entries is answered with (base offset, 0) or (-1, base offset).
        """
        slots = self.slots(targets, compiled=compiled)
        if self._compiled(len(slots)) if compiled is None else compiled:
            from kidx.scan import entry_kernels  # noqa: PLC0415 -- loaded already

            answers: Array = entry_kernels.answers(self._keys, self._values, slots, self._none).view(self._dtype)[:, 0]
            return answers
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
