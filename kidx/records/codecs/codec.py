"""Which codecs there are, and one way in for all of them."""

from __future__ import annotations

from enum import Enum, IntEnum
from typing import TYPE_CHECKING, Final, NamedTuple

from kidx.records.codecs import gzip, lz4, snappy, zstd
from kidx.records.codecs.chunked import ChunkedSource
from kidx.records.codecs.source import Source
from kidx.records.errors import InvalidArgumentError, RecordStreamError, StreamUnderflowError, UnsupportedCodecError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from kidx.dialect import Decompressor


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


class Reading(Enum):
    """How the records of a compressed batch of v2 are read, each behind its size."""

    RECORDS = 0
    """As many bytes at once as the size says."""
    PIECES = 1
    """2 KiB at most at once, as a leader reads from 2.6 to 3.5."""
    FIELDS = 2
    """One byte after another, as a leader reads from 3.6 on."""


class Ending(Enum):
    """How reading a compressed stream ends."""

    END = 0
    """As it should."""
    DAMAGE = 1
    """With an ``IOException``, behind the bytes before the damage."""
    REFUSAL = 2
    """When it is opened."""
    FAILURE = 3
    """With what Kafka does not catch."""
    UNDERFLOW = 4
    """With a ``BufferUnderflowException``, which it does not catch either."""


class Decompressed(NamedTuple):
    """What a library gives of a stream: all its bytes up to the end or to damage, and the words of a failure.

    The sizes of blocks of lz4 are there if one is empty, for from 3.6 on Kafka reads on behind it (LG-76).
    """

    plain: bytes
    ending: Ending
    text: str | None = None
    blocks: tuple[int, ...] = ()

    def chunks(self) -> Iterator[bytes]:
        """The bytes, and then the error.

        Raises:
            RecordStreamError: the stream does not end as it should; at once if it cannot be opened.
        """
        if self.ending is Ending.REFUSAL:
            raise RecordStreamError(_REFUSED, None)
        return self._chunks()

    def _chunks(self) -> Iterator[bytes]:
        position = 0
        for size in self.blocks or (len(self.plain),):
            yield self.plain[position : position + size]
            position += size
        if self.ending is Ending.UNDERFLOW:
            raise StreamUnderflowError(_REFUSED)
        if self.ending is not Ending.END:
            raise RecordStreamError(self.text or _REFUSED, self.text)


_REFUSED: Final = "the codec's library refuses the stream"

MOST_LENT: Final = 8 << 20
"""Plain bytes up to which a stream is decompressed by libraries that are lent."""

_MOST_IN_BLOCKS: Final = MOST_LENT >> 8
"""Bytes of lz4 that are sure not to be more than that."""

_LENT: Final = frozenset({Codec.SNAPPY, Codec.LZ4, Codec.ZSTD})
"""Codecs of whose damage releases make different things, because of the versions of their libraries above all."""


def decompress(
    codec: Codec,
    data: bytes,
    magic: int = 2,
    decompressor: Decompressor | None = None,
    *,
    reading: Reading = Reading.RECORDS,
) -> Source:
    """A reader over the decompressed ``data``, as ``Compression.wrapForInput`` opens one.

    Args:
        codec: how ``data`` is compressed.
        data: the compressed bytes.
        magic: the format of the batch; lz4 in v0 has no valid header checksum.
        decompressor: the codec libraries; those of kidx by default.
        reading: what it is for; damage may show earlier or later (LG-64).

    Raises:
        RecordStreamError: ``data`` does not start as the codec's format does. Damage further on is raised by the reads
            that meet it.
    """
    if decompressor is not None and codec in _LENT:
        lent: Decompressed | None = decompressor(codec, data, magic, reading=reading)
        if lent is not None:
            return ChunkedSource(lent.chunks()) if lent.blocks else Source(lent.chunks())
    chunks = _opened(codec, data, magic)
    confusing = codec is Codec.LZ4 and len(data) <= _MOST_IN_BLOCKS and lz4.ONE_BYTE in data
    return ChunkedSource(chunks) if confusing else Source(chunks)


def decompressed(
    codec: Codec, data: bytes, magic: int = 2, *, reading: Reading = Reading.RECORDS
) -> Decompressed | None:
    """What the libraries of kidx give of a whole stream, however it is read; None for more than :data:`MOST_LENT`."""
    del reading
    plain = bytearray()
    blocks: list[int] = []

    def ended(ending: Ending, text: str | None = None) -> Decompressed:
        return Decompressed(bytes(plain), ending, text, tuple(blocks) if codec is Codec.LZ4 and 0 in blocks else ())

    try:
        chunks = _opened(codec, data, magic)
    except RecordStreamError:
        return ended(Ending.REFUSAL)
    try:
        for chunk in chunks:
            plain += chunk
            blocks.append(len(chunk))
            if len(plain) > MOST_LENT:
                return None
    except StreamUnderflowError:
        return ended(Ending.UNDERFLOW)
    except RecordStreamError as error:
        return ended(Ending.DAMAGE if error.kafka_message is None else Ending.FAILURE, error.kafka_message)
    return ended(Ending.END)


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
