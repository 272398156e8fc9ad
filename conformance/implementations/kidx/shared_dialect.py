"""Dialect of several releases, as long as all values that are read are the same for them.

A reference that executes for several releases has a :class:`SharedDialect`. If a value that is read differs between its
members, the members that differ from the newest one are *split off*: from this operation on, another reference must
execute for them. A reference depends only on its operations and on the values that it reads. The remaining members
therefore get exactly the results that separate references would have.
"""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import fields
from typing import TYPE_CHECKING, Any, TypeVar

from conformance.implementations.kidx.reference import Reference
from kidx.dialect import BEHAVIOURS, Compressor, Decompressor, Dialect
from kidx.records.codecs import compress, decompress_all

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from kidx.records.codecs import Codec, DecompressedStream, ReadMode

Answer = TypeVar("Answer")


class _TrackedField:
    """Field of a dialect, whose value becomes an attribute of the object when it is first read."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __get__(self, instance: SharedDialect | None, owner: type) -> Any:
        return self if instance is None else instance.ask(self._name)


class SharedDialect(Dialect):
    """Several dialects as one.

    Args:
        dialects: The dialects. The last one determines each value; the others are split off if theirs differs.

    Attributes:
        members: The dialects that have not been split off.
        left: The dialects that have been split off since the last :meth:`pop_split_off`.
    """

    members: list[Dialect]
    left: list[Dialect]

    def __init__(self, dialects: Sequence[Dialect]) -> None:
        vars(self).update(members=list(dialects), left=[])

    __hash__ = object.__hash__

    def __eq__(self, other: object) -> bool:
        return self is other

    def ask(self, name: str) -> Any:
        """Return the value of a field, and split off the members with another value."""
        value = getattr(self.members[-1], name)
        others = [member for member in self.members if getattr(member, name) != value]
        if others:
            self.leave(others)
        vars(self)[name] = value
        return value

    def leave(self, members: Sequence[Dialect]) -> None:
        """Split off members that are not yet split off."""
        self.left.extend(member for member in members if member in self.members)
        self.members[:] = [member for member in self.members if member not in members]

    @property
    def compressor(self) -> Compressor | None:  # type: ignore[override]
        """Codec libraries of the last member; members whose libraries produce other bytes are split off."""
        return self._compress if any(member.compressor for member in self.members) else None

    def _compress(self, codec: Codec, data: bytes, magic: int) -> bytes:
        return self._agreed([(member.compressor or compress)(codec, data, magic) for member in self.members])

    @property
    def decompressor(self) -> Decompressor | None:  # type: ignore[override]
        """Codec libraries of the last member; members whose libraries decompress differently are split off."""
        return self._decompress if any(member.decompressor for member in self.members) else None

    def _decompress(self, codec: Codec, data: bytes, magic: int, *, mode: ReadMode) -> DecompressedStream | None:
        libraries = [member.decompressor or decompress_all for member in self.members]
        return self._agreed([library(codec, data, magic, mode=mode) for library in libraries])

    def _agreed(self, answers: Sequence[Answer]) -> Answer:
        """Return the result of the last member, and split off the members with a different result."""
        *others, last = answers
        if different := [member for member, other in zip(self.members, others, strict=False) if other != last]:
            self.leave(different)
        return last

    def pop_split_off(self) -> list[Dialect]:
        """Return the members that were split off since the last call."""
        left = self.left.copy()
        self.left.clear()
        return left

    @contextmanager
    def overriding(self, values: Mapping[str, Any]) -> Iterator[None]:
        """Give some fields other values in the block. No member is split off because of them."""
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
    setattr(SharedDialect, _name, _TrackedField(_name))


class SharedReference(Reference):
    """Reference that can execute for several releases.

    Attributes:
        dialect: The dialect of the release, or a shared one.
    """

    dialect: Dialect

    def perform_for(self, dialects: Sequence[Dialect]) -> None:
        """Execute for several dialects from the next example on; the last one is the reference's own."""
        self.dialect = SharedDialect(dialects) if len(dialects) > 1 else dialects[0]

    def pop_split_off(self) -> list[Dialect]:
        """Return the dialects for which the last operation was not executed."""
        return self.dialect.pop_split_off() if isinstance(self.dialect, SharedDialect) else []

    def observation_of(self, dialect: Dialect, observation: Any) -> Any:
        """Return the last observation as it is in one of the dialects."""
        del dialect
        return observation
