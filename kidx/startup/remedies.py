"""Texts about files that concern a start: remedies, and the longer reasons (``OWN_LOG``, ``METADATA_MISSING``, …)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from kidx.discovery import (
    CLEAN_SHUTDOWN,
    CLEANED_OFFSETS,
    HIGH_WATERMARKS,
    META_PROPERTIES,
    PARTITION_METADATA,
    RECOVERY_POINTS,
    START_OFFSETS,
)
from kidx.printable import shell_word
from kidx.repair import FROM_A_REPLICA
from kidx.startup.names import METADATA_LOG, is_partition_name, unparsed_name

if TYPE_CHECKING:
    from pathlib import Path

AFTER_THE_COPIES: Final = f"then, {FROM_A_REPLICA}; where none does, start it all the same: kidx dump reads the copies"
LOST: Final = (
    "find its directory and put it back before the start: a disk may not be mounted, or the directory was moved or "
    "renamed. Where another broker leads the partition, this one copies it from there; if this one becomes the leader, "
    "the others truncate their logs"
)
MOVE_OUT: Final = "move it out of the log directory"
ELSEWHERE: Final = "name all log directories of the broker; see whether one of its disks is not mounted"
EMPTY_DIRECTORY: Final = (
    "it is empty: the broker takes it for a new log directory, and the partitions that were in it start empty"
)
EMPTY_DIRECTORY_REMEDY: Final = "see whether its disk is not mounted"
EMPTY_DISK: Final = (
    "see whether its disk is not mounted. A new disk is formatted with kafka-storage.sh format --ignore-formatted, and "
    "the partitions that were on the old one start empty"
)
COPIED_DISK: Final = (
    "see whether this is a copy of the other disk. If it holds other partitions, write its own directory.id, as "
    "KRaft's metadata have it for its partitions, or delete that line: the broker then writes a new one, and may serve "
    "the partitions in it minutes later only"
)
OTHER_BROKER: Final = (
    "see first whether this is the disk of another broker; if it is this one's, write the ids as in its other log "
    "directories"
)
MISPLACED: Final = (
    "do not repair the index files first: see with kidx dump --print-data-log whose records the log has, put each file "
    "back into its partition, and verify again. A log that was overwritten has to come from a replica or a copy"
)
RENAMED: Final = (
    "if it is a partition that was renamed, give it back its name, TOPIC-N: the partition starts empty without it; "
    "if not, move it out of the log directory"
)
OLDER_SNAPSHOT: Final = (
    "move this file away, and verify again: the log reaches back to its beginning, or to an older snapshot, and the "
    "broker reads it from there"
)
METADATA_CUT: Final = (
    f"do not start it: restore {METADATA_LOG} from a copy; where other controllers run, move that directory away, and "
    "this broker copies it from them. Without either, copy all log directories before anything else"
)
OWN_LOG: Final = "KRaft recovers its own log at every start"
METADATA_MISSING: Final = (
    "it is missing in these log directories. Unless metadata.log.dir is elsewhere, or other controllers run, the "
    "broker begins a new cluster, and renames every partition to …-stray (before 3.7, it deletes them)"
)
METADATA_ELSEWHERE: Final = (
    "if metadata.log.dir is elsewhere, name that directory, too; if not, restore it from a copy, unless other "
    "controllers run: this node copies it from them"
)
OTHER_RELEASE: Final = "start a release that knows it: of the release that wrote it, or newer"
NOT_CHECKED: Final = "other brokers and controllers, free space and memory"
NOT_CONFIGURED: Final = "server.properties (Kafka's defaults are assumed; --config FILE reads it)"
IN_ZOOKEEPER: Final = (
    "settings of topics, which ZooKeeper has (server.properties or Kafka's defaults are assumed; a line "
    "topic.NAME.retention.ms=VALUE in --config FILE gives one)"
)
NO_TOPIC_SETTINGS: Final = (
    "settings of the topic (no metadata of KRaft here name it: add the directory of metadata.log.dir to the paths)"
)
ALREADY_LOST: Final = f"{FROM_A_REPLICA}; where none does, these records are gone"
NO_DIRECTORY: Final = "it is a file: the broker cannot create the directory of the partition under this name"
NO_TARGET: Final = "it is a link to a directory that does not exist: the broker cannot create the partition there"
TARGET_MISSING: Final = (
    "see whether the disk of its target is not mounted. A link that is removed leaves the partition empty, unless "
    "another broker has it"
)
OTHER_TOPIC: Final = (
    "see first where this directory is from: it is of another cluster, or of an earlier topic of the same name. If so, "
    "move it out of the log directory, and restore the partition or let it be copied from its leader"
)
TAKEN_ID: Final = (
    "see whose records these are (kidx dump --print-data-log): if two directories were exchanged, exchange their names "
    "back; if only this file was copied, write the id of its topic into it"
)
NEW_DIRECTORY_ID: Final = (
    "it has no directory.id, though KRaft's metadata have one for its partitions: the broker writes a new one, and may "
    "serve them minutes later only"
)
NEW_ID: Final = (
    "write the directory.id that the metadata have; else the partitions may have no leader until the controller checks "
    "the leaders again (leader.imbalance.check.interval.seconds, 300 by default)"
)
WITHOUT: Final = {
    RECOVERY_POINTS: "the broker recovers every log of the directory from its beginning, if it was not stopped cleanly",
    START_OFFSETS: "each log starts with its first segment, so that deleted records are shown again",
}
"""Consequences of a checkpoint that is missing or empty; the broker starts without it."""
STOPS: Final = {
    True: f"the broker was stopped cleanly (there is a {CLEAN_SHUTDOWN}), so a start recovers no log: corrupt batches "
    "are kept. After a kill, a start would truncate each log at the first corrupt batch after its recovery "
    "point",
    False: f"the broker was not stopped cleanly (there is no {CLEAN_SHUTDOWN}), so a start recovers each log from its "
    "recovery point on: it truncates the log at the first corrupt batch there, and deletes all later segments. After a "
    "clean stop they would be kept",
}
"""Effect of the last stop on the next start, by whether it was clean."""
DOUBTED: Final = (
    f"there is a {CLEAN_SHUTDOWN}, but the index files of active segments are not trimmed, as after a kill. Unless the "
    "broker made it, move it out of the log directory, and verify again: the broker then recovers its logs"
)
MIXED: Final = (
    f"there is a {CLEAN_SHUTDOWN}, and none in the broker's other log directories. They are not of the same stop: one "
    "was offline then, or was restored from a copy, and its newest records may be missing"
)
REPAIR_FIRST: Final = (
    "repair what takes its log directory offline first: once the partition is in two, the broker does not start"
)
TWICE: Final = "move the copy that ends earlier out of its log directory; if both are alike, either of them"
_BY_NAME: Final = {
    HIGH_WATERMARKS: "move it away: the broker begins a new one",
    CLEANED_OFFSETS: "move it away: the broker begins a new one, and compaction reads each log from its start",
    META_PROPERTIES: "restore it; without a copy, write it as in the broker's other log directories, without the line "
    "directory.id: the broker then writes a new one, and may serve the partitions in it minutes later only",
    "quorum-state": "restore it; without a copy, move it away while all other controllers run",
}


def remedy_of(path: Path) -> str:
    """Return the remedy for a file or directory that prevents a broker from starting; empty if ``next:`` has it."""
    name = path.name
    if name in _BY_NAME:
        return _BY_NAME[name]
    if METADATA_LOG in {name, path.parent.name} or name.endswith(".checkpoint"):
        return (
            f"restore {METADATA_LOG} from a copy; where other controllers run, move the directory away: this one "
            "copies it from them"
        )
    if unparsed_name([name]) is not None:
        return "move it out of the partition's directory"
    return MOVE_OUT if path.is_dir() and not is_partition_name(name) else ""


def topic_id_remedy(topic: str, topic_id: str | None) -> str:
    """Return the remedy for a partition whose ``partition.metadata`` lacks the right topic id.

    ``topic_id`` is the right id, or None if it is unknown.
    """
    if topic_id is None:
        return f"copy {PARTITION_METADATA} from another partition of {shell_word(topic)}, of this broker or another"
    return f"write two lines into its {PARTITION_METADATA}: version: 0, and topic_id: {topic_id}"
