"""Codec libraries of a release, called as the release calls them (``Codecs.java``)."""

from __future__ import annotations

import struct
from functools import cached_property, lru_cache
from typing import Any, Final

from conformance.implementations.jvm.driver import driver_class
from kidx.records import Codec
from kidx.records.codecs import MAX_BORROWED_BYTES, DecompressedStream, ReadMode, StreamEnd

_HEAD: Final = struct.Struct(">BII")
"""Kind of the stream's end, number of bytes before it, and number of blocks of known size."""


class JvmCodecs:
    """Codec libraries of one release (see :class:`conformance.implementations.protocol.CodecProvider`).

    Args:
        loader: The loader of the release's classes.
    """

    def __init__(self, loader: Any) -> None:
        self._loader = loader
        self.decompress = lru_cache(maxsize=64)(self._decompress)  # a batch is read several times

    @cached_property
    def _codecs(self) -> Any:
        return driver_class("Codecs")(self._loader)

    def compress(self, codec: Codec, data: bytes, magic: int) -> bytes:
        """Compress data for a batch of this magic (``wrapForOutput``)."""
        return bytes(self._codecs.compress(codec, data, magic))

    def _decompress(self, codec: Codec, data: bytes, magic: int, *, mode: ReadMode) -> DecompressedStream | None:
        """Decompress the data of a batch of this magic (``wrapForInput``); None if the result is too large."""
        # For a corrupt stream, zstd and snappy return nothing from the corrupt piece, and reading byte by byte gives
        # the same result. Lz4 returns the part before the corruption, but treats an empty block differently if one byte
        # is requested.
        by_record = mode is ReadMode.RECORDS or (mode is ReadMode.PIECES and codec is Codec.LZ4)
        found = self._codecs.decompress(codec, data, magic, by_record, MAX_BORROWED_BYTES)
        if found is None:
            return None
        decoded = bytes(found)
        ending, size, count = _HEAD.unpack_from(decoded)
        blocks = struct.unpack_from(f">{count}I", decoded, _HEAD.size)
        start = _HEAD.size + 4 * count
        end = start + size
        return DecompressedStream(decoded[start:end], StreamEnd(ending), decoded[end:].decode() or None, blocks)
