"""Row of the table of behaviours: the releases that have it, the clauses that state it, and one sentence.

Behaviours do not follow version numbers, because of back-ports: Kafka 4.2.2 and 4.4.0 limit decompressed records, 4.3.1
does not. So a row has a range of releases (:mod:`kidx.dialect.release_range`), and no code compares a release with a
threshold.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from typing import Any, Generic, TypeVar

from kidx.dialect.release_range import ReleaseRange

__all__ = ["Behaviour", "Section"]

Value = TypeVar("Value")


class Behaviour(cached_property[Value], Generic[Value]):
    """Property of a dialect whose value differs between releases.

    Attributes:
        section: the part of Kafka that has it, e.g. ``"index"``.
        clauses: ids of the clauses that it decides, without their letters.
        values: each value with the releases that have it.
    """

    def __init__(self, section: str, clauses: str, values: Mapping[Value, ReleaseRange], text: str) -> None:
        super().__init__(self._value)
        self.section = section
        self.clauses = tuple(clauses.split())
        self.values = values
        self.__doc__ = text

    def _value(self, dialect: Any) -> Value:
        return self.value_in(dialect.like)

    def value_in(self, release: str) -> Value:
        """Return the value in a release.

        Raises:
            ValueError: no value covers the release.
        """
        for value, releases in self.values.items():
            if release in releases:
                return value
        raise ValueError(f"{self.attrname} has no value for Kafka {release}")


class _RemainingReleases(ReleaseRange):
    """Range of every release that no other value of a row covers."""

    def __contains__(self, release: str) -> bool:
        return True


_REMAINING = _RemainingReleases("", ())


class Section:
    """One part of Kafka, whose methods make the rows about it.

    Args:
        name: name of the part, e.g. ``"index"``.
    """

    def __init__(self, name: str) -> None:
        self.name = name

    def flag(self, releases: str, clauses: str, text: str) -> Behaviour[bool]:
        """Return the row of a behaviour that some releases have and the others lack.

        Args:
            releases: the releases that have it, as a range in the syntax of clauses: ``"3.9.2, 4.0.1.."``.
            clauses: ids of the clauses that it decides, without their letters, separated by spaces; may be empty.
            text: description in one sentence.
        """
        return Behaviour(self.name, clauses, {True: ReleaseRange.parse(releases), False: _REMAINING}, text)

    def choice(self, values: Mapping[Value, str], clauses: str, text: str) -> Behaviour[Value]:
        """Return the row of a behaviour that has one of several values.

        Args:
            values: each value with the range of releases that have it.
            clauses: See :meth:`flag`.
            text: description in one sentence.
        """
        parsed = {value: ReleaseRange.parse(releases) for value, releases in values.items()}
        return Behaviour(self.name, clauses, parsed, text)
