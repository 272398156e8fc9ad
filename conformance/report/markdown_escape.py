"""GitHub-flavoured Markdown, and escaping of texts in it."""

from __future__ import annotations

import re
from html import escape
from typing import TYPE_CHECKING, Final

from kidx.printable import printable

if TYPE_CHECKING:
    from collections.abc import Iterable

_MARKUP: Final = re.compile(r"[\\`*\[\]|~$]")
_QUOTED: Final = re.compile(r"(`{1,2})(.+?)\1")
_SAFE_IN_CODE: Final = re.compile(r"[\w .,:;/=@+(){}<>'\"#%^?!-]+", re.ASCII)


def table(header: list[str], rows: Iterable[list[str]], *, numbers: int) -> list[str]:
    """Return a table whose columns contain numbers from the column with index ``numbers`` on."""
    rule = ["---" if column < numbers else "---:" for column in range(len(header))]
    return [f"| {' | '.join(row)} |" for row in (header, rule, *rows)]


def text(value: str) -> str:
    """Return a text on one line, escaped for Markdown and HTML, in a table or outside."""
    return _MARKUP.sub(r"\\\g<0>", html(value))


def code(value: str) -> str:
    """Return a name as code, or as text if it contains characters that end code or a cell."""
    return f"`{value}`" if _SAFE_IN_CODE.fullmatch(value) else text(value)


def prose(value: str) -> str:
    """Return a text on one line like :func:`text`, with what it has between one or two backquotes as code."""
    parts = _QUOTED.split(value)
    quoted = [*map(code, parts[2::3]), ""]
    return "".join(plain + inner for plain, inner in zip(map(text, parts[::3]), quoted, strict=True))


def html(value: str) -> str:
    """Return a text on one line, escaped for HTML."""
    return escape(printable(value), quote=False)
