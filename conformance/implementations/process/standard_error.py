"""What a program has written to stderr: of its last words the beginning and the end, and little of what came before.

A panic says first what has happened and then lists threads; a traceback says it last. So both ends are kept.
"""

from __future__ import annotations

from typing import Final

HEAD: Final = 2048
"""Bytes that are kept of what is written first after a request."""
TAIL: Final = 2048
"""Bytes that are kept of what is written last."""
_FIRST_LINES: Final = 12
_LAST_LINES: Final = 4


class StandardError:
    """The text of a program's stderr, as far as it is kept."""

    def __init__(self) -> None:
        self._earlier = b""
        self._first = bytearray()
        self._last = bytearray()
        self._left_out = 0

    def begin(self) -> None:
        """A request is sent: what is written from now on is about that."""
        if self._first:
            self._earlier = bytes(self._earlier + self._first + self._last)[-TAIL:]
            self._first.clear()
            self._last.clear()
            self._left_out = 0

    def add(self, data: bytes) -> None:
        """Takes what has been written."""
        room = HEAD - len(self._first)
        self._first += data[:room]
        self._last += data[room:]
        surplus = len(self._last) - TAIL
        if surplus > 0:
            self._left_out += surplus
            del self._last[:surplus]

    def __str__(self) -> str:
        """First and last lines of what was written since the last request; if that is nothing, the end of the rest."""
        if not self._first:
            return _cut(_text(self._earlier).split("\n"), 0)
        if self._left_out:
            return _cut([*_text(self._first).split("\n"), *_text(self._last).split("\n")], self._left_out)
        return _cut(_text(self._first + self._last).split("\n"), 0)


def _text(data: bytes | bytearray) -> str:
    return bytes(data).decode("utf-8", "replace").strip().expandtabs(4)


def _cut(lines: list[str], left_out: int) -> str:
    surplus = len(lines) - _FIRST_LINES - _LAST_LINES
    if surplus <= 1 and not left_out:
        return "\n".join(lines)
    more = f" and {left_out} bytes" if left_out else ""
    first, last = lines[:_FIRST_LINES], lines[max(_FIRST_LINES, len(lines) - _LAST_LINES) :]
    return "\n".join((*first, f"[... {max(surplus, 0)} lines{more} left out ...]", *last))
