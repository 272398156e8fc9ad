"""Metadata files of a log directory: log start offsets, high watermarks, cleaned offsets and cluster id."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import lru_cache
from typing import TYPE_CHECKING, Final

from kidx.discovery import CLEANED_OFFSETS, HIGH_WATERMARKS, META_PROPERTIES, START_OFFSETS
from kidx.remote.stored import topic_id_of

if TYPE_CHECKING:
    from kidx.storage import Entry, Store

FILES: Final = frozenset({START_OFFSETS, HIGH_WATERMARKS, META_PROPERTIES, CLEANED_OFFSETS})

_LARGEST: Final = 4096
"""Number of bytes of ``partition.metadata`` that are read."""


@dataclass(frozen=True)
class LogDirectory:
    """The metadata of a log directory; a field is empty if its file does not exist.

    Attributes:
        starts: log start offsets by ``TOPIC-PARTITION``, from the broker's checkpoint.
        high_watermarks: high watermarks by ``TOPIC-PARTITION``; a broker writes them every five seconds.
        cluster: the id of the broker's cluster.
        cleaned: the offsets up to which a cleaner has compacted, by ``TOPIC-PARTITION``.
    """

    starts: dict[str, int] = field(default_factory=dict)
    high_watermarks: dict[str, int] = field(default_factory=dict)
    cluster: str = ""
    cleaned: dict[str, int] = field(default_factory=dict)


def read_log_directory(store: Store, path: str, names: Iterable[str] = FILES) -> LogDirectory:
    """Read the metadata files of a log directory that are among ``names``.

    Raises:
        OSError: a file cannot be read.
    """
    there = FILES.intersection(names)

    def text(name: str) -> str:
        return store.read_all(f"{path}/{name}").decode(errors="replace") if name in there else ""

    properties = dict(line.partition("=")[::2] for line in text(META_PROPERTIES).splitlines())
    return LogDirectory(
        _offsets(text(START_OFFSETS)),
        _offsets(text(HIGH_WATERMARKS)),
        properties.get("cluster.id", "").strip(),
        _offsets(text(CLEANED_OFFSETS)),
    )


def topic_id_in(store: Store, entry: Entry | None) -> str:
    """Return the topic id in a ``partition.metadata`` file; empty if the file does not exist, or was replaced.

    Raises:
        OSError: the file cannot be read.
    """
    return "" if entry is None else _topic_id(store, entry.path, entry.identity, entry.modified)


@lru_cache(maxsize=1 << 16)
def _topic_id(store: Store, path: str, identity: int, modified: int | None) -> str:
    del modified  # only distinguishes files
    try:
        with store.open(path) as reader:
            if reader.identity not in (0, identity):
                return ""
            text = reader.read(0, _LARGEST).decode("utf-8", "replace")
    except FileNotFoundError:
        return ""
    return topic_id_of(text.splitlines()) or ""


def _offsets(text: str) -> dict[str, int]:
    offsets: dict[str, int] = {}
    for line in text.splitlines()[2:]:  # a version and a count come first (CheckpointFile.java)
        topic, partition, offset = ([*line.rsplit(" ", 2), "", ""])[:3]
        if offset.isdigit():
            offsets[f"{topic}-{partition}"] = int(offset)
    return offsets
