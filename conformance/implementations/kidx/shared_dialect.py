"""Dialect of several releases, as long as all values that are read are the same for them.

A reference that executes for several releases has a :class:`SharedDialect`. If a value that is read differs between its
members, the members that differ from the newest one are *split off*: from this operation on, another reference must
execute for them. A reference depends only on its operations and on the values that it reads. The remaining members
therefore get exactly the results that separate references would have.

Results of ListOffsets if one reference executes for several dialects: the log is shared, but results differ.

The special targets that a release has, and the meaning of the largest timestamp, affect results but no file. One log
therefore computes the results for all dialects, as long as a query opens no index that only some of them would open.
"""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import fields
from typing import TYPE_CHECKING, Any, TypeVar

from conformance.implementations.kidx.reference import Reference
from conformance.operations import Outcome
from kidx.dialect import BEHAVIOURS, Compressor, Decompressor, Dialect
from kidx.errors import KidxError
from kidx.log.lookup import MAX_TIMESTAMP
from kidx.records.codecs import compress, decompress_all

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from kidx.log import UnifiedLog
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


Answers = dict[str, Outcome]
"""Outcomes of the releases that differ from the outcome of the newest release, by release."""


def results_per_dialect(
    log: UnifiedLog, dialect: SharedDialect, targets: Sequence[int], answer: Callable[[int], Any]
) -> tuple[tuple[Any, ...], Answers]:
    """Return the results of the newest dialect, and by release the outcomes that differ.

    Args:
        log: The log.
        dialect: The shared dialect of the log; members that need a separate log are split off.
        targets: The targets of the query.
        answer: A function that queries the log.

    Raises:
        KidxError, OSError: ``answer`` raises it for all remaining members.
    """
    own: list[Any] = []
    different: dict[str, dict[int, Any]] = {}
    for number, target in enumerate(targets):
        if target < 0 and not _opens(log):
            mine, theirs = _special(log, dialect, target, answer)
            own.append(mine)
            for release, value in theirs.items():
                different.setdefault(release, {})[number] = value
        else:
            own.append(answer(target))
    there = {member.release for member in dialect.members}
    outcomes: dict[tuple[Any, ...], Outcome] = {}
    answers: Answers = {}
    for release, changed in different.items():
        values = tuple([changed.get(number, mine) for number, mine in enumerate(own)])
        if release in there:
            answers[release] = outcomes.setdefault(values, Outcome(None, values))
    return tuple(own), answers


def _special(
    log: UnifiedLog, dialect: SharedDialect, target: int, answer: Callable[[int], Any]
) -> tuple[Any, dict[str, Any]]:
    """Return the newest dialect's result for a special target, and by release the other members' results.

    If the query fails for one group of members, these members are split off.
    """
    (_, fields_of_newest), *others = _parts(dialect, target)
    theirs: dict[str, Any] = {}
    for members, changed in others:
        opened = _opened(log)
        try:
            with dialect.overriding(changed):
                value = answer(target)
        except (KidxError, OSError):
            dialect.leave(members)
            continue
        if _opened(log) != opened:
            raise AssertionError(f"target {target} has opened an index of {log}, which must not happen")
        theirs.update(dict.fromkeys((member.release for member in members), value))
    try:
        with dialect.overriding(fields_of_newest):
            return answer(target), theirs
    except (KidxError, OSError):
        for members, _ in others:
            dialect.leave(members)
        raise


def _parts(dialect: SharedDialect, target: int) -> list[tuple[list[Dialect], dict[str, Any]]]:
    """Return the members, grouped by their meaning of a target, with the differing fields; the newest group first."""
    parts: dict[Any, list[Dialect]] = {}
    for member in reversed(dialect.members):
        special = member.lowest_target <= target
        parts.setdefault((special, member.max_lookup if special and target == MAX_TIMESTAMP else ""), []).append(member)
    return [
        (members, {name: getattr(members[0], name) for name in ("lowest_target", "max_lookup")})
        for members in parts.values()
    ]


def _opens(log: UnifiedLog) -> bool:
    """Return True if a special target may open an index, or read a segment's largest timestamp for the first time."""
    segments = list(log.segments)
    if not all(segment.maximum.is_known for segment in segments):
        return True
    latest = max(segments, key=lambda segment: segment.maximum.timestamp)
    return not all(s.lazy_offset_index.is_loaded and s.lazy_time_index.is_loaded for s in (segments[0], latest))


def _opened(log: UnifiedLog) -> list[tuple[bool, ...]]:
    """Return everything that a query may change in a log."""
    return [(s.lazy_offset_index.is_loaded, s.lazy_time_index.is_loaded, s.maximum.is_known) for s in log.segments]
