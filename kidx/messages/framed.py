"""Messages that begin with their type: records of KRaft's metadata and of ``__remote_log_metadata``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from kidx.dialect import dialect_of
from kidx.messages.reading import MessageError, Reader, definitions, read_message

if TYPE_CHECKING:
    from kidx.messages.reading import Message

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
