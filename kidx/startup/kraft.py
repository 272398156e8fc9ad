"""Files that KRaft requires in its log directories: ``meta.properties``, its own log, and snapshots of it."""

from __future__ import annotations

import contextlib
import json
import re
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final

from kidx.cluster import first_unknown
from kidx.cluster.metadata import read_bootstrap
from kidx.dialect import NEWEST
from kidx.discovery import LOG, META_PROPERTIES, parse_segment_file
from kidx.errors import KidxError
from kidx.files import read_text
from kidx.messages.reading import MessageError, metadata_record
from kidx.printable import shell_word, shortened
from kidx.records import file_batches
from kidx.startup.answers import Remark
from kidx.startup.checkpoints import UnreadableError, properties_of
from kidx.startup.names import METADATA_LOG
from kidx.startup.remedies import COPIED_DISK, EMPTY_DISK, OLDER_SNAPSHOT, OTHER_BROKER, OTHER_RELEASE

if TYPE_CHECKING:
    from kidx.cluster import ClusterMetadata
    from kidx.dialect import Dialect

_SHARED: Final = ("cluster.id", "node.id")
"""Properties that are equal in all log directories of a broker."""
_SNAPSHOT: Final = ".checkpoint"
_SNAPSHOT_NAME: Final = re.compile(r"\d{20}-\d{10}\.checkpoint", re.ASCII)
_QUORUM_STATE: Final = "quorum-state"
_STATE_VERSION: Final = "data_version"
_STATE_FIELDS: Final = {
    0: ("clusterId", "leaderId", "leaderEpoch", "votedId", "appliedOffset", "currentVoters"),
    1: ("leaderId", "leaderEpoch", "votedId", "votedDirectoryId"),
}
"""Mandatory fields of the quorum state, by version."""
_BOOTSTRAP: Final = f"bootstrap{_SNAPSHOT}"
_METADATA_VERSION: Final = "metadata.version"
_BROKER_ID: Final = "broker.id"
"""Node id of version 0, as brokers with ZooKeeper write it."""


def has_properties(directory: Path) -> bool:
    """Return True if a log directory has ``meta.properties``, so that it is not only a copy of partitions."""
    return (directory / META_PROPERTIES).exists()


def runs_kraft(directories: Iterable[Path], dialect: Dialect | None = None) -> bool:
    """Return True if the broker of some log directories runs KRaft, according to their ``meta.properties``.

    A cluster that was migrated from ZooKeeper keeps the version 0 of the file. Without any such file, these may be
    copies of partitions, of which nothing is known.

    Args:
        dialect: rules of the release, if it was given.
    """
    directories = list(directories)
    if dialect is not None and dialect.needs_kraft and any(map(has_properties, directories)):
        return True
    for directory in directories:
        try:
            properties = properties_of(directory)
        except UnreadableError:
            continue
        if properties is not None and properties.get("version") == "1":
            return True
    return False


def is_empty(directory: Path) -> bool:
    """Return True if a directory is empty, or contains only ``lost+found`` like the root of an empty file system."""
    try:
        return all(path.name == "lost+found" for path in directory.iterdir())
    except OSError:
        return False


def node_of(directories: Iterable[Path]) -> int | None:
    """Return the node id in the ``meta.properties`` of some log directories; None without one, or if they differ."""
    nodes = set()
    for directory in directories:
        with contextlib.suppress(UnreadableError, ValueError):
            properties = properties_of(directory) or {}
            if (node := properties.get("node.id", properties.get("broker.id"))) is not None:
                nodes.add(int(node))
    return nodes.pop() if len(nodes) == 1 else None


def check_properties(
    directories: Sequence[Path], dialect: Dialect, *, is_kraft: bool
) -> tuple[list[Remark], dict[Path, Remark]]:
    """Return the faults of ``meta.properties`` that prevent the start, and those that take a log directory offline.

    ``MetaPropertiesEnsemble`` (from 3.7) requires a node id, and the same ids in all log directories. A missing file is
    a fault of a broker with KRaft if another log directory has it; if none has it, the directories are copies of
    partitions. A broker with ZooKeeper writes the file.
    """
    fatal: list[Remark] = []
    missing: list[Remark] = []
    offline: dict[Path, Remark] = {}
    ids: dict[str, Counter[str]] = {key: Counter() for key in _SHARED}
    known: dict[Path, dict[str, str]] = {}
    different = _different(directories, dialect)
    fatal += different.values()
    for directory in _without(directories, different):
        path = directory / META_PROPERTIES
        try:
            properties = properties_of(directory)
        except UnreadableError as error:
            offline[directory] = Remark(path, str(error))
            continue
        if properties is None:
            missing.append(_missing(path))
        elif (version := properties.get("version", "0")) not in {"0", "1"}:
            offline[directory] = Remark(path, f"its version is {shortened(version)}, which no release knows")
        elif why := _without_ids(path, version, properties, is_kraft=is_kraft):
            if version == "1" and dialect.has_directory_ids:
                offline[directory] = why
            else:
                fatal.append(why)
        else:
            known[directory] = properties
            for key, counter in ids.items():
                counter.update(filter(None, [_shared(properties, key)]))
    fatal += _of_other_brokers(known, ids)
    if dialect.has_directory_ids:
        fatal += _duplicates(known)
    if not is_kraft:
        missing = [each for each in missing if _is_of_kraft(each.path.parent)]
    return fatal + missing, offline


