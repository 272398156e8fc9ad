"""Names of the files and directories in a log directory (``LogFileUtils``, ``UnifiedLog``, ``Snapshots``)."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Final

from kidx.java_numbers import INT_MAX, LONG_MAX

LOG: Final = ".log"
INDEX_SUFFIXES: Final = (".index", ".timeindex", ".txnindex")
SEGMENT_SUFFIXES: Final = (LOG, *INDEX_SUFFIXES)

SWAP: Final = ".swap"
"""Last suffix of a file that replaces another file at the next start."""
# Names of files in a partition (the first) and in a log directory.
EPOCHS: Final = "leader-epoch-checkpoint"
START_OFFSETS: Final = "log-start-offset-checkpoint"
RECOVERY_POINTS: Final = "recovery-point-offset-checkpoint"
HIGH_WATERMARKS: Final = "replication-offset-checkpoint"
CLEANED_OFFSETS: Final = "cleaner-offset-checkpoint"
CLEAN_SHUTDOWN: Final = ".kafka_cleanshutdown"
META_PROPERTIES: Final = "meta.properties"
OFFSET_CHECKPOINTS: Final = (START_OFFSETS, RECOVERY_POINTS, HIGH_WATERMARKS)
METADATA_TOPIC: Final = "__cluster_metadata"
DELETE, FUTURE, STRAY = "delete", "future", "stray"
"""Marks at the end of the name of a partition directory."""

_SEGMENT_FILE: Final = re.compile(r"(?P<base>\d{1,20})(?P<suffix>\.(?:log|index|timeindex|txnindex))")
_LEFTOVER: Final = re.compile(
    r"\d{1,20}\.(?:log|index|timeindex|txnindex|snapshot)(?P<mark>\.(?:deleted|cleaned|swap))"
)
_PARTITION: Final = re.compile(
    r"(?P<topic>.+?)-(?P<partition>\d+)(?:\.(?P<id>[0-9a-zA-Z]{8,36})-(?P<state>delete|future|stray))?", re.DOTALL
)
_SNAPSHOT: Final = re.compile(r"(?P<offset>\d{20})-\d{10}\.checkpoint")
_OF_A_LOG_DIRECTORY: Final = frozenset({META_PROPERTIES, CLEAN_SHUTDOWN, CLEANED_OFFSETS, *OFFSET_CHECKPOINTS})


def parse_partition(name: str) -> tuple[str, int, str] | None:
    """Return topic, partition and state of a partition directory's name; None for any other name.

    A topic may contain dashes: the partition is the number after the last dash. The state is ``delete``, ``future``,
    ``stray`` or empty.
    """
    match = _PARTITION.fullmatch(name)
    if match is None:
        return None
    topic, number, state = match["topic"], match["partition"], match["state"] or ""
    if not state:  # without a mark the topic is everything before the last dash
        topic, _, number = name.rpartition("-")
    return (topic, int(number), state) if int(number) <= INT_MAX else None


def parse_segment_file(name: str) -> tuple[int, str] | None:
    """Return base offset and suffix of the name of a segment's file; None for any other name."""
    match = _SEGMENT_FILE.fullmatch(name)
    if match is None or int(match["base"]) > LONG_MAX:
        return None
    return int(match["base"]), match["suffix"]


def leftover_mark(name: str) -> str | None:
    """Return the mark of a file that a broker has renamed: ``.deleted``, ``.cleaned`` or ``.swap``; else None."""
    match = _LEFTOVER.fullmatch(name)
    return match and match["mark"]


def snapshot_start(names: Iterable[str]) -> int | None:
    """Return the offset of the oldest snapshot of KRaft's metadata, at which its log starts; None without snapshots."""
    return min((int(match["offset"]) for name in names if (match := _SNAPSHOT.fullmatch(name))), default=None)


def are_of_a_partition(names: Iterable[str]) -> bool:
    """Return True if one of the names is the name of a file in a partition directory."""
    return any(_SEGMENT_FILE.fullmatch(name) or _LEFTOVER.fullmatch(name) or name == EPOCHS for name in names)


def are_of_a_log_directory(files: Iterable[str], directories: Iterable[str]) -> bool:
    """Return True if the names are in a log directory: a file that only a broker creates there, or a partition."""
    return not _OF_A_LOG_DIRECTORY.isdisjoint(files) or any(map(parse_partition, directories))
