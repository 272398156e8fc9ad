"""Registry of the defects of the cache of remote index files.

They are separate from the other mutants, as `conformance run` does not drive the machine that finds them.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, NamedTuple

from conformance.implementations.kidx.cache import ReferenceCache
from conformance.implementations.mutants.registry import NEWEST
from kidx.remote import CacheEntry, RemoteIndexCache


class CacheDefect(NamedTuple):
    """Cache with one defect.

    Attributes:
        title: The defect in one sentence.
        clause: The clause that it violates.
        release: The release whose rules it must follow.
        defect: The defective class.
    """

    title: str
    clause: str
    release: str
    defect: type[RemoteIndexCache]

    def implementation(self) -> ReferenceCache:
        """Return the reference with the defective class instead of the original."""
        made: Any = type(self.defect.__name__, (ReferenceCache,), {"index_cache": self.defect})(self.release)
        made.name = f"mutant:{self.defect.__name__} {self.release}"
        return made  # type: ignore[no-any-return]


DEFECTS: Final[list[CacheDefect]] = []

Spoilt = type[RemoteIndexCache]


def defect(clause: str, release: str = NEWEST) -> Callable[[Spoilt], Spoilt]:
    """Register a class that violates a clause under the rules of a release."""

    def put_down(spoilt: Spoilt) -> Spoilt:
        DEFECTS.append(CacheDefect((spoilt.__doc__ or "").strip(), clause, release, spoilt))
        return spoilt

    return put_down


def entries_with(**parts: Any) -> type[CacheEntry]:
    """Return a class of entries with other methods; each replaces an existing one."""
    assert all(hasattr(CacheEntry, name) for name in parts), parts
    return type("SpoiltEntry", (CacheEntry,), parts)
