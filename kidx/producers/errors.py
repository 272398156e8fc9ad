"""How a producer's batch is refused, and a snapshot of producers."""

from __future__ import annotations

from kidx.errors import KidxError


class InvalidTxnStateError(KidxError, RuntimeError):
    """A plain batch inside its producer's open transaction (``InvalidTxnStateException``)."""

    kind = "invalid_txn_state"


class ProducerFencedError(KidxError, RuntimeError):
    """A producer epoch older than the last one (``ProducerFencedException``, from 2.7 ``InvalidProducerEpoch…``)."""

    kind = "producer_fenced"


class CoordinatorFencedError(KidxError, RuntimeError):
    """A marker of an older coordinator (``TransactionCoordinatorFencedException``)."""

    kind = "coordinator_fenced"


class OutOfOrderSequenceError(KidxError, RuntimeError):
    """A sequence number that does not follow the last one (``OutOfOrderSequenceException``)."""

    kind = "out_of_order_sequence"


class UnknownProducerError(OutOfOrderSequenceError):
    """A sequence number other than 0 of a producer that nothing is known of (``UnknownProducerIdException``; 2.4)."""

    kind = "unknown_producer"


class MissingBytesError(KidxError, ValueError):
    """A control record without the key or value that it needs (``NullPointerException`` in Kafka)."""

    kind = "closed"


class ShortMarkerError(KidxError, ValueError):
    """A transaction marker that ends too early (``BufferUnderflowException``; from 4.1)."""

    kind = "buffer_underflow"


class CorruptSnapshotError(KidxError, ValueError):
    """A snapshot of producers that cannot be believed (``CorruptSnapshotException``)."""

    kind = "corrupt_snapshot"
