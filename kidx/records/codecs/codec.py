"""Codec identifiers, and a common entry point for all codecs."""

from __future__ import annotations

from enum import Enum, IntEnum
from typing import TYPE_CHECKING, Final, NamedTuple

from kidx.records.codecs import gzip, lz4, snappy, zstd
from kidx.records.codecs.streams import ChunkedStreamReader, ChunkReader
from kidx.records.errors import InvalidArgumentError, RecordStreamError, StreamUnderflowError, UnsupportedCodecError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from kidx.dialect import Decompressor


class Codec(IntEnum):
    """Compression codec, numbered by its id in the attributes (``CompressionType.java``)."""

    NONE = 0
    GZIP = 1
    SNAPPY = 2
    LZ4 = 3
    ZSTD = 4

    @property
    def label(self) -> str:
        """Kafka's name of the codec, as in ``compression.type``: ``none``, ``gzip`` and so on."""
        return self.name.lower()

    @classmethod
    def for_id(cls, number: int) -> Codec:
        """Return the codec with this id.

        Raises:
            UnsupportedCodecError: the id is unknown; Kafka knows 0 to 4.
        """
        try:
            return _BY_ID[number]
        except KeyError:
            raise UnsupportedCodecError(f"Unknown compression type id: {number}") from None

    @classmethod
    def for_name(cls, name: str) -> Codec:
        """Return the codec with this name, in Kafka's spelling.

        Raises:
            UnsupportedCodecError: the name is unknown.
        """
        for codec in cls:
            if codec.label == name:
                return codec
        raise UnsupportedCodecError(f"Unknown compression name: {name}")


_BY_ID: Final = {int(codec): codec for codec in Codec}  # Codec(number) takes ten times as long


class ReadMode(Enum):
    """Way in which the records of a compressed v2 batch are read, each after its size."""

    RECORDS = 0
    """One read per record, of as many bytes as its size states."""
    PIECES = 1
    """Reads of at most 2 KiB, as a leader does from 2.6 to 3.5."""
    FIELDS = 2
    """Reads of single bytes, as a leader does from 3.6 on."""


class StreamEnd(Enum):
    """Way in which the reading of a compressed stream ends."""

    END = 0
    """Regular end of the stream."""
    CORRUPT = 1
    """``IOException``, after the bytes before the corruption."""
    REJECTED = 2
    """Error when the stream is opened."""
    FAILURE = 3
    """Exception that Kafka does not catch."""
    UNDERFLOW = 4
    """``BufferUnderflowException``, which Kafka does not catch either."""


class DecompressedStream(NamedTuple):
    """Output of a codec library for one stream.

    Attributes:
        plain: decompressed bytes up to the end or the corruption.
        ending: how the stream ends.
        text: message of the error at its end, or None.
        blocks: sizes of the lz4 blocks if one of them is empty, because 3.6 and later continue after it (LG-76).
    """

    plain: bytes
    ending: StreamEnd
    text: str | None = None
    blocks: tuple[int, ...] = ()

    def chunks(self) -> Iterator[bytes]:
        """Yield the bytes, then raise the error.

        Raises:
            RecordStreamError: the stream has no regular end; raised immediately if it cannot be opened.
        """
        if self.ending is StreamEnd.REJECTED:
            raise RecordStreamError(_REJECTED, None)
        return self._chunks()

    def _chunks(self) -> Iterator[bytes]:
        position = 0
        for size in self.blocks or (len(self.plain),):
            yield self.plain[position : position + size]
            position += size
        if self.ending is StreamEnd.UNDERFLOW:
            raise StreamUnderflowError(_REJECTED)
        if self.ending is not StreamEnd.END:
            raise RecordStreamError(self.text or _REJECTED, self.text)


_REJECTED: Final = "the codec's library rejects the stream"

MAX_BORROWED_BYTES: Final = 8 << 20
"""Maximum plain size in bytes of a stream that borrowed libraries, the libraries of a Kafka release, decompress."""

