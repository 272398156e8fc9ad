"""Sanitizing of terminal output: no text can contain commands to the terminal, whatever its source."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from rich.console import Console, RenderHook
from rich.markup import escape
from rich.segment import Segment

from kidx.printable import printable, printable_lines

if TYPE_CHECKING:
    from rich.console import ConsoleOptions, ConsoleRenderable, RenderResult


def escape_for_console(text: str) -> str:
    """Return a name or message as part of a line with markup: one line, whose own markup is escaped."""
    return escape(printable(text))


def in_lines(text: str, width: int = 32) -> str:
    """Return a name as a cell of a table; a long name is broken into lines after its separators."""
    lines = [""]
    for part in re.findall(r"[^ :/.,]*[ :/.,]?", printable(text)):
        if lines[-1] and len(lines[-1]) + len(part) > width:
            lines.append("")
        lines[-1] += part
    return escape("\n".join(lines))


def sanitizing(console: Console) -> Console:
    """Make a console escape control characters of any text, except for rich's own ones; return the console."""
    console.push_render_hook(_SanitizingHook())
    return console


class _SanitizingHook(RenderHook):
    def process_renderables(self, renderables: list[ConsoleRenderable]) -> list[ConsoleRenderable]:
        """Wrap all renderables; see rich."""
        return [_Sanitized(renderable) for renderable in renderables]


class _Sanitized:
    def __init__(self, renderable: ConsoleRenderable) -> None:
        self._renderable = renderable

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        for segment in console.render(self._renderable, options):
            yield segment if segment.control else Segment(printable_lines(segment.text), segment.style)
