"""Remote storage in the layout of Aiven's plugin, read as if it had the files of ``LocalTieredStorage``."""

from __future__ import annotations

import base64
import binascii
import re
import struct
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate
from typing import TYPE_CHECKING, Annotated, Any, Final, Literal, NamedTuple

import msgspec
import zstandard

from kidx.errors import ToolError
from kidx.files import CHUNK
from kidx.java_values import INT_MAX
from kidx.remote.stored import EPOCHS, ID, LOG, StoredSegment, by_segment
from kidx.storage import Entry, RangeReader, Store

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from pathlib import Path

MAX_SIZE: Final = 16 << 20
"""Maximum size in bytes of a manifest, and of its list of chunk sizes; the plugin's limit is lower."""

_Size = Annotated[int, msgspec.Meta(ge=0, le=INT_MAX)]
_ChunkSize = Annotated[int, msgspec.Meta(ge=1, le=INT_MAX)]
MANIFEST: Final = "rsm-manifest"
INDEXES: Final = "indexes"
OBJECTS: Final = (LOG, INDEXES, MANIFEST)
"""Suffixes of the objects that each segment has."""
_TOPIC: Final = re.compile(rf"(?P<topic>.+)-(?P<id>{ID})", re.DOTALL | re.ASCII)


class ManifestError(OSError):
    """Manifest or object that kidx cannot read; the message contains the name and the reason."""


class EncryptedSegmentError(ManifestError):
    """Segment that is encrypted."""


class _Place(msgspec.Struct, frozen=True):
    """Range of the object with the indexes: first byte, and number of bytes."""

    position: _Size
    size: _Size


class _Places(msgspec.Struct, frozen=True, rename="camel"):
    """Ranges of all files in the object with the indexes; the transaction index may be missing."""

    offset: _Place
    timestamp: _Place
    producer_snapshot: _Place
    leader_epoch: _Place
    transaction: _Place | None = None


class _Fixed(msgspec.Struct, frozen=True, tag="fixed", rename="camel"):
    """Chunks that all have one stored size, except the last."""

    original_chunk_size: _ChunkSize
    original_file_size: _Size
    transformed_chunk_size: _Size
    final_transformed_chunk_size: _Size


class _Variable(msgspec.Struct, frozen=True, tag="variable", rename="camel"):
    """Chunks of different stored sizes; the list of sizes is packed, compressed and in base64."""

    original_chunk_size: _ChunkSize
    original_file_size: _Size
    transformed_chunks: str


class _Manifest(msgspec.Struct, frozen=True, rename="camel"):
    """Manifest as the plugin writes it in JSON, without the fields that kidx does not need."""

    version: Literal["1"]
    chunk_index: _Fixed | _Variable
    segment_indexes: _Places
    compression: bool
    encryption: Any = None


@dataclass(frozen=True, slots=True)
class Chunks:
    """Chunks of a stored log.

    Attributes:
        size: bytes of the log.
        chunk_size: bytes of the log in each chunk; the last chunk may have fewer.
        compressed: True if each chunk is a zstd frame.
        ends: end of each stored chunk in the object; empty if it is ``chunk_size`` after its start.
    """

    size: int
    chunk_size: int
    compressed: bool
    ends: Sequence[int] = ()

    def original(self, number: int) -> tuple[int, int]:
        """Return the position of a chunk in the log, and its size before compression."""
        start = number * self.chunk_size
        return start, min(self.chunk_size, self.size - start)

    def stored(self, number: int) -> tuple[int, int]:
        """Return the position of a chunk in the object, and its stored size."""
        if not self.ends:
            return self.original(number)
        start = self.ends[number - 1] if number else 0
        return start, self.ends[number] - start


@dataclass(frozen=True, slots=True)
class Manifest:
    """Content of the manifest of a segment.

    Attributes:
        places: first byte and size of each other file in the object with the indexes, by suffix.
    """

    log: Chunks
    places: dict[str, tuple[int, int]]


def parse_manifest(data: bytes, name: str) -> Manifest:
    """Return the content of a manifest.

    Args:
        name: path or URL, for messages.

    Raises:
        EncryptedSegmentError: the segment is encrypted.
        ManifestError: the data are not a manifest of version 1, or contradict themselves.
    """
    try:
        found = msgspec.json.decode(data, type=_Manifest)
    except (msgspec.DecodeError, msgspec.ValidationError, RecursionError) as error:
        raise ManifestError(f"{name} is not a manifest of Aiven's plugin: {error}") from error
    if found.encryption is not None:
        raise EncryptedSegmentError(f"{name}: the segment is encrypted; kidx cannot read encrypted segments")
    places = found.segment_indexes
    named = {
        "index": places.offset,
        "timeindex": places.timestamp,
        "snapshot": places.producer_snapshot,
        EPOCHS: places.leader_epoch,
        "txnindex": places.transaction,
    }
    return Manifest(
        _chunks(found, name),
        {suffix: (place.position, place.size) for suffix, place in named.items() if place is not None},
    )


def _chunks(found: _Manifest, name: str) -> Chunks:
    index = found.chunk_index
    size, chunk_size = index.original_file_size, index.original_chunk_size
    count = -(-size // chunk_size)
    if isinstance(index, _Variable):
        sizes = _unpacked(index.transformed_chunks, name)
        if len(sizes) != count:
            raise ManifestError(f"{name} lists {len(sizes)} chunks of a log that has {count}")
        return Chunks(size, chunk_size, found.compression, tuple(accumulate(sizes)))
    last = size - (count - 1) * chunk_size
    if found.compression or (count > 1 and index.transformed_chunk_size != chunk_size):
        raise ManifestError(f"{name} lists chunks of one stored size, which contradicts its compression or chunk size")
    if count and index.final_transformed_chunk_size != last:
        raise ManifestError(f"{name} has a last chunk of {index.final_transformed_chunk_size} bytes, not of {last}")
    return Chunks(size, chunk_size, compressed=False)


def _unpacked(text: str, name: str) -> list[int]:
    """Return the listed sizes: count, smallest size, bytes per difference to it, differences, and the last size."""
    try:
        data = decompressed(base64.b64decode(text, validate=True), MAX_SIZE)
        (count,) = struct.unpack_from(">i", data)
        if count <= 1:
            return list(struct.unpack_from(f">{max(count, 0)}i", data, 4))
        smallest, width = struct.unpack_from(">iB", data, 4)
        (last,) = struct.unpack_from(">i", data, 9 + (count - 1) * width)
    except (binascii.Error, ValueError, struct.error, zstandard.ZstdError) as error:
        raise ManifestError(f"{name} has no readable list of chunks: {error}") from error
    rest = (data[at : at + width] for at in range(9, 9 + (count - 1) * width, width)) if width else ()
    sizes = [*(smallest + int.from_bytes(each, "big") for each in rest), last]
    if min(sizes) < 0:
        raise ManifestError(f"{name} lists a chunk of a negative size")
    return sizes


def decompressed(frame: bytes, limit: int) -> bytes:
    """Return the content of a zstd frame that states its size.

    Raises:
        ZstdError: the frame is invalid, does not state its size, or its content exceeds the limit.
    """
    size = zstandard.get_frame_parameters(frame).content_size
    if not 0 <= size <= limit:
        raise zstandard.ZstdError(f"its content of {size} bytes exceeds {limit} bytes")
    return zstandard.ZstdDecompressor().decompress(frame, max_output_size=limit)


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

    def version(self) -> str:
        """Return the version of the object."""
        return self._stored.version()

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
