"""Validation and conversion of batches by a leader, beyond the regression traces."""

from __future__ import annotations

import pytest

from conformance.operations.batches import encode
from kidx.dialect import DIALECTS, dialect_of
from kidx.errors import InvalidArgumentError, OutOfBoundsError
from kidx.log import InvalidTimestampError, LogConfig, RecordTooLargeError, RecordValidationError, SkippedRecordError
from kidx.log.validation import ValidationContext, checked_batches, validate
from kidx.log.validation.checks import is_too_far
from kidx.records import Codec, CorruptRecordError, InvalidRecordError, TimestampType, iter_memory_batches

NOW = 10_000
HOUR = 3_600_000


def validated(*batches, release="4.4.0", from_client=True, **settings):
    config = LogConfig.of_topic({"message.timestamp.after.max.ms": 1 << 62, **settings})
    dialect = dialect_of(release)
    checked = checked_batches(encode(batches), "t-0", config.largest_message(dialect), from_client=from_client)
    return validate(checked, ValidationContext(dialect, config, 100, 7, NOW, from_client))


def batch_of(*batches, **options):
    (batch,) = iter_memory_batches(validated(*batches, **options).records)
    assert batch.is_valid
    return batch


def sent(*timestamps, **options):
    return {"records": [[number, timestamp] for number, timestamp in enumerate(timestamps)], **options}


# -- timestamps --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("release", DIALECTS)
def test_the_limits_that_releases_have_by_default(release):
    before, after = LogConfig().timestamp_limits(dialect_of(release))
    assert before == (1 << 63) - 1
    assert after == (HOUR if release >= "4" else (1 << 63) - 1)


@pytest.mark.parametrize(("release", "limit"), [("2.4.0", 1_000_012), ("2.4.1", 1_000_012), ("2.5.0", 1_048_588)])
def test_the_largest_batch_by_default(release, limit):
    dialect = dialect_of(release)
    assert LogConfig().largest_message(dialect) == limit
    assert LogConfig(max_message_bytes=70).largest_message(dialect) == 70
    at_most = limit - len(encode([sent(5)]))
    assert len(validated({"records": [[0, 5, at_most - 4]]}, release=release).records) == limit
    with pytest.raises(RecordTooLargeError):
        validated({"records": [[0, 5, at_most - 3]]}, release=release)


@pytest.mark.parametrize(
    ("release", "limits"),
    [("3.5.2", (50, 50)), ("3.6.0", (50, 20)), ("3.9.2", (50, 20)), ("4.0.0", ((1 << 63) - 1, 20))],
)
def test_one_limit_implies_the_other_up_to_a_release(release, limits):
    settings = {"message.timestamp.difference.max.ms": 50, "message.timestamp.after.max.ms": 20}
    assert LogConfig.of_topic(settings).timestamp_limits(dialect_of(release)) == limits


@pytest.mark.parametrize("release", ["2.4.0", "3.5.2", "3.6.2", "4.4.0"])
@pytest.mark.parametrize("codec", ["none", "gzip"])
def test_a_timestamp_may_be_at_the_limit_and_not_beyond(release, codec):
    names = ("difference", "before", "after")
    limits = {f"message.timestamp.{name}.max.ms": 1000 for name in names}
    assert batch_of(sent(9000, 11_000, -1, codec=codec), release=release, **limits).max_timestamp == 11_000
    for wrong in (8999, 11_001):
        with pytest.raises(InvalidTimestampError) as caught:
            validated(sent(9000, wrong, codec=codec), release=release, **limits)
        assert caught.value.records == (1,)


@pytest.mark.parametrize("release", ["3.5.2", "3.6.2"])
def test_the_distance_of_a_timestamp_wraps_as_a_long_does(release):
    config = LogConfig(timestamp_difference_max_ms=0, timestamp_before_max_ms=0, timestamp_after_max_ms=0)
    context = ValidationContext(dialect_of(release), config, 0, 0, NOW)
    assert not is_too_far(NOW, context)
    assert is_too_far(NOW - (1 << 63) + 1, context)
    assert not is_too_far(NOW - (1 << 63), context)  # the one long that has no opposite


