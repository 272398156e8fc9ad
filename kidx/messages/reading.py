"""Records of internal topics, read with the message definitions of a release, and printed as Kafka prints them.

The definitions are in ``messages.json``: names, types, versions and defaults of fields, by first release. They are
extracted from Kafka's jars (``python -m conformance.kafka.messages``).

Records of KRaft's metadata and of ``__remote_log_metadata`` begin with their type.
"""

from __future__ import annotations

import base64
import json
import re
import struct
from functools import cache
from importlib.resources import files
from typing import Any, Final

from kidx.dialect import dialect_of, version_of
from kidx.errors import KidxError
from kidx.java_values import java_text

Message = dict[str, Any]
"""Definition of a message: ``key``, ``versions``, ``flexible`` and ``fields``."""

_NUMBERS: Final = {
    name: struct.Struct(code)
    for name, code in {
        "int8": ">b",
        "int16": ">h",
        "int32": ">i",
        "int64": ">q",
        "uint16": ">H",
        "uint32": ">I",
        "float64": ">d",
    }.items()
}
_SIZED: Final = frozenset({"string", "bytes"})
_SHORT: Final = _NUMBERS["int16"]
_INT: Final = _NUMBERS["int32"]
_ABSENT: Final[dict[str, Any]] = {"string": "", "bytes": "", "bool": False, "float64": 0.0, "uuid": "A" * 22}
"""Values of absent tagged fields without their own default, by type; 0 for other numbers."""


class MessageError(KidxError):
    """Malformed bytes of a message; the text is the text of Java's exception."""


@cache
def _definitions() -> dict[str, dict[str, list[tuple[str, Message | None]]]]:
    found: dict[str, dict[str, list[tuple[str, Message | None]]]] = json.loads(
        files(__package__).joinpath("messages.json").read_text("utf-8")  # the package may be a zip file
    )
    return found


@cache
def definitions(group: str, release: str) -> dict[str, Message]:
    """Return the message definitions of a release by name; a release older than all definitions gets the oldest.

    Args:
        group: ``metadata``, ``coordinator``, ``client`` or ``remote``.
        release: the Kafka release.
    """
    found = {}
    histories = _definitions()[group]
    version = max(version_of(release), min(version_of(states[0][0]) for states in histories.values()))
    for name, states in histories.items():
        state = None
        for since, message in states:
            if version_of(since) <= version:
                state = message
        if state is not None:
            found[name] = state
    return found


@cache
def _bounds(versions: str) -> tuple[int, int]:
    if versions == "none":
        return 1, 0
    first, _, last = versions.partition("-")
    if first.endswith("+"):
        return int(first[:-1]), 1 << 16
    return int(first), int(last or first)


def within(versions: str, version: int) -> bool:
    """Return True if a range such as ``0+``, ``1-3`` or ``none`` contains a version."""
    first, last = _bounds(versions)
    return first <= version <= last


class Reader:
    """Sequential reader of bytes.

    Attributes:
        position: position of the next byte.
        newest: last version of the message that is being read.
    """

    def __init__(self, data: bytes) -> None:
        self.data = data
        self.position = 0
        self.newest = 0

    @property
    def remaining(self) -> int:
        """Number of bytes that have not been read."""
        return len(self.data) - self.position

    def take(self, size: int) -> bytes:
        """Return the next bytes.

        Raises:
            MessageError: fewer bytes remain.
        """
        if size > self.remaining:
            raise MessageError(f"Error reading byte array of {size} byte(s): only {self.remaining} byte(s) available")
        self.position += size
        return self.data[self.position - size : self.position]

    def number(self, layout: struct.Struct) -> Any:
        """Return the next number.

        Raises:
            MessageError: too few bytes remain; Java's exception has no text.
        """
        if layout.size > self.remaining:
            raise MessageError("null")
        self.position += layout.size
        return layout.unpack_from(self.data, self.position - layout.size)[0]

    def unsigned(self) -> int:
        """Return the next unsigned number of variable length.

        Raises:
            MessageError: the number does not end within five bytes.
        """
        value = 0
        for shift in range(0, 35, 7):
            if not self.remaining:
                raise MessageError("null")
            byte = self.data[self.position]
            self.position += 1
            value |= (byte & 0x7F) << shift
            if byte < 0x80:
                return value & 0xFFFF_FFFF
        raise MessageError(
            "Varint is too long, the most significant bit in the 5th byte is set, "
            f"converted value: {value & 0xFFFF_FFFF:x}"
        )


