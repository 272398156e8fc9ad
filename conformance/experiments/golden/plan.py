"""Plan of a golden corpus's recording: topics and the steps that a broker executes.

The same seed gives the same plan.

Timestamps that are looked up in each log at the end of the recording of a golden corpus.
"""

from __future__ import annotations

import random
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Final

from conformance.kafka.broker.config import Mode, default_mode
from conformance.kafka.broker.workload import EPOCH_MS
from conformance.kafka.client import LARGEST_TARGET, SPECIAL_TARGETS
from kidx.dialect import dialect_of
from kidx.records import Codec, SimpleRecord

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

CODECS: Final = (Codec.NONE, Codec.NONE, Codec.GZIP, Codec.SNAPPY, Codec.LZ4, Codec.ZSTD)
_LARGEST_BATCH: Final = 5
_TRANSACTIONAL_IDS: Final = ("kidx-a", "kidx-b", "kidx-c")


@dataclass(frozen=True, slots=True)
class Append:
    """Step that produces records in one request: one batch of the current format, or messages of v1.

    ``producer`` is a transactional id, or None. The producer's first append, and the first after the end of a
    transaction, begins a transaction.
    """

    records: tuple[SimpleRecord, ...]
    codec: Codec = Codec.NONE
    magic: int = 2
    producer: str | None = None


@dataclass(frozen=True, slots=True)
class EndTransaction:
    """Step that commits or aborts the transaction of a producer, and waits for its marker."""

    producer: str
    commit: bool


@dataclass(frozen=True, slots=True)
class Restart:
    """Step that stops the broker cleanly and starts it again."""


Step = Append | EndTransaction | Restart


@dataclass(frozen=True, slots=True)
class Topic:
    """Topic with one partition.

    Attributes:
        why: what the topic tests, with the clauses.
        config: the settings.
        steps: the steps to execute, in order.
    """

    name: str
    why: str
    config: dict[str, str]
    steps: tuple[Step, ...]

    @property
    def codec(self) -> Codec | None:
        """Codec that the leader compresses with; None for the producer's codec."""
        name = self.config["compression.type"]
        return None if name == "producer" else Codec.NONE if name == "uncompressed" else Codec[name.upper()]


def topics(release: str, seed: int) -> list[Topic]:
    """Return the topics for a release; a topic that restarts the broker comes first, before the others exist."""
    config = small_segments(release)
    append_time = {"message.timestamp.type": "LogAppendTime"}
    plans = [
        Topic("restarted", "a clean restart within a segment: SEG-7, SEG-25", config, _restarted(seed)),
        Topic("create-time", "every codec; late, equal and missing timestamps: SEG-3 to SEG-9", config, _mixed(seed)),
        Topic("log-append-time", "stamped by the broker: RB-3, SEG-8", config | append_time, _stamped(seed)),
        Topic(
            "uncompressed",
            "the leader decompresses what is compressed: SEG-8",
            config | {"compression.type": "uncompressed"},
            tuple(_appends(_random(seed, 3), 24, CODECS)),
        ),
        Topic("transactions", "aborted, overlapping and open transactions: TX-9, TX-15, LO-12", config, _txns(seed)),
        Topic("untouched", "no record ever: SEG-1, SEG-24", config, ()),
    ]
    if dialect_of(release).old_formats != "rejected":
        v1 = config | {"message.format.version": "0.10.2"}
        plans += [
            Topic("message-v1", "several batches an append, of format v1: SEG-3, SEG-4, SEG-8", v1, _v1(seed, 5, 28)),
            Topic("message-v1-stamped", "the same, stamped by the broker: SEG-8", v1 | append_time, _v1(seed, 6, 16)),
        ]
    return plans


def setting(release: str) -> tuple[Mode, dict[str, str]]:
    """Return the mode of the broker, and its settings.

    A leader appends several batches in one call only for messages of v1. From 3.0 on, a broker stores such messages
    only if other brokers may be of 2.8, which is impossible with KRaft.
    """
    if dialect_of(release).old_formats == "for_older_brokers":
        return "zookeeper", {"inter.broker.protocol.version": "2.8"}
    return default_mode(release), {}


def small_segments(release: str) -> dict[str, str]:
    """Return settings under which a few kilobytes make several segments with a few index entries each.

    A time index has eight entries, one of which is reserved for a roll, and an offset index twelve. From 4.0 on, a
    broker rejects ``segment.bytes`` below 1 MiB, so only full indexes cause a roll.
    """
    return {
        "index.interval.bytes": "250",
        "segment.index.bytes": "100",
        "segment.bytes": str(max(5000, dialect_of(release).smallest_segment)),
        "message.timestamp.type": "CreateTime",
        "cleanup.policy": "delete",
        "retention.ms": "-1",
        "compression.type": "producer",
    }


def _random(seed: int, salt: int) -> random.Random:
    return random.Random(f"{seed}-{salt}")  # noqa: S311  (repeatable on purpose)