_MAX_LZ4_INPUT: Final = MAX_BORROWED_BYTES >> 8
"""Size of lz4 input whose plain size cannot exceed that maximum."""

_BORROWED: Final = frozenset({Codec.SNAPPY, Codec.LZ4, Codec.ZSTD})
"""Codecs whose corrupt streams releases read differently, mainly because of the versions of their libraries."""


def decompress(
    codec: Codec,
    data: bytes,
    magic: int = 2,
    decompressor: Decompressor | None = None,
    *,
    mode: ReadMode = ReadMode.RECORDS,
) -> ChunkReader:
    """Return a reader over the decompressed ``data``, as ``Compression.wrapForInput`` opens one.

    Args:
        codec: compression codec of ``data``.
        data: the compressed bytes.
        magic: format of the batch; lz4 in v0 has no valid header checksum.
        decompressor: codec libraries; kidx's libraries by default.
        mode: the way in which the caller reads; corruption may show earlier or later (LG-64).

    Raises:
        RecordStreamError: ``data`` does not begin like the codec's format. The reads that reach a later corruption
            raise it, too.
    """
    if decompressor is not None and codec in _BORROWED:
        borrowed: DecompressedStream | None = decompressor(codec, data, magic, mode=mode)
        if borrowed is not None:
            return ChunkedStreamReader(borrowed.chunks()) if borrowed.blocks else ChunkReader(borrowed.chunks())
    chunks = _opened(codec, data, magic)
    may_have_empty_block = codec is Codec.LZ4 and len(data) <= _MAX_LZ4_INPUT and lz4.ONE_BYTE in data
    return ChunkedStreamReader(chunks) if may_have_empty_block else ChunkReader(chunks)


def decompress_all(
    codec: Codec, data: bytes, magic: int = 2, *, mode: ReadMode = ReadMode.RECORDS
) -> DecompressedStream | None:
    """Return the output of kidx's libraries for a whole stream, or None if it exceeds :data:`MAX_BORROWED_BYTES`.

    ``Dialect.decompressor`` describes the arguments.
    """
    del mode  # the whole stream is read
    plain = bytearray()
    blocks: list[int] = []

    def ended(ending: StreamEnd, text: str | None = None) -> DecompressedStream:
        return DecompressedStream(
            bytes(plain), ending, text, tuple(blocks) if codec is Codec.LZ4 and 0 in blocks else ()
        )

    try:
        chunks = _opened(codec, data, magic)
    except RecordStreamError:
        return ended(StreamEnd.REJECTED)
    try:
        for chunk in chunks:
            plain += chunk
            blocks.append(len(chunk))
            if len(plain) > MAX_BORROWED_BYTES:
                return None
    except StreamUnderflowError:
        return ended(StreamEnd.UNDERFLOW)
    except RecordStreamError as error:
        return ended(StreamEnd.CORRUPT if error.kafka_message is None else StreamEnd.FAILURE, error.kafka_message)
    return ended(StreamEnd.END)


def _opened(codec: Codec, data: bytes, magic: int) -> Iterator[bytes]:
    openers: dict[Codec, Callable[[], Iterator[bytes]]] = {
        Codec.NONE: lambda: iter((data,)),
        Codec.GZIP: lambda: gzip.chunks(data),
        Codec.SNAPPY: lambda: snappy.chunks(data),
        Codec.LZ4: lambda: lz4.chunks(data, check_header=magic != 0, read_on=magic > 1),
        Codec.ZSTD: lambda: zstd.chunks(data),
    }
    return openers[codec]()


def compress(codec: Codec, data: bytes, magic: int = 2) -> bytes:
    """Return ``data`` in the framing that ``Compression.wrapForOutput`` writes at its default level.

    The framing equals Kafka's framing byte for byte; the compressed blocks inside depend on the installed library.

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
