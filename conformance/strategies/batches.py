"""Strategies for batches to append.

A :class:`BatchPlan` is drawn before the next offset and timestamp are known. The rule converts the plan to bytes when
the rule runs.

Some batches have unreadable records. A randomly flipped bit is mostly in a header or a value. But releases differ if a
record claims more bytes than exist, or if a compressed stream ends inside a record, so the strategies produce these
corruptions. Lengths and checksums of the batches are valid, so a recovery keeps such a batch, and a lookup by timestamp
reads its records.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from conformance.strategies import draws as st
from kidx.java_values import INT_MAX, LONG_MAX
from kidx.layout import RECORD_BATCH, RECORD_BATCH_OVERHEAD
from kidx.records import (
    Codec,
    ControlRecordType,
    EndTransactionMarker,
    TimestampType,
    build_batch,
    empty_batch,
    end_transaction_marker,
    write_batch,
)
from kidx.records.batch import RecordBatchHeader
from kidx.records.codecs import compress

if TYPE_CHECKING:
    from conformance.strategies.draws import Draw

PRODUCER_ROLES: Final = (
    *("none",) * 6,
    *("idempotent",) * 2,
    *("transactional",) * 4,
    *("abort",) * 2,
    *("commit",) * 2,
    "odd marker",
)
"""Roles of a batch, each as often as it is to be drawn.

A batch has no producer, or its producer writes it outside, inside or at the end of a transaction.
"""

ODD_MARKERS: Final[tuple[tuple[bytes | None, bytes | None], ...]] = (
    (b"\x00\x00\x00\x00", b"\x00\x00"),
    (b"\x00\x00\x00\x00", b"\xff\xff\x00\x00\x00\x00"),
    (b"\x00\x00\x00\x00", None),
    (b"\x00\x00\x00\x02", b"\x00\x00\x00\x00\x00\x00"),
    (b"\x00\x00\x00\x63", b"\x00\x00\x00\x00\x00\x00"),
    (b"\xff\xff\x00\x00", b"\x00\x00\x00\x00\x00\x00"),
    (b"\x00\x05\x00\x00", b"\x00\x05\x00\x00\x00\x00\x09"),
    (b"\x00", b"\x00\x00\x00\x00\x00\x00"),
    (None, None),
)
"""Keys and values of control records that are no valid transaction markers, or have another version."""

MAX_BATCHES: Final = 8
"""Maximum number of batches per append call: a produce request has one, a follower's fetch several."""


