"""Writer of the cases of many contents with compiled kernels; logs have no kernels."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import numpy as np

from conformance.experiments.fuzz.compiled import offset, time, transaction
from conformance.implementations.jvm.cases import ASKED
from conformance.implementations.jvm.step_batch import WRITE
from kidx.dialect import Dialect, dialect_of
from kidx.scan.jit import kernel

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

_HARNESS: Final = WRITE
"""Number from which operations are the harness's own, up to :data:`_ASKED`, from which they are queries."""
_ASKED: Final = ASKED
_FACTOR: Final = 1_000_003
_PRIME: Final = (1 << 31) - 1
_WAYS: Final = 64
"""Maximum number of different outcomes in a case."""


class _Kernels(NamedTuple):
    """Kernels of one format.

    Attributes:
        write: The kernel that writes cases.
        texts: A function that returns the error texts of a dialect.
        rule: A function that returns the other property of a dialect that the kernel needs.
        longs: The maximum number of longs of a case without its content.
        longs_a_byte: The additional longs for each byte of its content.
    """

    write: Callable[..., Any]
    texts: Callable[[Dialect], tuple[Any, ...]]
    rule: Callable[[Dialect], bool]
    longs: int
    longs_a_byte: int


KERNELS: Final = {
    "offset": _Kernels(offset.write_cases, offset.texts, lambda dialect: dialect.close_trims, 3000, 1),
    "time": _Kernels(time.write_cases, time.texts, lambda dialect: dialect.close_trims, 3000, 1),
    "txn": _Kernels(transaction.write_cases, transaction.texts, lambda dialect: dialect.strict_txn_version, 1500, 3),
}
"""Kernels by the formats of ``--format``."""


class CompiledReference:
    """Writer of cases of one format, by kernels.

    Args:
        format_name: A format of ``--format``, one of :data:`KERNELS`.
        release: The release of the dialect.
    """

    def __init__(self, format_name: str, release: str) -> None:
        self._kernels = KERNELS[format_name]
        dialect = dialect_of(release)
        self._texts = self._kernels.texts(dialect)
        self._rule = self._kernels.rule(dialect)

    def room(self, contents: Sequence[bytes]) -> int:
        """Return the maximum number of longs of the cases of these contents."""
        return self._kernels.longs * len(contents) + self._kernels.longs_a_byte * sum(map(len, contents))

    def write(self, contents: Sequence[bytes], longs: NDArray[np.int64]) -> NDArray[np.int64]:
        """Write the case of each content, one after the other, and return the end of each."""
        ends = np.cumsum([len(content) for content in contents], dtype=np.int64)
        data = np.frombuffer(b"".join(contents), np.uint8)
        found: NDArray[np.int64] = self._kernels.write(longs, longs.view(np.uint8), data, ends, self._texts, self._rule)
        return found


@kernel
def _signatures(longs: Any, ends: Any, found: Any) -> Any:
    ways = np.empty(_WAYS, np.int64)
    counts = np.empty(_WAYS, np.int64)
    at = 0
    for number in range(len(ends)):
        at += 1
        different = 0
        while at < ends[number]:
            operation = longs[at]
            at += 2 + longs[at + 1]
            at += 1 + (longs[at] + 7) // 8
            size = longs[at]
            at += 1
            if operation < _HARNESS or operation >= _ASKED:
                # Outcome: the operation, the kind of the error, and if there is a value.
                how = 512 * operation + (0 if size < 0 else 2 * longs[at] + (2 if longs[at + 1] >= 0 else 1))
                place = 0
                while place < different and ways[place] != how:
                    place += 1
                if place == different:
                    ways[place], counts[place] = how, 0
                    different = min(different + 1, _WAYS - 1)
                counts[place] += 1
            at += (max(size, 0) + 7) // 8
        value = 0
        for place in range(different):
            bits = 0
            while counts[place] >> bits:
                bits += 1
            value = (value + (_FACTOR * (64 * ways[place] + bits)) % _PRIME * (ways[place] % 8191 + 1)) % _PRIME
        found[number] = value


def signatures(longs: NDArray[np.int64], ends: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return a number for each case that encodes the outcomes of operations, and how often each occurs, roughly."""
    found = np.empty(len(ends), np.int64)
    _signatures(longs, ends, found)
    return found
