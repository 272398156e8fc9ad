"""Registry of the defects of the cache of remote index files.

They are separate from the other mutants, because ``conformance run`` does not have the cache machine.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, NamedTuple

from conformance.implementations.kidx.cache import ReferenceCache
from conformance.implementations.mutants.registry import NEWEST, Row
from kidx.remote import RemoteIndexCache


class CacheDefect(NamedTuple):
    """Cache of remote index files with one defect.

    Attributes:
        name: The name in ``mutant:NAME``.
        title: The defect in one sentence.
        clause: The clause that the defect violates.
        release: The release whose rules the cache must follow.
        build: A function that returns the defective class.
    """

    name: str
    title: str
    clause: str
    release: str
    build: Callable[[], type]

    def implementation(self) -> ReferenceCache:
        """Return the reference with the defective class."""
        made: Any = type(self.name, (ReferenceCache,), {"index_cache": self.build()})(self.release)
        made.name = f"mutant:{self.name} {self.release}"
        return made  # type: ignore[no-any-return]


DEFECTS: Final[list[CacheDefect]] = []

Spoilt = type[RemoteIndexCache]


def defect(clause: str, release: str = NEWEST) -> Callable[[Spoilt], Spoilt]:
    """Register a class that violates a clause under the rules of a release."""

    def put_down(spoilt: Spoilt) -> Spoilt:
        title = (spoilt.__doc__ or "").strip()
        DEFECTS.append(CacheDefect(spoilt.__name__, title, clause, release, lambda: spoilt))
        return spoilt

    return put_down


def plant(*rows: Row) -> None:
    """Register rows as defects of the cache."""
    for row in rows:
        build = row.planted_in(RemoteIndexCache)
        DEFECTS.append(CacheDefect(row.name, row.title, row.clause, row.release, build))
