"""Strategies for what producers and coordinators write to a log."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, NamedTuple

from conformance.strategies import draws as st

if TYPE_CHECKING:
    from conformance.strategies.draws import Draw

Sequence = Literal["next", "repeated", "gap", "zero", "unknown", "last"]
"""First sequence number of a batch: the next one, a repeated one, after a gap, zero, unknown, or before the wrap.

Unknown is -1, which a client must not send; the last case is just before the sequence numbers wrap.
"""


class Write(NamedTuple):
    """Batch of a producer, or the end of its transaction.

    Attributes:
        producer: producer id.
        epoch: producer epoch, relative to the last one seen.
        sequence: first sequence number.
        transactional: True if it is part of a transaction.
        records: number of records; their timestamps grow.
        ends: ``"abort"`` or ``"commit"`` for a marker.
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
    """Draw ids: two that most examples have, one in the first one's hash bucket, and one whose halves both matter."""
    return st.sampled_from((1, 2, 1, 2, 17, (3 << 32) + 1))


def writes(*, client: bool = False) -> Draw[Write]:
    """Draw what a client sends, or what a log contains of a producer, which includes old epochs and markers."""
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
    """Draw markers of a transaction coordinator."""
    return writes().map(lambda write: write._replace(ends=write.ends or "commit", empty=False))


def many() -> Draw[range]:
    """Draw ids of more producers than the initial size of a hash table, so that it grows."""
    return st.sampled_from((range(100, 108), range(100, 126), range(7, 400, 16)))
