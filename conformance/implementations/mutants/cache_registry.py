"""What a defect of the cache of remote index files is, and how one is put down.

They stand apart from the other mutants as long as `conformance run` does not drive the machine that finds them.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, NamedTuple

from conformance.implementations.kidx.cache import ReferenceCache
from conformance.implementations.mutants.registry import NEWEST
from kidx.remote import CacheEntry, RemoteIndexCache


class CacheDefect(NamedTuple):
    """A cache with one thing wrong.

    Attributes:
        title: what is wrong, in one sentence.
        clause: the statement that it breaks.
        release: whose rules it must follow.
        defect: the spoilt class.
    """

    title: str
    clause: str
    release: str
    defect: type[RemoteIndexCache]

    def implementation(self) -> ReferenceCache:
        """The reference with the spoilt class in the place of its own."""
        made: Any = type(self.defect.__name__, (ReferenceCache,), {"index_cache": self.defect})(self.release)
        made.name = f"mutant:{self.defect.__name__} {self.release}"
        return made  # type: ignore[no-any-return]


DEFECTS: Final[list[CacheDefect]] = []

Spoilt = type[RemoteIndexCache]


def defect(clause: str, release: str = NEWEST) -> Callable[[Spoilt], Spoilt]:
    """Put a class down as one that breaks a clause under the rules of a release."""

    def put_down(spoilt: Spoilt) -> Spoilt:
        DEFECTS.append(CacheDefect((spoilt.__doc__ or "").strip(), clause, release, spoilt))
        return spoilt

    return put_down


def entries_with(**parts: Any) -> type[CacheEntry]:
    """Return a class of entries with other methods; each replaces one that exists."""
    assert all(hasattr(CacheEntry, name) for name in parts), parts
    return type("SpoiltEntry", (CacheEntry,), parts)
