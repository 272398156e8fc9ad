"""Pages for readers (README.md, CONTRIBUTING.md and the pages below docs/), and the blocks of code on them."""

from __future__ import annotations

import re
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parents[2]
PAGES = {
    str(path.relative_to(ROOT)): path.read_text("utf-8")
    for path in (ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md")))
}


class Block(NamedTuple):
    """A block of code on a page."""

    page: str
    language: str
    body: str


BLOCKS = [
    Block(page, language, body)
    for page, text in PAGES.items()
    for language, body in re.findall(r"^```(\w+)\n(.*?)^```", text, flags=re.DOTALL | re.MULTILINE)
]


def blocks(language: str, *, page: str = "", containing: str = "") -> list[str]:
    """Return the bodies of the blocks in a language, of one page or of all."""
    return [
        block.body
        for block in BLOCKS
        if block.language == language and page in ("", block.page) and containing in block.body
    ]


def the_block(language: str, *, page: str = "", containing: str = "") -> str:
    """Return the body of the only block that matches."""
    (body,) = blocks(language, page=page, containing=containing)
    return body


def command_lines(*, page: str = "") -> list[tuple[str, str]]:
    """Return page and command line of each kidx or conformance command on the pages; continuation lines are joined."""
    return [
        (block.page, line.strip().removeprefix("$ "))
        for block in BLOCKS
        if block.language in ("console", "sh", "yaml") and page in ("", block.page)
        for line in block.body.replace("\\\n", " ").splitlines()
        if re.match(r"\s*(?:\$ |- run: )?(?:python3 bootstrap\.py )?(?:conformance|kidx) ", line)
    ]
