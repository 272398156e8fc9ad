"""Manifest of a segment that Aiven's plugin for tiered storage stores: the location of each file, and the log's chunks.

Only version 1 of the manifest is supported. The log is stored in chunks. They have the same size except the last one,
but compressed chunks have different stored sizes. The other files are one after the other in one object.
"""

from __future__ import annotations

import base64
import binascii
import struct
from dataclasses import dataclass
from itertools import accumulate
from typing import TYPE_CHECKING, Annotated, Any, Final, Literal

import msgspec
import zstandard

from kidx.java_numbers import INT_MAX
from kidx.remote.stored import EPOCHS

if TYPE_CHECKING:
    from collections.abc import Sequence

MAX_SIZE: Final = 16 << 20
"""Maximum size in bytes of a manifest, and of its list of chunk sizes; the plugin's limit is lower."""

_Size = Annotated[int, msgspec.Meta(ge=0, le=INT_MAX)]
_ChunkSize = Annotated[int, msgspec.Meta(ge=1, le=INT_MAX)]


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
        log: the chunks of the log.
        places: first byte and size of each other file in the object with the indexes, by suffix.
    """

    log: Chunks
    places: dict[str, tuple[int, int]]


def parse_manifest(data: bytes, name: str) -> Manifest:
    """Return the content of a manifest.

    Args:
        data: the JSON.
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