def _records(random_: random.Random, clock: int, count: int) -> tuple[SimpleRecord, ...]:
    """Return records with timestamps of a clock, except some: late, equal to the previous, early, or missing ones."""
    records: list[SimpleRecord] = []
    for number in range(count):
        kind = random_.random()
        timestamp = clock + 20 * number
        if kind < 0.25:
            timestamp -= random_.randrange(400)
        elif kind < 0.35 and records:
            timestamp = records[-1].timestamp
        elif kind < 0.38:
            timestamp += random_.randrange(500)
        elif kind < 0.40:
            timestamp = -1
        key = random_.randbytes(random_.randrange(1, 9)) if random_.random() < 0.5 else None
        value = random_.randbytes(random_.randrange(40)) if random_.random() < 0.95 else None
        headers = (("kidx", b"\x00" * number),) if random_.random() < 0.1 else ()
        records.append(SimpleRecord(timestamp, key, value, headers))
    return tuple(records)


def _appends(random_: random.Random, count: int, codecs: Iterable[Codec], start: int = EPOCH_MS) -> Iterator[Append]:
    clock, choices = start, tuple(codecs)
    for _ in range(count):
        size = random_.randint(1, _LARGEST_BATCH)
        yield Append(_records(random_, clock, size), random_.choice(choices))
        clock += 20 * size


def _records_at(*timestamps: int) -> tuple[SimpleRecord, ...]:
    return tuple(SimpleRecord(timestamp, b"k", b"v" * 20) for timestamp in timestamps)


def _mixed(seed: int) -> tuple[Step, ...]:
    """Return fixed steps, followed by random steps."""
    early = EPOCH_MS - 10_000
    by_hand = (
        Append(_records_at(-1, -1)),
        *(Append(_records_at(early + 40, early + 60, early + 50), codec) for codec in Codec),
        Append(_records_at(early + 100, early + 100, early + 100)),
        Append(_records_at(early + 200, early + 300, early + 250)),
        Append(_records_at(early + 1)),
        Append(_records_at(-1)),
    )
    return (*by_hand, *_appends(_random(seed, 1), 44, CODECS))


def _restarted(seed: int) -> tuple[Step, ...]:
    appends = list(_appends(_random(seed, 0), 32, (Codec.NONE, Codec.GZIP)))
    return (*appends[:17], Restart(), *appends[17:])


def _stamped(seed: int) -> tuple[Step, ...]:
    return tuple(_appends(_random(seed, 2), 24, CODECS))


def _txns(seed: int) -> tuple[Step, ...]:
    """Return steps of three producers, one with an open transaction at the end, and appends without a producer."""
    random_ = _random(seed, 4)
    steps: list[Step] = []
    open_: set[str] = set()
    for append in _appends(random_, 40, (Codec.NONE, Codec.LZ4)):
        producer = random_.choice((None, *_TRANSACTIONAL_IDS, *_TRANSACTIONAL_IDS))
        steps.append(Append(append.records, append.codec, producer=producer))
        open_ |= {producer} if producer else set()
        if open_ and random_.random() < 0.35:
            ended = random_.choice(sorted(open_))
            open_.remove(ended)
            steps.append(EndTransaction(ended, commit=random_.random() < 0.4))
    last = Append(_records(random_, EPOCH_MS + 60_000, 3), producer=_TRANSACTIONAL_IDS[0])
    return (*steps, last, Append(_records(random_, EPOCH_MS + 70_000, 2)))


def _v1(seed: int, salt: int, count: int) -> tuple[Step, ...]:
    """Return appends of messages of v1, and of batches of v2, which the leader converts to v1."""
    random_ = _random(seed, salt)

    def step(append: Append) -> Append:
        magic = random_.choice((1, 1, 2))
        records = tuple(record._replace(headers=()) for record in append.records)
        codec = append.codec if magic == 1 else Codec.NONE
        return Append(records, codec, magic)

    return tuple(step(append) for append in _appends(random_, count, (Codec.NONE, Codec.NONE, Codec.GZIP)))


_DAY_MS: Final = 86_400_000
_SAMPLED_EVERY: Final = 4


def targets(timestamps: list[int]) -> list[int]:
    """Return the targets to look up in a log with these timestamps, which are in log order.

    The right result changes at each record whose timestamp exceeds all earlier ones, so these timestamps and both
    neighbours are targets. Further targets are some other timestamps, values far outside, and the special targets.
    """
    highs = {0}.union(after for before, after in pairwise(_running_maximum(timestamps)) if after > before)
    around = {timestamp + step for timestamp in highs for step in (-1, 0, 1)}
    others = set(sorted(set(timestamps))[::_SAMPLED_EVERY])
    outside = {1, max(timestamps, default=0) + _DAY_MS, LARGEST_TARGET}
    return [*SPECIAL_TARGETS, *sorted(target for target in around | others | outside if target >= 0)]


def _running_maximum(timestamps: list[int]) -> list[int]:
    largest, seen = -1, [-1]
    for timestamp in timestamps:
        largest = max(largest, timestamp)
        seen.append(largest)
    return seen
