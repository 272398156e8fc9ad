"""What is shown on a terminal holds no command to it, wherever its parts come from."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.console import Console, RenderHook
from rich.markup import escape
from rich.segment import Segment

from kidx.printable import printable, printable_lines

if TYPE_CHECKING:
    from rich.console import ConsoleOptions, ConsoleRenderable, RenderResult


def for_console(text: str) -> str:
    """A name or a message as part of a line that may have markup: one line, and no markup of its own."""
    return escape(printable(text))


def shielded(console: Console) -> Console:
    """The console; from now on it shows control characters of any text as escapes, and only rich's own are obeyed."""
    console.push_render_hook(_Shield())
    return console


class _Shield(RenderHook):
    def process_renderables(self, renderables: list[ConsoleRenderable]) -> list[ConsoleRenderable]:
        """See rich: what is printed, before it is rendered."""
        return [_Shielded(renderable) for renderable in renderables]


class _Shielded:
    def __init__(self, renderable: ConsoleRenderable) -> None:
        self._renderable = renderable

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        for segment in console.render(self._renderable, options):
            yield segment if segment.control else Segment(printable_lines(segment.text), segment.style)