class BatchPlan(NamedTuple):
    """Batch without its position in the log.

    Attributes:
        gap: number of offsets skipped before the batch; negative for a batch that begins before the log's end.
        steps: distance of each record's offset from the previous one; the first counts from the base offset.
        ages: timestamp of each record relative to the largest one so far, in milliseconds; None for no timestamp.
        stamped: True for LogAppendTime: then all records have the timestamp of the first.
        codec, magic, value_size: codec, format and size of each value.
        role: one of :data:`PRODUCER_ROLES`.
        producer_id, producer_epoch, coordinator_epoch: fields of the producer or the marker.
        max_timestamp_error: number that the header adds to the largest timestamp.
        empty: True if compaction has removed its records.
    """

    gap: int = 0
    steps: tuple[int, ...] = (0,)
    ages: tuple[int | None, ...] = (1,)
    stamped: bool = False
    codec: Codec = Codec.NONE
    magic: int = 2
    value_size: int = 0
    role: str = "none"
    producer_id: int = 1
    producer_epoch: int = 0
    coordinator_epoch: int = 0
    leader_epoch: int = -1
    max_timestamp_error: int = 0
    empty: bool = False

    def to_bytes(self, next_offset: int, largest_timestamp: int) -> bytes:
        """Return the batch as bytes.

        Args:
            largest_timestamp: largest timestamp of the log so far.
        """
        base = min(max(next_offset + self.gap, 0), LONG_MAX - INT_MAX)
        offsets, offset = [], base
        for number, step in enumerate(self.steps):
            offset += step if number == 0 else max(step, 1)
            offsets.append(offset)
        timestamps = [-1 if age is None else max(largest_timestamp + age, 0) for age in self.ages]
        owned = self.role != "none" and self.magic == 2
        producer_id, producer_epoch = (self.producer_id, self.producer_epoch) if owned else (-1, -1)
        if owned and self.role in ("abort", "commit"):
            kind = ControlRecordType.ABORT if self.role == "abort" else ControlRecordType.COMMIT
            return end_transaction_marker(
                EndTransactionMarker(kind, self.coordinator_epoch),
                producer_id=producer_id,
                producer_epoch=producer_epoch,
                offset=base,
                timestamp=timestamps[0],
                partition_leader_epoch=self.leader_epoch,
            )
        if owned and self.role == "odd marker":
            key, content = ODD_MARKERS[self.value_size % len(ODD_MARKERS)]
            return build_batch(
                [(timestamps[0], key, content)],
                base_offset=base,
                codec=self.codec,
                producer_id=producer_id,
                producer_epoch=producer_epoch,
                is_transactional=True,
                is_control=True,
            )
        stamp_type = TimestampType.LOG_APPEND_TIME if self.stamped else TimestampType.CREATE_TIME
        if self.empty and self.magic == 2:
            return empty_batch(base, offsets[-1], timestamp=timestamps[0], timestamp_type=stamp_type)
        value = bytes(range(256)) * (self.value_size // 256 + 1)
        codec = Codec.NONE if self.magic < 2 and self.codec is Codec.ZSTD else self.codec
        headline = timestamps[0] if self.stamped else max(timestamps)
        return build_batch(
            [(timestamp, None, value[: self.value_size]) for timestamp in timestamps],
            base_offset=base,
            offsets=offsets,
            magic=self.magic,
            codec=codec,
            timestamp_type=stamp_type,
            log_append_time=headline,
            producer_id=producer_id,
            producer_epoch=producer_epoch,
            base_sequence=0 if owned else -1,
            is_transactional=owned and self.role == "transactional",
            partition_leader_epoch=self.leader_epoch,
            max_timestamp=max(headline + self.max_timestamp_error, -1) if self.max_timestamp_error else None,
        )


def ages() -> Draw[int | None]:
    """Draw timestamps relative to the largest so far: larger, equal, smaller, or None."""
    return st.sampled_from((1, 1, 1, 0, 5, 1000, -1, -3, -1000, None))


def offset_gaps() -> Draw[int]:
    """Draw offset gaps before a batch: mostly none or a few, rarely negative or too large (SEG-2, SEG-12)."""
    # With more odd gaps, most segments would soon reject every batch.
    odd = (-1, -2, -100, INT_MAX // 2, INT_MAX - 10, INT_MAX)
    return st.sampled_from((0,) * 120 + (1, 2, 5, 100) * 8 + odd)


def plain_plans() -> Draw[BatchPlan]:
    """Draw uncompressed batches of one to three records that differ only in timestamps and sizes."""
    return st.builds(
        lambda gap, stamps, size: BatchPlan(gap, (0,) + (1,) * (len(stamps) - 1), tuple(stamps), value_size=size),
        offset_gaps(),
        st.lists(ages(), min_size=1, max_size=3),
        st.sampled_from((0, 0, 10, 100, 600)),
    )


def rich_plans() -> Draw[BatchPlan]:
    """Draw batches of every format, codec and role, with gaps between their records."""
    records = st.lists(st.tuples(st.sampled_from((1, 1, 2, 7)), ages()), min_size=1, max_size=5)
    return st.builds(
        lambda records, **rest: BatchPlan(
            steps=tuple(step for step, _ in records), ages=tuple(age for _, age in records), **rest
        ),
        records,
        gap=offset_gaps(),
        stamped=st.sampled_from((False, False, True)),
        codec=st.sampled_from(tuple(Codec)),
        magic=st.sampled_from((2, 2, 2, 2, 1, 0)),
        value_size=st.sampled_from((0, 1, 2, 3, 4, 5, 6, 7, 8, 100, 600)),
        role=st.sampled_from(PRODUCER_ROLES),
        producer_id=st.sampled_from((1, 2, 3)),
        producer_epoch=st.sampled_from((0, 0, 0, 1)),
        coordinator_epoch=st.sampled_from((0, 0, 0, 1)),
        leader_epoch=st.sampled_from((-1, 0, 1, 5)),
        max_timestamp_error=st.sampled_from((0, 0, 0, 0, 10, -10)),
        empty=st.sampled_from((False, False, False, True)),
    )


def batch_plans() -> Draw[BatchPlan]:
    """Draw one batch, from :func:`plain_plans` or :func:`rich_plans`."""
    return plain_plans() | rich_plans()


def transactions() -> Draw[tuple[BatchPlan, ...]]:
    """Draw batches and transaction markers of two producers, whose transactions may overlap."""
    written = st.builds(
        BatchPlan,
        role=st.sampled_from(("transactional", "abort", "commit", "idempotent")),
        producer_id=st.sampled_from((1, 2)),
        codec=st.sampled_from((Codec.NONE, Codec.LZ4)),
    )
    return st.lists(written, min_size=2, max_size=6).map(tuple)


def calls() -> Draw[tuple[BatchPlan, ...]]:
    """Draw the batches of one append call."""
    return st.lists(batch_plans(), min_size=1, max_size=MAX_BATCHES).map(tuple) | transactions()


_ENDLESS: Final = b"\x80" * 11  # more bytes of a varint than any number has
_LATER: Final = 10  # milliseconds after the largest timestamp


class RecordDamage(NamedTuple):
    """Corruption of the records of a batch.

    Attributes:
        how: ``claim`` flips bits of the first record's size, ``endless`` replaces this size by a varint without an end,
            ``flip`` flips bits of a byte, ``cut`` truncates the records at a byte, ``stream`` truncates the compressed
            bytes, ``count`` changes the number of records in the header.
        at: index of the byte, from the end.
        bits: bits that are flipped.
        codec: compression codec, applied after the corruption.
    """

    how: str
    at: int
    bits: int
    codec: Codec

    def of(self, plan: BatchPlan, next_offset: int, largest_timestamp: int) -> bytes:
        """Return the batch of a plan, in the newest format and without a producer, with corrupt records.

        The header has a larger timestamp than any other batch, so that a lookup of this timestamp reads every record.

        Args:
            plan: the valid batch.
            largest_timestamp: largest timestamp of the log so far, in milliseconds.
        """
        plain = plan._replace(codec=Codec.NONE, magic=2, role="none", empty=False, stamped=False)
        data = plain.to_bytes(next_offset, largest_timestamp)
        header = RecordBatchHeader(*RECORD_BATCH.struct.unpack_from(data))
        stored = compress(self.codec, self._records(data[RECORD_BATCH_OVERHEAD:]))
        if self.how == "stream":
            stored = stored[: len(stored) - 1 - self.at % len(stored)]
        return write_batch(
            stored,
            base_offset=header.base_offset,
            last_offset=header.base_offset + header.last_offset_delta,
            count=len(plan.steps) + (self.at % 3 - 1 if self.how == "count" else 0),
            codec=self.codec,
            base_timestamp=header.base_timestamp,
            max_timestamp=max(header.max_timestamp, largest_timestamp) + _LATER,
            partition_leader_epoch=plan.leader_epoch,
        )

    def _records(self, body: bytes) -> bytes:
        """Return the uncompressed records after the corruption."""
        place = len(body) - 1 - self.at % len(body)
        if self.how == "claim":
            return bytes((body[0] ^ self.bits,)) + body[1:]
        if self.how == "endless":
            return _ENDLESS + body[1:]
        if self.how == "flip":
            return body[:place] + bytes((body[place] ^ self.bits,)) + body[place + 1 :]
        return body[:place] if self.how == "cut" else body


def record_damages() -> Draw[RecordDamage]:
    """Draw corruptions, mostly of record sizes: too large, negative, or without an end.

    In the first byte of a size, bit 0 is the sign, bit 6 makes the size too large, and bit 7 continues the varint.
    """
    return st.builds(
        RecordDamage,
        st.sampled_from(("claim", "claim", "stream", "endless", "flip", "cut", "count")),
        st.integers(0, 80),
        st.sampled_from((0x40, 0x40, 0x01, 0x80)),
        st.sampled_from((Codec.NONE, Codec.NONE, Codec.GZIP, Codec.GZIP, Codec.LZ4, Codec.SNAPPY, Codec.ZSTD)),
    )
