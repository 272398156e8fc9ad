"""What a message quotes: the beginning of it, if it is long, so that the reason stays in sight."""

from __future__ import annotations

from typing import Final

LONGEST_QUOTE: Final = 300
"""Characters of a request, a reply or a step that a message quotes."""


def quoted(text: str) -> str:
    """The text, or its beginning if it is long."""
    return text if len(text) <= LONGEST_QUOTE else f"{text[:LONGEST_QUOTE]}... ({len(text)} characters)"
