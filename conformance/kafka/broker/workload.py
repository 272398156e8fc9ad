"""What a scenario produces: batches whose timestamps do what real ones do, and worse."""

from __future__ import annotations

import random
from dataclasses import dataclass

from conformance.kafka.releases import version_key

# In the past: since 4.0 a broker refuses timestamps more than an hour ahead of its clock.
EPOCH_MS = 1_700_000_000_000

# Compression by partition: with both, an append happens in place and through the records' builder.
COMPRESSION: tuple[str | None, ...] = (None, "gzip")
LARGEST_BATCH = 6


@dataclass(frozen=True, slots=True)
class Message:
    """One record to be; the timestamp in milliseconds."""

    timestamp: int
    value: bytes


@dataclass(frozen=True, slots=True)
class Batch:
    """Records that go to a partition in one request, and so become one batch in its log."""

    partition: int
    messages: tuple[Message, ...]


def topic_config(release: str) -> dict[str, str]:
    """Return topic settings that make many small segments.

    A dozen index entries fill a segment. Kafka 4 refuses ``segment.bytes`` below 1 MiB, so there only the indexes
    make it roll; before, now the one and now the other.
    """
    config = {
        "index.interval.bytes": "200",
        "segment.index.bytes": "100",  # rounded down to 12 and 8 entries
        "message.timestamp.type": "CreateTime",
        "cleanup.policy": "delete",
        "retention.ms": "-1",
        "compression.type": "producer",
    }
    if version_key(release) < (4,):
        config["segment.bytes"] = "4000"
    return config


def plan(seed: int, records: int) -> list[Batch]:
    """Return batches with ``records`` records in all, the same ones for the same seed.

    Mostly a clock that ticks; but a quarter of the records are late, some are equal to the one before, and a few run
    ahead, so that what follows them, over a whole segment or two, is older than what the index has seen.
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
    """Return what to look up: every timestamp, its neighbours on both sides, and what lies far outside."""
    around = {timestamp + step for timestamp in timestamps for step in (-1, 0, 1)}
    return sorted(around | {0, 1, EPOCH_MS - 86_400_000, max(timestamps) + 86_400_000, (1 << 63) - 1})
