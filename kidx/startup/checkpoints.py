"""Checkpoint and property files of a log directory as a broker reads them when it starts."""

from __future__ import annotations

import contextlib
from pathlib import Path

from kidx.discovery import META_PROPERTIES, PARTITION_METADATA
from kidx.errors import InvalidArgumentError
from kidx.files import read_text
from kidx.java_values import INT_MAX, LONG_MAX, java_fields, java_lines, java_properties, parse_java
from kidx.log.topic_id import MissingLineError, TopicIdFile
from kidx.printable import counted, shortened


class UnreadableError(Exception):
    """A file that a broker cannot read.

    Attributes:
        fatal: True if the broker ends, False if the log directory goes offline.
    """

    def __init__(self, reason: str, *, fatal: bool = False) -> None:
        super().__init__(reason)
        self.fatal = fatal


def _number(text: str, largest: int) -> int:
    """Return a number as ``Integer.parseInt`` and ``Long.parseLong`` do.

    Raises:
        ValueError: the text is not a number.
    """
    if (number := parse_java(text, largest)) is None:
        raise ValueError(text)
    return number


def offsets_of(path: Path) -> dict[tuple[str, int], int]:
    """Return a checkpoint of offsets as ``CheckpointFile`` reads it; empty if the file is empty or does not exist.

    Raises:
        UnreadableError: a broker cannot read it.
    """
    try:
        lines = java_lines(read_text(path, errors="replace"))
    except FileNotFoundError:
        return {}
    except OSError as error:
        raise UnreadableError(error.strerror or str(error)) from error
    if len(lines) < 2:
        if lines:
            with contextlib.suppress(ValueError):
                if _number(lines[0], INT_MAX) == 0:
                    return {}
            raise UnreadableError(f"line 1 is not a version: {shortened(lines[0], 20)}")
        return {}
    read = 0
    try:
        version, expected = _number(lines[0], INT_MAX), _number(lines[1], INT_MAX)
        if version != 0:
            raise UnreadableError(f"its version is {version}")
        found = {}
        for read, line in enumerate(lines[2:], 2):  # noqa: B007 -- for the error
            topic, partition, offset = java_fields(line)
            found[topic, _number(partition, INT_MAX)] = _number(offset, LONG_MAX)
    except ValueError as error:
        raise UnreadableError(f"line {read + 1} is malformed: {shortened(lines[read])}") from error
    if len(lines) - 2 != expected:
        raise UnreadableError(f"it has {counted(len(lines) - 2, 'entry')} and not {expected}")
    return found


def topic_id_of(directory: Path, *, reads_newer: bool = True) -> str | None:
    """Return the topic id of a partition's ``partition.metadata``; None if there is no such file.

    Args:
        reads_newer: True if the broker reads files of a newer version, too (LG-91).

    Raises:
        UnreadableError: a broker cannot read it.
    """
    path = directory / PARTITION_METADATA
    try:
        return TopicIdFile(path, reads_newer=reads_newer).read()
    except (MissingLineError, InvalidArgumentError) as error:
        raise UnreadableError(str(error).removeprefix(f"{path} "), fatal=True) from error
    except OSError as error:
        raise UnreadableError(error.strerror or str(error).removeprefix(f"{path} ")) from error


def properties_of(log_directory: Path) -> dict[str, str] | None:
    """Return ``meta.properties`` of a log directory; None if the file does not exist.

    Raises:
        UnreadableError: it cannot be read.
    """
    try:
        text = read_text(log_directory / META_PROPERTIES, errors="replace")
    except FileNotFoundError:
        return None
    except OSError as error:
        raise UnreadableError(error.strerror or str(error)) from error
    return java_properties(text)
