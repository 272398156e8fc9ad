"""Text in Java source files, quoted safely and in ASCII.

Java replaces Unicode escapes before it recognizes strings and comments. A backslash and a ``u`` in a name could
therefore end a string or a comment, as a Unicode escape of a line break does. ASCII does not depend on the default
encoding of the compiler.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from conformance.errors import ToolError

if TYPE_CHECKING:
    from collections.abc import Collection

LONGEST: Final = 20_000
"""The maximum number of characters of one literal; a class file limits a literal to 65,535 bytes of modified UTF-8."""
_LONGEST_COMMENT: Final = 400
_ESCAPED: Final = {'"': r"\"", "\\": r"\\"}

_WORDS: Final = (
    "_ abstract assert boolean break byte case catch char class const continue default do double else enum extends"
    " false final finally float for goto if implements import instanceof int interface long native new null package"
    " permits private protected public record return sealed short static strictfp super switch synchronized this throw"
    " throws transient true try var void volatile while yield"
)
_RESERVED: Final = frozenset(_WORDS.split())


def require_class_name(name: str, taken: Collection[str] = ()) -> None:
    """Raise an error unless a test class can have a name.

    Args:
        name: The name of the file without its suffix.
        taken: The names of other classes in the test.

    Raises:
        ToolError: The name is not an identifier of Java in ASCII, or is taken.
    """
    if not name.isidentifier() or not name.isascii() or name in _RESERVED or name in taken:
        raise ToolError(
            f"cannot write {name}.java: {name!r} is not a valid name of a Java class; choose another file name"
        )


def java_string(text: str) -> str:
    """Return a string literal.

    Control characters are octal escapes, because a Unicode escape of a line break is a line break.
    """
    return '"' + "".join(_ESCAPED.get(char) or _encoded(char) for char in text) + '"'


def java_long_string(text: str) -> str:
    """Return an expression for a text that may be too long for one literal."""
    if len(text) <= LONGEST:
        return java_string(text)
    parts = (java_string(text[start : start + LONGEST]) for start in range(0, len(text), LONGEST))
    return f'String.join("", {", ".join(parts)})'


def java_comment(text: str) -> str:
    """Return text for a Java comment of either form: on one line, and truncated if it is long."""
    shown = text if len(text) <= _LONGEST_COMMENT else f"{text[:_LONGEST_COMMENT]}... ({len(text)} characters)"
    return "".join(_in_comment(char) for char in shown.replace("*/", "* /"))


def _in_comment(char: str) -> str:
    """Return a character in a form that is safe in a comment, where a backslash must not begin an escape."""
    return r"\u005c" if char == "\\" else "?" if char < " " or char == "\x7f" else _encoded(char)


def _encoded(char: str) -> str:
    if " " <= char <= "~":
        return char
    if char < "\x80":
        return f"\\{ord(char):03o}"
    units = char.encode("utf-16-be", "surrogatepass")
    return "".join(f"\\u{units[at : at + 2].hex()}" for at in range(0, len(units), 2))
