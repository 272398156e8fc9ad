"""Strategies for producers' batches that a leader rejects or changes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, NamedTuple

from conformance.operations.malformed_batches import KEYS, is_corrupt_stream
from conformance.strategies import draws as st

if TYPE_CHECKING:
    from collections.abc import Sequence

    from conformance.strategies.draws import Draw

_ATTRIBUTES: Final = (5, 7, 0x08, 0x20, 0x40, 0x80, 0x10, 1, 3)
"""Attributes of a batch: unknown or wrong codecs, LogAppendTime, control, delete horizon, and unused bits."""
# Fields of a header that contradict the records, or that a producer must not set.
_HEADERS: Final[tuple[dict[str, int], ...]] = (
    {"record_count": 0},
    {"record_count": -1},
    {"record_count": 2},
    {"last_offset_delta": -1},
    {"last_offset_delta": 2},
    {"base_offset": 1},
    {"max_timestamp": 7},
    {"base_timestamp": -7},
    {"base_timestamp": (1 << 63) - 1},
    {"partition_leader_epoch": 9},
    {"producer_id": 5},
    {"producer_id": 5, "base_sequence": 0},
    {"magic": 3},
    {"magic": -1},
    {"length": 13},
    {"length": 30},
    {"length": 50},
    *({"attributes": attributes} for attributes in _ATTRIBUTES),
)
# The same for the header of a message of an old format.
_OLD_HEADERS: Final[tuple[dict[str, int], ...]] = (
    {"attributes": 1},
    {"attributes": 5},
    {"magic": 2},
    {"length": 14},
    {"offset": 5},
    {"offset": 0},
)
_STREAMS: Final = ("none", "gzip", "lz4", "zstd")
"""Codecs whose compressed bytes are corrupted anywhere."""
_SNAPPY_HEADER: Final = 17
"""First byte of a snappy stream that is corrupted: the byte before it is the high one of the first block's size, and
releases up to 3.4 allocate this size."""
CLAIMED: Final = ((0x64, 167), (0x70, 173), (0x74, 189))
"""Flags of an lz4 frame with checksums, each with the matching checksum of the frame's header."""
_IN_BLOCKS: Final = ("lz4", "snappy")  # codecs whose libraries divide the same data into different blocks
_OLD_CODECS: Final = ("none", "gzip", "lz4", "snappy")
_LIMITS: Final = tuple(f"message.timestamp.{name}.max.ms" for name in ("difference", "before", "after"))
_NO_LIMIT: Final = 1000  # milliseconds, for a topic without limits


class Limit(NamedTuple):
    """Distance from the clock that equals a limit of the topic, or differs from it by one.

    Attributes:
        which: number of one of the limits that the topic has, modulo how many there are.
        sign: 1 for a timestamp in the future, -1 for one in the past.
        beyond: milliseconds by which the distance is larger than the limit.
    """

    which: int
    sign: int
    beyond: int

    def distance(self, limits: Sequence[int]) -> int:
        """Return the distance for a topic with these limits, in milliseconds."""
        return self.sign * ((limits[self.which % len(limits)] if limits else _NO_LIMIT) + self.beyond)


class Sent(NamedTuple):
    """Batch to send.

    Attributes:
        gaps: distance of each record's timestamp from the clock (None for no timestamp), and of its offset from the
            right offset.
        sizes: value size and key size of all records; without a key size, records have no keys.
        keyless: index of the only record without a key; past the end if all have keys.
        miscounted: number that is added to the record count and to the last offset in the header.
        options: other fields of the batch.
    """

    gaps: tuple[tuple[int | Limit | None, int], ...]
    sizes: tuple[int, ...]
    keyless: int
    miscounted: int
    options: dict[str, Any]

    def batch(self, now: int, settings: dict[str, Any]) -> dict[str, Any]:
        """Return the batch for an append at a time of the broker's clock, to a topic with these settings."""
        limits = [settings[name] for name in _LIMITS if name in settings]
        records = []
        for number, (gap, distance) in enumerate(self.gaps):
            sizes = self.sizes[:1] if number == self.keyless else self.sizes
            after = gap.distance(limits) if isinstance(gap, Limit) else gap
            records.append([number + distance, -1 if after is None else now + after, *sizes])
        batch: dict[str, Any] = {"records": records, **self.options}
        if self.miscounted and batch.get("magic", 2) >= 2:
            count = len(records) + self.miscounted
            batch["header"] = {"record_count": count, "last_offset_delta": count - 1, **batch.get("header", {})}
        elif any(distance for _, distance in self.gaps):
            batch.setdefault("header", {"last_offset_delta": len(records) - 1} if batch.get("magic", 2) >= 2 else {})
        # Batches with corrupt parts have no negative timestamps.
        if batch.get("magic", 2) < 2 or not KEYS & batch.keys():
            batch["records"] = [[offset, max(-1, timestamp), *sizes] for offset, timestamp, *sizes in records]
        return batch


