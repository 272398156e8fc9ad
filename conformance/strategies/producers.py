"""Strategies for the batches and markers of producers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, NamedTuple

from conformance.strategies import draws as st

if TYPE_CHECKING:
    from conformance.strategies.draws import Draw

Sequence = Literal["next", "repeated", "gap", "zero", "unknown", "last"]
"""First sequence number of a batch, compared with the preceding batch of its producer.

``"unknown"`` is -1, which a client must not send; ``"last"`` is almost the largest possible number.
"""


class Write(NamedTuple):
    """Batch of a producer, or the end of its transaction.

    Attributes:
        producer: producer id.
        epoch: producer epoch, relative to the last one seen.
        sequence: first sequence number.
        transactional: True if the batch is part of a transaction.
        ends: ``"abort"`` or ``"commit"`` for a marker; None for a batch of records.
        coordinator: coordinator epoch, relative to the last one seen.
        empty: True if compaction has removed all its records.
    """

    producer: int
    epoch: int
    sequence: Sequence
    transactional: bool
    records: int
    ends: Literal["abort", "commit"] | None
    coordinator: int
    empty: bool


def producers() -> Draw[int]:
    """Draw producer ids: mostly 1 or 2, one in the same hash bucket as 1, and one larger than 32 bits."""
    return st.sampled_from((1, 2, 1, 2, 17, (3 << 32) + 1))


def writes(*, client: bool = False) -> Draw[Write]:
    """Draw batches of producers.

    Args:
        client: True for batches of records alone, as a leader gets them from clients, invalid ones included; False to
            draw markers and batches without records, too.
    """
    epochs = (0, 0, 0, 0, 1, -1)
    sequences: tuple[Sequence, ...] = ("next", "next", "next", "repeated", "gap", "zero", "unknown", "last")
    return st.builds(
        Write,
        producer=producers(),
        epoch=st.sampled_from(epochs),
        sequence=st.sampled_from(sequences),
        transactional=st.sampled_from((True, True, False)),
        records=st.sampled_from((1, 1, 3)),
        ends=st.just(None) if client else st.sampled_from((None, None, None, "abort", "commit")),
        coordinator=st.sampled_from((0, 0, 1, -1)),
        empty=st.just(False) if client else st.sampled_from((False,) * 7 + (True,)),
    )


def markers() -> Draw[Write]:
    """Draw transaction markers."""
    return writes().map(lambda write: write._replace(ends=write.ends or "commit", empty=False))


def id_ranges() -> Draw[range]:
    """Draw the ids of 8 to 26 producers, which a snapshot has in the order of Kafka's hash table of 16 buckets or more.

    The 8 alone do not make it grow. The 26 are too many for 32 buckets. The 25 that are 16 apart share one bucket of
    16, and two of 32: Java makes a small table grow rather than a bucket of more than eight, sooner than their number
    requires it.
    """
    return st.sampled_from((range(100, 108), range(100, 126), range(7, 400, 16)))
