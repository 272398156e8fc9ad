"""Declaration of an operation on an object: an index file, a segment, a log, a cache or a topic of a broker.

Signatures, effects, the types of traces and of the line protocol, both JSON Schemas, the parsers of replies, the
requests that try a new implementation, and the names on the Java side are derived from it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Annotated, Any, Final, Literal

from msgspec import Meta

from kidx.java_values import INT_MAX, INT_MIN, LONG_MAX, LONG_MIN

MANY: Final = 1 << 20
"""The maximum number of appends in one bulk operation, and of bytes in one corruption; machines use a thousandth."""

# The types of arguments; error messages contain their descriptions.
LONG: Final = Annotated[int, Meta(ge=LONG_MIN, le=LONG_MAX, description="an integer of 64 bits")]
INT: Final = Annotated[int, Meta(ge=INT_MIN, le=INT_MAX, description="an integer of 32 bits")]
COUNT: Final = Annotated[int, Meta(ge=0, le=MANY, description=f"an integer from 0 to {MANY}")]
BOOLEAN: Final = Annotated[bool, Meta(description="true or false")]
BYTE: Final = Annotated[int, Meta(ge=0, le=255, description="a byte")]
PATH: Final = Annotated[
    str, Meta(min_length=1, description="a path inside the directory of the replay that a file can have")
]
HEXADECIMAL: Final = Annotated[
    str, Meta(pattern="^([0-9a-f]{2})*$", max_length=2 * MANY, description="bytes in hexadecimal")
]
TEXT: Final = Annotated[str, Meta(description="a text")]
TEXTS: Final = Annotated[list[str], Meta(description="a list of texts")]
LONGS: Final = Annotated[list[LONG], Meta(description="a list of integers of 64 bits")]  # type: ignore[valid-type]
BATCHES: Final = Annotated[list[dict[str, Any]], Meta(description="a list of batches")]
SETTINGS: Final = Annotated[dict[str, int | str], Meta(description="topic configurations by their names")]
LIST: Final = Annotated[list[Any], Meta(description="a list")]

FOUND: Final = ("timestamp", "offset", "leader_epoch")
"""The fields of the result of a lookup by timestamp."""


def one_of(*names: str) -> Any:
    """Return the type of an argument whose value is one of some names."""
    return Annotated[Literal[names], Meta(description=f"one of {', '.join(names)}")]


class Effect(Enum):
    """Effect of an operation on what it applies to; most operations have none of these."""

    OPENS = "opens"
    RELEASES = "releases"
    """Releases the files, so that the harness may corrupt them; truncating a file kills a process that maps it."""
    DAMAGES = "damages"
    """Corrupts files; executed by the harness while no implementation has the files open."""


class Shape(Enum):
    """Result type of an operation that succeeds."""

    NOTHING = "nothing"
    FLAG = "flag"
    NUMBER = "a number or nothing"
    NUMBERS = "numbers or nothing"
    PAIR = "pair"
    MAYBE_PAIR = "a pair or nothing"
    ANSWERS = "numbers or nothing, for each target"
    TRANSACTIONS = "aborted transactions"
    COLLECTED = "aborted transactions, and whether all have been found"


class Files(Enum):
    """Possible effects of an operation on the files of its object."""

    LEAVES = "no file changes"
    MAKES = "no file changes, but one that is needed may be created"
    WRITES = "files may change, but are not replaced"
    REPLACES = "a file may be replaced or deleted"


@dataclass(frozen=True)
class Op:
    """Declaration of one operation.

    Attributes:
        name: The name in traces and in the line protocol.
        arguments: The types of the arguments by name, in order.
        of: The kinds of index that have the operation, or the only machine that executes it; empty for all machines.
        gives: The type of the result.
        fields: The names of the numbers in the result.
        effect: The effect on the object of the operation; None for most operations.
        early: True if the operation may precede the opening of the object, because it changes something else, such as
            remote storage.
        looks: True if the operation changes neither state nor files.
        names_file: The position of the argument that becomes the name of the open file; -1 for most operations.
        files: The possible effects on files.
        line: The name in version 2 of the line protocol; empty if it has no operation with these arguments.
        method: The method of a Python object, or of kidx's log, that executes the operation; empty if it has the same
            name.
        many: The operation that is executed ``count`` times; each step adds the last arguments to the first ones.
        does: The description for implementers; empty if the line protocol does not have the operation.
        needs: The capabilities that an index or a log needs for the operation.
        least: The smallest arguments that a broker passes; arguments without a number are not restricted.
        tried: The arguments with which a new implementation is tried; None if the operation is not tried.
    """

    name: str
    arguments: Mapping[str, Any]
    of: frozenset[str] = frozenset()
    gives: Shape = Shape.NOTHING
    fields: tuple[str, ...] = ()
    effect: Effect | None = None
    early: bool = False
    looks: bool = False
    names_file: int = -1
    files: Files = Files.WRITES
    line: str = ""
    method: str = ""
    many: str = ""
    does: str = ""
    needs: tuple[str, ...] = ()
    least: tuple[int, ...] = ()
    tried: tuple[Any, ...] | None = None

    @property
    def signature(self) -> tuple[str, ...]:
        """Return the names of the arguments."""
        return tuple(self.arguments)


def signatures(operations: Mapping[str, Op]) -> dict[str, tuple[str, ...]]:
    """Return the names of the arguments of each operation, in order."""
    return {name: each.signature for name, each in operations.items()}


def effects(operations: Mapping[str, Op]) -> dict[str, Effect]:
    """Return the effects of the operations that have one."""
    return {name: each.effect for name, each in operations.items() if each.effect is not None}


def by_name(operations: Iterable[Op]) -> dict[str, Op]:
    """Return the operations, by name."""
    return {each.name: each for each in operations}
