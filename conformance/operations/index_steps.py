"""The operations on an index file as typed structures, which check and describe themselves.

A step of a trace is the request of the line protocol. What a type says in words is what a refusal says.
"""

from __future__ import annotations

from typing import Annotated, Any, Final, Literal, get_args

from msgspec import Meta, Struct, ValidationError, convert, defstruct

from conformance.operations.index import KINDS, SIGNATURES
from kidx.java_numbers import INT_MAX, INT_MIN, LONG_MAX, LONG_MIN

MANY: Final = 1 << 20
"""Appends in one bulk, or bytes of one damage: a thousand times what the machines do."""

_LONG: Final = Annotated[int, Meta(ge=LONG_MIN, le=LONG_MAX, description="an integer of 64 bits")]
_INT: Final = Annotated[int, Meta(ge=INT_MIN, le=INT_MAX, description="an integer of 32 bits")]
_COUNT: Final = Annotated[int, Meta(ge=0, le=MANY, description=f"an integer from 0 to {MANY}")]
_BOOLEAN: Final = Annotated[bool, Meta(description="true or false")]
_INSIDE: Final = "a path inside the directory of the replay that a file can have"
_TYPES: Final[dict[str, Any]] = {
    "kind": Annotated[Literal["offset", "time", "transaction"], Meta(description=f"one of {', '.join(KINDS)}")],
    "path": Annotated[str, Meta(min_length=1, description=_INSIDE)],
    "writable": _BOOLEAN,
    "skip_full_check": _BOOLEAN,
    **dict.fromkeys(("max_index_size", "n", "fetch_size"), _INT),
    "count": _COUNT,
    "byte": Annotated[int, Meta(ge=0, le=255, description="a byte")],
    "bit": Annotated[int, Meta(ge=0, le=7, description="a bit from 0 to 7")],
    "length": _COUNT,
    "content": Annotated[
        str, Meta(pattern="^([0-9a-f]{2})*$", max_length=2 * MANY, description="bytes in hexadecimal")
    ],
}
"""By the name of an argument; every other one is an integer of 64 bits."""
_SPECIAL: Final[dict[tuple[str, str], Any]] = {
    **dict.fromkeys((("append", "position"), ("bulk_append", "position"), ("fetch_upper_bound", "position")), _INT),
    ("resize", "size"): _INT,
    ("swap_ranges", "size"): Annotated[int, Meta(ge=1, le=MANY, description=f"an integer from 1 to {MANY}")],
}


def type_of(operation: str, argument: str) -> Any:
    """The type of an argument."""
    return _SPECIAL.get((operation, argument)) or _TYPES.get(argument, _LONG)


def words_for(operation: str, argument: str) -> str:
    """What an argument is, in words."""
    description: str = get_args(type_of(operation, argument))[1].description
    return description


STEPS: Final[dict[str, type[Struct]]] = {
    name: defstruct(
        name,
        [(argument, type_of(name, argument)) for argument in arguments],
        tag_field="op",
        tag=name,
        forbid_unknown_fields=True,
    )
    for name, arguments in SIGNATURES.items()
}
"""Every operation as a structure."""


def wrong_argument(operation: str, request: dict[str, Any]) -> str:
    """The name of the first argument of a request that is not of its type; empty if all are.

    Args:
        operation: which the request is of.
        request: with all its arguments and no others.
    """
    try:
        convert(request, STEPS[operation])
    except ValidationError as error:
        return str(error).rpartition("$.")[2].rstrip("`")
    return ""
