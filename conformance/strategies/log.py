"""Strategies for logs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, NamedTuple

from conformance.operations.log import EXPIRATION, FLUSH, PREALLOCATE, VERIFICATION
from conformance.strategies import draws as st
from kidx.discovery import PARTITION_METADATA
from kidx.java_values import LONG_MAX
from kidx.log.epochs import FILE_NAME
from kidx.log.topic_id import ZERO_ID
from kidx.producers import EXPIRATION_MS, SNAPSHOT_SUFFIX

if TYPE_CHECKING:
    from conformance.strategies.draws import Draw


class Shape(NamedTuple):
    """Batch to append.

    Attributes:
        records: distance of each record's timestamp from the newest one (None for no timestamp), and the number of
            offsets skipped before the record.
        codec: compression codec.
    """

    records: tuple[tuple[int | None, int], ...]
    codec: str

    def options(self) -> dict[str, Any]:
        """Return the fields of the batch other than its records."""
        return {"codec": self.codec} if self.codec != "none" else {}


class Damage(NamedTuple):
    """Corruption of a file of a closed log.

    Attributes:
        segment: index of the file's segment among all segments, or of the snapshot among all snapshots.
        suffix: suffix of the file, or the name of the leader epoch checkpoint.
        how: operation on the file, such as ``cut_file``.
        arguments: arguments of that operation.
    """

    segment: int
    suffix: str
    how: str
    arguments: tuple[int | str, ...]


def settings() -> Draw[dict[str, Any]]:
    """Draw topic settings under which a segment holds two to five batches of 70 bytes.

    An interval of 0 indexes every batch except the first, an interval of 100 every second one. An offset index of 24
    bytes is full after three entries, and a time index after one, because it reserves a slot for the entry of a roll.
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
            PREALLOCATE: st.sampled_from(("false", "false", "false", "true")),
            FLUSH: st.sampled_from((LONG_MAX, LONG_MAX, 2)),
        }
    )


def shapes(*, gaps: bool) -> Draw[Shape]:
    """Draw batches of one to three records whose timestamps increase, are equal, decrease or are missing.

    If the largest timestamp is in the middle, KAFKA-16310 has an effect. Compression determines which offset a leader
    stores in the index.

    Args:
        gaps: True for gaps between the offsets of records, as after compaction.
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
    """Draw whether the shutdown was clean, and the names of the offsets of recovery point and log start."""
    clean = st.booleans()
    recovery = st.sampled_from(("zero", "active", "middle", "end", "half"))
    start = st.sampled_from(("start", "start", "zero", "half", "end"))
    return st.tuples(clean, recovery, start)


def damages() -> Draw[list[Damage]]:
    """Draw up to two corruptions that a crash can cause: missing or truncated indexes, epochs, snapshots or logs.

    Most snapshots are the newest, because a log reads this one first, and an older one only if it is corrupt.
    """
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
        st.sampled_from((-1, -1, -1, -2, 0)),
        st.just(SNAPSHOT_SUFFIX),
        st.sampled_from(("remove_file", "cut_file")),
        st.just(()),
    ).map(lambda damage: damage._replace(arguments=(9,) if damage.how == "cut_file" else ()))
    return st.sampled_from((0, 0, 1, 2)).flatmap(
        lambda n: st.lists(lost | cut | epochs | snapshot, min_size=n, max_size=n)
    )


def metadata_damages() -> Draw[Damage | None]:
    """Draw a corruption of the file with the topic id, or None: it is missing, too short, too long, or newer."""
    way = st.sampled_from(
        (
            None,
            None,
            None,
            ("remove_file", ()),
            ("cut_file", (0,)),
            ("cut_file", (7,)),
            ("cut_file", (11,)),
            ("cut_file", (21,)),
            ("cut_file", (30,)),
            ("pad_file", (2, 61)),
            ("flip_bit", (9, 0)),
            ("flip_bit", (9, 3)),
            ("flip_bit", (9, 7)),
            ("flip_bit", (30, 0)),
            ("flip_bit", (42, 0)),
            ("write_file", (f"version: -1\ntopic_id: {ZERO_ID}".encode().hex(),)),
            ("write_file", (f"version: 0\ntopic_id: {ZERO_ID}".encode().hex(),)),
        )
    )
    return way.map(lambda drawn: None if drawn is None else Damage(-1, PARTITION_METADATA, *drawn))


def lost_indexes() -> Draw[Damage]:
    """Draw the loss of an index of one of the first segments, as after a crash of the operating system."""
    lost = st.sampled_from((("remove_file", ()), ("remove_file", ()), ("zero_range", (0, 24))))
    suffixes = st.sampled_from((".timeindex", ".index", ".timeindex", ".txnindex"))
    return st.builds(lambda segment, suffix, how: Damage(segment, suffix, *how), st.integers(0, 2), suffixes, lost)


def cut_anchors() -> Draw[str]:
    """Draw names of offsets to truncate to: segment boundaries, offsets inside segments, and both ends of the log."""
    return st.sampled_from(("half", "active", "end", "second", "middle", "high_watermark", "start", "zero"))


_NEAR: Final = (0, 1, -1)


def near() -> Draw[int]:
    """Draw a distance from an anchor: 0, 1 or -1."""
    return st.sampled_from(_NEAR)
