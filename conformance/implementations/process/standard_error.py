"""Captured stderr of a program: the beginning and the end of the latest output, and the end of earlier output.

A panic states its cause first and then lists threads; a traceback states its cause last. So both ends are kept.
"""

from __future__ import annotations

from typing import Final

HEAD: Final = 2048
"""Number of bytes that are kept from the beginning of the output after a request."""
TAIL: Final = 2048
"""Number of bytes that are kept from the end of the output."""
_FIRST_LINES: Final = 12
_LAST_LINES: Final = 4


class StandardError:
    """Shortened text of a program's stderr."""

    def __init__(self) -> None:
        self._earlier = b""
        self._first = bytearray()
        self._last = bytearray()
        self._left_out = 0

    def begin(self) -> None:
        """Mark the beginning of a request, to which later output belongs."""
        if self._first:
            self._earlier = bytes(self._earlier + self._first + self._last)[-TAIL:]
            self._first.clear()
            self._last.clear()
            self._left_out = 0

    def add(self, data: bytes) -> None:
        """Add output."""
        room = HEAD - len(self._first)
        self._first += data[:room]
        self._last += data[room:]
        surplus = len(self._last) - TAIL
        if surplus > 0:
            self._left_out += surplus
            del self._last[:surplus]

    def __str__(self) -> str:
        """Return the first and last lines since the last request, or if it had no output, the end of earlier output."""
        if not self._first:
            return _cut(_text(self._earlier).split("\n"), 0)
        if self._left_out:
            return _cut([*_text(self._first).split("\n"), *_text(self._last).split("\n")], self._left_out)
        return _cut(_text(self._first + self._last).split("\n"), 0)


def _text(data: bytes | bytearray) -> str:
    return bytes(data).decode("utf-8", "replace").strip().expandtabs(4)


def _cut(lines: list[str], left_out: int) -> str:
    """Join the first and the last lines; ``left_out`` bytes between them are missing already."""
    surplus = len(lines) - _FIRST_LINES - _LAST_LINES
    if surplus <= 1 and not left_out:
        return "\n".join(lines)
    more = f" and {left_out} bytes" if left_out else ""
    first, last = lines[:_FIRST_LINES], lines[max(_FIRST_LINES, len(lines) - _LAST_LINES) :]
    return "\n".join((*first, f"[... {max(surplus, 0)} lines{more} omitted ...]", *last))