_AT_LIMITS: Final = tuple(Limit(which, sign, beyond) for which in (0, 1) for sign in (1, -1) for beyond in (0, 1))


def recompressible(batch: dict[str, Any], settings: dict[str, Any]) -> dict[str, Any]:
    """Return the batch, with another codec if a leader may have to recompress it with lz4 or snappy (LG-58).

    An implementation under test that is not Kafka has other libraries than kidx. They may divide the same data into
    other blocks of lz4 or snappy, and treat corruption differently (LG-64). With Kafka's classes, kidx calls their
    libraries, and no batch has to be changed.
    """
    if is_corrupt_stream(batch):
        return batch | {"codec": "gzip"}
    may_be_rebuilt = batch.get("magic", 2) < 2 or KEYS & batch.keys() - {"payload", "crc"}
    if batch.get("codec") in _IN_BLOCKS and may_be_rebuilt and "compression.type" not in settings:
        return batch | {"codec": "gzip"}
    return batch


def recompressible_topic(settings: dict[str, Any]) -> dict[str, Any]:
    """Return the settings, with another codec if a leader would have to compress with lz4 or snappy."""
    return settings | {"compression.type": "gzip"} if settings.get("compression.type") in _IN_BLOCKS else settings


def topics() -> Draw[dict[str, Any]]:
    """Draw settings that make a leader reject or change batches; most examples have none of them.

    A clock that starts at 10,000 and timestamps near it make limits of 1,000 and 9,000 milliseconds matter.
    """
    limits = st.sampled_from((None, None, None, None, 9000, 9000, 1000, 0))
    strict = st.fixed_dictionaries(
        {},
        optional={
            "compression.type": st.sampled_from(("uncompressed", "gzip", "zstd", "lz4", "snappy")),
            "cleanup.policy": st.sampled_from(("compact", "compact,delete")),
            "max.message.bytes": st.sampled_from((100, 75, 140)),
            "max.decompressed.message.bytes": st.sampled_from((8, 60)),
        },
    )

    def with_limits(drawn: tuple[dict[str, Any], int | None, int | None, int | None]) -> dict[str, Any]:
        settings, *numbers = drawn
        return settings | {name: v for name, v in zip(_LIMITS, numbers, strict=True) if v is not None}

    some = st.tuples(strict, limits, limits, limits).map(with_limits)
    return st.one_of(st.just({}), st.just({}), some)


def sent() -> Draw[Sent]:
    """Draw one batch with at most one or two faults."""
    gaps = st.lists(
        st.tuples(
            st.sampled_from((0, -1, 1, None, *_AT_LIMITS, -10_007, 1 << 40)),
            st.sampled_from((0,) * 9 + (1, -1, 5)),
        ),
        min_size=1,
        max_size=3,
    ).map(tuple)
    return st.builds(
        Sent,
        gaps=gaps,
        sizes=st.sampled_from(((0,), (5,), (60,), (0, 1), (0, 0), (60, 9), (2100,))),
        keyless=st.sampled_from((9, 9, 0, 1)),
        miscounted=st.sampled_from((0, 0, 0, 0, 0, 1, -1)),
        options=st.one_of_kinds(*(_plain(), _headers(), _damages(), _old()) * 2, _stamped()),
    )


def _codecs() -> Draw[str]:
    return st.sampled_from(("none", "none", "gzip", "lz4", "snappy", "zstd"))


def _plain() -> Draw[dict[str, Any]]:
    return st.builds(lambda codec, producer: {"codec": codec, **producer}, _codecs(), _of_producers())


def _of_producers() -> Draw[dict[str, Any]]:
    return st.sampled_from(({}, {}, {"producer": [3, 0, 0]}, {"producer": [3, 0, 0], "transactional": True}))


