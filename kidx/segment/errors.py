"""How a segment refuses, beyond what indexes and batches refuse themselves."""

from __future__ import annotations

from kidx.errors import KidxError


class SegmentOffsetOverflowError(KidxError, OverflowError):
    """An offset is not within 2**31 of the segment's base (``LogSegmentOffsetOverflowException``; SEG-2)."""

    kind = "offset_overflow"


class InvalidTxnStateError(KidxError, RuntimeError):
    """A plain batch inside its producer's open transaction (``InvalidTxnStateException``)."""

    kind = "invalid_txn_state"


class ProducerFencedError(KidxError, RuntimeError):
    """A marker with a producer epoch older than the last one (``ProducerFencedException``; 2.4.0)."""

    kind = "producer_fenced"


class CoordinatorFencedError(KidxError, RuntimeError):
    """A marker of an older coordinator (``TransactionCoordinatorFencedException``; 2.4.0)."""

    kind = "coordinator_fenced"


class MissingBytesError(KidxError, ValueError):
    """A control record without the key or value that it needs (``NullPointerException`` in Kafka)."""

    kind = "closed"


class ShortMarkerError(KidxError, ValueError):
    """A transaction marker that ends too early (``BufferUnderflowException``; from 4.1)."""

    kind = "buffer_underflow"
