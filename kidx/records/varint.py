"""Variable-length integers: 7 bits per byte, low bits first, the top bit set on all but the last; zigzag for signs.

The rules are those in ``ByteUtils.java``: an ``int`` takes at most 5 bytes and a ``long`` at most 10. Bits that do not
fit are dropped without an error, and encodings longer than necessary are read.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from kidx.java_values import to_int
from kidx.records.errors import InvalidArgumentError

if TYPE_CHECKING:
    from collections.abc import Sequence


def read_varint(data: Sequence[int], position: int) -> tuple[int, int]:
    """Return the ``int`` that starts at ``position``, and the position after it.

    Raises:
        IndexError: ``data`` ends first (Java's BufferUnderflowException, which each caller handles in its own way).
        InvalidArgumentError: the fifth byte is not the last.
    """
    byte = data[position]
    position += 1
    if byte < 0x80:  # most are this short
        return (byte >> 1) ^ -(byte & 1), position
    value = byte & 0x7F
    for shift in (7, 14, 21):
        byte = data[position]
        position += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return (value >> 1) ^ -(value & 1), position
    byte = data[position]
    if byte >= 0x80:
        # Java shifts the sign-extended byte, so its message shows the bits of an int.
        raise InvalidArgumentError(
            "Varint is too long, the most significant bit in the 5th byte is set, "
            f"converted value: {(value | byte << 28) & 0xFFFF_FFFF:x}"
        )
    value = (value | byte << 28) & 0xFFFF_FFFF
    return (value >> 1) ^ -(value & 1), position + 1


def read_varlong(data: Sequence[int], position: int) -> tuple[int, int]:
    """Return the ``long`` that starts at ``position``, and the position after it.

    Raises:
        IndexError: ``data`` ends first.
        InvalidArgumentError: the tenth byte is not the last.
    """
    byte = data[position]
    position += 1
    if byte < 0x80:
        return (byte >> 1) ^ -(byte & 1), position
    value = byte & 0x7F
    for shift in range(7, 64, 7):
        byte = data[position]
        position += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            value &= 0xFFFF_FFFF_FFFF_FFFF
            return (value >> 1) ^ -(value & 1), position
    raise InvalidArgumentError(
        "Varlong is too long, most significant bit in the 10th byte is set, "
        f"converted value: {value & 0xFFFF_FFFF_FFFF_FFFF:x}"
    )


def _write(unsigned: int) -> bytes:
    if unsigned < 0x80:
        return bytes((unsigned,))
    out = bytearray()
    while unsigned >= 0x80:
        out.append(unsigned & 0x7F | 0x80)
        unsigned >>= 7
    out.append(unsigned)
    return bytes(out)


def write_varint(value: int) -> bytes:
    """Return ``value`` encoded as an ``int``, 1 to 5 bytes; wider values are truncated as by a Java cast to int."""
    value = to_int(value)
    return _write((value << 1 ^ value >> 31) & 0xFFFF_FFFF)


def write_varlong(value: int) -> bytes:
    """Return ``value``, a signed 64-bit integer, encoded in 1 to 10 bytes."""
    return _write((value << 1 ^ value >> 63) & 0xFFFF_FFFF_FFFF_FFFF)


def size_of_varint(value: int) -> int:
    """Return the number of bytes that :func:`write_varint` needs for ``value``."""
    return max(1, -(-((value << 1 ^ value >> 31) & 0xFFFF_FFFF).bit_length() // 7))
