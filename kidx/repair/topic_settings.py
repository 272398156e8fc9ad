"""Settings and ids of topics in KRaft's metadata on the same disk (``ConfigRecord``, ``TopicRecord``)."""

from __future__ import annotations

import base64
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Final, NamedTuple, TypeVar

from kidx.discovery import LOG, METADATA_TOPIC
from kidx.errors import KidxError
from kidx.java_numbers import INT_MAX
from kidx.records import file_batches

_Value = TypeVar("_Value")
_FRAME: Final = 1
"""Frame version of a metadata record; the API key and the version of the record follow."""
_TOPIC_RECORD: Final = 2
_CONFIG_RECORD: Final = 4
_REMOVE_TOPIC_RECORD: Final = 9
_ID_BYTES: Final = 16
TOPIC: Final = 2
"""Resource type of a topic in a ``ConfigRecord``."""
BROKER: Final = 4
"""Resource type of a broker; the name of the resource is its id, or empty for the default of all brokers."""
_INTERVAL: Final = "index.interval.bytes"


def intervals_of_topics(log_directories: Iterable[Path]) -> dict[str, int]:
    """Return ``index.interval.bytes`` of the topics that set it, from the metadata in log directories.

    Unreadable records are skipped. A topic without the setting has the broker's setting, which is not in the metadata.
    """
    return {
        topic: int(value)
        for (kind, topic), settings in recorded_settings(log_directories).items()
        if kind == TOPIC
        and (value := settings.get(_INTERVAL, "")).isascii()
        and value.isdecimal()
        and int(value) <= INT_MAX
    }


def recorded_settings(log_directories: Iterable[Path]) -> dict[tuple[int, str], dict[str, str]]:
    """Return the settings in KRaft's metadata, by type and name of what they are for.

    A topic that exists without own settings has an empty entry. Unreadable records are skipped.
    """
    names: dict[str, str] = {}
    found: dict[tuple[int, str], dict[str, str]] = {}
    records: Iterator[_Setting | _Topic] = metadata_records(
        log_directories, lambda each: _setting(each) or _topic(each)
    )
    for record in records:
        if isinstance(record, _Setting):
            settings = found.setdefault((record.kind, record.resource), {})
            settings.pop(record.name, None)
            if record.value is not None:
                settings[record.name] = record.value
            continue
        if record.name is None:
            found.pop((TOPIC, names.pop(record.topic_id, "")), None)
        else:
            names[record.topic_id] = record.name
            found.setdefault((TOPIC, record.name), {})
    return found


def topic_ids(log_directories: Iterable[Path], end: int | None = None) -> dict[str, str]:
    """Return the ids of the existing topics, by name, from the metadata in log directories.

    Args:
        log_directories: log directories; some of them have the metadata.
        end: offset at which the log of the metadata ends; by default all of it is read.
    """
    names: dict[str, str] = {}
    for topic_id, name in metadata_records(log_directories, _topic, end):
        names.pop(topic_id, None)
        if name is not None:
            names[topic_id] = name
    return {name: topic_id for topic_id, name in names.items()}


def has_topics(log_directories: Iterable[Path]) -> bool:
    """Return True if KRaft's metadata have a record that makes a topic, whether its fields can be read or not."""
    types = metadata_records(log_directories, lambda value: value[1:2])
    return any(each == bytes([_TOPIC_RECORD]) for each in types)


def metadata_records(
    log_directories: Iterable[Path], parse: Callable[[bytes], _Value | None], end: int | None = None
) -> Iterator[_Value]:
    """Yield what a parser returns for the records of KRaft's metadata, except None. Unreadable records are skipped.

    Args:
        log_directories: log directories; some of them have the metadata.
        parse: function of the value of a record.
        end: end offset; see :func:`topic_ids`.
    """
    for directory in sorted(set(log_directories)):
        yield from _records(directory / f"{METADATA_TOPIC}-0", parse, end)


def _records(directory: Path, parse: Callable[[bytes], _Value | None], end: int | None) -> Iterator[_Value]:
    """Yield the results of a parser for all records, in order: of the newest snapshot, then of the log after it."""
    snapshot = max(directory.glob("*.checkpoint"), default=None)
    start = 0
    if snapshot is not None and snapshot.name[:20].isdecimal():
        start = int(snapshot.name[:20])
        yield from _records_in(snapshot, 0, None, parse)
    for log in sorted(directory.glob(f"*{LOG}")):
        yield from _records_in(log, start, end, parse)


def _records_in(path: Path, start: int, end: int | None, parse: Callable[[bytes], _Value | None]) -> Iterator[_Value]:
    try:
        for batch in file_batches(path):
            if end is not None and batch.last_offset >= end:
                return
            if batch.is_control or batch.base_offset < start:
                continue
            for record in batch:
                value = parse(record.value or b"")
                if value is not None:
                    yield value
    except (KidxError, OSError):
        return


class _Topic(NamedTuple):
    """Topic in a record; the name is None if the record removes it."""

    topic_id: str
    name: str | None


def _topic(value: bytes) -> _Topic | None:
    """Return the topic that a record creates or removes; None for any other record."""
    if value[:3] == bytes((_FRAME, _REMOVE_TOPIC_RECORD, 0)) and len(value) >= 3 + _ID_BYTES:
        return _Topic(_id(value[3 : 3 + _ID_BYTES]), None)
    if value[:3] != bytes((_FRAME, _TOPIC_RECORD, 0)):
        return None
    try:
        name, position = _text(value, 3)
    except (IndexError, UnicodeDecodeError):
        return None
    raw = value[position : position + _ID_BYTES]
    return _Topic(_id(raw), name) if name is not None and len(raw) == _ID_BYTES else None


def _id(raw: bytes) -> str:
    """Return an id as ``Uuid.toString`` does."""
    return base64.urlsafe_b64encode(raw).decode("ascii").rstrip("=")


class _Setting(NamedTuple):
    """Setting in a ``ConfigRecord``; the value is None if the record deletes it."""

    kind: int
    resource: str
    name: str
    value: str | None


def _setting(value: bytes) -> _Setting | None:
    """Return the setting of a record; None for any other record."""
    if value[:3] != bytes((_FRAME, _CONFIG_RECORD, 0)) or len(value) < 4:
        return None
    try:
        resource, position = _text(value, 4)
        name, position = _text(value, position)
        setting, _ = _text(value, position)
    except (IndexError, UnicodeDecodeError):
        return None
    return None if resource is None or name is None else _Setting(value[3], resource, name, setting)


def _setting_or_topic(value: bytes) -> _Setting | _Topic | None:
    return _setting(value) or _topic(value)


def _text(value: bytes, position: int) -> tuple[str | None, int]:
    """Return a compact string, or None for null, and the position after it."""
    length = shift = 0
    while value[position] & 0x80:
        length |= (value[position] & 0x7F) << shift
        position, shift = position + 1, shift + 7
    length |= value[position] << shift
    start, end = position + 1, position + length
    if not length:
        return None, start
    if end > len(value):
        raise IndexError(end)
    return value[start:end].decode("utf-8"), end
