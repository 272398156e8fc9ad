"""The catalogue of foreign implementations: how each is built and started, and in which version. Data only.

One file a subject, ``<name>.toml``, beside a folder with the program that starts it::

    title = "kfake"                       # as its makers call it
    about = "franz-go's broker in memory"
    driven = "wire"                       # by protocol: prints HOST:PORT, runs until SIGTERM;
                                          # "jvm": index classes in {out}/lib, in this process;
                                          # "line": a log behind version 2 of the line protocol
    language = "Go"
    version = "..."                       # locked by the files in the folder
    home = "https://..."
    releases = ["4.3.1"]                  # of Kafka, whose answers it is held to in CI
    needs = ["go"]                        # on the PATH
    sources = "kfake"                     # the folder
    build = ["go", "build", "-o", "{out}/kfake", "."]
    start = ["{out}/kfake", "{data}"]     # a directory of the run, for one that keeps its records there: it is
                                          # stopped and killed in runs then, and otherwise it is not
    without = []                          # features that it does not have

    [environment]                         # of the build
    GOTOOLCHAIN = "local"

What it is known to do otherwise stands among the expectations, with a reason and a link.
"""

from __future__ import annotations

import tomllib
from dataclasses import dataclass, field
from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING, Any, Final

from conformance.errors import ToolError

if TYPE_CHECKING:
    from collections.abc import Mapping
    from importlib.resources.abc import Traversable

DRIVEN: Final = ("wire", "jvm", "line")
_TEXTS: Final = ("title", "about", "driven", "language", "version", "home", "sources")
_LISTS: Final = ("releases", "needs", "build", "start", "without")


@dataclass(frozen=True, slots=True)
class Subject:
    """A foreign implementation; the attributes are the keys of its file, ``name`` is the file's."""

    name: str
    title: str
    about: str
    driven: str
    language: str
    version: str
    home: str
    sources: str
    releases: tuple[str, ...]
    needs: tuple[str, ...]
    build: tuple[str, ...]
    start: tuple[str, ...]
    without: tuple[str, ...] = ()
    environment: Mapping[str, str] = field(default_factory=dict)

    @property
    def keeps(self) -> bool:
        """Whether its records outlive its process."""
        return any("{data}" in word for word in self.start)

    @property
    def folder(self) -> Traversable:
        """Where its program's sources are."""
        return files(__package__) / self.sources


class SubjectError(ToolError):
    """A file of the catalogue is malformed, or there is no such subject."""


@cache
def load_subjects() -> dict[str, Subject]:
    """All subjects by name.

    Raises:
        SubjectError: a file is malformed.
    """
    entries = sorted((e for e in files(__package__).iterdir() if e.name.endswith(".toml")), key=lambda e: e.name)
    return {
        name: read_subject(name, tomllib.loads(entry.read_text("utf-8")))
        for entry in entries
        if (name := entry.name.removesuffix(".toml"))
    }


def read_subject(name: str, table: Mapping[str, Any]) -> Subject:
    """A subject from its table.

    Raises:
        SubjectError: a key is missing, unknown, or of another type.
    """
    if unknown := sorted(set(table) - {*_TEXTS, *_LISTS, "environment"}):
        raise SubjectError(f"the subject {name} has {', '.join(unknown)}, which no subject has")
    needed = ("build", "start") if table.get("driven") in ("wire", "line") else ("build",)
    wrong = [key for key in _TEXTS if not isinstance(table.get(key), str) or not table[key]]
    lists = {key: table.get(key, []) for key in _LISTS}
    wrong += [key for key, value in lists.items() if not _is_texts(value) or (not value and key in needed)]
    environment = table.get("environment", {})
    if wrong or not isinstance(environment, dict) or not _is_texts(list(environment.values())):
        raise SubjectError(f"the subject {name} has no {', '.join(wrong) or 'environment'} of the right type")
    if table["driven"] not in DRIVEN:
        raise SubjectError(f"the subject {name} is driven by {table['driven']!r}, not {' or '.join(DRIVEN)}")
    values: dict[str, Any] = {key: table[key] for key in _TEXTS} | {key: tuple(value) for key, value in lists.items()}
    return Subject(name, **values, environment=dict(environment))


def _is_texts(value: Any) -> bool:
    return isinstance(value, list) and all(isinstance(each, str) for each in value)


def load_subject(name: str) -> Subject:
    """The subject of a name.

    Raises:
        SubjectError: there is none.
    """
    found = load_subjects().get(name)
    if found is None:
        raise SubjectError(f"there is no subject {name!r}; there are {', '.join(load_subjects())}")
    return found
