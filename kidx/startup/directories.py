"""Log directories of brokers: which were verified, whose they are, and their obstacles to a start."""

from __future__ import annotations

import contextlib
import os
import pwd
import stat
from base64 import urlsafe_b64decode
from collections import Counter
from itertools import combinations
from typing import TYPE_CHECKING, Final

from kidx.discovery import (
    CLEAN_SHUTDOWN,
    CLEANED_OFFSETS,
    EPOCHS,
    META_PROPERTIES,
    METADATA_TOPIC,
    OFFSET_CHECKPOINTS,
    PARTITION_METADATA,
    parse_partition,
    parse_segment_file,
)
from kidx.files import read_text
from kidx.printable import printable
from kidx.remote.cache import faults_of
from kidx.remote.entry import DIRECTORY
from kidx.startup.answers import Remark
from kidx.startup.checkpoints import UnreadableError, properties_of, topic_id_of
from kidx.startup.kraft import is_empty, runs_kraft
from kidx.startup.names import METADATA_LOG, is_of_metadata, is_partition_name
from kidx.startup.remedies import NEW_DIRECTORY_ID, NEW_ID

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from pathlib import Path

    from kidx.dialect import Dialect

OF_LOG_DIRECTORIES: Final = frozenset({META_PROPERTIES, CLEAN_SHUTDOWN, CLEANED_OFFSETS, *OFFSET_CHECKPOINTS})
"""Names of files that only a log directory has."""


def log_directories(paths: Iterable[Path], partitions: Iterable[Path]) -> list[Path]:
    """Return the log directories that were verified completely: given paths, or directories below a given path.

    Args:
        paths: given paths.
        partitions: partition directories that were found under them.
    """
    given = [path for path in paths if path.is_dir()]
    holding = {each.parent for each in partitions if any(_is_below(each.parent, path) for path in given)}
    marked = {path for path in given if OF_LOG_DIRECTORIES.intersection(names_in(path))}
    below = {
        each
        for path in given
        if path not in marked and path not in holding
        for each in directories_in(path)
        if META_PROPERTIES in names_in(each)
    }
    known = holding | marked | below
    # An empty directory next to log directories of KRaft may be a disk that is not mounted.
    empty = {path for path in given if path not in known and is_empty(path)} if runs_kraft(known) else set()
    return sorted(known | empty)


def is_managed(log_directory: Path) -> bool:
    """Return True if a broker's log manager uses a directory; False for KRaft's own log alone (``metadata.log.dir``).

    A log manager creates its checkpoints, perhaps empty, before it loads a log.
    """
    names = set(names_in(log_directory))
    of_manager = OF_LOG_DIRECTORIES - {META_PROPERTIES}
    return METADATA_LOG not in names or not of_manager.isdisjoint(names) or has_logs(log_directory)


def has_logs(log_directory: Path) -> bool:
    """Return True if a directory has a partition that a log manager loads."""
    below = (path.name for path in directories_in(log_directory))
    return any(parse_partition(name) is not None and not is_of_metadata(name) for name in below)


def _is_below(path: Path, given: Path) -> bool:
    return path == given or given in path.parents


def names_in(directory: Path) -> list[str]:
    """Return the names in a directory, in order; none if it cannot be read."""
    try:
        with os.scandir(directory) as entries:
            return sorted(entry.name for entry in entries)
    except OSError:
        return []


def directories_in(log_directory: Path) -> Iterator[Path]:
    """Return the directories in a log directory, in order."""
    return (log_directory / name for name in names_in(log_directory) if (log_directory / name).is_dir())


_EPOCH: Final = "brokerEpoch"


def brokers_of(directories: Sequence[Path]) -> list[list[Path]]:
    """Return the log directories, grouped by broker.

    A broker has one cluster id and one node id. Directories with different ids belong to one broker nevertheless if
    they have the same broker epoch of one cluster (from 3.7), or partitions of the same topic: then one
    ``meta.properties`` comes from another broker. A directory without readable properties belongs to the other
    directories' broker if they have only one.
    """
    known: dict[tuple[str, str], list[Path]] = {}
    rest: list[Path] = []
    for directory in directories:
        with contextlib.suppress(UnreadableError):
            properties = properties_of(directory) or {}
            cluster, node = properties.get("cluster.id"), properties.get("node.id", properties.get("broker.id"))
            if cluster and node:
                known.setdefault((cluster, node), []).append(directory)
                continue
        rest.append(directory)
    groups = _merged(known)
    if len(groups) == 1:
        return [sorted([*groups[0], *rest])]
    return [*groups, *([directory] for directory in rest)]


def perhaps_of_one(brokers: Sequence[Sequence[Path]]) -> list[Path]:
    """Return log directories with different ids that may belong to one broker: then it does not start.

    Brokers are certainly different if they have a partition in common, which is a replica, or if each has KRaft's own
    log, or its own broker epoch.
    """
    known = [
        (each, partitions_in(each), any((path / METADATA_LOG).is_dir() for path in each), bool(_epochs(each)))
        for each in brokers
        if len(brokers) > 1 and all(META_PROPERTIES in names_in(path) for path in each)
    ]
    found: set[Path] = set()
    for (one, held, *ids), (other, others_held, *others_ids) in combinations(known, 2):
        if not (held & others_held or any(map(all, zip(ids, others_ids, strict=True)))):
            found |= {*one, *other}
    return sorted(found)


