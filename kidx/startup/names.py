"""Names that prevent a broker from starting: of files in a partition, and of directories in a log directory."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Final

from kidx.discovery import METADATA_TOPIC, STRAY, parse_partition
from kidx.java_values import LONG_MAX, parse_java
from kidx.remote.entry import DIRECTORY

if TYPE_CHECKING:
    from kidx.dialect import Dialect

METADATA_LOG: Final = f"{METADATA_TOPIC}-0"
"""KRaft's own log, which no log manager loads."""
_NUMBERED: Final = (".log", ".index", ".timeindex", ".txnindex", ".snapshot", ".cleaned", ".swap")
"""Suffixes of files whose names must begin with an offset. A ``.deleted`` file is deleted whatever its name is."""
_CHANGED: Final = (".swap", ".cleaned")
"""Endings of files that a start renames or swaps in, or deletes because of others."""


def unparsed_name(names: Iterable[str]) -> str | None:
    """Return the first file name with a segment's suffix and without an offset, which brokers cannot parse; or None."""
    return next((name for name in names if name.endswith(_NUMBERED) and not _begins_with_an_offset(name)), None)


def _begins_with_an_offset(name: str) -> bool:
    return parse_java(name.partition(".")[0], LONG_MAX) is not None


def is_partition_name(name: str) -> bool:
    """Return True if a broker accepts the name of a partition directory. Any other name prevents its start."""
    return parse_partition(name) is not None


def is_unknown(name: str, dialect: Dialect) -> bool:
    """Return True for the name of a directory that prevents the start of a release."""
    parsed = parse_partition(name)
    return parsed is None or (parsed[2] == STRAY and not dialect.knows_strays)


def is_ignored(name: str, dialect: Dialect) -> bool:
    """Return True if a broker ignores a directory of a log directory."""
    return is_of_metadata(name) or (name == DIRECTORY and dialect.has_remote_index_cache)


def is_of_metadata(name: str) -> bool:
    """Return True for a directory of KRaft's own topic, which no log manager loads, whatever its number is."""
    parsed = parse_partition(name)
    return parsed is not None and parsed[0] == METADATA_TOPIC


def is_unusual(names: Iterable[str]) -> bool:
    """Return True for files that a start renames or swaps in, and for names that a broker does not write."""
    for name in names:
        stem, _, suffix = name.partition(".")
        if name.endswith(_CHANGED) or (suffix in {"log", "index", "timeindex", "txnindex"} and len(stem) != 20):
            return True
    return False
