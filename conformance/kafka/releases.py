"""Locked Kafka releases, read from their lock files.

A lock file, ``locks/<release>.toml``, names every jar of a release's run-time class path with its
SHA-256 and its size in bytes::

    release = "3.9.2"
    logging = "reload4j"
    jars = [
      { artifact = "org.apache.kafka:kafka-clients:3.9.2", sha256 = "…", size = 9236023, groups = ["index", …] },
    ]

A lock file contains no repository address: jars may come from any repository, because the hashes identify them.
``python -m conformance.kafka.lock_file RELEASE`` writes the file.

A caller fetches only the jars of one group. Only ``broker`` has a logging backend, because classes in the JVM of
``conformance`` must not log.

========= ==================================================================================
index     the index objects (``OffsetIndex``, ``TimeIndex``, ``TransactionIndex``, ``LazyIndex``)
segment   ``LogSegment`` and its dependencies, including the compression codecs
log       ``UnifiedLog``, ``DumpLogSegments``: everything, without a logging backend
broker    everything, with the logging backend, to start ``kafka.Kafka`` (and ZooKeeper)
========= ==================================================================================
"""

from __future__ import annotations

import os
import re
import tomllib
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any, Literal, get_args

from platformdirs import user_config_path

from conformance.errors import ToolError, UnknownReleaseError
from kidx.dialect import DIALECTS, register_release, version_of
from kidx.dialect.release_range import did_you_mean

Group = Literal["index", "segment", "log", "broker"]
GROUPS: tuple[Group, ...] = get_args(Group)

_LOCKS = files(__package__) / "locks"
_TOOLS = "tools.toml"
_RELEASE = re.compile(r"\d+\.\d+\.\d+")
_ARTIFACT = re.compile(r"(?!.*\.\.)[\w.-]+:[\w.-]+:[\w.-]+")
_SHA256 = re.compile(r"[0-9a-f]{64}")


@dataclass(frozen=True, slots=True)
class Jar:
    """Locked artifact: Maven coordinates ``group:artifact:version[:classifier]``, SHA-256 in hex, size in bytes."""

    artifact: str
    sha256: str
    size: int
    groups: frozenset[str] = frozenset()

    @property
    def name(self) -> str:
        """File name, e.g. ``kafka-clients-3.9.2.jar``."""
        _, artifact, version, *classifier = self.artifact.split(":")
        return f"{'-'.join((artifact, version, *classifier))}.jar"

    @property
    def path(self) -> str:
        """Path of the jar below a repository or the cache: Maven's own layout, with ``/``."""
        group, artifact, version, *_ = self.artifact.split(":")
        return f"{group.replace('.', '/')}/{artifact}/{version}/{self.name}"


@dataclass(frozen=True, slots=True)
class Release:
    """Locked Kafka release.

    ``logging`` is the backend on the ``broker`` class path: ``reload4j`` or ``log4j2``.
    """

    name: str
    logging: str
    jars: tuple[Jar, ...]

    def group(self, group: Group) -> tuple[Jar, ...]:
        """Return the jars of one group, in class path order.

        Raises:
            ValueError: the group does not exist.
        """
        if group not in GROUPS:
            raise ValueError(f"unknown group {group!r}; choose from {', '.join(GROUPS)}")
        return tuple(jar for jar in self.jars if group in jar.groups)


RELEASES: tuple[str, ...] = tuple(
    sorted(
        (entry.name.removesuffix(".toml") for entry in _LOCKS.iterdir() if entry.name[0].isdigit()),
        key=version_of,
    )
)
"""Releases locked by this package, oldest first."""


def newest() -> str:
    """Return the newest release that this package locks."""
    return RELEASES[-1]


@cache
def load_release(name: str) -> Release:
    """Read the lock file of one release, and register the dialect of a release that the user has locked.

    This is the dialect of the newest known release before it.

    Raises:
        UnknownReleaseError: the release is not locked; the message lists the locked releases, or similar names.
        ToolError: the user's lock file is invalid.
    """
    table = tomllib.loads((_LOCKS / f"{name}.toml").read_text("utf-8")) if name in RELEASES else _users_lock(name)
    jars = tuple(
        Jar(entry["artifact"], entry["sha256"], entry["size"], frozenset(entry["groups"])) for entry in table["jars"]
    )
    return Release(table["release"], table["logging"], jars)


def register_releases(names: Iterable[str]) -> None:
    """Register the dialects of releases that the user has locked, in this process.

    Raises:
        UnknownReleaseError, ToolError: as :func:`load_release`.
    """
    for name in set(names) - set(DIALECTS):
        load_release(name)


def user_locks() -> Path:
    """Return the directory of the user's lock files, in ``KIDX_CONFIG`` or the user's configuration directory."""
    chosen = os.environ.get("KIDX_CONFIG")
    return (Path(chosen).expanduser().absolute() if chosen else user_config_path("kidx")) / "locks"


def user_releases() -> tuple[str, ...]:
    """Return the releases that the user has locked, oldest first; ``--kafka all`` does not include them."""
    names = (path.stem for path in user_locks().glob("*.toml"))
    own = (name for name in names if _RELEASE.fullmatch(name) and name.isascii() and name not in RELEASES)
    return tuple(sorted(own, key=version_of))


def _users_lock(name: str) -> dict[str, Any]:
    path = user_locks() / f"{name}.toml"
    similar = did_you_mean(name, RELEASES) or f"choose from {', '.join(RELEASES)}"
    if not _RELEASE.fullmatch(name):
        raise UnknownReleaseError(f"Kafka {name} is not locked; {similar}")
    if not path.is_file():
        raise UnknownReleaseError(
            f"Kafka {name} is not locked; lock it with `conformance kafka lock {name}`, or {similar}"
        )
    try:
        table = tomllib.loads(path.read_text("utf-8"))
        sound = (
            table["release"] == name
            and table["logging"] in {"reload4j", "log4j2"}
            and all(
                _ARTIFACT.fullmatch(jar["artifact"])
                and _SHA256.fullmatch(jar["sha256"])
                and jar["size"] > 0
                and set(jar["groups"]) <= set(GROUPS)
                for jar in table["jars"]
            )
        )
    except (OSError, ValueError, KeyError, TypeError):
        sound = False
    if not sound:
        raise ToolError(
            f"{path} is not a valid lock file of Kafka {name}; recreate it with `conformance kafka lock {name}`"
        )
    if name not in DIALECTS:
        register_release(name)
    return table


@cache
def load_tool(name: str) -> Jar:
    """Read the lock of one tool jar that belongs to no release, such as ``ecj``.

    Raises:
        KeyError: the tool does not exist; names are constants in this package, so this is a bug.
    """
    entry = tomllib.loads((_LOCKS / _TOOLS).read_text("utf-8"))[name]
    return Jar(entry["artifact"], entry["sha256"], entry["size"])
