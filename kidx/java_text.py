"""UTF-8 as Java's ``new String(bytes, UTF_8)`` reads it: never an error, U+FFFD for what is malformed.

Python's ``errors="replace"`` differs in one case: of an encoded surrogate Java makes one replacement character, Python
one for every byte.
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
