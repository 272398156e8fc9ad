"""Remote storage in the layout of Aiven's plugin, read as if it had the files of ``LocalTieredStorage``.

A segment is three objects ``<prefix><topic>-<topic id>/<partition>/<base offset>-<segment id>.<suffix>``. ``log``
contains the log in chunks, ``indexes`` contains all other files, and ``rsm-manifest`` the positions in both
(:mod:`kidx.remote.manifest`). Encrypted segments are rejected.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Final, NamedTuple

import zstandard

from kidx.errors import ToolError
from kidx.files import CHUNK
from kidx.java_numbers import INT_MAX
from kidx.remote.manifest import MAX_SIZE, EncryptedSegmentError, Manifest, ManifestError, decompressed, parse_manifest
from kidx.remote.stored import ID, LOG, StoredSegment, by_segment
from kidx.storage import Entry, RangeReader, Store

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path

    from kidx.remote.manifest import Chunks

MANIFEST: Final = "rsm-manifest"
INDEXES: Final = "indexes"
OBJECTS: Final = (LOG, INDEXES, MANIFEST)
"""Suffixes of the objects that each segment has."""
_TOPIC: Final = re.compile(rf"(?P<topic>.+)-(?P<id>{ID})", re.DOTALL | re.ASCII)


class TopicId(NamedTuple):
    """Topic and topic id, both from the name of a directory."""

    name: str
    id: str


def parse_topic(name: str) -> TopicId | None:
    """Return topic and topic id in the name of a directory; None for any other name."""
    match = _TOPIC.fullmatch(name)
    return None if match is None else TopicId(match["topic"], match["id"])


def parse_number(name: str) -> int | None:
    """Return the number of a partition in the name of a directory; None for any other name."""
    return int(name) if re.fullmatch(r"\d{1,10}", name, re.ASCII) and int(name) <= INT_MAX else None


@dataclass(frozen=True)
class ObjectStore(Store):
    """Store whose files are parts of objects."""

    def __hash__(self) -> int:
        return hash(self.url)

    @property
    def has_files(self) -> bool:
        """False, because a part of an object is not a file that system calls can read."""
        return False

    @cached_property
    def _manifests(self) -> dict[str, Manifest]:
        return {}

    def manifest(self, stem: str) -> Manifest:
        """Return the manifest of a segment, whose objects have the path ``stem`` and a suffix.

        Raises:
            ManifestError: the manifest is missing, or kidx cannot read it.
            OSError: the store cannot be read.
        """
        if stem not in self._manifests:
            path = f"{stem}.{MANIFEST}"
            with super().open(path) as reader:
                if reader.size > MAX_SIZE:
                    raise ManifestError(
                        f"{self.name_of(path)} has {reader.size} bytes; a manifest has at most {MAX_SIZE}"
                    )
                self._manifests[stem] = parse_manifest(reader.read(0, reader.size), self.name_of(path))
        return self._manifests[stem]

    def open(self, path: str) -> RangeReader:
        """Open a file for range reads; see the base class.

        Raises:
            OSError: the objects cannot be read.
        """
        stem, _, suffix = path.rpartition(".")
        manifest = self.manifest(stem)
        if suffix == LOG:
            return _LogReader(super().open(path), manifest.log, self.name_of(path))
        if suffix not in manifest.places:
            raise FileNotFoundError(2, "the segment has no such file", self.name_of(path))
        name = f"{stem}.{INDEXES}"
        return _PartReader(super().open(name), manifest.places[suffix], self.name_of(name))

    def entry(self, path: str) -> Entry | None:
        """Return the entry of a file, with the size of its content; None if it does not exist."""
        stem, _, suffix = path.rpartition(".")
        entry = super().entry(path if suffix == LOG else f"{stem}.{INDEXES}")
        size = None if entry is None else sizes(self.manifest(stem)).get(suffix)
        return None if entry is None or size is None else entry._replace(path=path, size=size)

    def fetch(self, path: str, target: Path) -> None:
        """Copy a file to this machine; see the base class."""
        try:
            with self.open(path) as reader, target.open("wb") as copy:
                for start in range(0, reader.size, CHUNK):
                    copy.write(reader.read(start, CHUNK))
        except FileNotFoundError:
            target.unlink(missing_ok=True)


def sizes(manifest: Manifest) -> dict[str, int]:
    """Return the size of each file of a segment, by suffix."""
    return {LOG: manifest.log.size} | {suffix: size for suffix, (_, size) in manifest.places.items()}


class _Files(Mapping[str, Entry]):
    """Files of a segment by suffix, from its manifest, which is read on the first access."""

    def __init__(self, store: ObjectStore, stem: str, objects: Mapping[str, Entry]) -> None:
        self._store, self._stem, self._objects = store, stem, objects

    @cached_property
    def _entries(self) -> dict[str, Entry]:
        if MANIFEST not in self._objects:
            return {}
        found = {}
        for suffix, size in sizes(self._store.manifest(self._stem)).items():
            stored = self._objects.get(LOG if suffix == LOG else INDEXES)
            if stored is not None:
                found[suffix] = stored._replace(path=f"{self._stem}.{suffix}", size=size)
        return found

    def __getitem__(self, suffix: str) -> Entry:
        return self._entries[suffix]

    def __iter__(self) -> Iterator[str]:
        return iter(self._entries)

    def __len__(self) -> int:
        return len(self._entries)


@dataclass(frozen=True, eq=False)
class ObjectSegment(StoredSegment):
    """Segment whose files are parts of objects; see the base class.

    Attributes:
        objects: suffixes of its objects.
    """

    objects: frozenset[str] = frozenset()

    @property
    def suffixes(self) -> frozenset[str]:
        """Suffixes of the segment's files; only the log's suffix if the manifest cannot be read."""
        try:
            return frozenset(self.files)
        except OSError:
            return frozenset({LOG})

    @property
    def missing(self) -> list[str]:
        """Suffixes of objects that do not exist."""
        return [suffix for suffix in OBJECTS if suffix not in self.objects]


def object_segments(
    store: ObjectStore, directory: str, entries: Iterable[Entry]
) -> tuple[list[ObjectSegment], list[str]]:
    """Return the segments of a partition by base offset and id, and the names of other entries.

    Raises:
        ToolError: the first segment is encrypted.
        OSError: the store cannot be read.
    """
    grouped, strays = by_segment(entries, directory, OBJECTS)
    segments = []
    for (base, name), objects in grouped:
        files = _Files(store, f"{directory}/{base:020d}-{name}", objects)
        segments.append(ObjectSegment(store, directory, base, name, files, objects=frozenset(objects)))
    try:
        for segment in segments[:1]:
            len(segment.files)
    except EncryptedSegmentError as error:
        raise ToolError(str(error)) from error
    except ManifestError:  # a verification reports it as a finding, a lookup as an error
        pass
    return segments, strays


class _LogReader(RangeReader):
    """Log that is stored in chunks."""

    def __init__(self, stored: RangeReader, chunks: Chunks, name: str) -> None:
        self._stored, self._chunks, self._name = stored, chunks, name
        self.size = chunks.size
        self._last: tuple[int, bytes] = (-1, b"")

    def _read(self, start: int, end: int) -> bytes:
        size = self._chunks.chunk_size
        numbers = range(start // size, (end - 1) // size + 1)
        data = b"".join(map(self._chunk, numbers))
        first = numbers[0] * size
        return data[start - first : end - first]

    def _chunk(self, number: int) -> bytes:
        if self._last[0] != number:
            at, size = self._chunks.stored(number)
            _, expected = self._chunks.original(number)
            data = self._stored.read(at, size)
            if self._chunks.compressed:
                try:
                    data = decompressed(data, expected)
                except zstandard.ZstdError as error:
                    raise ManifestError(f"chunk {number} of {self._name} cannot be decompressed: {error}") from error
            if len(data) != expected:
                raise ManifestError(
                    f"chunk {number} of {self._name} has {len(data)} bytes, and {expected} are expected"
                )
            self._last = number, data
        return self._last[1]

    def close(self) -> None:
        """Close the object."""
        self._stored.close()


class _PartReader(RangeReader):
    """File that is a range of an object."""

    def __init__(self, stored: RangeReader, place: tuple[int, int], name: str) -> None:
        self._stored, (self._start, self.size) = stored, place
        if self._start + self.size > stored.size:
            stored.close()
            raise ManifestError(f"{name} has {stored.size} bytes, and its manifest expects {self._start + self.size}")

    def _read(self, start: int, end: int) -> bytes:
        return self._stored.read(self._start + start, end - start)

    def close(self) -> None:
        """Close the object."""
        self._stored.close()
