"""Names that prevent a broker from starting: of files in a partition, and of directories in a log directory."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import TYPE_CHECKING, Final

from kidx.java_numbers import INT_MAX, LONG_MAX
from kidx.remote.names import DIRECTORY

if TYPE_CHECKING:
    from kidx.dialect import Dialect

METADATA_LOG: Final = "__cluster_metadata-0"
"""KRaft's own log, which no log manager loads."""
_NUMBERED: Final = (".log", ".index", ".timeindex", ".txnindex", ".snapshot", ".cleaned", ".swap")
"""Suffixes of files whose names must begin with an offset. A ``.deleted`` file is deleted whatever its name is."""
_OFFSET: Final = re.compile(r"[+-]?\d{1,40}", re.ASCII)
_CHANGED: Final = (".swap", ".cleaned", ".deleted")
"""Endings of files that a start renames, swaps in or deletes."""
_MARKS: Final = ("-delete", "-future", "-stray")
_MARKED: Final = re.compile(r"(\S+)-(\S+)\.(\S+)-(?:delete|future|stray)")


def unparsed_name(names: Iterable[str]) -> str | None:
    """Return the first file name with a segment's suffix and without an offset, which brokers cannot parse; or None."""
    return next((name for name in names if name.endswith(_NUMBERED) and not _is_long(name.partition(".")[0])), None)


def _is_long(text: str) -> bool:
    return _OFFSET.fullmatch(text) is not None and ~LONG_MAX <= int(text) <= LONG_MAX


def is_partition_name(name: str) -> bool:
    """Return True if a broker accepts the name of a partition directory (``parseTopicPartitionName``).

    Any other name prevents the start of the broker.
    """
    if name.endswith(_MARKS):
        if _MARKED.fullmatch(name) is None:
            return False
        name = name.rpartition(".")[0]
    topic, dash, number = name.rpartition("-")
    return bool(topic and dash) and _OFFSET.fullmatch(number) is not None and ~INT_MAX <= int(number) <= INT_MAX


def is_ignored(name: str, dialect: Dialect) -> bool:
    """Return True if a broker ignores a directory of a log directory."""
    return name == METADATA_LOG or (name == DIRECTORY and dialect.has_remote_index_cache)


def is_unusual(names: Iterable[str]) -> bool:
    """Return True for files that a start renames, swaps in or deletes, and for names that a broker does not write."""
    for name in names:
        stem, _, suffix = name.partition(".")
        if name.endswith(_CHANGED) or (suffix in {"log", "index", "timeindex", "txnindex"} and len(stem) != 20):
            return True
    return False