@pytest.mark.parametrize(
    ("release", "records", "kind"),
    [
        ("2.4.1", (0,), RecordValidationError),
        ("2.5.0", (0, 1), InvalidTimestampError),
        ("4.4.0", (0, 1), InvalidTimestampError),
    ],
)
def test_which_invalid_records_are_reported_and_how(release, records, kind):
    limits = {"message.timestamp.difference.max.ms": 9, "message.timestamp.before.max.ms": 9}
    batch = {"records": [[0, NOW], [1, 5, 0, 1], [2, NOW, 0, 1]]}
    with pytest.raises(kind) as caught:
        validated(batch, release=release, **limits, **{"cleanup.policy": "compact"})
    assert caught.value.records == records


def test_the_header_keeps_the_time_that_a_producer_has_claimed():
    batch = batch_of(sent(9000, header={"attributes": 8, "max_timestamp": 9500}))
    assert (batch.timestamp_type, batch.max_timestamp) == (TimestampType.CREATE_TIME, 9500)
    assert [record.timestamp for record in batch] == [9000]


@pytest.mark.parametrize(("release", "kept"), [("3.0.2", 0x10), ("3.1.2", 0x50), ("4.4.0", 0x50)])
def test_unused_attributes_are_dropped_with_another_timestamp(release, kept):
    same = sent(9000, producer=[1, 0, 0], header={"attributes": 0xD0})
    assert batch_of(same, release=release).attributes == 0xD0
    other = sent(9000, producer=[1, 0, 0], header={"attributes": 0xD0, "max_timestamp": 5})
    assert batch_of(other, release=release).attributes == kept


def test_negative_timestamps_are_no_largest_timestamp():
    batch = sent(-7, -9, header={"max_timestamp": 3, "base_timestamp": -7}, plain=[["set", 2, 0]])
    assert batch_of(batch).max_timestamp == -1


# -- old formats, other codecs -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("release", ["2.4.0", "2.6.3", "3.9.2", "4.4.0"])
@pytest.mark.parametrize("magic", [0, 1])
@pytest.mark.parametrize("codec", ["none", "gzip", "lz4", "snappy"])
def test_old_messages_become_one_batch(release, magic, codec):
    batch = batch_of(sent(9000, 9003, 9001, magic=magic, codec=codec), release=release)
    assert (batch.magic, batch.base_offset, batch.last_offset, batch.partition_leader_epoch) == (2, 100, 102, 7)
    assert batch.codec is Codec.for_name(codec)
    assert [record.timestamp for record in batch] == ([9000, 9003, 9001] if magic else [-1, -1, -1])


@pytest.mark.parametrize("wanted", ["uncompressed", "gzip", "lz4", "snappy", "zstd"])
@pytest.mark.parametrize("codec", ["none", "gzip", "lz4", "snappy", "zstd"])
def test_a_batch_gets_the_topics_codec(wanted, codec):
    batch = sent(9000, 9002, codec=codec, producer=[7, 3, 11], transactional=True)
    result = validated(batch, **{"compression.type": wanted})
    (final,) = iter_memory_batches(result.records)
    assert final.codec is (Codec.NONE if wanted == "uncompressed" else Codec.for_name(wanted))
    assert result.rebuilt == (final.codec.label != codec)
    assert [record.timestamp for record in final] == [9000, 9002]
    assert (final.producer_id, final.producer_epoch, final.base_sequence, final.is_transactional) == (7, 3, 11, True)


def test_a_marker_is_never_compressed():
    marker = {"marker": "commit", "records": [[0, 9000]], "producer": [7, 0, -1]}
    result = validated(marker, from_client=False, **{"compression.type": "zstd"})
    (final,) = iter_memory_batches(result.records)
    assert (final.codec, final.is_control, result.rebuilt) == (Codec.NONE, True, False)


