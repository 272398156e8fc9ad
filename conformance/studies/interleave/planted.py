"""Races that are planted in Kafka's own classes, to test the search for operations that are not atomic."""

from __future__ import annotations

from typing import Final

from conformance.implementations.jvm.interruptible import too_early, without_guard, without_lock
from conformance.studies.study import PlantedDefect as Planted

# fmt: off
PLANTED: Final = {
    name: Planted(kind, title, change)
    for name, kind, title, change in (
        ("offset-entry-before-its-bytes", "offset", "an entry counts before its bytes are written",
         too_early("OffsetIndex", "append", "incrementEntries", "mmap")),
        ("time-entry-before-its-bytes", "time", "an entry counts before its bytes are written",
         too_early("TimeIndex", "maybeAppend", "incrementEntries", "mmap")),
        ("offset-append-without-lock", "offset", "appends take no lock",
         without_guard("OffsetIndex", "append", "inLock")),
        ("time-append-without-lock", "time", "appends take no lock",
         without_guard("TimeIndex", "maybeAppend", "inLock")),
        ("offset-truncation-without-lock", "offset", "truncations look for the slot without a lock",
         without_guard("OffsetIndex", "truncateTo", "inLock")),
        ("resize-without-lock", "offset", "a resize takes no lock", without_guard("AbstractIndex", "resize", "inLock")),
        ("remap-without-lock", "offset", "a resize remaps while lookups read",
         without_guard("AbstractIndex", "resize", "inRemapWriteLock")),
        ("offset-lookup-while-remapped", "offset", "a lookup reads while a resize remaps",
         without_guard("OffsetIndex", "lookup", "inRemapReadLock")),
        ("time-lookup-while-remapped", "time", "a lookup reads while a resize remaps",
         without_guard("TimeIndex", "lookup", "inRemapReadLock")),
        ("entry-while-remapped", "offset", "an entry is read while a resize remaps",
         without_guard("OffsetIndex", "entry", "inRemapReadLock")),
        ("flush-while-remapped", "offset", "a flush forces memory that a resize unmaps",
         without_guard("AbstractIndex", "flush", "inLock")),
        ("close-while-mapped", "lazy", "an index is unmapped while lookups read",
         without_guard("AbstractIndex", "closeHandler", "inRemapWriteLock")),
        ("index-loaded-twice", "lazy", "two threads load an index", without_lock("LazyIndex", "get")),
        ("renamed-while-loaded", "lazy", "a file is renamed while its index is loaded",
         without_lock("LazyIndex", "renameTo")),
        ("deleted-while-loaded", "lazy", "a file is deleted while its index is loaded",
         without_lock("LazyIndex", "deleteIfExists")),
        ("largest-timestamp-without-lock", "opened",
         "a largest timestamp that is read overwrites a newer one (KAFKA-19407)",
         without_lock("LogSegment", "readMaxTimestampAndOffsetSoFar")),
        ("entry-lookup-without-lock", "cache", "an entry of the cache is read while its files go",
         without_lock("RemoteIndexCache$Entry", "lookupOffset")),
        ("cache-closed-without-lock", "cache", "the cache is closed while an entry is loaded",
         without_lock("RemoteIndexCache", "close")),
    )
}
# fmt: on
"""Planted races by name."""
