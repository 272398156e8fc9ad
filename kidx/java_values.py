"""Java's numbers and texts, which Kafka's results depend on.

``int`` is 32 bits, ``long`` 64, both two's complement (Java Language Specification 4.2): sums wrap, division drops the
fraction. ``new String(bytes, UTF_8)`` replaces malformed bytes by U+FFFD and raises no error. Python with
``errors="replace"`` differs in one case: Java replaces an encoded surrogate by one character, Python each of its bytes.
"""

from __future__ import annotations

import codecs
import re
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


REPLACEMENT: Final = "\N{REPLACEMENT CHARACTER}"
_LINE_END: Final = re.compile("\r\n|\n|\r")
_WHITE: Final = re.compile(r"\s+", re.ASCII)
_BLANK: Final = " \t\f"
_PROPERTY: Final = re.compile(r"((?:\\.|[^\\=: \t\f])*)[ \t\f]*[=:]?[ \t\f]*(.*)", re.DOTALL)
_ESCAPE: Final = re.compile(r"\\(?:u([0-9a-fA-F]{4})|(.?))", re.DOTALL)
_ESCAPED: Final = {"t": "\t", "n": "\n", "r": "\r", "f": "\f"}


def _replace(error: UnicodeError) -> tuple[str, int]:
    if not isinstance(error, UnicodeDecodeError):
        raise error
    data, start = error.object, error.start
    if data[start] == 0xED and 0xA0 <= data[start + 1 : start + 2].ljust(1)[0] <= 0xBF:
        whole = start + 2 < len(data) and data[start + 2] & 0xC0 == 0x80
        return REPLACEMENT, start + (3 if whole else 2)
    return REPLACEMENT, error.end


codecs.register_error("kidx-java", _replace)


def java_text(data: bytes) -> str:
    """Return the text of some bytes, as Java decodes them."""
    return data.decode("utf-8", "kidx-java")


def java_lines(text: str) -> list[str]:
    """Return the lines of a text, as ``BufferedReader.readLine`` does."""
    lines = _LINE_END.split(text)
    return lines if lines[-1] else lines[:-1]


def java_fields(text: str, separator: re.Pattern[str] = _WHITE) -> list[str]:
    """Return the parts between separators, as ``Pattern.split`` does: without empty ones at the end."""
    fields = separator.split(text)
    while len(fields) > 1 and not fields[-1]:
        fields.pop()
    return fields


def java_properties(text: str) -> dict[str, str]:
    """Return the entries of a properties file, as ``Properties.load`` does."""
    found: dict[str, str] = {}
    lines = iter(java_lines(text))
    for line in lines:
        entry = line.lstrip(_BLANK)
        if not entry or entry[0] in "#!":
            continue
        while (len(entry) - len(entry.rstrip("\\"))) % 2:  # the entry continues in the next line
            entry = entry[:-1] + next(lines, "").lstrip(_BLANK)
        if (parts := _PROPERTY.fullmatch(entry)) is not None:
            key, value = (_ESCAPE.sub(_unescaped, part) for part in parts.groups())
            found[key] = value
    return found


def _unescaped(escape: re.Match[str]) -> str:
    code, character = escape.groups()
    return chr(int(code, 16)) if code else _ESCAPED.get(character, character)
