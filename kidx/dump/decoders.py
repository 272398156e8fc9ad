"""Decoders of keys and values that come with Kafka, under all names that they have had."""

from __future__ import annotations

import struct
from collections.abc import Callable
from typing import Final

from kidx.errors import InvalidArgumentError
from kidx.java_text import java_text

Decoder = Callable[[bytes], str]


def _number(code: str) -> Decoder:
    layout = struct.Struct(code)

    def decode(data: bytes) -> str:
        if len(data) < layout.size:
            raise InvalidArgumentError(f"expected a number of {layout.size} bytes, got {len(data)} bytes")
        return str(layout.unpack_from(data)[0])

    return decode


_DECODERS: Final[dict[str, Decoder]] = {
    "StringDecoder": java_text,
    "IntegerDecoder": _number(">i"),
    "LongDecoder": _number(">q"),
}
_PACKAGES: Final = ("kafka.serializer.", "org.apache.kafka.tools.api.", "")


def decoder(name: str) -> Decoder | None:
    """Return the decoder of a class name such as ``kafka.serializer.StringDecoder``, or None for others.

    ``DefaultDecoder`` is not among them: Kafka prints the address of an array for it.
    """
    for package in _PACKAGES:
        if name.startswith(package) and name.removeprefix(package) in _DECODERS:
            return _DECODERS[name.removeprefix(package)]
    return None


def decoder_names() -> list[str]:
    """Return the class names in the newest releases, for messages."""
    return [_PACKAGES[1] + name for name in _DECODERS]