def _different(directories: Iterable[Path], dialect: Dialect) -> dict[Path, Remark]:
    """Return remarks about files with other entries than most log directories have, by log directory."""
    found: dict[Path, frozenset[tuple[str, str]]] = {}
    if not dialect.compares_all_properties:
        return {}
    for directory in directories:
        with contextlib.suppress(UnreadableError):
            if (properties := properties_of(directory)) is not None:
                found[directory] = frozenset(properties.items())
    usual = max(found.values(), key=list(found.values()).count, default=frozenset())
    return {
        directory: Remark(
            directory / META_PROPERTIES,
            f"its {shortened(min(entries ^ usual)[0])} is not the same as in another log directory",
            OTHER_BROKER,
        )
        for directory, entries in found.items()
        if entries != usual
    }


def _without(directories: Iterable[Path], others: Collection[Path]) -> list[Path]:
    return [directory for directory in directories if directory not in others]


def _missing(path: Path) -> Remark:
    if is_empty(path.parent):
        return Remark(path, "it is missing, and the log directory is empty", EMPTY_DISK)
    return Remark(path, "it is missing, though the log directory is not empty")


def _without_ids(path: Path, version: str, properties: Mapping[str, str], *, is_kraft: bool) -> Remark | None:
    """Return the blocker for properties that lack an id; a broker of KRaft reads no node.id from version 0."""
    if version == "1":
        absent = next((key for key in _SHARED if key not in properties), None)
        return None if absent is None else Remark(path, f"it has no {absent}")
    if _BROKER_ID not in properties and (is_kraft or "node.id" not in properties):
        return Remark(path, f"its version is 0, and it has no {_BROKER_ID}")
    return None


def _is_of_kraft(directory: Path) -> bool:
    """Return True if a log directory was formatted for KRaft, so that no broker starts without ``meta.properties``."""
    return has_metadata_log(directory) or (directory / _BOOTSTRAP).exists()


def has_metadata_log(directory: Path) -> bool:
    """Return True if KRaft's own log is in a log directory."""
    return (directory / METADATA_LOG).is_dir()


def _of_other_brokers(known: Mapping[Path, dict[str, str]], ids: Mapping[str, Counter[str]]) -> Iterator[Remark]:
    """Yield the ``meta.properties`` with other ids than most log directories have."""
    for directory, properties in known.items():
        for key, counter in ids.items():
            value = _shared(properties, key)
            usual = counter.most_common(1)[0][0] if counter else None
            if value is not None and value != usual:
                reason = f"its {key} is {shortened(value)}, but {shortened(str(usual))} in another log directory"
                yield Remark(directory / META_PROPERTIES, reason, OTHER_BROKER)


def _duplicates(known: Mapping[Path, dict[str, str]]) -> Iterator[Remark]:
    """Yield the ``meta.properties`` with the ``directory.id`` of another log directory."""
    owners: dict[str, Path] = {}
    for directory, properties in known.items():
        directory_id = properties.get("directory.id")
        if directory_id is not None and (owner := owners.setdefault(directory_id, directory)) != directory:
            reason = f"it has the directory.id of {shell_word(owner)}, too"
            yield Remark(directory / META_PROPERTIES, reason, COPIED_DISK)


def _shared(properties: dict[str, str], key: str) -> str | None:
    """Return an id that all log directories share; a node id may have its old name, ``broker.id``."""
    return properties.get(key, properties.get("broker.id") if key == "node.id" else None)


