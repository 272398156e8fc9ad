"""Corruptions of a cache of remote index files, and of the remote files themselves."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from conformance.experiments.tiers.tiered_broker import cache_of, remote_files

Damage = Callable[[Path], object]
"""Function that corrupts the directory of a stopped broker."""


@dataclass(frozen=True, slots=True)
class Case:
    """One corruption.

    Attributes:
        name: A description of the corruption.
        corrupt: The function that corrupts the directory of the stopped broker.
        fetched_once: The suffix of a remote file. Remote storage returns that file corrupt once, to the running broker,
            and works again before the broker is stopped.
    """

    name: str
    corrupt: Damage | None = None
    fetched_once: str = ""


def _file(name: str) -> Damage:
    return lambda directory: (cache_of(directory) / name).write_bytes(b"hello\n")


def _directory(name: str) -> Damage:
    return lambda directory: (cache_of(directory) / name).mkdir()


def _change(suffix: str, change: Callable[[bytes], bytes]) -> Damage:
    """Change the cached file of the last segment; its base offset is not 0."""

    def damage(directory: Path) -> None:
        file = max(cache_of(directory).glob(f"*{suffix}"), key=lambda path: int(path.name.partition("_")[0]))
        file.write_bytes(change(file.read_bytes()))

    return damage


def _delete(suffix: str) -> Damage:
    def damage(directory: Path) -> None:
        for file in cache_of(directory).glob(f"*{suffix}"):
            file.unlink()

    return damage


def _cut(size: int) -> Callable[[bytes], bytes]:
    return lambda data: data[:-size]


def _append(data: bytes) -> Callable[[bytes], bytes]:
    return lambda content: content + data


def zeroed(data: bytes) -> bytes:
    """Return as many zeros."""
    return bytes(len(data))


def corrupt_remotely(directory: Path, suffix: str) -> Callable[[], object]:
    """Overwrite the newest remote file of the first topic with zeros, and return a function that restores it."""
    partition = remote_files(directory, suffix)[0].parent
    path = max(partition.glob(f"*{suffix}"))
    content = path.read_bytes()
    path.write_bytes(zeroed(content))
    return lambda: path.write_bytes(content)


CASES: Final = (
    Case("nothing"),
    Case("a file README", _file("README")),
    Case("a file .nfs0001", _file(".nfs0001")),
    Case("a file .DS_Store", _file(".DS_Store")),
    Case("a directory lost+found", _directory("lost+found")),
    Case("a file 0_notauuid.index", _file("0_notauuid.index")),
    Case("a file ending in .tmp", _file("0_AAAAAAAAAAAAAAAAAAAAAA.index.tmp")),
    Case("a file ending in .deleted", _file("0_AAAAAAAAAAAAAAAAAAAAAA.index.deleted")),
    *(
        Case(f"a cached {suffix}: {what}", _change(suffix, change))
        for suffix in (".index", ".timeindex", ".txnindex")
        for what, change in (
            ("one byte more", _append(b"x")),
            ("a byte less", _cut(1)),
            ("a tail of zeros", _append(bytes(816))),
            ("zeroed", zeroed),
            ("empty", lambda _: b""),
        )
    ),
    *(Case(f"all cached {suffix} deleted", _delete(suffix)) for suffix in (".index", ".timeindex", ".txnindex")),
    *(
        Case(f"remote storage returns one {suffix} of zeros", fetched_once=suffix)
        for suffix in (".index", ".timeindex", ".txnindex")
    ),
)