def read_message(reader: Reader, message: Message, version: int) -> dict[str, Any]:
    """Return the fields of a message in a version, by name and in Kafka's order, as in Kafka's own JSON.

    Raises:
        MessageError: the bytes are malformed.
    """
    reader.newest = _bounds(message["versions"])[1]
    return _structure(reader, message["fields"], version, flexible=within(message["flexible"], version))


def _structure(reader: Reader, fields: list[Message], version: int, *, flexible: bool) -> dict[str, Any]:
    values: dict[str, Any] = {}
    tagged: dict[int, Message] = {}
    for field in fields:
        if within(field.get("tagged", "none"), version):
            tagged[field["tag"]] = field
        elif within(field["versions"], version):
            values[field["name"]] = _value(reader, field, version, flexible=flexible)
    if flexible:
        for _ in range(reader.unsigned()):
            tag, size = reader.unsigned(), reader.unsigned()
            if tag not in tagged:
                reader.take(size)
                continue
            value = _value(reader, tagged[tag], version, flexible=True)
            if value != _default(tagged[tag]):
                values[tagged[tag]["name"]] = value
    return {field["name"]: values[field["name"]] for field in fields if field["name"] in values}


def _default(field: Message) -> Any:
    if "default" in field:
        return field["default"]
    return [] if field["type"].startswith("[]") else _ABSENT.get(field["type"], 0)


def _value(reader: Reader, field: Message, version: int, *, flexible: bool) -> Any:
    kind = field["type"]
    if kind in _SIZED or kind.startswith("[]"):
        size = _size(reader, _SHORT if kind == "string" else _INT, flexible=flexible)
        if size < 0:
            return _null(field, version)
        if kind in _SIZED:
            return _text(reader, field, size)
        if size > reader.remaining:
            raise MessageError(
                f"Tried to allocate a collection of size {size}, but there are only {reader.remaining} bytes remaining."
            )
        inner = field | {"type": kind[2:], "nullable": "none"}
        return [_value(reader, inner, version, flexible=flexible) for _ in range(size)]
    if kind == "struct":
        if within(field.get("nullable", "none"), version) and reader.number(_NUMBERS["int8"]) < 0:
            return None
        if version > reader.newest:
            raise MessageError(f"Can't read version {version} of {field['of']}")
        return _structure(reader, field["fields"], version, flexible=flexible)
    return _plain(reader, kind)


def _plain(reader: Reader, kind: str) -> Any:
    if kind == "uuid":
        return uuid_text(reader.take(16))
    return bool(reader.number(_NUMBERS["int8"])) if kind == "bool" else reader.number(_NUMBERS[kind])


def _text(reader: Reader, field: Message, size: int) -> str:
    if field["type"] == "bytes":
        return base64.b64encode(reader.take(size)).decode()
    if size > 0x7FFF:
        raise MessageError(f"string field {field['name']} had invalid length {size}")
    return java_text(reader.take(size))


def _size(reader: Reader, layout: struct.Struct, *, flexible: bool) -> int:
    size: int = reader.unsigned() - 1 if flexible else reader.number(layout)
    return size


def _null(field: Message, version: int) -> None:
    if not within(field.get("nullable", "none"), version):
        raise MessageError(f"non-nullable field {field['name']} was serialized as null")


