"""Fixes of findings as diffs against the source of a release.

Kafka's source is not in this repository. An edit names a class, a method and a place in it by a regular expression,
and has the lines that are written there. The diff is made from the source jar that Kafka publishes with the release.
"""

from __future__ import annotations

import re
import textwrap
import zipfile
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from difflib import unified_diff
from pathlib import Path
from typing import Final

from conformance.kafka.jar_fetch import tool_jar

RELEASE: Final = "4.3.1"
"""Newest release with published source jars."""
_PLACE: Final = r"\0"
"""Line of an edit in whose place the lines that match are written."""


@dataclass(frozen=True)
class Edit:
    r"""Change of a few lines of a method.

    Attributes:
        module: module of Kafka's tree.
        within: class and method, e.g. ``org/apache/kafka/storage/internals/log/LogSegment.recover``; for a change
            outside methods a class and a dot.
        at: regular expression of the place, which begins at the first character of a line.
        new: new lines; the lines that match replace a line ``\0``, and the text of a group replaces ``\1``.
        words: the change in one phrase; empty for what another edit needs, such as an import.
    """

    module: str
    within: str
    at: str
    new: str
    words: str = ""

    @property
    def path(self) -> str:
        """Path of the class in the source jar."""
        return f"{self.within.rpartition('.')[0]}.java"

    @property
    def file(self) -> str:
        """Path of the class in Kafka's tree."""
        return f"{self.module}/src/main/java/{self.path}"

    def source(self) -> str:
        """Return the source of the class."""
        with zipfile.ZipFile(tool_jar(f"kafka-{self.module}-sources-{RELEASE}")) as jar:
            return jar.read(self.path).decode()

    def apply(self, text: str) -> str:
        """Return the source of the class with this change."""
        begin, end = _span(text, self.within.rpartition(".")[2])
        places = list(re.finditer(self.at, text[begin:end]))
        assert len(places) == 1, f"{self.within} has {len(places)} such places"
        (place,) = places
        before = text[begin : begin + place.start()]
        indent = before.rpartition("\n")[2]
        assert not indent.strip(), f"{self.within}: the place does not begin a line"
        new = "\n".join(self._lines(place, indent)).removeprefix(indent)
        return text[:begin] + before + new + text[begin + place.end() :]

    def _lines(self, place: re.Match[str], indent: str) -> Iterator[str]:
        for line in self.new.strip("\n").splitlines():
            if line.strip() == _PLACE:
                yield textwrap.indent(indent + place[0], line.removesuffix(_PLACE))
            else:
                yield (indent + place.expand(line)).rstrip()


def edited(edits: Iterable[Edit]) -> dict[str, tuple[str, str]]:
    """Return each file of Kafka's tree that is changed, with its text before and after all changes."""
    files = dict[str, tuple[str, str]]()
    for edit in dict.fromkeys(edits):
        before, after = files.get(edit.file) or (edit.source(),) * 2
        files[edit.file] = before, edit.apply(after)
    return files


def diff(edits: Iterable[Edit]) -> str:
    """Return the unified diff of the changes, as ``git apply`` takes it."""
    return "".join(
        line
        for file, (before, after) in edited(edits).items()
        for line in unified_diff(before.splitlines(True), after.splitlines(True), f"a/{file}", f"b/{file}")
    )


def addition(file: str, text: str) -> str:
    """Return the unified diff that adds a file to Kafka's tree."""
    lines = text.splitlines(True)
    return f"--- /dev/null\n+++ b/{file}\n@@ -0,0 +1,{len(lines)} @@\n" + "".join(f"+{line}" for line in lines)


def licence(edit: Edit) -> str:
    """Return the comment that Kafka's sources begin with."""
    return edit.source().partition("package ")[0]


def write(edits: Iterable[Edit], directory: Path) -> list[Path]:
    """Write the changed files of Kafka's tree below a directory; return their paths."""
    written = []
    for file, (_, after) in edited(edits).items():
        path = directory / file
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(after, "utf-8")
        written.append(path)
    return written


def _span(text: str, method: str) -> tuple[int, int]:
    """Return where the body of a method begins and ends: Kafka indents members by four blanks."""
    if not method:
        return 0, len(text)
    head = re.search(rf"^    [^\s*/][^;=\n]*\b{method}\(", text, re.MULTILINE)
    assert head, f"there is no method {method}"
    begin = text.index("{\n", head.end()) + 2
    return begin, text.index("\n    }\n", begin)
