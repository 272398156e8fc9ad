"""Patterns of topics as Kafka and Spark take them: Java's regular expressions, and never a topic of Kafka's own."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Any, Final

from kidx.errors import ToolError

INTERNAL: Final = frozenset({"__consumer_offsets", "__transaction_state", "__share_group_state"})
"""Topics that no pattern matches (``Topic.INTERNAL_TOPICS``)."""

_JAVAS: Final = {
    "javaLowerCase": r"\p{Lower}",
    "javaUpperCase": r"\p{Upper}",
    "javaAlphabetic": r"\p{Alpha}",
    "javaLetter": r"\p{L}",
    "javaDigit": r"\p{Nd}",
    "javaLetterOrDigit": r"[\p{L}\p{Nd}]",
}
_DIFFERENT: Final = re.compile(
    r"\\Q(?P<quoted>.*?)(?:\\E|$)|\\k<(?P<group>\w+)>|\\x\{(?P<code>[0-9a-fA-F]{1,6})\}"
    r"|\\(?P<not>[pP])\{(?P<name>java\w+)\}|\\.",
    re.DOTALL,
)


def matches(pattern: str, topic: str) -> bool:
    """Whether some part of a topic's name matches, as for Spark's Kafka source, and it is none of Kafka's own.

    Raises:
        ToolError: as :func:`check`.
    """
    return topic not in INTERNAL and _compiled(pattern).search(topic) is not None


def check(pattern: str) -> None:
    """Reads a pattern.

    Raises:
        ToolError: it is none, or the package that reads it is missing.
    """
    _compiled(pattern)


@lru_cache(maxsize=16)
def _compiled(pattern: str) -> Any:
    try:
        import regex  # noqa: PLC0415 -- part of an extra
    except ImportError:
        raise ToolError("subscribePattern needs regex: pip install 'kidx[arrow]'") from None
    try:
        return regex.compile(_DIFFERENT.sub(_translated, pattern.strip()), regex.VERSION1)
    except regex.error as error:
        raise ToolError(f"subscribePattern {pattern!r} is no regular expression: {error}") from None


def _translated(found: re.Match[str]) -> str:
    """What is written in another way here."""
    if found["quoted"] is not None:
        return re.escape(found["quoted"])
    if found["group"] is not None:
        return f"(?P={found['group']})"
    if found["code"] is not None:
        return f"\\U{int(found['code'], 16):08x}"
    if found["name"] is not None:
        known = _JAVAS.get(found["name"], found[0])
        return known if found["not"] == "p" else f"[^{known}]"
    return found[0]
