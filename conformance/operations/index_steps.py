"""Operations as typed structures, which check and describe themselves.

A step of a trace is the request of the line protocol. What a type says in words is what a refusal says.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final, get_args

from msgspec import Struct, ValidationError, convert, defstruct

from conformance.operations.index import FILE_OPERATIONS
from conformance.operations.operation import OPS

if TYPE_CHECKING:
    from collections.abc import Sequence

    from conformance.operations.operation import Operation

_DAMAGING: Final = frozenset({"damage_segment_file", "damage_log_file", "damage_cached_file"})
"""Operations with the name of a damage and its arguments among theirs."""
_PLACE: Final = re.compile(r"\$\.(\w+)")
"""Where msgspec says that a value stands."""


def words_for(operation: str, argument: str) -> str:
    """What an argument is, in words."""
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
"""Every operation as a structure."""


def is_allowed(operation: Operation) -> bool:
    """Whether the arguments of an operation are of their types, and those of a damage to a file."""
    if not _is_typed(*operation):
        return False
    if operation.name not in _DAMAGING:
        return True
    _, how, numbers = operation.args
    return how in FILE_OPERATIONS and _is_typed(how, numbers)


def _is_typed(name: str, arguments: Sequence[Any]) -> bool:
    names = OPS[name].signature
    if len(names) != len(arguments):
        return False
    return not wrong_argument(name, {"op": name, **dict(zip(names, arguments, strict=True))})


def wrong_argument(operation: str, request: dict[str, Any]) -> str:
    """The name of the first argument of a request that is not of its type; empty if all are.

    Args:
        operation: which the request is of.
        request: with all its arguments and no others.
    """
    try:
        convert(request, STEPS[operation])
    except ValidationError as error:
        place = _PLACE.search(str(error))
        return place[1] if place else next(iter(OPS[operation].arguments))
    return ""
