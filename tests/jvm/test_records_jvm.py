"""Record batches against Kafka's own ``MemoryRecords`` and ``FileRecords``: written, read and rejected bytes.

Corrupt batches are compared with 3.9.2 and 4.4.0, which agree with each other in all texts except one here. 2.4.1
rejects some of them differently (``AS_OF_3_6``) and is compared on sound batches.
"""

from __future__ import annotations

import re
import struct
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import cramjam
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from thorough_params import thorough_except

from kidx.errors import KidxError
from kidx.records import (
    Codec,
    ControlRecordType,
    EndTransactionMarker,
    RecordBatch,
    SimpleRecord,
    TimestampType,
    build_batch,
    empty_batch,
    end_transaction_marker,
    iter_batches,
    iter_memory_batches,
    write_batch,
    write_message,
)
from kidx.records.codecs import compress, gzip, lz4
from kidx.records.record import write_record

pytestmark = pytest.mark.jvm

RELEASES = ("2.4.1", "3.9.2", "4.4.0")
AS_OF_3_6 = ("3.9.2", "4.4.0")
"""Before 3.6 a compressed stream that breaks off was an InvalidRecordException, a record larger than its batch was read
as null, and a negative size or a header key beyond its record escaped as a plain Java exception."""

KINDS = {
    "CorruptRecordException": "corrupt_record",
    "InvalidRecordException": "invalid_record",
    "IllegalArgumentException": "invalid_argument",
    "IndexOutOfBoundsException": "out_of_bounds",
    "BufferUnderflowException": "buffer_underflow",
}
"""Simple class name of a Java exception: the kind it has in kidx. Whatever else Kafka throws is ``io``."""

NEGATIVE_SIZE = re.compile(r"Invalid record size: -\d+ is negative\.")
"""Text of 4.4 for a negative size in a compressed batch; before, and in kidx, the size was not named."""

OUT_OF_MEMORY = "out_of_memory"
"""Kafka allocates the claimed length or count of a corrupt batch before it reads the bytes.

With this test's small heap that fails without any information about the bytes, and is not compared.
"""

HEADER = (
    ("size_in_bytes", "sizeInBytes"),
    ("magic", "magic"),
    ("last_offset", "lastOffset"),
    ("next_offset", "nextOffset"),
    ("crc", "checksum"),
    ("max_timestamp", "maxTimestamp"),
    ("timestamp_type", "timestampType"),
    ("codec", "compressionType"),
    ("is_compressed", "isCompressed"),
    ("count", "countOrNull"),
    ("producer_id", "producerId"),
    ("producer_epoch", "producerEpoch"),
    ("base_sequence", "baseSequence"),
    ("last_sequence", "lastSequence"),
    ("partition_leader_epoch", "partitionLeaderEpoch"),
    ("is_transactional", "isTransactional"),
    ("is_control", "isControlBatch"),
    ("delete_horizon_ms", "deleteHorizonMs"),
    ("base_offset", "baseOffset"),
    ("is_valid", "isValid"),
)


@dataclass(frozen=True)
class Refusal:
    """Exception: its kind, and its text where Kafka has its own."""

    kind: str
    text: str | None = None

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Refusal):
            return self.kind == OUT_OF_MEMORY
        if OUT_OF_MEMORY in (self.kind, other.kind):
            return True
        if self.kind != other.kind:
            return False
        return self.text is None or other.text is None or self.text == other.text

    __hash__ = None  # type: ignore[assignment]


