"""Which codecs there are, and one way in for all of them."""

from __future__ import annotations

from enum import IntEnum
from typing import TYPE_CHECKING, Final

from kidx.records.codecs import gzip, lz4, snappy, zstd
from kidx.records.codecs.source import Source
from kidx.records.errors import InvalidArgumentError, UnsupportedCodecError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator


class Codec(IntEnum):
    """A compression codec by its id in the attributes (``CompressionType.java``)."""

    NONE = 0
    GZIP = 1
    SNAPPY = 2
    LZ4 = 3
    ZSTD = 4

    @property
    def label(self) -> str:
        """Kafka's name for it, as in ``compression.type``: ``none``, ``gzip`` and so on."""
        return self.name.lower()

    @classmethod
    def for_id(cls, number: int) -> Codec:
        """The codec with this id.

        Raises:
            UnsupportedCodecError: there is none; Kafka knows 0 to 4.
        """
        try:
            return _BY_ID[number]
        except KeyError:
            raise UnsupportedCodecError(f"Unknown compression type id: {number}") from None

    @classmethod
    def for_name(cls, name: str) -> Codec:
        """The codec called ``name``, in Kafka's spelling.

        Raises:
            UnsupportedCodecError: there is none.
        """
        for codec in cls:
            if codec.label == name:
                return codec
        raise UnsupportedCodecError(f"Unknown compression name: {name}")


_BY_ID: Final = {int(codec): codec for codec in Codec}  # Codec(number) costs ten times as much


def decompress(codec: Codec, data: bytes, magic: int = 2) -> Source:
    """A reader over the decompressed ``data``, as ``Compression.wrapForInput`` opens one.

    Args:
        codec: how ``data`` is compressed.
        data: the compressed bytes.
        magic: the format of the batch; lz4 in v0 has no valid header checksum.

    Raises:
        RecordStreamError: ``data`` does not start as the codec's format does. Damage further on is raised by the reads
            that meet it.
    """
    openers: dict[Codec, Callable[[], Iterator[bytes]]] = {
        Codec.NONE: lambda: iter((data,)),
        Codec.GZIP: lambda: gzip.chunks(data),
        Codec.SNAPPY: lambda: snappy.chunks(data),
        Codec.LZ4: lambda: lz4.chunks(data, check_header=magic != 0),
        Codec.ZSTD: lambda: zstd.chunks(data),
    }
    return Source(openers[codec]())


def compress(codec: Codec, data: bytes, magic: int = 2) -> bytes:
    """``data`` in the framing that ``Compression.wrapForOutput`` writes at its default level.

    The framing is Kafka's, byte for byte; the compressed blocks inside are those of the library at hand.

    Raises:
        InvalidArgumentError: zstd in v0 or v1, which Kafka does not allow.
    """
    if codec is Codec.ZSTD and magic < 2:
        raise InvalidArgumentError(f"ZStandard compression is not supported for magic {magic}")
    writers: dict[Codec, Callable[[], bytes]] = {
        Codec.NONE: lambda: data,
        Codec.GZIP: lambda: gzip.compress(data),
        Codec.SNAPPY: lambda: snappy.compress(data),
        Codec.LZ4: lambda: lz4.compress(data, broken_header=magic == 0),
        Codec.ZSTD: lambda: zstd.compress(data),
    }
    return writers[codec]()
