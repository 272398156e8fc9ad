"""What producers and coordinators write to a log, and why that is interesting."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, NamedTuple

from conformance.strategies import draws as st

if TYPE_CHECKING:
    from conformance.strategies.draws import Draw

Sequence = Literal["next", "repeated", "gap", "zero", "unknown", "last"]
"""Where a batch begins: after the last one, as one of the last ones did, behind a gap, anew, nowhere (-1, which no
client may say), or just before the sequence numbers wrap."""


class Write(NamedTuple):
    """A batch of a producer, or the end of its transaction.

    Attributes:
        producer: its id.
        epoch: of the producer, relative to the last one seen.
        sequence: where it begins.
        transactional: whether it is part of a transaction.
        records: how many; their timestamps grow.
        ends: ``"abort"`` or ``"commit"`` for a marker.
        coordinator: its epoch, relative to the last one seen.
        empty: compaction has left nothing of its records.
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
    """Ids: two that most examples have, one more in the first one's hash bucket, and one whose halves count."""
    return st.sampled_from((1, 2, 1, 2, 17, (3 << 32) + 1))


def writes(*, client: bool = False) -> Draw[Write]:
    """What a producer sends itself, or what a log holds of it: there, old epochs and markers come as well."""
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
    """What a transaction coordinator writes."""
    return writes().map(lambda write: write._replace(ends=write.ends or "commit", empty=False))


def many() -> Draw[range]:
    """Ids of more producers than a hash table begins with, so that it grows."""
    return st.sampled_from((range(100, 108), range(100, 126), range(7, 400, 16)))
