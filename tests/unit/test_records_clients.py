"""Bytes against two clients that others wrote: kafka-python and aiokafka read what kidx writes, and the reverse."""

from __future__ import annotations

import struct
import warnings

import aiokafka.record.default_records as aiokafka_v2
import aiokafka.record.legacy_records as aiokafka_legacy
import pytest

from kidx.layout import MESSAGE_V0, MESSAGE_V1, RECORD_BATCH
from kidx.records import Codec, TimestampType, build_batch, iter_memory_batches

with warnings.catch_warnings():
    warnings.simplefilter("ignore", DeprecationWarning)  # kafka-python 3.0 reads its schemas in a deprecated way
    import kafka.record.default_records as kafka_v2
    import kafka.record.legacy_records as kafka_legacy

RECORDS = [
    (1000, b"key", b"value" * 30, [("h", b"x"), ("empty", b""), ("null", None), ("h", b"again")]),
    (1003, None, b"value" * 30, []),
    (990, b"key", None, []),
    (1003, b"", b"", []),
]
LEGACY = [(timestamp, key, value) for timestamp, key, value, _ in RECORDS]

# kafka-python has gzip at hand and needs further packages for the others; aiokafka brings cramjam, but no lz4 in v0.
V2 = [
    pytest.param(module, codec, id=f"{module.__name__.partition('.')[0]}-{codec.label}")
    for module in (aiokafka_v2, kafka_v2)
    for codec in Codec
    if module is aiokafka_v2 or codec <= Codec.GZIP
]
OLD = [
    pytest.param(module, magic, codec, id=f"{module.__name__.partition('.')[0]}-v{magic}-{codec.label}")
    for module in (aiokafka_legacy, kafka_legacy)
    for magic in (0, 1)
    for codec in (Codec.NONE, Codec.GZIP, Codec.SNAPPY, Codec.LZ4)
    if codec <= Codec.GZIP or (module is aiokafka_legacy and not (magic == 0 and codec is Codec.LZ4))
]


@pytest.mark.parametrize(
    ("layout", "theirs"),
    [
        (RECORD_BATCH, kafka_v2.DefaultRecordBatch.HEADER_STRUCT),
        (MESSAGE_V0, kafka_legacy.LegacyRecordBatch.HEADER_STRUCT_V0),
        (MESSAGE_V1, kafka_legacy.LegacyRecordBatch.HEADER_STRUCT_V1),
    ],
)
def test_the_layout_tables_have_the_fields_of_kafka_pythons_structs(layout, theirs):
    # The same codes except for the checksum, which kidx reads as signed and masks.
    assert layout.struct.format.lower() == theirs.format.lower().replace(" ", "")
    assert layout.size == theirs.size


def test_the_checksum_is_where_the_clients_have_it():
    assert RECORD_BATCH.field("attributes").offset == kafka_v2.DefaultRecordBatch.ATTRIBUTES_OFFSET
    assert RECORD_BATCH.field("crc").offset == kafka_v2.DefaultRecordBatch.CRC_OFFSET


@pytest.mark.parametrize(("module", "codec"), V2)
def test_v2_written_by_a_client_is_read(module, codec):
    builder = module.DefaultRecordBatchBuilder(2, int(codec), 1, 5, 6, 7, 1 << 20)
    for offset, record in enumerate(RECORDS):
        builder.append(offset, *record)
    (batch,) = iter_memory_batches(bytes(builder.build()))
    batch.ensure_valid()
    assert [(r.offset, r.timestamp, r.key, r.value, list(r.headers)) for r in batch] == [
        (offset, *record) for offset, record in enumerate(RECORDS)
    ]
    assert (batch.producer_id, batch.producer_epoch, batch.base_sequence, batch.last_sequence) == (5, 6, 7, 10)
    assert batch.is_transactional
    assert not batch.is_control
    assert (batch.codec, batch.max_timestamp, batch.last_offset, batch.count) == (codec, 1003, 3, 4)


