"""Java's fixed-width arithmetic, which Kafka's results depend on: sums wrap, division drops the fraction.

``int`` is 32 bits, ``long`` 64, both two's complement (Java Language Specification 4.2).
"""

from __future__ import annotations

from typing import Final

INT_MIN: Final = -(1 << 31)
INT_MAX: Final = (1 << 31) - 1
LONG_MIN: Final = -(1 << 63)
LONG_MAX: Final = (1 << 63) - 1


def to_int(value: int) -> int:
    """Return ``value`` as a Java ``int``: the low 32 bits, signed."""
    return value if INT_MIN <= value <= INT_MAX else ((value + (1 << 31)) & 0xFFFF_FFFF) - (1 << 31)


def to_long(value: int) -> int:
    """Return ``value`` as a Java ``long``: the low 64 bits, signed."""
    return value if LONG_MIN <= value <= LONG_MAX else ((value + (1 << 63)) & 0xFFFF_FFFF_FFFF_FFFF) - (1 << 63)


def parse_java(text: str, largest: int) -> int | None:
    """Return the number that ``Integer.parseInt`` or ``Long.parseLong`` reads; None if it is no number for them.

    One sign may come first. Digits are the decimal digits of all scripts in the first 65,536 characters of Unicode.

    Args:
        largest: ``INT_MAX`` or ``LONG_MAX``.
    """
    is_negative, digits = text[:1] == "-", text[1:] if text[:1] in {"-", "+"} else text
    if not digits.isdecimal() or max(digits) > "\uffff":
        return None
    kept = (digits if digits.isascii() else "".join(str(int(digit)) for digit in digits)).lstrip("0")
    if len(kept) > len(str(largest)):
        return None
    number = -int(kept or "0") if is_negative else int(kept or "0")
    return number if ~largest <= number <= largest else None


def round_down(number: int, factor: int) -> int:
    """Return the largest multiple of ``factor`` towards zero: ``factor * (number / factor)`` in Java."""
    return number - number % factor if number >= 0 else -(-number - -number % factor)
