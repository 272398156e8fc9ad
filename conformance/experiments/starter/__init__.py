"""Adapters to start from, one a language: an offset index, a time index and a log behind the line protocol.

A folder a language holds its files, each with ``.txt`` behind its name, so that no tool of this repository takes them
for its own sources.
"""

from __future__ import annotations

import shlex
from importlib.resources import files
from typing import TYPE_CHECKING, Final, NamedTuple

from conformance.errors import ToolError
from conformance.experiments.starter.protocol_page import protocol_page
from kidx.dialect import DIALECTS

if TYPE_CHECKING:
    from pathlib import Path


class Language(NamedTuple):
    """How an adapter is built and started, each with ``{dir}`` for its directory.

    Attributes:
        needs: the program on the PATH.
        build: the command that builds it; empty if nothing has to be built.
        start: the command that starts it, ``{release}`` for the release that it has to follow.
        numbers: what keeps integers of 64 bits whole.
    """

    needs: str
    build: str
    start: str
    numbers: str


LANGUAGES: Final = {
    "python": Language(
        "python3", "", "python3 {dir}/adapter.py {release}", "Python's integers have as many bits as it takes."
    ),
    "go": Language(
        "go",
        "go build -C {dir} -o adapter .",
        "{dir}/adapter {release}",
        "Members of requests are int64, never float64.",
    ),
    "rust": Language(
        "rustc",
        "rustc --edition 2021 -O -o {dir}/adapter {dir}/main.rs",
        "{dir}/adapter {release}",
        "json.rs reads integers as i64.",
    ),
    "node": Language(
        "node",
        "",
        "node {dir}/adapter.mjs {release}",
        "JSON.parse would read integers as doubles: `parse` reads them as BigInt, and `write` writes them back.",
    ),
    "java": Language(
        "javac",
        "javac {dir}/Adapter.java",
        "java -XX:TieredStopAtLevel=1 -XX:+UseSerialGC -cp {dir} Adapter {release}",
        "The class Json reads integers as long; Java's own arithmetic wraps around as Kafka's does.",
    ),
}
"""By the word that ``--lang`` takes."""
RELEASES: Final = tuple(DIALECTS)
"""The releases that the adapters follow, oldest first."""
_README: Final = "README.md"
_PROTOCOL: Final = "PROTOCOL.md"


def write_starter(language: str, directory: Path) -> list[Path]:
    """Write the files of a language's adapter and its two pages; return their paths.

    Raises:
        ToolError: there is no such language, a file is there already, or the directory cannot be written.
    """
    if language not in LANGUAGES:
        raise ToolError(f"there is no adapter in {language!r}; there are {', '.join(LANGUAGES)}")
    sources = files(__package__) / language
    texts = {entry.name.removesuffix(".txt"): entry.read_text("utf-8") for entry in sources.iterdir()}
    texts[_README], texts[_PROTOCOL] = readme(language, directory), protocol_page()
    if there := sorted(name for name in texts if (directory / name).exists()):
        raise ToolError(f"{directory} has {', '.join(there)} already: name a directory without")
    try:
        directory.mkdir(parents=True, exist_ok=True)
        for name, text in texts.items():
            (directory / name).write_text(text, "utf-8")
    except OSError as error:
        raise ToolError(f"{directory} cannot be written: {error.strerror or error}") from error
    return sorted(directory / name for name in texts)


def readme(language: str, directory: Path) -> str:
    """Return the README of an adapter: build, check and run it from here, and where to go on."""
    text = (files(__package__) / "README.md.txt").read_text("utf-8")
    chosen, place = LANGUAGES[language], shlex.quote(str(directory))
    build = f"Build it:\n\n```sh\n{chosen.build}\n```\n\n" if chosen.build else ""
    marks = {
        "@BUILD@": build.replace("{dir}", place),
        "@START@": chosen.start.replace("{dir}", place),
        "@NUMBERS@": chosen.numbers,
        "@OLDEST@": RELEASES[0],
        "@NEWEST@": RELEASES[-1],
    }
    for mark, words in marks.items():
        text = text.replace(mark, words)
    return text