class Kafka:
    """The record classes of one release."""

    def __init__(self, release: str) -> None:
        from conformance.implementations.jvm.virtual_machine import release_loader, start_jvm

        self.release = release
        self.version = tuple(map(int, release.split(".")))
        self.jpype = start_jvm()
        self.loader = release_loader(release, "segment")  # the smallest group with the compression libraries

    def cls(self, name: str, *, internal: bool = True) -> Any:
        package = "org.apache.kafka.common."
        if "." not in name:
            name = ("record.internal." if internal and self.version >= (4, 3) else "record.") + name
        return self.jpype.JClass(package + name, loader=self.loader)

    def util(self, name: str) -> Any:
        if name == "BufferSupplier" and self.version < (3,):
            return self.cls(name)
        return self.cls(("utils.internals." if self.version >= (4, 4) else "utils.") + name)

    def array(self, data: bytes | None) -> Any:
        arrays = self.jpype.JArray(self.jpype.JByte)
        return self.jpype.JObject(None, arrays) if data is None else arrays(data)

    def buffer(self, data: bytes) -> Any:
        return self.jpype.JClass("java.nio.ByteBuffer").wrap(self.array(data))

    def bytes_of(self, buffer: Any) -> bytes | None:
        if buffer is None:
            return None
        return bytes(self.cls("utils.Utils").toArray(buffer))

    def attempt(self, action: Callable[[], Any]) -> Any:
        try:
            return action()
        except self.jpype.JException as error:
            for java in self._causes(error.getClass()):
                if java == "OutOfMemoryError":
                    return Refusal(OUT_OF_MEMORY)
                if java in KINDS:
                    text = None if error.getMessage() is None else str(error.getMessage())
                    if text and NEGATIVE_SIZE.fullmatch(text):
                        text = "Incorrect declared batch size, premature EOF reached"
                    return Refusal(KINDS[java], text)
            return Refusal("io")

    @staticmethod
    def _causes(java_class: Any) -> Iterator[str]:
        while java_class is not None:
            yield str(java_class.getSimpleName())
            java_class = java_class.getSuperclass()

    # Reading.

    def describe_memory(self, data: bytes) -> list[Any]:
        return self._describe(lambda: self.cls("MemoryRecords").readableRecords(self.buffer(data)).batches())

    def describe_file(self, path: Path) -> list[Any]:
        opened = self.cls("FileRecords").open(self.jpype.JClass("java.io.File")(str(path)), False)
        try:
            return self._describe(opened.batches)
        finally:
            opened.close()

    def _describe(self, batches: Callable[[], Any]) -> list[Any]:
        found: list[Any] = []
        iterator = batches().iterator()
        while True:
            batch = self.attempt(lambda: iterator.next() if iterator.hasNext() else None)
            if batch is None or isinstance(batch, Refusal):
                return found if batch is None else [*found, batch]
            found.append(self.describe(batch))

    def describe(self, batch: Any) -> dict[str, Any]:
        found = {
            name: self.attempt(lambda java=java: self._plain(getattr(batch, java)()))
            for name, java in HEADER
            if java != "deleteHorizonMs" or self.version >= (3, 1)
        }
        found["ensure_valid"] = self.attempt(batch.ensureValid)
        found["records"] = self._records(batch.iterator)
        supplier = self.util("BufferSupplier").NO_CACHING
        found["streamed"] = self._records(lambda: batch.streamingIterator(supplier))
        return found

    def _plain(self, value: Any) -> Any:
        if value is None or isinstance(value, bool):
            return value
        if isinstance(value, self.jpype.JClass("java.util.OptionalLong")):
            return int(value.getAsLong()) if value.isPresent() else None
        if isinstance(value, self.jpype.JClass("java.lang.Enum")):
            return int(value.id)
        return int(value)

    def _records(self, iterate: Callable[[], Any]) -> list[Any]:
        found: list[Any] = []
        iterator = self.attempt(iterate)
        if isinstance(iterator, Refusal):
            return iterator if iterator.kind == OUT_OF_MEMORY else [iterator]
        while True:
            record = self.attempt(lambda: iterator.next() if iterator.hasNext() else "end")
            if isinstance(record, Refusal):
                return [*found, record]
            if record is None:  # the result of 2.4 for a record that is larger than the remaining bytes
                return [*found, Refusal("invalid_record")]
            if isinstance(record, str):
                return found
            found.append(
                {
                    "offset": record.offset(),
                    "timestamp": record.timestamp(),
                    "sequence": record.sequence(),
                    "size_in_bytes": record.sizeInBytes(),
                    "key": self.attempt(lambda record=record: self.bytes_of(record.key())),
                    "value": self.attempt(lambda record=record: self.bytes_of(record.value())),
                    "headers": [
                        (str(header.key()), None if header.value() is None else bytes(header.value()))
                        for header in record.headers()
                    ],
                }
            )

    # Writing.

    def build(self, records: list[SimpleRecord], **options: Any) -> bytes:
        options = {
            "base_offset": 0,
            "magic": 2,
            "codec": Codec.NONE,
            "timestamp_type": TimestampType.CREATE_TIME,
            "log_append_time": -1,
            "producer_id": -1,
            "producer_epoch": -1,
            "base_sequence": -1,
            "is_transactional": False,
            "is_control": False,
            "partition_leader_epoch": -1,
            "delete_horizon_ms": None,
            "offsets": None,
            "last_offset": None,
            **options,
        }
        j = self.jpype
        codec = self.cls("CompressionType").forId(int(options["codec"]))
        if self.version >= (3, 8):
            codec = self.cls("compress.Compression").of(codec).build()
        output = self.util("ByteBufferOutputStream")(j.JInt(1 << 16))
        arguments = [
            output,
            j.JByte(options["magic"]),
            codec,
            getattr(self.cls("TimestampType", internal=False), options["timestamp_type"].name),
            j.JLong(options["base_offset"]),
            j.JLong(options["log_append_time"]),
            j.JLong(options["producer_id"]),
            j.JShort(options["producer_epoch"]),
            j.JInt(options["base_sequence"]),
            j.JBoolean(options["is_transactional"]),
            j.JBoolean(options["is_control"]),
            j.JInt(options["partition_leader_epoch"]),
            j.JInt(1 << 16),
        ]
        if options["delete_horizon_ms"] is not None:
            arguments.append(j.JLong(options["delete_horizon_ms"]))
        builder = self.cls("MemoryRecordsBuilder")(*arguments)
        arrays = j.JClass("java.lang.reflect.Array")  # JArray knows only the system loader's classes
        header_class = self.cls("header.internals.RecordHeader")
        for number, record in enumerate(records):
            offset = options["base_offset"] + number if options["offsets"] is None else options["offsets"][number]
            headers = arrays.newInstance(self.cls("header.Header").class_, j.JInt(len(record.headers)))
            for index, (key, value) in enumerate(record.headers):
                header = header_class(j.JString(key), self.array(value))
                arrays.set(headers, index, header)
            builder.appendWithOffset(
                j.JLong(offset),
                j.JLong(record.timestamp),
                self.array(record.key),
                self.array(record.value),
                headers,
            )
        if options["last_offset"] is not None:
            builder.overrideLastOffset(j.JLong(options["last_offset"]))
        built = builder.build()
        return self.bytes_of(built.buffer()) or b""