def check_metadata_log(directory: Path, dialect: Dialect) -> tuple[list[Remark], list[Remark]]:
    """Return the faults next to KRaft's own log that prevent a broker from starting, and those that do not.

    They are in the newest snapshot, which KRaft loads, the bootstrap snapshot, and the quorum state. Of a snapshot that
    ends early, the broker loads the complete batches.
    """
    found, survived = list[Remark](), list[Remark]()
    snapshots = sorted(path for path in directory.glob(f"*{_SNAPSHOT}") if _SNAPSHOT_NAME.fullmatch(path.name))
    for path in (*snapshots[-1:], directory.parent / _BOOTSTRAP):
        with contextlib.suppress(FileNotFoundError):
            reason, is_loaded = _unreadable_snapshot(path)
            if not reason:
                continue
            is_dispensable = path in snapshots and _has_all_without_newest(directory, snapshots[:-1])
            remedy = OLDER_SNAPSHOT if is_dispensable else ""
            unknown = first_unknown(directory) if is_loaded and path in snapshots else ""
            if unknown:
                found.append(Remark(path, f"{reason}, and the log after it names {unknown}, which it lacks", remedy))
            elif is_loaded and path in snapshots:
                survived.append(Remark(path, f"{reason}: the broker starts with what is before", remedy))
            else:
                found.append(Remark(path, reason, remedy))
    state = directory / _QUORUM_STATE
    try:
        reason = _wrong_state(read_text(state))
    except FileNotFoundError:
        reason = ""
    except (OSError, ValueError) as error:  # a text that is no JSON, or has no version, is an I/O error of Kafka
        reason = "" if dialect.unreadable_quorum_state_is_cleared else str(error)
    return [*found, *([Remark(state, reason)] if reason else [])], survived


def _wrong_state(text: str) -> str:
    """Return the reason why the text of a quorum state ends each release; empty if none does.

    Raises:
        ValueError: it cannot be read.
    """
    if not text:
        raise ValueError("it is empty (EOFException)")
    try:
        state, _ = json.JSONDecoder().raw_decode(text.splitlines()[0].strip())
    except (ValueError, RecursionError) as error:
        raise ValueError(f"it is no JSON: {error}") from error
    if not isinstance(state, dict):
        raise ValueError("it is no JSON object")  # noqa: TRY004 -- a text that is wrong
    if _STATE_VERSION not in state:
        raise ValueError(f"it has no {_STATE_VERSION}")
    version = state[_STATE_VERSION]
    fields = _STATE_FIELDS.get(version, ()) if isinstance(version, int) else ()
    missing = next((field for field in fields if field not in state), "")
    return f"it has no {missing}, which is mandatory in version {version}" if missing else ""


def check_versions(directory: Path, cluster: ClusterMetadata, dialect: Dialect) -> Remark | None:
    """Return the fault of KRaft's own log of a different release that ends this one; None without one.

    Args:
        cluster: the metadata in the log.
    """
    bootstrap = directory.parent / _BOOTSTRAP
    lowest, highest = dialect.metadata_versions
    if not highest:
        return None
    for path, found in ((bootstrap, read_bootstrap(bootstrap)), (directory, cluster)):
        level = found.features.get(_METADATA_VERSION)
        if level is not None and not lowest <= level <= highest:
            known = f"Kafka {dialect.release} knows {lowest} to {highest}"
            return Remark(path, f"its {_METADATA_VERSION} is {level}, and {known}", OTHER_RELEASE)
    for (key, version), value in cluster.forms.items():
        if _is_readable(NEWEST, value) and not _is_readable(dialect.release, value):
            reason = f"it has a record of type {key} and version {version}, which Kafka {dialect.release} cannot read"
            return Remark(directory, reason, OTHER_RELEASE)
    return None


def _is_readable(release: str, record: bytes) -> bool:
    try:
        metadata_record(release, record)
    except MessageError:
        return False
    return True


def _has_all_without_newest(directory: Path, older: Sequence[Path]) -> bool:
    """Return True if the log, with an older snapshot if it needs one, has everything that the newest snapshot has."""
    bases = [parsed[0] for path in directory.glob(f"*{LOG}") if (parsed := parse_segment_file(path.name)) is not None]
    first = min(bases, default=None)
    if first is None:
        return False
    return first == 0 or any(int(path.name[:20]) >= first and not _unreadable_snapshot(path)[0] for path in older)


def _unreadable_snapshot(path: Path) -> tuple[str, bool]:
    """Return the reason why a snapshot cannot be read to its end, and whether a broker loads what is before.

    The reason is empty if it can.

    Raises:
        FileNotFoundError: the snapshot does not exist.
    """
    size, end = path.stat().st_size, 0
    control: list[bool] = []
    try:
        for batch in file_batches(path):
            batch.ensure_valid()
            end += batch.size_in_bytes
            control.append(batch.is_control)
    except (KidxError, OSError) as error:
        return f"it cannot be read: {error}", False
    has_header = control[:1] == [True]
    if end != size:
        return f"it ends in the middle of a batch, at byte {end} of {size}", has_header
    is_finished = control[-1:] == [True] and (not has_header or len(control) > 1)
    return "" if is_finished else "it ends without the control record that ends a snapshot", has_header
