"""Phrases to avoid in all prose.

``prose.toml`` has the phrases, what to write instead, and exceptions. Exceptions do not hold for pages for readers.
Fenced blocks, inline code and link targets are not prose.
"""

from __future__ import annotations

import ast
import io
import re
import subprocess
import tokenize
import tomllib
from bisect import bisect
from collections import defaultdict
from collections.abc import Iterator
from itertools import accumulate
from pathlib import Path
from typing import Any, Final, NamedTuple

ROOT: Final = Path(__file__).parents[2]
DATA: Final = Path(__file__).with_name("prose.toml")
TREES: Final = ("conformance", "kidx", "tests", "reports")
"""Trees in which exceptions hold; README.md, CONTRIBUTING.md and docs/ are pages for readers."""
PAGES: Final = re.compile(r"(README|CONTRIBUTING|docs/(?!protocol|spec/)\w[\w/-]*|findings/[\w/-]+)\.md$")
"""docs/protocol.md and docs/spec are copies of texts of conformance, which are examined there."""
NO_PROSE: Final = re.compile(
    r"^tests/golden/|/traces/|kills|/locks/|LICENSE|\.(json|ndjson|html|svg|xz|log|sum|mod|\w*index)$|prose\.toml$"
)
KINDS: Final = ("file", "docstring", "message", "comment")


class Line(NamedTuple):
    """One line of prose."""

    file: str
    number: int
    kind: str
    text: str

    def __str__(self) -> str:
        """Return the line with its place."""
        return f"{self.file}:{self.number}: {self.text.strip()}"


def rules() -> list[dict[str, Any]]:
    """Return the entries of ``prose.toml``."""
    return tomllib.loads(DATA.read_text("utf-8"))["rule"]


def lines(*, pages: bool) -> list[Line]:
    """Return the prose of the pages for readers, or of the trees."""
    done = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=True)
    names = [name for name in done.stdout.split() if not NO_PROSE.search(name) and (ROOT / name).is_file()]
    if pages:
        chosen = [name for name in names if PAGES.match(name)]
    else:
        chosen = [name for name in names if name.partition("/")[0] in TREES]
    return [line for name in chosen for line in _lines_of(name)]


class Prose:
    """The prose of some files, as one text per kind, which a regular expression searches in one call."""

    def __init__(self, found: list[Line]) -> None:
        self._lines: dict[str, list[Line]] = defaultdict(list)
        for line in found:
            self._lines[line.kind].append(line)
        self._texts = {kind: "\n".join(line.text for line in its) for kind, its in self._lines.items()}
        self._starts = {
            kind: list(accumulate((len(line.text) + 1 for line in its), initial=0)) for kind, its in self._lines.items()
        }

    def matching(self, rule: dict[str, Any]) -> list[Line]:
        """Return the lines that match a rule."""
        pattern = re.compile(rule["regex"], re.MULTILINE)
        result: list[Line] = []
        for kind, text in self._texts.items():
            if kind in rule.get("kinds", KINDS):
                numbers = sorted({bisect(self._starts[kind], match.end()) - 1 for match in pattern.finditer(text)})
                result += [self._lines[kind][number] for number in numbers]
        return result

    def wrong(self, rule: dict[str, Any]) -> list[Line]:
        """Return the lines that match a rule and none of its exceptions."""
        exceptions = [re.compile(exception["line"]) for exception in rule.get("except", ())]
        return [
            line for line in self.matching(rule) if not any(exception.search(str(line)) for exception in exceptions)
        ]


def _lines_of(name: str) -> Iterator[Line]:
    text = (ROOT / name).read_text("utf-8", "replace")
    if name.endswith(".py"):
        yield from python_lines(name, text)
        return
    if name.endswith(".md"):
        text = re.sub(r"^```.*?^```", lambda block: "\n" * block[0].count("\n"), text, flags=re.DOTALL | re.MULTILINE)
        text = re.sub(r"`[^`\n]*`", "``", text)
        text = re.sub(r"\]\([^)\n]*\)", "]", text)
    yield from (Line(name, number, "file", line) for number, line in enumerate(text.split("\n"), 1))


def python_lines(name: str, text: str) -> Iterator[Line]:
    """Yield the docstrings, messages and comments of a Python file."""
    docstrings = set[int]()
    for node in ast.walk(ast.parse(text)):  # an expression comes before its value
        if isinstance(node, ast.Expr):
            docstrings.add(id(node.value))
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and " " in node.value.strip():
            kind = "docstring" if id(node) in docstrings else "message"
            yield from (Line(name, node.lineno + more, kind, line) for more, line in enumerate(node.value.split("\n")))
    if "#" not in text:  # tokens take three times as long as the tree
        return
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type == tokenize.COMMENT:
            yield Line(name, token.start[0], "comment", token.string)