def partitions_in(directories: Iterable[Path]) -> set[tuple[str, int]]:
    """Return topics and numbers of the partitions in some log directories, without KRaft's own log."""
    parsed = (parse_partition(path.name) for each in directories for path in directories_in(each))
    return {each[:2] for each in parsed if each is not None and each[0] != METADATA_TOPIC}


def _merged(known: dict[tuple[str, str], list[Path]]) -> list[list[Path]]:
    groups: list[tuple[str, list[Path]]] = []
    for (cluster, _), directories in known.items():
        for other, members in groups:
            epochs = _epochs(members) & _epochs(directories) if cluster == other else set()
            if epochs or (cluster != other and _topics(members) & _topics(directories)):
                members.extend(directories)
                break
        else:
            groups.append((cluster, list(directories)))
    return [members for _, members in groups]


def _epochs(directories: Iterable[Path]) -> set[str]:
    """Return the contents of clean shutdown files with a broker epoch, which no other broker of the cluster has."""
    found = set()
    for directory in directories:
        with contextlib.suppress(OSError):
            text = read_text(directory / CLEAN_SHUTDOWN, limit=1 << 10)
            if _EPOCH in text:
                found.add(text.strip())
    return found


def _topics(directories: Iterable[Path]) -> set[str]:
    """Return the ids of the topics of some partitions."""
    found = set()
    for directory in directories:
        with contextlib.suppress(OSError):
            for path in directory.iterdir():
                with contextlib.suppress(UnreadableError):
                    found.add(topic_id_of(path))
    return {each for each in found if each is not None}


def is_reserved(directory_id: str) -> bool:
    """Return True if an id names no log directory: it is empty, or reserved for *migrating*, *unassigned* or *lost*.

    As ``DirectoryId.reserved``; a partition that was created while its broker was stopped is *unassigned*.
    """
    number = urlsafe_b64decode(f"{directory_id}==") if directory_id else bytes(16)
    return not any(number[:8]) and int.from_bytes(number[8:], signed=True) < 100


def without_directory_ids(directories: Iterable[Path], recorded: Iterable[str]) -> Iterator[Remark]:
    """Yield a remark about each log directory with partitions whose ``meta.properties`` has no ``directory.id``.

    Args:
        directories: log directories of a broker.
        recorded: ids of log directories in KRaft's metadata, some of which may be reserved.
    """
    if all(map(is_reserved, recorded)):
        return
    for directory in directories:
        with contextlib.suppress(UnreadableError):
            properties = properties_of(directory)
            lacks_id = properties is not None and "directory.id" not in properties
            if lacks_id and any(map(parse_partition, names_in(directory))):
                yield Remark(directory / META_PROPERTIES, NEW_DIRECTORY_ID, NEW_ID)


_READ, _WRITE, _SEARCH = 4, 2, 1
_ROOT: Final = 0


def inaccessible(log_directory: Path) -> Remark | None:
    """Return a file that the broker's user cannot use, which takes the log directory offline; None without one.

    The broker is assumed to run as the user who owns most files of the log directory.
    """
    found = list(_needed(log_directory))
    owners = Counter((status.st_uid, status.st_gid) for _, status, _ in found)
    (user, group), _ = owners.most_common(1)[0] if owners else ((_ROOT, _ROOT), 0)
    if user == _ROOT:
        return None
    for path, status, needed in found:
        if status.st_uid != user and _granted(status, group) & needed != needed:
            reason = (
                f"it belongs to {_name(status.st_uid)}, and most files of the log directory to {_name(user)}: a broker "
                f"that runs as {_name(user)} gets Permission denied"
            )
            return Remark(path, reason, f"give it to {_name(user)} (chown), if the broker runs as {_name(user)}")
    return None


def _granted(status: os.stat_result, group: int) -> int:
    """Return the permissions that a user has who is not the owner."""
    return (status.st_mode >> 3 if status.st_gid == group else status.st_mode) & (_READ | _WRITE | _SEARCH)


def _needed(log_directory: Path) -> Iterator[tuple[Path, os.stat_result, int]]:
    """Yield the files and directories that a start opens, with the permissions that it needs."""
    with contextlib.suppress(OSError):
        for directory in sorted(log_directory.iterdir()):
            status = directory.stat()
            if not stat.S_ISDIR(status.st_mode) or not is_partition_name(directory.name):
                continue
            yield directory, status, _READ | _WRITE | _SEARCH
            for path in sorted(directory.iterdir()):
                if parse_segment_file(path.name) is not None:
                    yield path, path.stat(), _READ | _WRITE
                elif path.name in {EPOCHS, PARTITION_METADATA}:
                    yield path, path.stat(), _READ


def _name(user: int) -> str:
    try:
        return printable(pwd.getpwuid(user).pw_name)
    except KeyError:
        return f"user {user}"


def check_cache(directory: Path, dialect: Dialect) -> list[Remark]:
    """Return the obstacles to opening the cache of a log directory (RC-2, RC-5).

    Args:
        directory: directory in the log directory: the cache, or another directory.
        dialect: rules of the broker's release.
    """
    if directory.name != DIRECTORY or not dialect.has_remote_index_cache:
        return []
    try:
        return [Remark(fault.path, fault.reason) for fault in faults_of(directory, dialect)]
    except OSError as error:
        return [Remark(directory, f"cannot be read: {error.strerror}")]
