"""Sanitizing of terminal output: no text from outside can control the terminal."""

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
    """Return a name or message for a line with rich's markup: on one line, with its own markup escaped."""
    return escape(printable(text))


def in_lines(text: str, width: int = 32) -> str:
    """Return a name as a cell of a table; a long name is wrapped after its separators."""
    lines = [""]
    for part in re.findall(r"[^ :/.,]*[ :/.,]?", printable(text)):
        if lines[-1] and len(lines[-1]) + len(part) > width:
            lines.append("")
        lines[-1] += part
    return escape("\n".join(lines))


def sanitizing(console: Console) -> Console:
    """Return the console, changed to escape the control characters in all texts, except rich's own."""
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
