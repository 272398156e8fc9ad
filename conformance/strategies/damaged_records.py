"""Strategies for batches with unreadable records. Names are plural, as in :mod:`conformance.strategies`.

A randomly flipped bit mostly hits a header or a value. Releases differ where a record claims more bytes than exist, or
a compressed stream ends inside a record, so the corruptions target these places. Lengths and checksums of batches are
right: a recovery keeps such a batch, and its records are read when a timestamp is looked up.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from conformance.strategies import draws as st
from kidx.records import Codec, write_batch
from kidx.records.batch import RecordBatchHeader
from kidx.records.codecs import compress
from kidx.records.layout import RECORD_BATCH, RECORD_BATCH_OVERHEAD

if TYPE_CHECKING:
    from conformance.strategies.batches import BatchPlan
    from conformance.strategies.draws import Draw

_ENDLESS: Final = b"\x80" * 11
_LATER: Final = 10


class RecordDamage(NamedTuple):
    """Corruption of the records of a batch.

    Attributes:
        how: ``claim`` flips bits of the first record's size, ``endless`` gives it a varint without an end, ``flip`` and
            ``cut`` change any byte of the records, ``stream`` truncates the stored bytes, ``count`` changes their
            number.
        at: index of the byte, from the end.
        bits: bits that are flipped in it.
        codec: compression codec, applied after the corruption.
    """

    how: str
    at: int
    bits: int
    codec: Codec

    def of(self, plan: BatchPlan, next_offset: int, largest_timestamp: int) -> bytes:
        """Return the batch of a plan, in the newest format and without a producer, with corrupt records.

        Its header claims a timestamp beyond all others, so that a lookup of that timestamp reads every record.

        Args:
            plan: the valid batch.
            next_offset: offset before the batch.
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
        place = len(body) - 1 - self.at % len(body)
        if self.how == "claim":
            return bytes((body[0] ^ self.bits,)) + body[1:]
        if self.how == "endless":
            return _ENDLESS + body[1:]
        if self.how == "flip":
            return body[:place] + bytes((body[place] ^ self.bits,)) + body[place + 1 :]
        return body[:place] if self.how == "cut" else body


def record_damages() -> Draw[RecordDamage]:
    """Draw corruptions, sizes first: too large, negative, or without an end.

    Bit 0 is the sign of a number, bit 6 makes a size of one byte too large, bit 7 joins it with the next byte.
    """
    return st.builds(
        RecordDamage,
        st.sampled_from(("claim", "claim", "stream", "endless", "flip", "cut", "count")),
        st.integers(0, 80),
        st.sampled_from((0x40, 0x40, 0x01, 0x80)),
        st.sampled_from((Codec.NONE, Codec.NONE, Codec.GZIP, Codec.GZIP, Codec.LZ4, Codec.SNAPPY, Codec.ZSTD)),
    )