@pytest.mark.parametrize(("module", "codec"), V2)
def test_v2_written_by_kidx_is_read_by_a_client(module, codec):
    data = build_batch(RECORDS, base_offset=40, codec=codec, producer_id=5, producer_epoch=6, base_sequence=7)
    batch = module.DefaultRecordBatch(bytearray(data))
    assert batch.validate_crc()
    assert (batch.base_offset, batch.last_offset_delta, batch.max_timestamp) == (40, 3, 1003)
    assert [(r.offset, r.timestamp, r.key, r.value, list(r.headers)) for r in batch] == [
        (40 + number, *record) for number, record in enumerate(RECORDS)
    ]


@pytest.mark.parametrize("module", [aiokafka_v2, kafka_v2])
def test_v2_uncompressed_is_the_same_bytes_as_a_clients(module):
    builder = module.DefaultRecordBatchBuilder(2, 0, 0, -1, -1, -1, 1 << 20)
    for offset, record in enumerate(RECORDS):
        builder.append(offset, *record)
    theirs = bytearray(builder.build())
    # The clients leave the leader's epoch at 0, which is for the broker to set and outside the checksum.
    field = RECORD_BATCH.field("partition_leader_epoch")
    struct.pack_into(">i", theirs, field.offset, -1)
    assert build_batch(RECORDS) == bytes(theirs)


def _expected(magic: int, base: int = 0) -> list[tuple[int, int, bytes | None, bytes | None]]:
    return [(base + n, -1 if magic == 0 else t, key, value) for n, (t, key, value) in enumerate(LEGACY)]


@pytest.mark.parametrize(("module", "magic", "codec"), OLD)
def test_messages_written_by_a_client_are_read(module, magic, codec):
    builder = module.LegacyRecordBatchBuilder(magic, int(codec), 1 << 20)
    for offset, (timestamp, key, value) in enumerate(LEGACY):
        builder.append(offset, timestamp, key, value)
    data = bytearray(builder.build())
    if codec is not Codec.NONE:
        struct.pack_into(">q", data, 0, 3)  # the broker sets the wrapper's offset
    batches = list(iter_memory_batches(bytes(data)))
    for batch in batches:
        batch.ensure_valid()
    assert len(batches) == (len(LEGACY) if codec is Codec.NONE else 1)
    assert [(r.offset, r.timestamp, r.key, r.value) for batch in batches for r in batch] == _expected(magic)


@pytest.mark.parametrize(("module", "magic", "codec"), OLD)
def test_messages_written_by_kidx_are_read_by_a_client(module, magic, codec):
    data = build_batch(LEGACY, base_offset=40, magic=magic, codec=codec)
    read = []
    for batch in iter_memory_batches(data):
        client = module.LegacyRecordBatch(bytearray(batch.to_bytes()), magic)
        assert client.validate_crc()
        read += [(r.offset, -1 if r.timestamp is None else r.timestamp, r.key, r.value) for r in client]
    assert read == _expected(magic, 40)


@pytest.mark.parametrize("magic", [0, 1])
def test_uncompressed_messages_are_the_same_bytes_as_a_clients(magic):
    builder = kafka_legacy.LegacyRecordBatchBuilder(magic, 0, 1 << 20)
    for offset, (timestamp, key, value) in enumerate(LEGACY):
        builder.append(offset, timestamp, key, value)
    assert build_batch(LEGACY, magic=magic) == bytes(builder.build())


def test_a_v1_wrapper_with_log_append_time_gives_its_timestamp_to_all():
    (batch,) = iter_memory_batches(
        build_batch(
            LEGACY,
            magic=1,
            codec=Codec.GZIP,
            timestamp_type=TimestampType.LOG_APPEND_TIME,
            log_append_time=5000,
        )
    )
    client = kafka_legacy.LegacyRecordBatch(bytearray(batch.to_bytes()), 1)
    assert [r.timestamp for r in batch] == [r.timestamp for r in client] == [5000] * 4
