"""Topic patterns with the semantics of Kafka and Spark: Java's regular expressions that match no internal topic."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Any, Final

from kidx.errors import ToolError

INTERNAL: Final = frozenset({"__consumer_offsets", "__transaction_state", "__share_group_state"})
"""Topics that no pattern matches (``Topic.INTERNAL_TOPICS``)."""

_JAVA_CLASSES: Final = {
    "javaLowerCase": r"\p{Lower}",
    "javaUpperCase": r"\p{Upper}",
    "javaAlphabetic": r"\p{Alpha}",
    "javaLetter": r"\p{L}",
    "javaDigit": r"\p{Nd}",
    "javaLetterOrDigit": r"[\p{L}\p{Nd}]",
}
"""Character classes that only Java has, with their equivalents in ``regex``."""
# Constructs that Java spells differently from ``regex``.
_DIFFERENT: Final = re.compile(
    r"\\Q(?P<quoted>.*?)(?:\\E|$)|\\k<(?P<group>\w+)>|\\x\{(?P<code>[0-9a-fA-F]{1,6})\}"
    r"|\\(?P<not>[pP])\{(?P<name>java\w+)\}|\\.",
    re.DOTALL,
)


def matches(pattern: str, topic: str) -> bool:
    """Return True if some part of a topic's name matches, as in Spark's Kafka source, and the topic is not internal.

    Raises:
        ToolError: See :func:`check`.
    """
    return topic not in INTERNAL and _compiled(pattern).search(topic) is not None


def check(pattern: str) -> None:
    """Check that a pattern compiles.

    Raises:
        ToolError: the pattern is not a regular expression, or the package ``regex`` is missing.
    """
    _compiled(pattern)


@lru_cache(maxsize=16)
def _compiled(pattern: str) -> Any:
    try:
        import regex  # noqa: PLC0415 -- part of an extra
    except ImportError:
        raise ToolError("subscribePattern requires regex; install with: pip install 'kidx[arrow]'") from None
    try:
        return regex.compile(_DIFFERENT.sub(_translated, pattern.strip()), regex.VERSION1)
    except regex.error as error:
        raise ToolError(f"subscribePattern {pattern!r} is not a regular expression: {error}") from None


def _translated(found: re.Match[str]) -> str:
    """Return the ``regex`` spelling of a construct that Java spells differently."""
    if found["quoted"] is not None:
        return re.escape(found["quoted"])
    if found["group"] is not None:
        return f"(?P={found['group']})"
    if found["code"] is not None:
        return f"\\U{int(found['code'], 16):08x}"
    if found["name"] is not None:
        known = _JAVA_CLASSES.get(found["name"], found[0])
        return known if found["not"] == "p" else f"[^{known}]"
    return found[0]
