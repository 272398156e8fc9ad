"""Producer state of a log: epochs, sequence numbers, transactions, and the snapshots of all three.

::

    state = ProducerState("orders-0", dialect_of("3.9.2"))
    for batch in file_batches("/data/orders-0/00000000000000000000.log"):
        completed = state.update(batch)
        if completed is not None:
            state.complete(completed)
    state.first_undecided_offset
"""

from __future__ import annotations

from kidx.producers.append_info import CompletedTxn, Origin, ProducerAppendInfo, Transaction
from kidx.producers.entry import BatchMetadata, ProducerEntry, VerificationStateEntry
from kidx.producers.errors import (
    CoordinatorFencedError,
    CorruptSnapshotError,
    InvalidTxnStateError,
    MissingBytesError,
    OutOfOrderSequenceError,
    ProducerFencedError,
    ShortMarkerError,
    UnknownProducerError,
)
from kidx.producers.manager import (
    EXPIRATION_MS,
    LATE_MS,
    SNAPSHOT_LIMIT,
    SNAPSHOT_SUFFIX,
    ProducerState,
    ProducerStateManager,
    snapshot_name,
)

__all__ = [
    "EXPIRATION_MS",
    "LATE_MS",
    "SNAPSHOT_LIMIT",
    "SNAPSHOT_SUFFIX",
    "BatchMetadata",
    "CompletedTxn",
    "CoordinatorFencedError",
    "CorruptSnapshotError",
    "InvalidTxnStateError",
    "MissingBytesError",
    "Origin",
    "OutOfOrderSequenceError",
    "ProducerAppendInfo",
    "ProducerEntry",
    "ProducerFencedError",
    "ProducerState",
    "ProducerStateManager",
    "ShortMarkerError",
    "Transaction",
    "UnknownProducerError",
    "VerificationStateEntry",
    "snapshot_name",
]