@cache
def kafka(release: str) -> Kafka:
    return Kafka(release)


# The same queries for kidx.


def attempt(action: Callable[[], Any]) -> Any:
    try:
        return action()
    except KidxError as error:
        return Refusal(error.kind, None if error.kind in ("io", "buffer_underflow") else error.kafka_message)


def describe(batch: RecordBatch) -> dict[str, Any]:
    found = {name: attempt(lambda name=name: _plain(getattr(batch, name))) for name, _ in HEADER}
    found["ensure_valid"] = attempt(batch.ensure_valid)
    found["records"] = _records(lambda: iter(batch))
    found["streamed"] = _records(batch.streaming_iterator)
    return found


def _plain(value: Any) -> Any:
    return int(value) if isinstance(value, Codec | TimestampType) else value


def _records(iterate: Callable[[], Iterator[Any]]) -> list[Any]:
    found: list[Any] = []
    iterator = attempt(iterate)
    if isinstance(iterator, Refusal):
        return [iterator]
    while True:
        record = attempt(lambda: next(iterator, None))
        if record is None or isinstance(record, Refusal):
            return found if record is None else [*found, record]
        found.append(
            {
                "offset": record.offset,
                "timestamp": record.timestamp,
                "sequence": record.sequence,
                "size_in_bytes": record.size_in_bytes,
                "key": attempt(lambda record=record: record.key),
                "value": attempt(lambda record=record: record.value),
                "headers": list(record.headers),
            }
        )


def describe_all(batches: Iterator[RecordBatch]) -> list[Any]:
    found: list[Any] = []
    while True:
        batch = attempt(lambda: next(batches, None))
        if batch is None or isinstance(batch, Refusal):
            return found if batch is None else [*found, batch]
        found.append(describe(batch))


def without_news(release: str, found: list[Any]) -> list[Any]:
    """Omit properties that the release does not have yet."""
    if kafka(release).version >= (3, 1):
        return found
    return [{name: value for name, value in batch.items() if name != "delete_horizon_ms"} for batch in found]


def assert_read_alike(release: str, data: bytes, directory: Path) -> None:
    """Check that both give the same for every batch, in memory and from a file, errors and their texts included."""
    ours = describe_all(iter_memory_batches(data))
    assert without_news(release, ours) == kafka(release).describe_memory(data), data.hex()
    path = directory / "00000000000000000000.log"
    path.write_bytes(data)
    ours = describe_all(iter_batches(data, source=str(path)))
    assert without_news(release, ours) == kafka(release).describe_file(path), data.hex()


