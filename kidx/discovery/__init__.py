"""Discovery of partitions and segments below paths, and of the files next to them (``LogManager``, ``LocalLog``).

A path may be a segment file, a partition directory, a log directory (``log.dirs``) or a directory of several of them.
Only checkpoints are opened. A file that appears or disappears while a broker runs is not an error.
"""

from kidx.discovery.log_directory import read_offset_checkpoint, swaps_in
from kidx.discovery.model import Found, Leftover, Partition, Problem, Segment
from kidx.discovery.names import (
    CLEAN_SHUTDOWN,
    CLEANED_OFFSETS,
    DELETE,
    DELETED,
    EPOCHS,
    FUTURE,
    HIGH_WATERMARKS,
    INDEX_SUFFIXES,
    LOG,
    META_PROPERTIES,
    METADATA_TOPIC,
    OFFSET_CHECKPOINTS,
    PARTITION_METADATA,
    RECOVERY_POINTS,
    SEGMENT_SUFFIXES,
    START_OFFSETS,
    STRAY,
    SWAP,
    are_of_a_log_directory,
    are_of_a_partition,
    parse_partition,
    parse_segment_file,
)
from kidx.discovery.walking import DEPTH, discover

__all__ = [
    "CLEANED_OFFSETS",
    "CLEAN_SHUTDOWN",
    "DELETE",
    "DELETED",
    "DEPTH",
    "EPOCHS",
    "FUTURE",
    "HIGH_WATERMARKS",
    "INDEX_SUFFIXES",
    "LOG",
    "METADATA_TOPIC",
    "META_PROPERTIES",
    "OFFSET_CHECKPOINTS",
    "PARTITION_METADATA",
    "RECOVERY_POINTS",
    "SEGMENT_SUFFIXES",
    "START_OFFSETS",
    "STRAY",
    "SWAP",
    "Found",
    "Leftover",
    "Partition",
    "Problem",
    "Segment",
    "are_of_a_log_directory",
    "are_of_a_partition",
    "discover",
    "parse_partition",
    "parse_segment_file",
    "read_offset_checkpoint",
    "swaps_in",
]