def test_an_unknown_codec_is_not_a_setting():
    with pytest.raises(ValueError, match=r"unknown compression\.type 'brotli'"):
        LogConfig.of_topic({"compression.type": "brotli"})


# -- corruption -------------------------------------------------------------------------------------------------------

MISCOUNTED = {"records": [[0, 9000], [3, 9001]], "codec": "gzip", "header": {"last_offset_delta": 1}}


@pytest.mark.parametrize(
    ("release", "error"),
    [("2.4.1", RecordValidationError), ("2.5.0", RecordValidationError), ("2.6.3", SkippedRecordError)],
)
def test_compressed_records_that_do_not_count_from_zero(release, error):
    with pytest.raises(error):
        validated(MISCOUNTED, release=release)


def test_one_release_assigns_them_other_offsets():
    result = validated(MISCOUNTED, release="2.5.1")
    (final,) = iter_memory_batches(result.records)
    assert result.rebuilt
    assert [record.offset for record in final] == [100, 101]


@pytest.mark.parametrize("change", [["set", 0, 2], ["set", 0, 13], ["set", 0, 1]])
def test_sizes_of_compressed_records_are_ignored_since_3_6(change):
    batch = sent(9000, codec="gzip", plain=[change])
    with pytest.raises(InvalidRecordError):
        validated(batch, release="3.5.2")
    taken = validated(batch, release="3.6.2").records
    assert len(taken) == len(encode([batch]))
    if change[2] == 1:  # a negative size
        with pytest.raises(InvalidRecordError):
            validated(batch, release="4.4.0")


def test_a_record_longer_than_the_read_ahead():
    long = {"records": [[0, 9000, 4096, 4000], [1, 9001, 4096]], "codec": "gzip"}
    assert batch_of(long, release="3.5.2").max_timestamp == 9001


@pytest.mark.parametrize("release", ["3.5.2", "4.4.0"])
@pytest.mark.parametrize(
    "changes",
    [
        [["cut", 1]],
        [["add", 1]],
        [["set", 6, 2]],  # more headers than there are
        [["set", 6, 1]],  # a negative number of them
        [["set", 4, 40]],  # a key beyond the end
        [["set", 0, 255], ["set", 1, 255]],
    ],
)
def test_compressed_records_that_do_not_decode(release, changes):
    with pytest.raises((InvalidRecordError, InvalidArgumentError)):
        validated(sent(9000, codec="gzip", plain=changes), release=release)


@pytest.mark.parametrize(
    ("header", "error"),
    [
        ({"attributes": 7}, InvalidArgumentError),
        ({"attributes": 1}, Exception),
        ({"magic": 3}, CorruptRecordError),
        ({"magic": -1}, CorruptRecordError),
        ({"length": 13}, CorruptRecordError),
        ({"length": 14}, OutOfBoundsError),
        ({"length": 40}, CorruptRecordError),
        ({"base_offset": 1}, InvalidRecordError),
        ({"record_count": -1}, InvalidRecordError),
    ],
)
def test_headers_that_make_no_sense(header, error):
    with pytest.raises(error):
        validated(sent(9000, 9001, header=header))


def test_messages_inside_a_wrapper_have_checksums():
    with pytest.raises(CorruptRecordError):
        validated(sent(9000, magic=1, codec="gzip", plain=[["set", 20, 9]]))


def test_a_message_of_another_magic_inside_a_wrapper():
    with pytest.raises(RecordValidationError):
        validated(sent(-1, magic=1, codec="gzip", plain=[["set", 16, 0]]))
    with pytest.raises(InvalidArgumentError):  # the error would contain its sizes, which are not where they were
        validated(sent(9000, magic=1, codec="gzip", plain=[["set", 16, 0]]))
