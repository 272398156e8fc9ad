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
    """Return the parts between separators, as ``Pattern.split`` does: empty ones at the end are left out."""
    fields = separator.split(text)
    while len(fields) > 1 and not fields[-1]:
        fields.pop()
    return fields