# Strategies. Small everything: what matters is which lengths and signs meet, not how much of it.

timestamps = st.one_of(st.just(-1), st.integers(0, 2000), st.integers(0, 2**62))
blobs = st.none() | st.binary(max_size=12) | st.just(b"x" * 200)
headers = st.lists(st.tuples(st.text(max_size=3), st.none() | st.binary(max_size=3)), max_size=3).map(tuple)
simple_records = st.builds(SimpleRecord, timestamps, blobs, blobs, headers)


@st.composite
def inputs(draw: st.DrawFn, magics: tuple[int, ...] = (0, 1, 2)) -> tuple[list[SimpleRecord], dict[str, Any]]:
    """Return a strategy for records and options that both builders accept."""
    magic = draw(st.sampled_from(magics))
    records = draw(st.lists(simple_records, min_size=1, max_size=5))
    if magic < 2:
        records = [record._replace(headers=()) for record in records]
    codec = draw(st.sampled_from([codec for codec in Codec if magic == 2 or codec is not Codec.ZSTD]))
    options: dict[str, Any] = {"magic": magic, "codec": codec}
    options["base_offset"] = base = draw(st.sampled_from((0, 1, 1000, 2**40)))
    if draw(st.booleans()):
        gaps = draw(st.lists(st.integers(1, 2**20), min_size=len(records), max_size=len(records)))
        options["offsets"] = [base + sum(gaps[: number + 1]) - 1 for number in range(len(records))]
    if draw(st.booleans()):
        options["timestamp_type"] = TimestampType.LOG_APPEND_TIME
        options["log_append_time"] = draw(st.integers(0, 2**62))
    if magic == 2 and draw(st.booleans()):
        options["producer_id"] = draw(st.integers(0, 2**62))
        options["producer_epoch"] = draw(st.integers(0, 2**15 - 1))
        options["base_sequence"] = draw(st.sampled_from((0, 5, 2**31 - 2)))
        options["is_transactional"] = draw(st.booleans())
    if magic == 2:
        options["partition_leader_epoch"] = draw(st.sampled_from((-1, 0, 7)))
        if draw(st.integers(0, 3)) == 0:
            options["last_offset"] = options.get("offsets", [base + len(records) - 1])[-1] + draw(st.integers(0, 9))
    return records, options


@st.composite
def damaged(draw: st.DrawFn, data: bytes) -> bytes:
    """Return ``data`` with one to three bits, bytes or runs changed."""
    result = bytearray(data)
    for _ in range(draw(st.integers(1, 3))):
        if not result:
            break
        at = draw(st.integers(0, len(result) - 1))
        match draw(st.sampled_from(("bit", "bit", "byte", "cut", "drop"))):
            case "bit":
                result[at] ^= 1 << draw(st.integers(0, 7))
            case "byte":
                result[at] = draw(st.sampled_from((0x00, 0x01, 0x7F, 0x80, 0xFF)))
            case "cut":
                del result[at:]
            case "drop":
                del result[at : at + draw(st.integers(1, 4))]
    return bytes(result)


# Writing.


