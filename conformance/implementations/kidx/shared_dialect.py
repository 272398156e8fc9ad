"""The dialects of several releases as one, as long as what is read of them is the same.

A reference that performs for several releases is given a :class:`SharedDialect`. What it reads there and all releases
have in common cannot tell them apart. Where they differ, those that are not as the newest one *leave*: from this
operation on, another reference has to perform for them. So what is said of all that have not left is exactly what a
reference of their own would have said, as a reference is a function of its operations and of what it reads.
"""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import fields
from typing import TYPE_CHECKING, Any, TypeVar

from kidx.dialect import BEHAVIOURS, Compressor, Decompressor, Dialect
from kidx.records.codecs import compress, decompress_all

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from kidx.records.codecs import Codec, DecompressedStream, ReadMode


Answer = TypeVar("Answer")


class _Asked:
    """A field of a dialect. Its value is an attribute of the object from then on, and is not asked for again."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __get__(self, instance: SharedDialect | None, owner: type) -> Any:
        return self if instance is None else instance.ask(self._name)


class SharedDialect(Dialect):
    """Stands for several dialects.

    Args:
        dialects: the last one is the one that the others leave.

    Attributes:
        members: the dialects that nothing has told apart.
        left: those that have left, until they are taken (:meth:`take_left`).
    """

    members: list[Dialect]
    left: list[Dialect]

    def __init__(self, dialects: Sequence[Dialect]) -> None:
        vars(self).update(members=list(dialects), left=[])

    __hash__ = object.__hash__

    def __eq__(self, other: object) -> bool:
        return self is other

    def ask(self, name: str) -> Any:
        """The value of a field; the members that have another one leave."""
        value = getattr(self.members[-1], name)
        others = [member for member in self.members if getattr(member, name) != value]
        if others:
            self.leave(others)
        vars(self)[name] = value
        return value

    def leave(self, members: Sequence[Dialect]) -> None:
        """Lets those of them leave that have not left yet."""
        self.left.extend(member for member in members if member in self.members)
        self.members[:] = [member for member in self.members if member not in members]

    @property
    def compressor(self) -> Compressor | None:  # type: ignore[override]
        """The codec libraries of the last member; members whose libraries give other bytes leave."""
        return self._compress if any(member.compressor for member in self.members) else None

    def _compress(self, codec: Codec, data: bytes, magic: int) -> bytes:
        return self._agreed([(member.compressor or compress)(codec, data, magic) for member in self.members])

    @property
    def decompressor(self) -> Decompressor | None:  # type: ignore[override]
        """The same; members whose libraries make other things of a stream leave."""
        return self._decompress if any(member.decompressor for member in self.members) else None

    def _decompress(self, codec: Codec, data: bytes, magic: int, *, mode: ReadMode) -> DecompressedStream | None:
        libraries = [member.decompressor or decompress_all for member in self.members]
        return self._agreed([library(codec, data, magic, mode=mode) for library in libraries])

    def _agreed(self, answers: Sequence[Answer]) -> Answer:
        """The answer of the last member; those that have given another one leave."""
        *others, last = answers
        if different := [member for member, other in zip(self.members, others, strict=False) if other != last]:
            self.leave(different)
        return last

    def take_left(self) -> list[Dialect]:
        """Those that have left since the last time."""
        left = self.left.copy()
        self.left.clear()
        return left

    @contextmanager
    def speaking_as(self, values: Mapping[str, Any]) -> Iterator[None]:
        """Gives some fields other values in the block; no member leaves because of them."""
        own = {name: vars(self).get(name, self) for name in values}
        vars(self).update(values)
        try:
            yield
        finally:
            for name, value in own.items():
                if value is self:
                    del vars(self)[name]
                else:
                    vars(self)[name] = value


for _name in (*BEHAVIOURS, *(column.name for column in fields(Dialect))):
    setattr(SharedDialect, _name, _Asked(_name))


class SharedReference:
    """A reference that can perform for several releases.

    Attributes:
        dialect: what it asks for its rules; its own release's, or a shared one.
    """

    dialect: Dialect

    def perform_for(self, dialects: Sequence[Dialect]) -> None:
        """From the next example on, performs for several dialects; its own is the last of them."""
        self.dialect = SharedDialect(dialects) if len(dialects) > 1 else dialects[0]

    def take_left(self) -> list[Dialect]:
        """The dialects that the last operation did not do for any more."""
        return self.dialect.take_left() if isinstance(self.dialect, SharedDialect) else []

    def observation_of(self, dialect: Dialect, observation: Any) -> Any:
        """The last observation as that of one of the dialects."""
        del dialect
        return observation
