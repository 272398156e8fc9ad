"""Catalogue of third-party implementations as data: how each is built and started, and its locked version.

One file per subject, ``<name>.toml``, next to a folder with the program that starts it::

    title = "kfake"                       # the name that its makers use
    about = "franz-go's broker in memory"
    driven = "wire"                       # "wire": a broker, which prints HOST:PORT and runs until SIGTERM;
                                          # "jvm": index classes in {out}/lib, which this process loads;
                                          # "line": a log that speaks version 2 of the line protocol
    language = "Go"
    version = "..."                       # locked by the files in the folder
    home = "https://..."
    releases = ["4.3.1"]                  # the Kafka releases with which CI compares it
    needs = ["go"]                        # programs that must be on the PATH
    sources = "kfake"                     # the folder of the program
    build = ["go", "build", "-o", "{out}/kfake", "."]
    start = ["{out}/kfake", "{data}"]     # {data}: a directory in which it stores its records. Without {data}, runs
                                          # neither stop nor kill it
    without = []                          # features that it lacks

    [environment]                         # variables for the build
    GOTOOLCHAIN = "local"

The known divergences of a subject are in :mod:`conformance.expectations`, each with a reason and a link.
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
"""Values of ``driven``, which states how the harness drives a subject."""
_TEXTS: Final = ("title", "about", "driven", "language", "version", "home", "sources")
_LISTS: Final = ("releases", "needs", "build", "start", "without")


@dataclass(frozen=True, slots=True)
class Subject:
    """Third-party implementation.

    The attributes are the keys of its file; ``name`` is the name of the file.
    """

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
    def keeps_records(self) -> bool:
        """True if the records still exist after the process has ended."""
        return any("{data}" in word for word in self.start)

    @property
    def folder(self) -> Traversable:
        """Directory with the sources of the program."""
        return files(__package__) / self.sources


class SubjectError(ToolError):
    """File of the catalogue that is malformed, or subject that does not exist."""


@cache
def load_subjects() -> dict[str, Subject]:
    """Return all subjects by name.

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
    """Return a subject from its table.

    Raises:
        SubjectError: a key is missing, unknown, or of another type.
    """
    if unknown := sorted(set(table) - {*_TEXTS, *_LISTS, "environment"}):
        raise SubjectError(f"unknown key {', '.join(unknown)} in the subject {name}")
    needed = ("build", "start") if table.get("driven") in ("wire", "line") else ("build",)
    wrong = [key for key in _TEXTS if not isinstance(table.get(key), str) or not table[key]]
    lists = {key: table.get(key, []) for key in _LISTS}
    wrong += [key for key, value in lists.items() if not _is_texts(value) or (not value and key in needed)]
    environment = table.get("environment", {})
    if wrong or not isinstance(environment, dict) or not _is_texts(list(environment.values())):
        raise SubjectError(f"the subject {name} has no {', '.join(wrong) or 'environment'} of the right type")
    if table["driven"] not in DRIVEN:
        raise SubjectError(
            f"unknown value {table['driven']!r} of driven in the subject {name}; choose from {', '.join(DRIVEN)}"
        )
    values: dict[str, Any] = {key: table[key] for key in _TEXTS} | {key: tuple(value) for key, value in lists.items()}
    return Subject(name, **values, environment=dict(environment))


def _is_texts(value: Any) -> bool:
    return isinstance(value, list) and all(isinstance(each, str) for each in value)


def load_subject(name: str) -> Subject:
    """Return the subject of a name.

    Raises:
        SubjectError: the subject does not exist.
    """
    found = load_subjects().get(name)
    if found is None:
        raise SubjectError(f"unknown subject {name!r}; choose from {', '.join(load_subjects())}")
    return found
