"""Texts as Java decodes and splits them.

``new String(bytes, UTF_8)`` replaces malformed bytes by U+FFFD and raises no error. Python's ``errors="replace"``
differs in one case: Java replaces an encoded surrogate by one character, Python each of its bytes.
"""

from __future__ import annotations

import codecs
import re
from typing import Final

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
