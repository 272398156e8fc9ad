"""Strategies for batches with unreadable records.

A randomly flipped bit is mostly in a header or a value. But releases differ if a record claims more bytes than exist,
or if a compressed stream ends inside a record, so the strategies produce these corruptions. Lengths and checksums of
the batches are valid, so a recovery keeps such a batch, and a lookup by timestamp reads its records.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from conformance.strategies import draws as st
from kidx.layout import RECORD_BATCH, RECORD_BATCH_OVERHEAD
from kidx.records import Codec, write_batch
from kidx.records.batch import RecordBatchHeader
from kidx.records.codecs import compress

if TYPE_CHECKING:
    from conformance.strategies.batches import BatchPlan
    from conformance.strategies.draws import Draw

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
            next_offset: next offset of the log.
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
