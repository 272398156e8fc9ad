"""Broker under mixed load, whose files ``kidx verify`` checks in a loop; no check may find a fault.

``python tests/support/churn.py 3.9.2 --looks 120 --evidence DIR`` checks 120 times, and copies each partition with a
finding.
"""

from __future__ import annotations

import argparse
import contextlib
import dataclasses
import random
import re
import shutil
import sys
import tempfile
import threading
import time
from collections import Counter, defaultdict
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from busy_broker import start_again

from conformance.kafka.broker import BrokerError, LocalBroker
from conformance.kafka.client import ClientError
from conformance.kafka.client.library import request_class
from kidx.findings import HARMLESS
from kidx.records import build_batch
from kidx.startup import predict
from kidx.startup.evidence import already_lost
from kidx.verify import verify_paths

if TYPE_CHECKING:
    from conformance.kafka.client import Client, Producer
    from kidx.findings import Finding
    from kidx.verify import Verification

DISKS: Final = ("data", "disk2", "disk3")
_SMALL: Final = {"segment.index.bytes": "1024", "index.interval.bytes": "512", "segment.ms": "700"}
_COMPACT: Final = _SMALL | {
    "cleanup.policy": "compact",
    "min.cleanable.dirty.ratio": "0.001",
    "delete.retention.ms": "100",
}
TOPICS: Final[dict[str, dict[str, str]]] = {
    "plain": _SMALL | {"retention.bytes": "30000"},
    "timed": _SMALL | {"retention.ms": "2000"},
    "room": _SMALL | {"preallocate": "true", "retention.bytes": "100000"},
    "cut": _SMALL | {"segment.ms": "60000"},
    "keyed": _COMPACT,
    "both": _COMPACT | {"cleanup.policy": "compact,delete", "retention.ms": "5000"},
    "state": _COMPACT,
    "events": _SMALL | {"retention.bytes": "60000"},
    "defaults": {},
}
_SHORT_LIVED: Final = tuple(f"short-{number}" for number in range(6))
_COMMITTED: Final = ("state", "events", "keyed")
"""Topics with transactions."""


def settings(home: Path, release: str) -> dict[str, object]:
    """Return broker properties that make segments roll, expire and compact often."""
    config: dict[str, object] = {
        "log.dirs": ",".join(str(home / disk) for disk in DISKS),
        "log.cleaner.backoff.ms": 100,
        "log.cleaner.dedupe.buffer.size": 4 * 1024 * 1024,
        "log.retention.check.interval.ms": 400,
        "log.segment.delete.delay.ms": 1500,
        "log.initial.task.delay.ms": 500,
    }
    if int(release[0]) < 4:  # these releases accept no value below 1 MiB
        config |= {"offsets.topic.segment.bytes": 20_000, "transaction.state.log.segment.bytes": 20_000}
    if release.startswith("2."):
        return config
    return config | {
        "metadata.log.dir": home / "disk2",
        "metadata.log.max.snapshot.interval.ms": 3000,
        "metadata.max.retention.bytes": 10_000,
        "metadata.log.segment.ms": 1000,
    }


