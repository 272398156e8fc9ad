"""Batches with irregular timestamps, which experiments and tests send to a broker, and the timestamps to look up."""

from __future__ import annotations

import random
from dataclasses import dataclass

from kidx.dialect import dialect_of

# In the past, because a broker since 4.0 rejects timestamps more than an hour ahead of its clock.
EPOCH_MS = 1_700_000_000_000

# Compression by partition. A leader assigns offsets to an uncompressed batch in place, and rebuilds a compressed batch.
COMPRESSION: tuple[str | None, ...] = (None, "gzip")
LARGEST_BATCH = 6  # records


@dataclass(frozen=True, slots=True)
class Message:
    """Record to be produced, with its timestamp in milliseconds."""

    timestamp: int
    value: bytes


@dataclass(frozen=True, slots=True)
class Batch:
    """Records sent to a partition in one request, which become one batch in its log."""

    partition: int
    messages: tuple[Message, ...]


def topic_config(release: str) -> dict[str, str]:
    """Return topic settings that make many small segments.

    A dozen index entries fill a segment. Kafka 4 rejects ``segment.bytes`` below 1 MiB, so only full indexes cause a
    roll there. In earlier releases, the size causes some rolls, too.
    """
    config = {
        "index.interval.bytes": "200",
        "segment.index.bytes": "100",  # rounded down to 12 and 8 entries
        "message.timestamp.type": "CreateTime",
        "cleanup.policy": "delete",
        "retention.ms": "-1",
        "compression.type": "producer",
    }
    if dialect_of(release).smallest_segment <= 4000:
        config["segment.bytes"] = "4000"
    return config


def plan(seed: int, records: int) -> list[Batch]:
    """Return batches with ``records`` records in total; the same seed returns the same batches.

    Most timestamps come from a clock that advances. A quarter of the records are late, and some have the timestamp of
    the previous record. A few are in the future, so that the following records, of one or two segments, are older than
    the last entry of the time index.
    """
    random_ = random.Random(seed)  # noqa: S311  (repeatable on purpose)
    clock = [EPOCH_MS for _ in COMPRESSION]
    last = list(clock)
    batches: list[Batch] = []
    left = records
    while left:
        partition = random_.randrange(len(COMPRESSION))
        messages = []
        for _ in range(min(left, random_.randint(1, LARGEST_BATCH))):
            clock[partition] += random_.randrange(50)
            kind = random_.random()
            if kind < 0.25:
                timestamp = clock[partition] - random_.randrange(2_000)
            elif kind < 0.30:
                timestamp = last[partition]
            elif kind < 0.32:
                timestamp = clock[partition] + random_.randrange(1_500)
            else:
                timestamp = clock[partition]
            last[partition] = timestamp
            messages.append(Message(timestamp, random_.randbytes(random_.randrange(10, 120))))
        left -= len(messages)
        batches.append(Batch(partition, tuple(messages)))
    return batches


def grid(timestamps: set[int]) -> list[int]:
    """Return the timestamps to look up: each given one, its neighbours on both sides, and values far outside."""
    around = {timestamp + step for timestamp in timestamps for step in (-1, 0, 1)}
    return sorted(around | {0, 1, EPOCH_MS - 86_400_000, max(timestamps) + 86_400_000, (1 << 63) - 1})