def _headers() -> Draw[dict[str, Any]]:
    return st.fixed_dictionaries({"codec": _codecs(), "header": st.sampled_from(_HEADERS)})


def _stamped() -> Draw[dict[str, Any]]:
    """Draw a batch whose only fault is the LogAppendTime bit in its attributes."""
    return st.sampled_from(
        (
            {"codec": "none", "header": {"attributes": 8}},
            {"codec": "gzip", "header": {"attributes": 9}},
        )
    )


def _changes(last: int, first: int = 0) -> Draw[list[list[Any]]]:
    """Draw one or two changes of bytes, without sizes so large that reading them takes all memory.

    Args:
        last: position of the last byte that may change.
        first: position of the first byte that may change.
    """
    small = (0, 1, 2, 3, 4)
    large = (*small, 12, 14, 16, 127, 128, 200, 255)

    def setting(values: tuple[int, ...]) -> Draw[list[Any]]:
        return st.builds(lambda at, byte: ["set", at, byte], st.integers(first, last), st.sampled_from(values))

    cut = st.sampled_from((["cut", 1], ["cut", 3], ["cut", 9], ["cut", 40], ["add", 1], ["add", 5], ["add", 70]))
    one = setting(large) | cut
    return st.one_of(one.map(lambda change: [change]), st.tuples(one, setting(small) | cut).map(list))


def _inside() -> Draw[list[list[Any]]]:
    """Draw changes of the messages in a compressed message, but not of sizes, because Kafka allocates these sizes."""
    bytes_set = st.builds(lambda at, byte: ["set", at, byte], st.integers(12, 25), st.sampled_from((0, 1, 2, 128, 255)))
    others = st.sampled_from((["cut", 1], ["cut", 9], ["cut", 40], ["add", 1], ["add", 5], ["add", 30]))
    return st.lists(bytes_set | others, min_size=1, max_size=1)


def _claims() -> Draw[list[list[Any]]]:
    """Draw changes after which an lz4 frame has the flags for checksums, but no or truncated checksums (LG-75)."""
    ends = st.sampled_from(([], [], [["cut", 1]], [["cut", 4]], [["cut", 6]], [["add", 4]]))
    return st.builds(
        lambda flags, end: [["set", 4, flags[0]], ["set", 6, flags[1]], *end], st.sampled_from(CLAIMED), ends
    )


def _damages() -> Draw[dict[str, Any]]:
    """Draw corruptions of records, of compressed bytes, and of the checksum.

    A wrong length of the first record has its own share: in a compressed batch most releases do not notice it
    (LG-54b).
    """
    records = st.fixed_dictionaries({"codec": _codecs(), "plain": _changes(20)})
    anywhere = st.fixed_dictionaries({"codec": st.sampled_from(_STREAMS), "payload": _changes(60)})
    inside = st.fixed_dictionaries({"codec": st.just("snappy"), "payload": _changes(60, _SNAPPY_HEADER)})
    claims = st.fixed_dictionaries({"codec": st.just("lz4"), "payload": _claims()})
    payload = st.one_of(anywhere, anywhere, anywhere, inside, claims)
    checksum = st.fixed_dictionaries({"codec": _codecs(), "crc": st.just(False)})
    lengths = st.builds(
        lambda codec, length: {"codec": codec, "plain": [["set", 0, length]]},
        st.sampled_from(("gzip", "lz4", "zstd", "snappy")),
        st.sampled_from((0, 1, 2, 12, 16, 127)),
    )
    return st.one_of(records, records, payload, checksum, lengths)


def _old() -> Draw[dict[str, Any]]:
    """Draw messages of the old formats: valid, compressed, or corrupt in one way."""
    magic, codec = st.sampled_from((0, 1)), st.sampled_from(_OLD_CODECS)
    sound = st.fixed_dictionaries({"magic": magic, "codec": codec})
    inside = st.fixed_dictionaries({"magic": magic, "codec": codec, "plain": _inside()})
    header = st.fixed_dictionaries({"magic": magic, "codec": codec, "header": st.sampled_from(_OLD_HEADERS)})
    checksum = st.fixed_dictionaries({"magic": magic, "codec": codec, "crc": st.just(False)})
    return st.one_of(sound, sound, inside, header, checksum)