class _Driver(threading.Thread):
    """Source of load for a broker, until it is stopped. It continues after a restart of the broker."""

    def __init__(self, broker: LocalBroker, home: Path, seed: int) -> None:
        super().__init__(daemon=True)
        self.done: Counter[str] = Counter()
        self.over = threading.Event()
        self.error: BaseException | None = None
        self._broker, self._home = broker, home
        self._draw = random.Random(seed)  # noqa: S311 -- repeatable on purpose
        self._short_lived: set[str] = set()
        self._open: dict[str, tuple[Producer, str, int]] = {}

    def run(self) -> None:
        while not self.over.is_set():
            try:
                with self._broker.connect() as client:
                    self._prepare(client)
                    while not self.over.is_set():
                        self._step(client)
            except (ClientError, BrokerError, OSError, AssertionError) as error:
                self.done[f"interrupted: {str(error).partition(' (')[0][-60:]}"] += 1
                self._open.clear()
                time.sleep(0.2)
            except BaseException as error:
                self.error = error
                raise

    def _prepare(self, client: Client) -> None:
        known = client.metadata(None).topics
        for topic, config in TOPICS.items():
            if topic not in known:
                client.create_topic(topic, config)
            client.await_leader(topic)

    def _step(self, client: Client) -> None:
        steps: list[tuple[int, Callable[[Client], None]]] = [
            (30, self._append),
            (14, self._transact),
            (2, self._commit_offsets),
            (2, self._delete_records),
            (1, self._make_or_delete),
            (1, self._move_log),
        ]
        weights, choices = zip(*steps, strict=True)
        (step,) = self._draw.choices(choices, weights)
        step(client)
        self.done[step.__name__.strip("_")] += 1

    def _batch(self, topic: str, size: int, **options: Any) -> bytes:
        now = time.time_ns() // 1_000_000
        keys = 12 if "compact" in TOPICS.get(topic, {}).get("cleanup.policy", "") else 100_000
        rows = [
            (now, str(self._draw.randrange(keys)).encode(), self._draw.randbytes(self._draw.randrange(200)))
            for _ in range(size)
        ]
        return build_batch(rows, **options)

    def _append(self, client: Client) -> None:
        topic = self._draw.choice([*TOPICS, *sorted(self._short_lived)])
        client.append(topic, self._batch(topic, self._draw.randint(1, 5)))

    def _transact(self, client: Client) -> None:
        """Begin, continue or end a transaction; several are open at a time, and some are never ended, but fenced."""
        name = f"tx-{self._draw.randrange(4)}"
        if name not in self._open:
            producer = client.init_producer(name)  # fences, and so aborts, an open transaction
            self._open[name] = (producer, self._draw.choice(_COMMITTED), 0)
            client.join_transaction(self._open[name][1], name, producer)
        producer, topic, sequence = self._open[name]
        chance = self._draw.random()
        if chance < 0.7:
            size = self._draw.randint(1, 3)
            data = self._batch(topic, size, **producer._asdict(), base_sequence=sequence, is_transactional=True)
            if client.append(topic, data, transactional_id=name).error is None:
                self._open[name] = (producer, topic, sequence + size)
            else:
                del self._open[name]
        elif chance < 0.9:
            client.end_transaction(name, producer, commit=self._draw.random() < 0.4)
            del self._open[name]
        else:
            del self._open[name]

    def _commit_offsets(self, client: Client) -> None:
        """Commit offsets of a group in a transaction."""
        name, group = "tx-offsets", "churn"
        producer = client.init_producer(name)
        common = {
            "transactional_id": name,
            "producer_id": producer.producer_id,
            "producer_epoch": producer.producer_epoch,
            "group_id": group,
        }
        coordinator = request_class("FindCoordinator")(version=2, key=group, key_type=0)
        client._exchange(coordinator)
        client._exchange(request_class("AddOffsetsToTxn")(version=1, **common))
        kind = request_class("TxnOffsetCommit").TxnOffsetCommitRequestTopic
        part = kind.TxnOffsetCommitRequestPartition
        for number in range(self._draw.randint(1, 4)):
            each = part(partition_index=0, committed_offset=number, committed_metadata="m" * 100)
            topics = [kind(name=self._draw.choice(list(TOPICS)), partitions=[each])]
            client._exchange(request_class("TxnOffsetCommit")(version=2, **common, topics=topics))
        client.end_transaction(name, producer, commit=self._draw.random() < 0.5)

    def _delete_records(self, client: Client) -> None:
        topic = self._draw.choice(("cut", "defaults", "plain"))
        client.delete_records(topic, self._draw.randint(0, max(0, client.end_offset(topic))))

    def _make_or_delete(self, client: Client) -> None:
        """Create one of a few topics, which may have existed before, or delete it."""
        topic = self._draw.choice(_SHORT_LIVED)
        if topic in client.metadata(None).topics:
            client.delete_topic(topic)
            self._short_lived.discard(topic)
        else:
            client.create_topic(topic, _SMALL, partitions=2)
            self._short_lived.add(topic)

    def _move_log(self, client: Client) -> None:
        kind = request_class("AlterReplicaLogDirs").AlterReplicaLogDir
        topics = [kind.AlterReplicaLogDirTopic(name=self._draw.choice(list(TOPICS)), partitions=[0])]
        path = str(self._home / self._draw.choice(DISKS))
        client._exchange(request_class("AlterReplicaLogDirs")(version=1, dirs=[kind(path=path, topics=topics)]))


@dataclasses.dataclass
class Churned:
    """Findings of the checks."""

    release: str
    looks: int = 0
    seconds: float = 0.0
    faults: list[tuple[int, str, Finding]] = dataclasses.field(default_factory=list)
    verdicts: Counter[tuple[str, str]] = dataclasses.field(default_factory=Counter)
    seen: Counter[str] = dataclasses.field(default_factory=Counter)
    done: Counter[str] = dataclasses.field(default_factory=Counter)

    def __str__(self) -> str:
        lines = [f"{self.release}: {self.looks} looks in {self.seconds:.0f} s, {len(self.faults)} faults"]
        lines += [
            f"  {kind}: {dict(sorted(counts.items()))}"
            for kind, counts in (("verdicts", self.verdicts), ("seen", self.seen), ("done", self.done))
        ]
        lines += [f"  look {number} ({state}): {finding}" for number, state, finding in self.faults]
        return "\n".join(lines)


