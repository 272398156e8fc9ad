"""Any text as part of a Java source file: never anything but the text, and plain ASCII.

Java replaces Unicode escapes before it looks for strings and comments. So a backslash and a ``u`` out of a name could
end a string or a comment; a line break as a Unicode escape does. What a compiler reads does not depend on its encoding.
"""

from __future__ import annotations

from typing import Final

LONGEST: Final = 20_000
"""Characters of one literal: a class file has room for 65,535 bytes of modified UTF-8."""
_LONGEST_COMMENT: Final = 400
_ESCAPED: Final = {'"': r"\"", "\\": r"\\"}

_WORDS: Final = (
    "_ abstract assert boolean break byte case catch char class const continue default do double else enum extends"
    " false final finally float for goto if implements import instanceof int interface long native new null package"
    " permits private protected public record return sealed short static strictfp super switch synchronized this throw"
    " throws transient true try var void volatile while yield"
)
RESERVED: Final = frozenset(_WORDS.split())
"""Words that are no names of classes."""


def java_string(text: str) -> str:
    """A string literal.

    Control characters are octal escapes of three digits: a Unicode escape of a line break is a line break.
    """
    return '"' + "".join(_ESCAPED.get(char) or _encoded(char) for char in text) + '"'


def java_long_string(text: str) -> str:
    """An expression for a text that may be too long for one literal."""
    if len(text) <= LONGEST:
        return java_string(text)
    parts = (java_string(text[start : start + LONGEST]) for start in range(0, len(text), LONGEST))
    return f'String.join("", {", ".join(parts)})'


def java_comment(text: str) -> str:
    """What may stand in a comment of either form; on one line, cut if it is long."""
    shown = text if len(text) <= _LONGEST_COMMENT else f"{text[:_LONGEST_COMMENT]}... ({len(text)} characters)"
    return "".join(_in_comment(char) for char in shown.replace("*/", "* /"))


def _in_comment(char: str) -> str:
    """The backslash that an escape stands for begins no other one."""
    return r"\u005c" if char == "\\" else "?" if char < " " or char == "\x7f" else _encoded(char)


def _encoded(char: str) -> str:
    if " " <= char <= "~":
        return char
    if char < "\x80":
        return f"\\{ord(char):03o}"
    units = char.encode("utf-16-be", "surrogatepass")
    return "".join(f"\\u{units[at : at + 2].hex()}" for at in range(0, len(units), 2))
