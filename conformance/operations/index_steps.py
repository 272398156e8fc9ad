"""Operations as typed structures: each checks the types of its arguments and describes them.

A step of a trace is a request of the line protocol. Error messages quote the description of a type.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final, get_args

from msgspec import Struct, ValidationError, convert, defstruct

from conformance.operations.index import FILE_OPERATIONS
from conformance.operations.operation import OPS, Operation

if TYPE_CHECKING:
    from collections.abc import Sequence

_DAMAGING: Final = frozenset({"damage_segment_file", "damage_log_file", "damage_cached_file"})
"""Operations whose own arguments contain the name of a file operation and its arguments."""
_LOCATION: Final = re.compile(r"\$\.(\w+)")
"""The place of a value in msgspec's messages, such as ``$.offset``."""


def describe_argument(operation: str, argument: str) -> str:
    """Return the description of an argument's type."""
    description: str = get_args(OPS[operation].arguments[argument])[1].description
    return description


STEPS: Final[dict[str, type[Struct]]] = {
    name: defstruct(
        name,
        list(operation.arguments.items()),
        tag_field="op",
        tag=name,
        forbid_unknown_fields=True,
    )
    for name, operation in OPS.items()
}
"""The structure of each operation, by its name."""


def has_valid_arguments(operation: Operation) -> bool:
    """Return True if the arguments of an operation, of a file operation in them, and of a last append have their types.

    A bulk operation computes the arguments of its last append.
    """
    if not _is_typed(*operation):
        return False
    if operation.name in _DAMAGING:
        _, how, numbers = operation.args
        return how in FILE_OPERATIONS and _is_typed(how, numbers)
    return not OPS[operation.name].many or _is_typed(*last_of(operation))


def last_of(operation: Operation) -> Operation:
    """Return a bulk operation that executes only the last append."""
    first, second, first_step, second_step, count = operation.args
    before = max(count - 1, 0)
    return Operation(operation.name, (first + before * first_step, second + before * second_step, 0, 0, 0))


def _is_typed(name: str, arguments: Sequence[Any]) -> bool:
    names = OPS[name].signature
    if len(names) != len(arguments):
        return False
    return not wrong_argument(name, {"op": name, **dict(zip(names, arguments, strict=True))})


def wrong_argument(operation: str, request: dict[str, Any]) -> str:
    """Return the name of the first argument of a request that does not have its type; empty if all have.

    Args:
        request: The request, with all arguments of the operation and no others.
    """
    try:
        convert(request, STEPS[operation])
    except ValidationError as error:
        place = _LOCATION.search(str(error))
        return place[1] if place else next(iter(OPS[operation].arguments))
    return ""
