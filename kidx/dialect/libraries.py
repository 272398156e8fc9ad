"""Codec libraries of a release, as functions."""

from __future__ import annotations

from typing import Any, Protocol


class Compressor(Protocol):
    """Codec libraries that compress."""

    def __call__(self, codec: Any, data: bytes, magic: int) -> bytes:
        """Return the compressed bytes for a batch of this magic; the codec is a ``kidx.records.Codec``."""


class Decompressor(Protocol):
    """Codec libraries that decompress."""

    def __call__(self, codec: Any, data: bytes, magic: int, *, mode: Any) -> Any:
        """Return the output for a batch of this magic as a ``kidx.records.codecs.DecompressedStream``.

        The result is None if the output has more bytes than these libraries accept.

        Args:
            codec: a ``kidx.records.Codec``.
            data: the compressed bytes.
            magic: format of the batch.
            mode: a ``kidx.records.codecs.ReadMode``: the number of bytes requested per read (LG-64).
        """
