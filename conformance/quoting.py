"""Quotations in messages: a long one is cut to its beginning, so that the reason of the message remains visible."""

from __future__ import annotations

from typing import Final

LONGEST_QUOTE: Final = 300
"""Maximum number of quoted characters of a request, a reply or a step."""


def quoted(text: str) -> str:
    """Return the text, or its beginning if it is long."""
    return text if len(text) <= LONGEST_QUOTE else f"{text[:LONGEST_QUOTE]}... ({len(text)} characters)"
