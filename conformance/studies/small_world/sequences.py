"""Every sequence of a few operations on an index, in lockstep, instead of random sequences of all operations.

A bug that needs three steps is found if all sequences of three steps are executed. There are few operations: one of
each kind. Appends, lookups and truncations use the same few offsets, and the file has space for three entries.
"""

from __future__ import annotations

from itertools import product
from typing import TYPE_CHECKING, Any, Final

from conformance.operations import Operation

if TYPE_CHECKING:
    from collections.abc import Iterator

AlphabetOperation = tuple[Operation, ...]
"""Element of a sequence: one operation, or two for reopening, which are always executed together."""

_BASE: Final = 10
"""Base offset of the index."""


def _opening(kind: str, suffix: str, size: int) -> Operation:
    return Operation("open", (kind, f"{_BASE:020d}{suffix}", _BASE, size, True))


def _elements(*operations: tuple[Any, ...]) -> list[AlphabetOperation]:
    return [(Operation(name, arguments),) for name, arguments in ((each[0], each[1:]) for each in operations)]


_OPENINGS: Final = {
    "offset": _opening("offset", ".index", 24),
    "time": _opening("time", ".timeindex", 36),
    "transaction": _opening("transaction", ".txnindex", 0),
}


def alphabet(kind: str) -> list[AlphabetOperation]:
    """Return the operations from which sequences for one kind of index are formed."""
    opening = _OPENINGS[kind]
    reopen: list[AlphabetOperation] = [(Operation("close"), opening), (Operation("crash"), opening)]
    if kind == "offset":
        return reopen + _elements(
            ("append", 10, 5),
            ("append", 12, 5),
            ("lookup", 11),
            ("fetch_upper_bound", 10, 0, 5),
            ("entry", 0),
            ("truncate_to", 12),
            ("truncate",),
            ("reset",),
            ("resize", 8),
            ("resize", 24),
            ("trim",),
            ("sanity_check",),
        )
    if kind == "time":
        return reopen + _elements(
            ("maybe_append", 5, 10, False),
            ("maybe_append", 7, 12, True),
            ("maybe_append", 9, _BASE + (1 << 31), False),
            ("lookup", 6),
            ("entry", 0),
            ("truncate_to", 12),
            ("truncate",),
            ("reset",),
            ("resize", 12),
            ("resize", 36),
            ("trim",),
            ("sanity_check",),
        )
    return reopen + _elements(
        ("append_aborted", 1, 8, 12, 13),
        ("append_aborted", 2, 11, 14, 15),
        ("append_aborted", 3, 0, 9, 9),
        ("collect_aborted", 10, 13),
        ("all_aborted",),
        ("truncate_to", 14),
        ("reset",),
        ("sanity_check",),
        ("flush",),
        ("delete",),
    )


def sequences(kind: str, length: int) -> Iterator[tuple[Operation, ...]]:
    """Yield every sequence of this length, after an opening. Shorter sequences are prefixes of these."""
    for sequence in product(alphabet(kind), repeat=length):
        yield (_OPENINGS[kind], *(operation for element in sequence for operation in element))