def churn(
    release: str, looks: int, *, seed: int = 0, limit: float = 900.0, evidence: Path | None = None, ends: int = 3
) -> Churned:
    """Check the files of a busy broker that is periodically restarted and killed.

    Args:
        release: The release of the broker.
        looks: The number of checks; fewer are made if the time is up.
        seed: The seed of the load.
        limit: The time limit in seconds.
        evidence: The directory for copies of the partitions with a finding; None for no copies.
        ends: The number of kills and stops.
    """
    result, started = Churned(release), time.monotonic()
    with tempfile.TemporaryDirectory(prefix="kidx-churn-") as temporary:
        home = Path(temporary) / "broker"
        broker = LocalBroker(release, home, settings(home, release))
        driver = _Driver(broker, home, seed)
        result.done = driver.done
        try:
            broker.start()
            driver.start()
            time.sleep(2)
            for number in range(looks):
                if time.monotonic() - started > limit:
                    break
                state = _pass_on(broker, number, max(4, looks // (ends + 1)))
                found = _look(home, state, result, evidence)
                if state != "living":
                    _remove_duplicates(home, found, release, result)
                    start_again(broker)
                assert driver.error is None, driver.error
        finally:
            driver.over.set()
            broker.close()
            driver.join(30)
    result.seconds = time.monotonic() - started
    return result


def _pass_on(broker: LocalBroker, number: int, every: int) -> str:
    """Kill the broker twice, then stop it, and so on, after some checks each."""
    if not broker.running:  # the broker dies if a directory is moved while retention renames files in it
        broker.kill()
        return "died"
    if number % every != every - 1:
        time.sleep(0.05)
        return "living"
    if number // every % 3 == 2:
        with contextlib.suppress(BrokerError):
            broker.stop()
            return "stopped"
    broker.kill()
    return "killed"


def _remove_duplicates(home: Path, found: Verification, release: str, result: Churned) -> None:
    """Remove one of two directories of a partition, which a kill during a move leaves, so that the broker can start.

    Raises:
        AssertionError: the prediction of the start does not name the partition.
    """
    places: dict[str, list[Path]] = defaultdict(list)
    for path in sorted(home.glob("*/*-*/")):
        if path.parent.name in DISKS and re.fullmatch(r".+-\d+", path.name):
            places[path.name].append(path)
    twins = {name: paths for name, paths in places.items() if len(paths) > 1}
    if not twins:
        return
    fatal = predict([home / disk for disk in DISKS], found, release).fatal
    for name, paths in twins.items():
        assert any(name in blocker.reason for blocker in fatal), f"{name} is in {paths}; predicted: {fatal}"
        shutil.rmtree(min(paths, key=lambda path: sum(log.stat().st_size for log in path.glob("*.log"))))
        result.seen["duplicates"] += 1


def _look(home: Path, state: str, result: Churned, evidence: Path | None) -> Verification:
    found = verify_paths([home / disk for disk in DISKS], processes=1)
    result.looks += 1
    result.verdicts[state, found.verdict] += 1
    result.seen["segments"] += found.segments
    result.seen["partitions"] += found.partitions
    result.seen["skipped"] += len(found.left_out)
    result.seen["changing"] += sum(file.verdict == "changing" for file in found.files)
    for finding in (*found.faults(), *_losses(found)):
        result.faults.append((result.looks, state, finding))
    if evidence is not None:
        places = {Path(finding.path).parent for finding in found.faults()} | set(already_lost(found))
        for directory in places:
            target = evidence / f"{result.release}-{result.looks}" / directory.parent.name
            with contextlib.suppress(OSError, shutil.Error):
                shutil.copytree(directory, target / directory.name)
                for checkpoint in directory.parent.glob("*-checkpoint"):
                    shutil.copy(checkpoint, target)
    return found


def _losses(found: Verification) -> list[Finding]:
    """Return the remarks that say that a log has lost records: the load loses none, but deletes many."""
    lost = already_lost(found)
    return [each for each in found.findings if each.verdict in HARMLESS and each.message in lost.values()]


def main() -> int:
    """Run the churn and print its result."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("release")
    parser.add_argument("--looks", type=int, default=100)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--limit", type=float, default=900.0)
    parser.add_argument("--evidence", type=Path)
    parser.add_argument("--ends", type=int, default=3)
    asked = parser.parse_args()
    options = {"seed": asked.seed, "limit": asked.limit, "evidence": asked.evidence, "ends": asked.ends}
    result = churn(asked.release, asked.looks, **options)
    sys.stdout.write(f"{result}\n")
    return int(bool(result.faults))


if __name__ == "__main__":
    sys.exit(main())
