"""Strategies for logs. Names are plural, as in :mod:`conformance.strategies`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, NamedTuple

from conformance.operations.log import EXPIRATION, VERIFICATION
from conformance.strategies import draws as st
from kidx.log.epochs import FILE_NAME
from kidx.producers import EXPIRATION_MS, SNAPSHOT_SUFFIX

if TYPE_CHECKING:
    from conformance.strategies.draws import Draw


class Shape(NamedTuple):
    """Batch to append.

    Attributes:
        records: Per record, the distance of its timestamp from the newest one (None: no timestamp), and of its offset
            from the preceding record.
        codec: compression codec.
    """

    records: tuple[tuple[int | None, int], ...]
    codec: str

    def options(self) -> dict[str, Any]:
        """Return the fields of the batch other than its records."""
        return {"codec": self.codec} if self.codec != "none" else {}


class Damage(NamedTuple):
    """Corruption of one file of a closed log; snapshots are numbered separately, other files by their segment."""

    segment: int
    suffix: str
    how: str
    arguments: tuple[int, ...]


def settings() -> Draw[dict[str, Any]]:
    """Draw topic settings under which a segment holds two to five batches of 70 bytes.

    An interval of 0 indexes every batch but the first, 100 every other one. An index of 24 bytes is full after three
    entries (two of the time index), and 8 bytes hold no time entry at all.
    """
    return st.fixed_dictionaries(
        {
            "segment.bytes": st.sampled_from((300, 300, 1000, 150)),
            "segment.index.bytes": st.sampled_from((120, 120, 24, 36)),
            "index.interval.bytes": st.sampled_from((0, 0, 100, 4096)),
            "message.timestamp.type": st.sampled_from(("CreateTime", "CreateTime", "LogAppendTime")),
            "retention.ms": st.sampled_from((-1, -1, 5000)),
            "retention.bytes": st.sampled_from((-1, -1, 400)),
            "segment.ms": st.sampled_from((1 << 40, 1 << 40, 500)),
            EXPIRATION: st.sampled_from((EXPIRATION_MS, EXPIRATION_MS, 9000)),
            VERIFICATION: st.sampled_from((0, 0, 0, 1)),
        }
    )


def shapes(*, gaps: bool) -> Draw[Shape]:
    """Draw batches of one to three records with timestamps that grow, are equal, go back or are missing.

    The largest timestamp in the middle tests KAFKA-16310. Compression determines which offset a leader stores in the
    index.
    """
    timestamps = st.sampled_from((10, 10, 0, -5, 1000, None, -2000))
    distances = st.sampled_from((0, 0, 0, 3)) if gaps else st.just(0)
    records = st.lists(st.tuples(timestamps, distances), min_size=1, max_size=3).map(tuple)
    codecs = st.sampled_from(("none", "none", "none", "gzip", "lz4", "snappy", "zstd"))
    return st.builds(Shape, records, codecs)


def newer_epochs() -> Draw[int]:
    """Draw the increase of the leader epoch."""
    return st.sampled_from((0, 0, 0, 1))


def closings() -> Draw[str]:
    """Draw how a log is closed: by a broker's shutdown, by closing the log alone, or by killing the process."""
    return st.sampled_from(("shutdown", "crash", "close"))


def openings() -> Draw[tuple[bool, str, str]]:
    """Draw a clean or unclean shutdown, and the checkpoints of recovery point and log start."""
    clean = st.booleans()
    recovery = st.sampled_from(("zero", "active", "middle", "end", "half"))
    start = st.sampled_from(("start", "start", "zero", "half", "end"))
    return st.tuples(clean, recovery, start)


def damages() -> Draw[list[Damage]]:
    """Draw mostly none; else a lost index, lost or corrupt epochs, or a truncated log, which a crash can cause."""
    lost = st.builds(
        Damage,
        st.integers(0, 3),
        st.sampled_from((".index", ".timeindex", ".txnindex")),
        st.just("remove_file"),
        st.just(()),
    )
    cut = st.builds(Damage, st.just(-1), st.just(".log"), st.just("cut_file"), st.sampled_from(((100,), (0,), (61,))))
    ways = st.sampled_from((("remove_file", ()), ("remove_file", ()), ("cut_file", (2,)), ("zero_range", (4, 5))))
    epochs = ways.map(lambda way: Damage(-1, FILE_NAME, *way))
    snapshot = st.builds(
        Damage,
        st.integers(-2, 1),
        st.just(SNAPSHOT_SUFFIX),
        st.sampled_from(("remove_file", "remove_file", "cut_file")),
        st.just(()),
    ).map(lambda damage: damage._replace(arguments=(9,) if damage.how == "cut_file" else ()))
    return st.sampled_from((0, 0, 1, 2)).flatmap(
        lambda n: st.lists(lost | cut | epochs | snapshot, min_size=n, max_size=n)
    )


def lost_indexes() -> Draw[Damage]:
    """Draw an index of one of the first segments that is missing or zero, as after a crash of the system."""
    lost = st.sampled_from((("remove_file", ()), ("remove_file", ()), ("zero_range", (0, 24))))
    suffixes = st.sampled_from((".timeindex", ".index", ".timeindex", ".txnindex"))
    return st.builds(lambda segment, suffix, how: Damage(segment, suffix, *how), st.integers(0, 2), suffixes, lost)


def cut_anchors() -> Draw[str]:
    """Draw offsets to truncate at: segment boundaries, inside, the ends."""
    return st.sampled_from(("half", "active", "end", "second", "middle", "high_watermark", "start", "zero"))


_NEAR: Final = (0, 1, -1)


def near() -> Draw[int]:
    """Draw the anchor itself and its neighbours."""
    return st.sampled_from(_NEAR)
