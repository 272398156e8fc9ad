"""Names of the files and directories in a log directory (``LogFileUtils``, ``UnifiedLog``, ``Snapshots``)."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Final

from kidx.java_values import INT_MAX, LONG_MAX, parse_java

LOG: Final = ".log"
INDEX_SUFFIXES: Final = (".index", ".timeindex", ".txnindex")
SEGMENT_SUFFIXES: Final = (LOG, *INDEX_SUFFIXES)

DELETED: Final = ".deleted"
"""Last suffix of the files that a broker has removed and will delete after ``file.delete.delay.ms``."""
SWAP: Final = ".swap"
"""Last suffix of a file that replaces another file at the next start."""
# Names of files in a partition (the first two) and in a log directory.
EPOCHS: Final = "leader-epoch-checkpoint"
PARTITION_METADATA: Final = "partition.metadata"
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
_MARKED: Final = re.compile(r"\S+-\S+\.\S+-(?P<state>delete|future|stray)", re.ASCII)
_MARKS: Final = tuple(f"-{state}" for state in (DELETE, FUTURE, STRAY))
_SNAPSHOT: Final = re.compile(r"(?P<offset>\d{20})-\d{10}\.checkpoint")
_OF_A_LOG_DIRECTORY: Final = frozenset({META_PROPERTIES, CLEAN_SHUTDOWN, CLEANED_OFFSETS, *OFFSET_CHECKPOINTS})


def parse_partition(name: str) -> tuple[str, int, str] | None:
    """Return topic, partition and state as a broker reads them from a directory's name; None for any other name.

    As ``parseTopicPartitionName``: a topic may contain dashes, and the number after the last dash is read as Java reads
    it, so that ``t-0``, ``t-00`` and ``t-+0`` are one partition. Without a locale of UTF-8, Java does not see
    names with digits of other scripts. The state is ``delete``, ``future``, ``stray`` or empty.
    """
    state = ""
    if name.endswith(_MARKS):
        match = _MARKED.fullmatch(name)
        if match is None:
            return None
        name, state = name.rpartition(".")[0], match["state"]
    topic, _, text = name.rpartition("-")
    number = parse_java(text, INT_MAX)
    return (topic, number, state) if topic and number is not None else None


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
