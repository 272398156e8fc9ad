"""UTF-8 decoder that behaves like Java's ``new String(bytes, UTF_8)``: malformed bytes become U+FFFD, never an error.

Python's ``errors="replace"`` differs in one case: Java replaces an encoded surrogate by one character, Python each of
its bytes.
"""

from __future__ import annotations

import codecs
from typing import Final

REPLACEMENT: Final = "\N{REPLACEMENT CHARACTER}"


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
