"""Topic id of a log: the ``partition.metadata`` file (``PartitionMetadataFile``, KIP-516).

The file is text of two lines: ``version: 0``, and ``topic_id:`` with 16 bytes in base64. Its last line has no end.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from kidx.errors import InvalidArgumentError, KidxError
from kidx.files import read_text
from kidx.java_values import INT_MAX, java_fields, java_lines, parse_java
from kidx.printable import shortened

if TYPE_CHECKING:
    from pathlib import Path

ZERO_ID: Final = "A" * 22
"""The value of a topic id that means none."""
_FIELDS: Final = re.compile(":[ \t\n\v\f\r]+")
_ID: Final = re.compile("([A-Za-z0-9_-]{21})([A-Za-z0-9_-])(==)?")
_ALPHABET: Final = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"


class InconsistentTopicIdError(KidxError, ValueError):
    """Topic id that differs from the log's (``InconsistentTopicIdException``)."""

    kind = "kafka"


class MissingLineError(KidxError, ValueError):
    """``partition.metadata`` that ends too early (``java.lang.NullPointerException`` in Kafka)."""

    kind = "closed"


class TopicIdFile:
    """Topic id in the ``partition.metadata`` file of a log.

    Args:
        reads_newer: True to read files of a newer version, too (LG-91).
    """

    def __init__(self, path: Path, *, reads_newer: bool) -> None:
        self.path = path
        self._reads_newer = reads_newer

    def read(self) -> str | None:
        """Return the topic id, or None if the file does not exist.

        Raises:
            OSError: the file cannot be read, has another version, or a line has no value.
            MissingLineError: the file has no second line.
            InvalidArgumentError: the second line's value is not a topic id.
        """
        try:
            lines = java_lines(read_text(self.path, errors="replace"))
        except FileNotFoundError:
            return None
        version = self._value(lines, 0)
        number = parse_java(version, INT_MAX)
        if number is None:
            raise OSError(f"{self.path} has a version that is not a number: {shortened(version)}")
        if number != 0 and (number < 0 or not self._reads_newer):
            raise OSError(f"{self.path} has version {number}, not 0")
        text = self._value(lines, 1)
        found = _ID.fullmatch(text)
        if found is None:
            what = f"a topic id that is not 16 bytes in base64 (IllegalArgumentException): {shortened(text)}"
            raise InvalidArgumentError(f"{self.path} has {what}")
        # The last character has two bits of the id; Java ignores the other four.
        topic_id = found[1] + _ALPHABET[_ALPHABET.index(found[2]) & 0b110000]
        if topic_id == ZERO_ID:
            raise OSError(f"{self.path} has the topic id of no topic")
        return topic_id

    def _value(self, lines: list[str], number: int) -> str:
        if number >= len(lines):
            raise MissingLineError(f"{self.path} has no line {number + 1} (NullPointerException)")
        fields = java_fields(lines[number], _FIELDS)
        if len(fields) != 2:
            raise OSError(f"{self.path} has a line without a name and a value: {shortened(lines[number])}")
        return fields[1]

    def write(self, topic_id: str) -> None:
        """Write a topic id.

        Raises:
            OSError: the file cannot be written.
        """
        partial = self.path.with_name(self.path.name + ".tmp")
        partial.write_text(f"version: 0\ntopic_id: {topic_id}", "utf-8")
        partial.replace(self.path)
