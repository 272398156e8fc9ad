"""What an operation is: the one declaration of each that everything else about it is derived from.

Signatures, effects, the types of traces and of the line protocol, both JSON Schemas, the readers of replies, what a new
implementation is asked for, and the names that the Java side is given come from it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING, Annotated, Any, Final, Literal

from msgspec import Meta

from kidx.java_numbers import INT_MAX, INT_MIN, LONG_MAX, LONG_MIN

if TYPE_CHECKING:
    from conformance.operations.effects import Effect

MANY: Final = 1 << 20
"""Appends in one bulk, or bytes of one damage: a thousand times what the machines do."""

# What an argument is; a refusal says it in the words of the description.
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
"""The names of what is found by a timestamp."""


def one_of(*names: str) -> Any:
    """Return the type of an argument that is one of some names."""
    return Annotated[Literal[names], Meta(description=f"one of {', '.join(names)}")]


class Shape(Enum):
    """What an operation gives if it is not refused."""

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
    """What an operation may do to files."""

    LEAVES = "none is touched"
    MAKES = "none changes, but one may be made that is needed"
    WRITES = "they may change, each in its place"
    REPLACES = "another one may be in the place of one, or none"


@dataclass(frozen=True)
class Op:
    """An operation.

    Attributes:
        name: in traces, and in the line protocol.
        arguments: the type of each, in order.
        of: which kinds of index have it; empty of the other levels.
        gives: what it answers with.
        fields: the names of the numbers in that.
        effect: on what it is about.
        looks: whether neither state nor files are others afterwards.
        names_file: the number of the argument that names the file it is about from then on; -1 if none does.
        files: what it may do to them.
        line: its name in version 2 of the line protocol, if its arguments are the same there.
        method: of a Python object that performs it, where that has another name.
        many: the operation that it performs several times, with the arguments after the numbers.
        does: what it does in words; empty if the line protocol does not have it.
        needs: what an index must be capable of to have it.
        least: the smallest arguments that a broker passes; those behind them may be any.
        tried: the arguments with which a new implementation is asked for it; None if it is not asked.
    """

    name: str
    arguments: Mapping[str, Any]
    of: frozenset[str] = frozenset()
    gives: Shape = Shape.NOTHING
    fields: tuple[str, ...] = ()
    effect: Effect | None = None
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
        """The names of its arguments."""
        return tuple(self.arguments)


def signatures(operations: Mapping[str, Op]) -> dict[str, tuple[str, ...]]:
    """Return the names of the arguments of each operation, in order."""
    return {name: each.signature for name, each in operations.items()}


def effects(operations: Mapping[str, Op]) -> dict[str, Effect]:
    """Return the effects of those operations that have one."""
    return {name: each.effect for name, each in operations.items() if each.effect is not None}


def by_name(operations: Iterable[Op]) -> dict[str, Op]:
    """Return operations by their names."""
    return {each.name: each for each in operations}
