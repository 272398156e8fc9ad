"""Escaping of text from files, names and other programs, so that it can be shown.

A name or a message may contain control characters, escape sequences, line breaks, marks that change the direction of
writing, or bytes that are not UTF-8. Unescaped, it could control the terminal, forge lines, or fail to be encoded.
"""

from __future__ import annotations

import json
import os
import re
import shlex
from datetime import UTC, datetime, timedelta
from typing import Any, Final

_SURROGATE: Final = re.compile("[\ud800-\udfff]")
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_DATES_END: Final = 253_402_300_800_000
"""Milliseconds up to the year 10000, which ``datetime`` does not know."""
_YEAR_MS: Final = 31_556_952_000
_IN_SECONDS: Final = range(631_152_000, 4_102_444_800)
"""Seconds from 1990 to 2100: as milliseconds, they are in January or February 1970."""
_SHORT: Final = {"\t": r"\t", "\n": r"\n", "\r": r"\r"}


def printable(text: str) -> str:
    r"""Return the text on one line, with everything except letters, marks, digits, signs and plain spaces escaped.

    Characters for which ``str.isprintable`` is true are kept; the rest becomes ``\n``, ``\x1b``, ``\u202e``
    and so on. A byte of a file name that is not UTF-8 (``surrogateescape``) becomes ``\xff``. Backslashes are kept.
    """
    return text if text.isprintable() else "".join(c if c.isprintable() else _escaped(c) for c in text)


def printable_lines(text: str) -> str:
    r"""Escape each line as :func:`printable` does: ``\n`` is kept, every other line break is escaped."""
    return "\n".join(map(printable, text.split("\n")))


def shortened(text: str, length: int = 80) -> str:
    """Return the text in quotes and escaped, for a message; only the beginning if it is long."""
    return repr(text if len(text) <= length else f"{text[:length]}…")


def counted(number: int, noun: str) -> str:
    """Return a number with its noun: ``1 file``, ``1,200 files``, ``2 batches``, ``3 entries``."""
    if number != 1:
        noun = noun.removesuffix("y") + "ie" if noun.endswith("ry") else noun
        noun += "es" if noun.endswith(("ch", "x", "sh", "ss")) else "s"
    return f"{number:,} {noun}"


def dated(milliseconds: int) -> str:
    """Return a timestamp with its date in UTC: ``1700000000000 (2023-11-14T22:13:20Z)``; a negative one is no time."""
    if milliseconds < 0:
        return str(milliseconds)
    if milliseconds >= _DATES_END:
        return f"{milliseconds} (in the year {1970 + milliseconds // _YEAR_MS:,})"
    date = _iso(milliseconds)
    seconds = f", in seconds {_iso(milliseconds * 1000)}" if milliseconds in _IN_SECONDS else ""
    return f"{milliseconds} ({date}{seconds})"


def looks_like_seconds(timestamp: int) -> bool:
    """Return True for a timestamp in milliseconds that is a likely date only if it is read in seconds."""
    return timestamp in _IN_SECONDS


def _iso(milliseconds: int) -> str:
    """Return a time before the year 10000 as ISO 8601, without a fraction that is 0."""
    time = _EPOCH + timedelta(milliseconds=milliseconds)
    return time.isoformat(timespec="milliseconds" if milliseconds % 1000 else "seconds").replace("+00:00", "Z")


def shell_word(text: str | os.PathLike[str]) -> str:
    r"""Return the text as a word of a shell's command line: quoted if necessary, ``$'\x1b'`` if it is not printable."""
    word = os.fspath(text)
    if word.isprintable():
        return shlex.quote(word)
    return "$'" + "".join(map(_shell_escaped, word)) + "'"


def _shell_escaped(char: str) -> str:
    if char in "'\\":
        return f"\\{char}"
    return char if char.isprintable() else "".join(f"\\x{byte:02x}" for byte in os.fsencode(char))


def encodable(text: str) -> str:
    r"""Return the text with everything that UTF-8 cannot encode as ``\xff``; nothing else changes."""
    return text if text.isascii() else _SURROGATE.sub(lambda match: _escaped(match[0]), text)


def json_text(value: Any) -> str:
    r"""Return the value as JSON on one line that a terminal may show: valid UTF-8, equal to the value when parsed.

    Characters that :func:`printable` escapes are written as ``\u202e``. Text that UTF-8 cannot encode is changed as
    :func:`encodable` does, because parsers disagree about lone surrogates.

    Raises:
        TypeError, ValueError: JSON has no such value.
    """
    text = json.dumps(value, ensure_ascii=False)
    return text if text.isprintable() else "".join(c if c.isprintable() else _json_escaped(c) for c in text)


def _json_escaped(char: str) -> str:
    return json.dumps(encodable(char))[1:-1]


def _escaped(char: str) -> str:
    code = ord(char)
    if 0xDC80 <= code <= 0xDCFF:
        code -= 0xDC00
    if char in _SHORT:
        return _SHORT[char]
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"
