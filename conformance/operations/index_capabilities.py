"""Capabilities that an index of an adapter may lack, and the operations that require them.

A program declares the capabilities of its indexes in ``index_capabilities`` of its reply to ``start`` (protocol 1). A
program that declares none has all of them. If a program lacks a capability, operations that require the capability are
not generated for the program, and clauses about the capability get no verdict.
"""

from __future__ import annotations

import operator
from typing import TYPE_CHECKING, Final

from conformance.operations.index import FILE_OPERATIONS, INDEX_OPS
from kidx.java_values import INT_MAX, LONG_MAX

if TYPE_CHECKING:
    from collections.abc import Iterable

    from conformance.operations.operation import Operation

INDEX_CAPABILITIES: Final = {
    "preallocation": "a new file has max_index_size, rounded down to whole entries, and keeps its length until it is"
    " closed; without it files are compared by their entries, and an index always has space for max_index_size, or for"
    " its entries if these are larger",
    "read_only": "open with writable false opens an existing file, and rejects appends; in Kafka, until a resize maps"
    " the file for writing (AI-10), which level must does not count",
    "resize": "resize and trim change the length of the file",
    "delete": "delete closes the index and deletes its file",
    "calls_after_close": "an index that is closed or deleted replies to further requests, like Kafka's index",
    "odd_arguments": "a request may have arguments that no broker passes: an offset, position, slot or size below 0,"
    " a timestamp below -1, a base offset within 2147483647 of the largest integer, a max_index_size below one entry,"
    " another max_index_size than the last time, and the path of a file in a missing directory",
}
"""The capabilities, each with the behaviour of an index that has it."""

INDEX_CLAUSES: Final = {
    "preallocation": "AI-3a AI-5 AI-7 AI-10 AI-11 AI-13 AI-14 AI-15 AI-16 AI-18 AI-40 AI-42 AI-44 AI-46 OI-6 OI-13"
    " TI-10 TI-21",
    "read_only": "AI-2 AI-4a AI-4b AI-42c OI-13 TI-22",
    "resize": "AI-10 AI-11 AI-13 AI-40 AI-44 OI-6 TI-10 TI-21",
    "delete": "AI-18 AI-20b TX-13b",
    "calls_after_close": "AI-16b AI-16c AI-19 AI-20 AI-44b TX-14b TX-21",
    "odd_arguments": "AI-3b AI-3c AI-4c AI-15c AI-21b AI-44",
}
"""The clauses that do not apply without a capability; ``AI-3`` without a letter includes AI-3a, AI-3b and so on."""

OF_OPERATION: Final = {name: each.needs for name, each in INDEX_OPS.items() if each.needs}
"""The capabilities that an operation requires for any arguments."""
LEAST_ARGUMENTS: Final = {name: each.least for name, each in INDEX_OPS.items() if each.least}
"""The smallest arguments that a broker passes; arguments without a number in the tuple are not restricted."""
LARGEST_BASE: Final = LONG_MAX - INT_MAX
"""The largest base offset of an offset or time index to which every relative offset can be added."""
ENTRY_SIZES: Final = {"offset": 8, "time": 12}
"""The sizes in bytes of an entry of the kinds whose file may be preallocated."""
_RELEASING: Final = frozenset({"close", "delete"})


def lacks_directory(path: str) -> bool:
    """Return True if a path is in a subdirectory, which does not exist, because the harness creates none."""
    return "/" in path


def has_unusual_arguments(operation: Operation) -> bool:
    """Return True if a request to an open index has an argument that no broker passes.

    Args:
        operation: The request, which may be a bulk operation.
    """
    name, arguments = operation
    if name == "rename":
        return lacks_directory(arguments[0])
    single = name.removeprefix("bulk_")
    if single not in LEAST_ARGUMENTS:
        return False
    requests = [arguments]
    if single != name:  # the arguments of the first and the last append
        first, second, first_step, second_step, count = arguments
        last = max(count - 1, 0)
        requests = [(first, second), (first + last * first_step, second + last * second_step)]
    return not all(all(map(operator.ge, request, LEAST_ARGUMENTS[single])) for request in requests)


def missing_index_capability(operation: Operation, capabilities: frozenset[str]) -> str:
    """Return the first capability that an operation requires and an index lacks; empty if it lacks none.

    Args:
        operation: The operation; it opens an index, or an index is open.
    """
    name, arguments = operation
    needed: tuple[str, ...] = OF_OPERATION.get(name, ())
    if name == "open":
        kind, path, base_offset, max_index_size, writable = arguments
        is_unusual = lacks_directory(path)
        if kind in ENTRY_SIZES:
            is_unusual = is_unusual or not 0 <= base_offset <= LARGEST_BASE or max_index_size < ENTRY_SIZES[kind]
            needed = () if writable else ("read_only",)
        needed = (*needed, "odd_arguments") if is_unusual else needed
    elif has_unusual_arguments(operation):
        needed = (*needed, "odd_arguments")
    return next((capability for capability in needed if capability not in capabilities), "")


def can_execute(operations: Iterable[Operation], capabilities: frozenset[str]) -> bool:
    """Return True if an index with these capabilities can execute all steps of a trace.

    Args:
        operations: The steps, from the first one on.
    """
    is_open = True
    for operation in operations:
        if missing_index_capability(operation, capabilities):
            return False
        if operation.name == "open":
            is_open = True
        elif not is_open and operation.name not in FILE_OPERATIONS | {"crash"}:
            if "calls_after_close" not in capabilities:
                return False
        elif operation.name in _RELEASING:
            is_open = False
    return True
