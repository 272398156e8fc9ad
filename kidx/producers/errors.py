"""Errors for batches of producers, and for snapshots of producers."""

from __future__ import annotations

from kidx.errors import KidxError


class InvalidTxnStateError(KidxError, RuntimeError):
    """Batch outside a transaction while its producer has an open transaction (``InvalidTxnStateException``)."""

    kind = "invalid_txn_state"


class ProducerFencedError(KidxError, RuntimeError):
    """Producer epoch older than the last one (``ProducerFencedException``, from 2.7 ``InvalidProducerEpoch…``)."""

    kind = "producer_fenced"


class CoordinatorFencedError(KidxError, RuntimeError):
    """Marker of an older coordinator (``TransactionCoordinatorFencedException``)."""

    kind = "coordinator_fenced"


class OutOfOrderSequenceError(KidxError, RuntimeError):
    """Sequence number that does not follow the last one (``OutOfOrderSequenceException``)."""

    kind = "out_of_order_sequence"


class UnknownProducerError(OutOfOrderSequenceError):
    """Sequence number other than 0 from an unknown producer (``UnknownProducerIdException``; 2.4)."""

    kind = "unknown_producer"


class MissingBytesError(KidxError, ValueError):
    """Control record without the key or value that it needs (``NullPointerException`` in Kafka)."""

    kind = "closed"


class ShortMarkerError(KidxError, ValueError):
    """Transaction marker that ends too early (``BufferUnderflowException``; from 4.1)."""

    kind = "buffer_underflow"


class CorruptSnapshotError(KidxError, ValueError):
    """Invalid snapshot of producers (``CorruptSnapshotException``)."""

    kind = "corrupt_snapshot"
