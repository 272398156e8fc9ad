"""Scenario of a broker: produce out of order, query by time, stop, and compare the results with the files.

``run_scenario(broker)`` takes a started broker, and stops it at the end without changing its files::

    with LocalBroker("4.3.1") as broker:
        result = run_scenario(broker)
    assert result.ok, result.mismatches
"""

from __future__ import annotations

import shutil
import tempfile
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from partition_files import Partition

from conformance.kafka.broker.external import Mismatch
from conformance.kafka.broker.workload import COMPRESSION, grid, plan, topic_config
from kidx.dialect import dialect_of
from kidx.records import Codec, SimpleRecord, build_batch

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from conformance.kafka.broker.broker import Broker
    from conformance.kafka.broker.workload import Batch
    from conformance.kafka.client import Client, OffsetResult
    from kidx.dialect import Dialect

TOPIC = "kidx-scenario"
RECORDS = 600

# Special timestamps: the first ListOffsets version that has each, and the clause that defines it.
SPECIALS = {-1: (0, "LO-2"), -2: (0, "LO-1"), -3: (7, ""), -4: (8, "LO-3"), -5: (9, "LO-4")}
_MAX_CLAUSE = {"remembered": "LO-9", "read": "LO-10"}


@dataclass(frozen=True, slots=True)
class ScenarioResult:
    """Result of a scenario.

    ``seed`` and ``records`` reproduce the scenario; the other numbers say how much was checked.
    """

    release: str
    mode: str
    seed: int
    records: int
    batches: int
    segments: int
    offset_entries: int
    time_entries: int
    answers: int
    ready_seconds: float
    mismatches: tuple[Mismatch, ...]

    @property
    def ok(self) -> bool:
        """Return True if every check passed."""
        return not self.mismatches


def run_scenario(broker: Broker, *, seed: int = 0, records: int = RECORDS, topic: str = TOPIC) -> ScenarioResult:
    """Run the scenario on a started broker. Afterwards the broker is stopped, and can be started again.

    Raises:
        BrokerError: The broker died, failed a request, or did not stop cleanly.
    """
    batches = plan(seed, records)
    dialect = dialect_of(broker.release)
    specials = [special for special, (version, _) in SPECIALS.items() if dialect.list_offsets_versions[1] >= version]
    targets = [grid(_timestamps(batches, partition)) for partition in range(len(COMPRESSION))]
    with broker.connect() as client:
        create(client, topic, topic_config(broker.release))
        produce(client, topic, batches)
        version = dialect.list_offsets_versions[1]
        answers = [
            client.answers(topic, [*specials, *each], version=version, partition=number)
            for number, each in enumerate(targets)
        ]
    broker.stop()

    mismatches: list[Mismatch] = []
    counts = {"batches": 0, "segments": 0, "offset_entries": 0, "time_entries": 0, "answers": 0}
    for number in range(len(COMPRESSION)):
        name = f"{topic}-{number}"
        with _copied(broker.log_dir / name) as directory, Partition(directory, dialect) as partition:
            for segment in partition.segments:
                counts["batches"] += len(segment.batches)
                counts["offset_entries"] += len(segment.offset_index)
                counts["time_entries"] += len(segment.time_index)
            counts["segments"] += len(partition.segments)
            counts["answers"] += len(targets[number]) + len(specials)
            mismatches += partition.mismatches()
            mismatches += _content_mismatches(name, partition, [b for b in batches if b.partition == number])
            for answer in answers[number]:
                clause = _clause_of(answer.target, dialect) if answer.target in SPECIALS else "LO-6"
                mismatches += _compared(clause, name, answer, partition.answer(answer.target))
    return ScenarioResult(
        broker.release,
        broker.mode,
        seed,
        records,
        ready_seconds=broker.ready_seconds,
        mismatches=tuple(mismatches),
        **counts,
    )


def create(client: Client, topic: str, config: dict[str, str]) -> None:
    """Create a topic with a partition for each compression codec, and wait until the partitions have leaders."""
    client.create_topic(topic, config, partitions=len(COMPRESSION))
    for partition in range(len(COMPRESSION)):
        client.await_leader(topic, partition)


def produce(client: Client, topic: str, batches: Iterable[Batch]) -> None:
    """Append each batch in its own request, after all replicas have acknowledged the previous one."""
    for batch in batches:
        records = [SimpleRecord(message.timestamp, None, message.value) for message in batch.messages]
        data = build_batch(records, codec=Codec[(COMPRESSION[batch.partition] or "none").upper()])
        assert client.append(topic, data, partition=batch.partition).error is None


def _timestamps(batches: list[Batch], partition: int) -> set[int]:
    return {message.timestamp for batch in batches if batch.partition == partition for message in batch.messages}


def _clause_of(special: int, dialect: Dialect) -> str:
    return SPECIALS[special][1] or _MAX_CLAUSE[dialect.max_lookup]


def _content_mismatches(name: str, partition: Partition, sent: list[Batch]) -> Iterator[Mismatch]:
    """Check that the log has the batches that were produced; otherwise the other checks prove little."""
    stored = [
        [(record.timestamp, record.value) for record in batch]
        for segment in partition.segments
        for batch in segment.batches
    ]
    expected = [[(message.timestamp, message.value) for message in batch.messages] for batch in sent]
    if stored != expected:
        differ = [n for n, (a, b) in enumerate(zip(expected, stored, strict=False)) if a != b]
        where = f"batch {differ[0]} differs" if differ else f"{len(stored)} batches"
        yield Mismatch("RB-1", name, f"the {len(expected)} batches that were produced", where)


def _compared(clause: str, name: str, answered: OffsetResult, looked_up: OffsetResult) -> Iterator[Mismatch]:
    if answered != looked_up:
        yield Mismatch(
            clause, f"{name} at {answered.target}", f"{looked_up} (through the index files)", f"{answered} (the broker)"
        )


@contextmanager
def _copied(directory: Path) -> Iterator[Path]:
    """Provide a copy of a directory, because the broker's own files must not be changed."""
    with tempfile.TemporaryDirectory(prefix="kidx-copy-") as temporary:
        yield Path(shutil.copytree(directory, Path(temporary) / directory.name))