@pytest.mark.thorough
@pytest.mark.parametrize("release", thorough_except(("2.4.1", "4.4.0"), RELEASES))
@given(given_input=inputs())
@settings(max_examples=settings.default.max_examples * 150 // 100, deadline=None)
def test_both_builders_write_the_same_bytes_or_ones_that_read_the_same(release, given_input, tmp_path_factory):
    records, options = given_input
    ours = build_batch(records, **options)
    theirs = kafka(release).build(records, **options)
    if options["codec"] is Codec.NONE:
        assert ours == theirs
    else:  # compressors differ in what they find, so only what comes out again must agree
        without = ("size_in_bytes", "crc")
        read = [
            {key: value for key, value in batch.items() if key not in without}
            for batch in describe_all(iter_memory_batches(ours))
        ]
        assert read == [
            {key: value for key, value in batch.items() if key not in without}
            for batch in describe_all(iter_memory_batches(theirs))
        ]
        assert_read_alike(release, theirs, tmp_path_factory.getbasetemp())
    assert_read_alike(release, ours, tmp_path_factory.getbasetemp())


@pytest.mark.parametrize("release", AS_OF_3_6)
def test_a_delete_horizon_is_written_identically(release, tmp_path):
    records = [SimpleRecord(100, b"k", None), SimpleRecord(90, b"l", b"v")]
    ours = build_batch(records, delete_horizon_ms=5000)
    assert ours == kafka(release).build(records, delete_horizon_ms=5000)
    assert_read_alike(release, ours, tmp_path)


@pytest.mark.parametrize("release", RELEASES)
@pytest.mark.parametrize("control_type", [ControlRecordType.ABORT, ControlRecordType.COMMIT])
def test_markers_are_written_identically(release, control_type, tmp_path):
    k = kafka(release)
    j = k.jpype
    marker = k.cls("EndTransactionMarker")(getattr(k.cls("ControlRecordType"), control_type.name), j.JInt(17))
    theirs = k.cls("MemoryRecords").withEndTransactionMarker(
        j.JLong(40), j.JLong(1234), j.JInt(3), j.JLong(9), j.JShort(2), marker
    )
    ours = end_transaction_marker(
        EndTransactionMarker(control_type, 17),
        producer_id=9,
        producer_epoch=2,
        offset=40,
        timestamp=1234,
        partition_leader_epoch=3,
    )
    assert ours == k.bytes_of(theirs.buffer())
    assert_read_alike(release, ours, tmp_path)


@pytest.mark.parametrize("release", RELEASES)
def test_emptied_batches_are_written_identically(release, tmp_path):
    k = kafka(release)
    j = k.jpype
    buffer = j.JClass("java.nio.ByteBuffer").allocate(61)
    k.cls("DefaultRecordBatch").writeEmptyHeader(
        buffer, j.JByte(2), j.JLong(5), j.JShort(1), j.JInt(0), j.JLong(10), j.JLong(19), j.JInt(4),
        k.cls("TimestampType", internal=False).CREATE_TIME, j.JLong(777), True, False,
    )  # fmt: skip
    buffer.flip()
    ours = empty_batch(
        10, 19, timestamp=777, producer_id=5, producer_epoch=1, base_sequence=0, partition_leader_epoch=4,
        is_transactional=True,
    )  # fmt: skip
    assert ours == k.bytes_of(buffer)
    assert_read_alike(release, ours, tmp_path)


@pytest.mark.parametrize("release", AS_OF_3_6)
@pytest.mark.parametrize(
    "options",
    [
        {"magic": 1, "is_transactional": True},
        {"magic": 1, "is_control": True},
        {"magic": 0, "codec": Codec.ZSTD},
        {"magic": 1, "timestamp_type": TimestampType.NO_TIMESTAMP_TYPE},
        {"magic": 1, "producer_id": 1, "producer_epoch": 0, "base_sequence": 0},
        {"is_transactional": True},
        {"producer_id": 1, "base_sequence": 0},
        {"producer_id": 1, "producer_epoch": 0},
        {"offsets": [5, 5]},
        {"offsets": [0, 2**31]},
        {"records": [SimpleRecord(-2)]},
        {"magic": 1, "records": [SimpleRecord(1, headers=(("h", b""),))]},
    ],
)
def test_builders_raise_the_same_errors(release, options):
    options = dict(options)
    records = options.pop("records", [SimpleRecord(1), SimpleRecord(2)])
    ours = attempt(lambda: build_batch(records, **options))
    assert isinstance(ours, Refusal)
    assert ours == kafka(release).attempt(lambda: kafka(release).build(records, **options))


# Reading invalid bytes.


@pytest.mark.thorough
@pytest.mark.parametrize("release", thorough_except(("4.4.0",), AS_OF_3_6))
@given(data=st.data(), given_input=inputs(), fits=st.booleans(), follower=st.booleans())
@settings(max_examples=settings.default.max_examples * 250 // 100, deadline=None)
def test_corrupt_batches_have_the_same_results(release, *, data, given_input, fits, follower, tmp_path_factory):
    records, options = given_input
    sound = build_batch(records, **options)
    broken = data.draw(damaged(sound))
    if fits and len(broken) >= 26:  # so that the streams reach the bytes after the length
        broken = broken[:8] + struct.pack(">i", len(broken) - 12) + broken[12:]
    assert_read_alike(release, broken + (sound if follower else b""), tmp_path_factory.getbasetemp())


@pytest.mark.parametrize("release", thorough_except(("4.4.0",), AS_OF_3_6))
@given(data=st.data(), given_input=inputs(magics=(2,)), count=st.sampled_from((0, -1, 1)))
@settings(max_examples=settings.default.max_examples * 2, deadline=None)
def test_corrupt_records_in_any_codec_have_the_same_results(release, data, given_input, count, tmp_path_factory):
    records, options = given_input
    codec = options["codec"]
    body = b"".join(write_record(number, 0, record) for number, record in enumerate(records))
    broken = write_batch(
        compress(codec, data.draw(damaged(body))),
        base_offset=options["base_offset"],
        last_offset=options["base_offset"] + len(records) - 1,
        count=max(0, len(records) + count),
        codec=codec,
        base_timestamp=2**62,
        base_sequence=options.get("base_sequence", -1),
    )
    assert_read_alike(release, broken, tmp_path_factory.getbasetemp())


@pytest.mark.parametrize("release", thorough_except(("4.4.0",), AS_OF_3_6))
@given(data=st.data(), given_input=inputs(magics=(0, 1)), offset=st.sampled_from((0, 1, 4, 1000)))
@settings(max_examples=settings.default.max_examples * 2, deadline=None)
def test_corrupt_messages_in_any_codec_have_the_same_results(release, data, given_input, offset, tmp_path_factory):
    records, options = given_input
    magic, codec = options["magic"], options["codec"]
    assume(codec is not Codec.NONE)
    inner_magic = data.draw(st.sampled_from((0, 1, magic)))
    messages = b"".join(
        write_message(number, inner_magic, record.timestamp, record.key, record.value)
        for number, record in enumerate(records)
    )
    broken = write_message(
        offset,
        magic,
        55,
        None,
        compress(codec, data.draw(st.just(messages) | damaged(messages)), magic),
        codec=codec,
        timestamp_type=options.get("timestamp_type", TimestampType.CREATE_TIME),
    )
    assert_read_alike(release, broken, tmp_path_factory.getbasetemp())


def _gzip_member(plain: bytes, flags: int = 0, extra: bytes = b"") -> bytes:
    member = gzip.compress(plain)
    head = member[:3] + bytes((flags,)) + member[4:10] + extra
    if flags & 2:
        head += struct.pack("<H", zlib.crc32(head) & 0xFFFF)
    return head + member[10:]


def _lz4_frame(plain: bytes, flags: int, descriptor: int = 0x40, tail: bytes = b"") -> bytes:
    head = struct.pack("<IBB", 0x184D2204, flags, descriptor) + (struct.pack("<Q", 1) if flags & 8 else b"")
    block = struct.pack("<I", len(plain) | 1 << 31) + plain
    if flags & 0x10:
        block += struct.pack("<I", lz4.xxh32(plain))
    return head + bytes((lz4.xxh32(head[4:]) >> 8 & 0xFF,)) + block + b"\x00" * 4 + tail


BODY = write_record(0, 0, SimpleRecord(0, b"key", b"value" * 9)) + write_record(1, 1, SimpleRecord(1, None, b"v" * 70))
HALF = len(BODY) // 2
FRAMES = {
    "gzip name, comment, extra, header checksum": (1, _gzip_member(BODY, 0x1E, b"\x03\x00abcname\x00comment\x00")),
    "gzip reserved flags": (1, _gzip_member(BODY, 0xE0)),
    "gzip wrong header checksum": (1, _gzip_member(BODY, 2)[:10] + b"\x00\x01" + _gzip_member(BODY, 2)[12:]),
    "gzip two members": (1, gzip.compress(BODY[:HALF]) + gzip.compress(BODY[HALF:])),
    "gzip two members, the second too short to be found": (1, gzip.compress(BODY) + gzip.compress(b"")[:18]),
    "gzip stray bytes": (1, gzip.compress(BODY) + b"x" * 40),
    "gzip few stray bytes": (1, gzip.compress(BODY) + b"x" * 5),
    "gzip without trailer": (1, gzip.compress(BODY)[:-3]),
    "snappy plain": (2, bytes(cramjam.snappy.compress_raw(BODY))),
    "snappy two streams": (2, compress(Codec.SNAPPY, BODY[:HALF]) + compress(Codec.SNAPPY, BODY[HALF:])),
    "snappy stray bytes": (2, compress(Codec.SNAPPY, BODY) + b"abc"),
    "snappy stray block": (2, compress(Codec.SNAPPY, BODY) + b"\x00\x00\x00\x09ab"),
    "snappy negative block": (2, compress(Codec.SNAPPY, BODY) + b"\xff\x00\x00\x09ab"),
    "snappy header cut": (2, compress(Codec.SNAPPY, BODY)[:12]),
    "snappy header only": (2, compress(Codec.SNAPPY, BODY)[:16]),
    "snappy other version": (2, compress(Codec.SNAPPY, BODY)[:8] + b"\x00" * 8 + compress(Codec.SNAPPY, BODY)[16:]),
    "lz4 block checksum": (3, _lz4_frame(BODY, 0x70)),
    "lz4 content size and checksum": (3, _lz4_frame(BODY, 0x6C, tail=b"sum!")),
    "lz4 content checksum missing": (3, _lz4_frame(BODY, 0x64)),
    "lz4 large blocks": (3, _lz4_frame(BODY, 0x60, 0x70)),
    "lz4 dependent blocks": (3, _lz4_frame(BODY, 0x40)),
    "lz4 other version": (3, _lz4_frame(BODY, 0xA0)),
    "lz4 reserved bit": (3, _lz4_frame(BODY, 0x61)),
    "lz4 small blocks": (3, _lz4_frame(BODY, 0x60, 0x30)),
    "lz4 stray bytes": (3, _lz4_frame(BODY, 0x60, tail=b"whatever")),
    "lz4 frame of v0": (3, lz4.compress(BODY, broken_header=True)),
    "zstd two frames": (4, compress(Codec.ZSTD, BODY[:HALF]) + compress(Codec.ZSTD, BODY[HALF:])),
    "zstd skippable frame": (4, b"\x50\x2a\x4d\x18\x03\x00\x00\x00abc" + compress(Codec.ZSTD, BODY)),
    "trailing zstd skippable frame": (4, compress(Codec.ZSTD, BODY) + b"\x5f\x2a\x4d\x18\x03\x00\x00\x00abc"),
    "zstd stray bytes": (4, compress(Codec.ZSTD, BODY) + b"stray"),
    "zstd few stray bytes": (4, compress(Codec.ZSTD, BODY) + b"s"),
    "zstd cut": (4, compress(Codec.ZSTD, BODY)[:-2]),
    "zstd repeated byte": (4, b"\x28\xb5\x2f\xfd\x20\x05" + b"\x2b\x00\x00\x7f"),
} | {f"{codec.label} nothing": (int(codec), b"") for codec in Codec}  # fmt: skip


@pytest.mark.parametrize("release", AS_OF_3_6)
@pytest.mark.parametrize("frame", FRAMES)
def test_unusual_frames_have_the_same_results(release, frame, tmp_path):
    codec, data = FRAMES[frame]
    batch = write_batch(data, base_offset=7, last_offset=8, count=2, codec=Codec(codec), base_timestamp=0)
    assert_read_alike(release, batch, tmp_path)


@pytest.mark.parametrize("release", AS_OF_3_6)
@pytest.mark.parametrize(
    "key",
    [b"\xff", b"\xc3", b"\xe2\x82", b"\xf0\x9f\x98", b"a\xe2\x28\xa1b", b"\xc0\xaf", b"\xf8\x88\x80\x80\x80"],
    ids=bytes.hex,
)
def test_header_keys_that_are_not_utf8_have_the_same_results(release, key, tmp_path):
    head = b"\x00\x00\x00\x01\x01\x02" + bytes((2 * len(key),)) + key + b"\x01"
    body = bytes((2 * len(head),)) + head
    assert_read_alike(release, write_batch(body, base_offset=0, last_offset=0, count=1), tmp_path)


@pytest.mark.thorough
@pytest.mark.parametrize("release", AS_OF_3_6)
@pytest.mark.parametrize("magic", [-128, -1, 0, 1, 2, 3, 127])
def test_ends_are_the_same(release, magic, tmp_path):
    """RB-4: where streams end, and what batches too short for their header say."""
    for length in (0, 11, 12, 16, 17, 18, 26, 29, 30, 60, 61, 62):
        for claimed in (-1, 13, 14, 17, 18, 49, 2**31 - 13, 2**31 - 12, 2**31 - 1):
            data = struct.pack(">qiibI", 5, claimed, 0, magic, 0).ljust(length, b"\x00")[:length]
            assert_read_alike(release, data, tmp_path)
