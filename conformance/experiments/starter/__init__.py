"""Starter adapters, one per language: an offset index, a time index and a log that speak the line protocol.

Each language has a folder with its files. Each name ends in ``.txt``, so that no tool of this repository treats the
files as its own sources.
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
    """Commands that build and start an adapter, with ``{dir}`` for its directory.

    Attributes:
        needs: The required program on the PATH.
        build: The command that builds the adapter; empty if nothing has to be built.
        start: The command that starts the adapter, with ``{release}`` for the Kafka release that it has to follow.
        numbers: The reason why 64-bit integers remain exact.
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
"""Languages by their name for ``--lang``."""
RELEASES: Final = tuple(DIALECTS)
"""Releases that the adapters can follow, oldest first."""
_README: Final = "README.md"
_PROTOCOL: Final = "PROTOCOL.md"


def write_starter(language: str, directory: Path) -> list[Path]:
    """Write the files of a language's adapter and its two pages; return their paths.

    Raises:
        ToolError: The language is unknown, a file exists already, or the directory cannot be written.
    """
    if language not in LANGUAGES:
        raise ToolError(f"unknown language {language!r}; choose from {', '.join(LANGUAGES)}")
    sources = files(__package__) / language
    texts = {entry.name.removesuffix(".txt"): entry.read_text("utf-8") for entry in sources.iterdir()}
    texts[_README], texts[_PROTOCOL] = readme(language, directory), protocol_page()
    if there := sorted(name for name in texts if (directory / name).exists()):
        raise ToolError(f"{directory} already has {', '.join(there)}; choose another directory")
    try:
        directory.mkdir(parents=True, exist_ok=True)
        for name, text in texts.items():
            (directory / name).write_text(text, "utf-8")
    except OSError as error:
        raise ToolError(f"cannot write {directory}: {error.strerror or error}") from error
    return sorted(directory / name for name in texts)


def readme(language: str, directory: Path) -> str:
    """Return the README of an adapter, with commands for its directory."""
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