def uuid_text(data: bytes) -> str:
    """Return an id as Kafka prints it."""
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


_ESCAPED: Final = re.compile(r'[\x00-\x1f"\\]')
_ESCAPES: Final = {'"': '\\"', "\\": "\\\\", "\b": "\\b", "\t": "\\t", "\n": "\\n", "\f": "\\f", "\r": "\\r"}


def jackson_text(value: Any) -> str:
    """Return a value as Kafka's JSON library prints it."""
    if isinstance(value, dict):
        return "{" + ",".join(f"{jackson_text(name)}:{jackson_text(each)}" for name, each in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ",".join(map(jackson_text, value)) + "]"
    if isinstance(value, str):
        return '"' + _ESCAPED.sub(lambda found: _ESCAPES.get(found[0]) or f"\\u{ord(found[0]):04X}", value) + '"'
    if isinstance(value, float):
        return _java_double(value)
    return json.dumps(value)


def _java_double(value: float) -> str:
    """Return a number as ``Double.toString`` prints it; NaN and infinity are strings in JSON."""
    if value != value or value in (float("inf"), float("-inf")):  # noqa: PLR0124 -- NaN
        return {"nan": '"NaN"', "inf": '"Infinity"', "-inf": '"-Infinity"'}[repr(value)]
    if value == 0 or 1e-3 <= abs(value) < 1e7:
        text = repr(value)
        return text if "e" not in text else f"{value:f}"
    digits, _, exponent = f"{value:.17e}".partition("e")
    digits = repr(float(digits)) if float(f"{float(digits)}e{exponent}") == value else digits.rstrip("0")
    return f"{digits}E{int(exponent)}"


_FRAME: Final = 1
"""The only frame version, with which a message begins; its type and its version follow."""


def framed_message(release: str, group: str, value: bytes) -> tuple[str, Message, int, dict[str, Any]]:
    """Return name, definition, version and fields of a message that begins with its type.

    Args:
        release: release that reads the message.
        group: kind of the message: ``metadata`` for KRaft, or ``remote``.

    Raises:
        MessageError: the release does not know the type, or the bytes are malformed.
    """
    reader = Reader(value)
    frame = _small(reader, "frame version")
    known = _FRAME if dialect_of(release).metadata_is_framed else 0
    if frame == 0 and known:
        raise MessageError(
            "Could not deserialize metadata record with frame version 0. Note that upgrades from the preview release of"
            " KRaft in 2.8 to newer versions are not supported."
        )
    if frame != known:
        raise MessageError(
            f"Could not deserialize metadata record due to unknown frame version {frame}(only frame version {known} is"
            " supported)"
        )
    key, version = _small(reader, "type"), _small(reader, "version")
    named = {message["key"]: (name, message) for name, message in definitions(group, release).items()}
    if key not in named:
        raise MessageError(f"org.apache.kafka.common.errors.UnsupportedVersionException: Unknown metadata id {key}")
    name, message = named[key]
    try:
        data = read_message(reader, message, version)
    except MessageError:
        raise MessageError(f"Failed to deserialize record with type {key}") from None
    if reader.remaining:
        raise MessageError(f"Found {reader.remaining} byte(s) of garbage after {key}")
    return name, message, version, data


def _small(reader: Reader, what: str) -> int:
    """Return an unsigned varint that has to fit a Java ``short``; ``what`` names it in an error."""
    try:
        value = reader.unsigned()
    except MessageError as error:
        raise MessageError(f"Error while reading {what}") from error
    if value > 0x7FFF:
        raise MessageError(f"Value for {what} was too large.")
    return value


def metadata_record(release: str, value: bytes) -> dict[str, Any]:
    """Return the fields of a record of KRaft's metadata, by name.

    Raises:
        MessageError: the release does not know the type, or the bytes are malformed.
    """
    return framed_message(release, "metadata", value)[3]
