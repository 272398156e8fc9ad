"""What an index behind the line protocol may lack, and which operations make no sense then.

A program says in its reply to ``start`` of protocol 1, in ``index_capabilities``, which of these its indexes have. One
that does not say has all of them. What needs another one is not drawn for it, and no clause about it is named.
"""

from __future__ import annotations

import operator
from typing import TYPE_CHECKING, Final

from conformance.operations.index import FILE_OPERATIONS, INDEX_OPS

if TYPE_CHECKING:
    from collections.abc import Iterable

    from conformance.operations.operation import Operation

INDEX_CAPABILITIES: Final = {
    "preallocation": "a new file has max_index_size, rounded down to whole entries, and keeps its length until it is"
    " closed; without it files are compared by their entries, and an index always has room for max_index_size, or for"
    " the entries that it has where these are more",
    "read_only": "open with writable false opens a file that is there, and appends are refused",
    "resize": "resize and trim change the length of the file",
    "delete": "delete closes the index and deletes its file",
    "calls_after_close": "an index that is closed or deleted answers further requests, as Kafka's does",
    "odd_arguments": "a request may have arguments that no broker passes: an offset, position or slot below 0, a"
    " timestamp below -1, a max_index_size below one entry, another max_index_size than the last time, and the path"
    " of a file in a directory that is not there",
}
"""Each with what an index does that has it."""

INDEX_CLAUSES: Final = {
    "preallocation": "AI-3a AI-5 AI-7 AI-10 AI-11 AI-13 AI-14 AI-15 AI-16 AI-18 AI-40 AI-42 AI-44 AI-46 OI-6 OI-13"
    " TI-10 TI-21",
    "read_only": "AI-2 AI-4a AI-4b OI-13 TI-22",
    "resize": "AI-10 AI-11 AI-13 AI-40 AI-44 OI-6 TI-10 TI-21",
    "delete": "AI-18 AI-20b TX-13b",
    "calls_after_close": "AI-16b AI-16c AI-19 AI-20 AI-44b TX-14b TX-21",
    "odd_arguments": "AI-3b AI-3c AI-4c AI-15c AI-21b AI-44",
}
"""The clauses that an index without a capability cannot keep or break; one without a letter has all its letters."""

OF_OPERATION: Final = {name: each.needs for name, each in INDEX_OPS.items() if each.needs}
"""What an operation needs whatever its arguments are."""
LEAST_ARGUMENTS: Final = {name: each.least for name, each in INDEX_OPS.items() if each.least}
"""The smallest arguments that a broker passes; those behind them may be any."""
_ENTRY_SIZES: Final = {"offset": 8, "time": 12}
_RELEASING: Final = frozenset({"close", "delete"})


def is_nowhere(path: str) -> bool:
    """Return whether a path is in a directory that is not there: the harness makes none in its own."""
    return "/" in path


def is_odd_request(operation: Operation) -> bool:
    """Return whether a request to an open index has an argument that no broker passes.

    Args:
        operation: the request, or several of one kind at once.
    """
    name, arguments = operation
    if name == "rename":
        return is_nowhere(arguments[0])
    single = name.removeprefix("bulk_")
    if single not in LEAST_ARGUMENTS:
        return False
    asked = [arguments]
    if single != name:  # first and last of them
        first, second, first_step, second_step, count = arguments
        last = max(count - 1, 0)
        asked = [(first, second), (first + last * first_step, second + last * second_step)]
    return not all(all(map(operator.ge, each, LEAST_ARGUMENTS[single])) for each in asked)


def index_capability_missing(operation: Operation, capabilities: frozenset[str]) -> str:
    """Return the first capability that an operation needs beyond the given ones, by its arguments alone.

    Args:
        operation: on an index that is open, or one that opens it.
        capabilities: of the index.
    """
    name, arguments = operation
    needed: tuple[str, ...] = OF_OPERATION.get(name, ())
    if name == "open":
        kind, path, base_offset, max_index_size, writable = arguments
        is_odd = is_nowhere(path)
        if kind in _ENTRY_SIZES:
            is_odd = is_odd or base_offset < 0 or max_index_size < _ENTRY_SIZES[kind]
            needed = () if writable else ("read_only",)
        needed = (*needed, "odd_arguments") if is_odd else needed
    elif is_odd_request(operation):
        needed = (*needed, "odd_arguments")
    return next((capability for capability in needed if capability not in capabilities), "")


def can_perform(operations: Iterable[Operation], capabilities: frozenset[str]) -> bool:
    """Return whether an index with these capabilities can perform all steps of a trace.

    Args:
        operations: the steps, from the first one on.
        capabilities: of the index.
    """
    is_open = True
    for operation in operations:
        if index_capability_missing(operation, capabilities):
            return False
        if operation.name == "open":
            is_open = True
        elif not is_open and operation.name not in FILE_OPERATIONS | {"crash"}:
            if "calls_after_close" not in capabilities:
                return False
        elif operation.name in _RELEASING:
            is_open = False
    return True
