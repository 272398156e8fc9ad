"""Many cycles of ``kill -9``: acknowledged batches remain, and every other batch of the log was sent.

In every cycle, each topic receives batches that all replicas acknowledge. One topic also receives a series of batches
that are sent without waiting, and the broker is killed while it appends them. The log must then contain a prefix of the
series, in order, which includes at least the acknowledged batches. The reference appends the same prefix.
"""

from __future__ import annotations

import random
from typing import TYPE_CHECKING, Any, Final

from conformance.kafka.broker.workload import EPOCH_MS
from conformance.operations import Operation
from conformance.operations.broker import PRODUCERS
from kidx.dialect import dialect_of

if TYPE_CHECKING:
    from conformance.lockstep.scopes.broker import BrokerLockstep

_HOUR_MS: Final = 3_600_000
_MINUTE_MS: Final = 60_000
IN_FLIGHT: Final = 40
"""The number of batches in flight when the broker is killed."""


def kill_cycles(lockstep: BrokerLockstep, cycles: int, seed: int) -> None:
    """Create topics with different settings, and run a number of kill cycles.

    Raises:
        DivergenceError: Acknowledged batches are lost or moved, or there is another divergence.
        BrokerError: The broker does not start.
    """
    random_ = random.Random(seed)  # noqa: S311 -- repeatable on purpose
    for settings in _topics(lockstep.release):
        lockstep.perform(Operation("create_topic", (settings,)))
    clock = EPOCH_MS
    for cycle in range(cycles):
        clock += _HOUR_MS if cycle % 2 else 0
        for topic in lockstep.topics:
            for _ in range(random_.randint(1, 4)):
                clock += random_.randrange(100)
                lockstep.perform_on(topic, Operation("append_batch", (_rows(random_, clock), "none", None)))
        transactional = lockstep.topics[0]
        producer = random_.choice(PRODUCERS)
        lockstep.perform_on(transactional, Operation("append_batch", (_rows(random_, clock), "none", producer)))
        if random_.random() < 0.6:
            ending = Operation("end_transaction", (random_.choice(PRODUCERS), random_.random() < 0.5))
            lockstep.perform_on(transactional, ending)
        busy = random_.choice(lockstep.topics)
        rows = [_rows(random_, clock + number) for number in range(IN_FLIGHT)]
        lockstep.kill_while_appending(busy, rows, acknowledged=random_.randrange(IN_FLIGHT))


def _topics(release: str) -> list[dict[str, Any]]:
    """Return the settings of three topics: with defaults, with LogAppendTime, and compressed."""
    common: dict[str, Any] = {
        "segment.bytes": max(4000, dialect_of(release).smallest_segment),
        # An index needs more space than a segment uses, because a log with full indexes cannot be recovered (LG-19).
        "segment.index.bytes": 4800,
        "segment.ms": _HOUR_MS,
        "index.interval.bytes": 150,
        "retention.ms": -1,
        # the data would otherwise be in the page cache, which survives the kill of a process
        "flush.messages": 1,
    }
    stamped = {**common, "message.timestamp.type": "LogAppendTime", "segment.ms": _MINUTE_MS}
    return [common, stamped, {**common, "compression.type": "gzip"}]


def _rows(random_: random.Random, clock: int) -> list[list[Any]]:
    """Return the records of a batch: timestamp, key, size of the value."""
    return [
        [clock + random_.randrange(-300, 50), None, random_.randrange(10, 80)] for _ in range(random_.randint(1, 4))
    ]
