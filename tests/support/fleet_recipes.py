"""Recorder of log directories of healthy brokers that ``kidx verify`` once called broken.

``python tests/support/fleet_recipes.py F1 F2 ...`` creates ``tests/golden-fleet/F1.tar.xz`` and so on with a real
broker. Timestamps and random ids differ between recordings; the property that a case tests does not.
"""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
import time
from collections.abc import Callable, Iterable
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Final

from conformance.experiments.golden.corpus import ARCHIVE, unpack, write_archive
from conformance.kafka.broker import LocalBroker
from conformance.kafka.broker.cluster import LocalCluster
from conformance.kafka.client.library import request_class
from conformance.kafka.polling import Deadline
from kidx.discovery import CLEAN_SHUTDOWN, META_PROPERTIES
from kidx.records import build_batch

if TYPE_CHECKING:
    from collections.abc import Iterator

    from conformance.kafka.client import Client

ARCHIVES: Final = Path(__file__).parents[1] / "golden-fleet"
CLEANER: Final = {
    "log.cleaner.backoff.ms": 200,
    "log.cleaner.dedupe.buffer.size": 4 * 1024 * 1024,
    "log.segment.index.bytes": 1024,
}
COMPACT: Final = {
    "cleanup.policy": "compact",
    "min.cleanable.dirty.ratio": "0.0001",
    "delete.retention.ms": "0",
    "segment.index.bytes": "1024",
    "segment.ms": "1000",
    "index.interval.bytes": "512",
}
_CHECKPOINTS: Final = (
    META_PROPERTIES,
    CLEAN_SHUTDOWN,
    "log-start-offset-checkpoint",
    "recovery-point-offset-checkpoint",
    "replication-offset-checkpoint",
    "cleaner-offset-checkpoint",
)


@contextmanager
def unpacked(case: str, directory: Path) -> Iterator[Path]:
    """Unpack the log directories of a case below a directory, and return them."""
    unpack(ARCHIVES / f"{case}{ARCHIVE}", directory)
    yield directory / case


def pack(case: str, directories: dict[str, Path], wanted: Callable[[str], bool]) -> Path:
    """Write an archive of log directories. Equal files give equal archives.

    Args:
        case: The name of the case.
        directories: The log directories, by their names in the archive.
        wanted: Function that returns True if a partition directory with this name belongs to the case.
    """
    ARCHIVES.mkdir(exist_ok=True)
    target = ARCHIVES / f"{case}{ARCHIVE}"
    files = {}
    for name, directory in directories.items():
        for path in directory.rglob("*"):
            inner = path.relative_to(directory)
            known = inner.parts[0] in _CHECKPOINTS or wanted(inner.parts[0])
            if path.is_file() and known and path.suffix != ".deleted":
                files[f"{case}/{name}/{inner}"] = path
    write_archive(target, files)
    return target


def keyed(*keys: str, value: bytes = b"x" * 40, **options: object) -> bytes:
    """Return a batch with a record for each key and with the present time, like the markers of transactions."""
    return build_batch([(time.time_ns() // 1_000_000, key.encode(), value) for key in keys], **options)


def fill(client: Client, topic: str, count: int, *, prefix: str = "k", partition: int = 0) -> None:
    """Append batches of one record with unique keys."""
    for number in range(count):
        assert client.append(topic, keyed(f"{prefix}{number}"), partition=partition).error is None


def await_true(what: str, true: Callable[[], bool], limit: float = 30.0) -> None:
    """Wait until a condition is true."""
    deadline = Deadline(limit)
    while not true():
        assert deadline.pause(), f"{what} did not come true within {limit:g} s"


def cleaned_to(directory: Path, topic: str) -> int:
    """Return the offset in the cleaner's checkpoint for partition 0 of a topic."""
    path = directory / "cleaner-offset-checkpoint"
    lines = path.read_text().splitlines()[2:] if path.exists() else []
    return next((int(line.split()[2]) for line in lines if line.split()[:2] == [topic, "0"]), 0)


def metadata_log() -> None:
    """Make F1: the log of KRaft's metadata, whose beginning was deleted after a snapshot; after a clean stop."""
    with tempfile.TemporaryDirectory() as temporary:
        home = Path(temporary, "broker")
        config = {
            "metadata.log.dir": home / "metadata",
            "metadata.log.max.snapshot.interval.ms": 2000,
            "metadata.max.retention.bytes": 12_000,
            "metadata.log.segment.ms": 500,
            "metadata.max.idle.interval.ms": 100,
        }
        with LocalBroker("4.3.1", home, config) as broker, broker.connect() as client:
            log = home / "metadata" / "__cluster_metadata-0"
            for number in range(25):
                client.create_topic(f"t{number}", {})
            await_true("a snapshot in place of the log's beginning", lambda: not (log / f"{0:020d}.log").exists(), 90)
            time.sleep(3)
            broker.stop()
            pack("F1", {"metadata": home / "metadata"}, "__cluster_metadata-0".__eq__)


def aborted_over_a_boundary() -> None:
    """Make F2: transactions that begin in the compacted part of a log and are aborted after it; after a clean stop.

    In topic ``gap``, only the marker of one transaction remains. In topic ``stable``, the beginning of a transaction
    was removed that was open when another transaction was aborted, so the log does not determine the last stable
    offset.
    """
    with LocalBroker("3.9.2", config=CLEANER) as broker, broker.connect() as client:
        topics = ("gap", "stable")
        for topic in topics:
            client.create_topic(topic, COMPACT)
            client.await_leader(topic)
        producers = {name: client.init_producer(name) for name in (*topics, "other")}
        sequences = dict.fromkeys(producers, 0)

        def write(topic: str, name: str) -> None:
            client.join_transaction(topic, name, producers[name])
            sequence, sequences[name] = sequences[name], sequences[name] + 1
            data = keyed(name, **producers[name]._asdict(), base_sequence=sequence, is_transactional=True)
            assert client.append(topic, data, transactional_id=name).error is None

        for topic in topics:
            fill(client, topic, 5)
            write(topic, topic)
            fill(client, topic, 5, prefix="l")
        time.sleep(1.2)
        write("stable", "stable")  # in a second segment, which remains active
        write("stable", "other")
        client.end_and_await_marker("stable", "other", producers["other"], commit=False)
        # A new epoch aborts the open transaction; then no empty batch is kept for the producer's sequence number.
        for topic in topics:
            client.init_producer(topic)
        for topic in topics:
            await_true(f"cleaning of {topic}", lambda topic=topic: cleaned_to(broker.log_dir, topic) == 11)
        broker.stop()
        pack("F2", {"data": broker.log_dir}, lambda name: name.rpartition("-")[0] in topics)


def deleted_records() -> None:
    """Make F3: records that were deleted less than 60 s ago.

    ``live`` was copied immediately. ``killed`` was copied after the broker was killed, ``again`` after another start
    and stop. ``follower`` is a replica whose broker was killed, too.
    """
    config = {"log.segment.index.bytes": 1024}
    with tempfile.TemporaryDirectory() as temporary:
        copies = {name: Path(temporary, name) for name in ("live", "killed", "again", "follower")}
        with LocalBroker("4.3.1", config=config) as broker:
            with broker.connect() as client:
                for name in ("cut", "epochs"):
                    client.create_topic(name, {"segment.index.bytes": "1024", "index.interval.bytes": "512"})
                    client.await_leader(name)
                    fill(client, name, 60)
            broker.stop()
            broker.start()
            with broker.connect() as client:
                for name in ("cut", "epochs"):
                    client.await_leader(name)
                    fill(client, name, 30)
                assert client.delete_records("cut", 33) is None
                assert client.delete_records("epochs", 70) is None  # the checkpoint loses the first epoch
                shutil.copytree(broker.log_dir, copies["live"])
            broker.kill()
            shutil.copytree(broker.log_dir, copies["killed"])
            broker.start()
            broker.stop()
            shutil.copytree(broker.log_dir, copies["again"])
        with LocalCluster("4.3.1", config) as cluster:
            with cluster.members[1].connect() as client:
                client.create_topic("cut", {"segment.index.bytes": "1024"}, replicas=[1, 2])
                client.await_leader("cut")
                fill(client, "cut", 60)
                await_true("replication", lambda: client.delete_records("cut", 33) is None)
            epochs = cluster.members[2].log_dir / "cut-0" / "leader-epoch-checkpoint"
            await_true("the follower's new log start", lambda: epochs.read_text().split()[-1] == "33")
            cluster.members[2].kill()
            shutil.copytree(cluster.members[2].log_dir, copies["follower"])
        pack("F3", copies, lambda name: name in ("cut-0", "epochs-0"))


def deleted_topics() -> None:
    """Make F4: topics deleted just before a clean stop, whose files are neither closed nor deleted."""
    with LocalBroker("3.9.2", config={"log.segment.index.bytes": 1024}) as broker, broker.connect() as client:
        for name in ("stays", "willgo"):
            client.create_topic(name, {"segment.index.bytes": "1024"})
            client.await_leader(name)
            fill(client, name, 20)
        client.delete_topic("willgo")
        await_true("the mark", lambda: any(path.name.endswith("-delete") for path in broker.log_dir.iterdir()))
        broker.stop()
        pack("F4", {"data": broker.log_dir}, lambda name: name.startswith(("stays", "willgo")))


def strays() -> None:
    """Make F5: a partition that is unknown to its cluster at the start, and becomes a stray; after a clean stop."""
    config = {"log.segment.index.bytes": 1024, "log.initial.task.delay.ms": 600_000}
    with LocalBroker("3.9.2", config=config) as broker:
        with broker.connect() as client:
            client.create_topic("stays", {"segment.index.bytes": "1024"})
            client.await_leader("stays")
            fill(client, "stays", 20)
        broker.stop()
        ghost = broker.log_dir / "ghost-0"
        shutil.copytree(broker.log_dir / "stays-0", ghost)
        about = ghost / "partition.metadata"
        about.write_text(about.read_text().partition("topic_id")[0] + "topic_id: AAAAAAAAAAAAAAAAAAAAAQ\n")
        broker.start()
        await_true("the mark", lambda: any(path.name.endswith("-stray") for path in broker.log_dir.iterdir()))
        broker.stop()
        pack("F5", {"data": broker.log_dir}, lambda name: name.startswith(("stays", "ghost")))


def superseded_ends() -> None:
    """Make F6: a compacted topic in which only the last record of a segment was superseded; after a clean stop."""
    with LocalBroker("3.9.2", config=CLEANER) as broker, broker.connect() as client:
        client.create_topic("tailgap", COMPACT | {"segment.bytes": "3000"})  # two would not fit into one
        client.await_leader("tailgap")
        fill(client, "tailgap", 20)
        assert client.append("tailgap", keyed("again")).error is None
        time.sleep(1.2)
        assert client.append("tailgap", keyed("again")).error is None
        fill(client, "tailgap", 19, prefix="b")
        time.sleep(1.2)
        fill(client, "tailgap", 3, prefix="c")
        await_true("cleaning", lambda: cleaned_to(broker.log_dir, "tailgap") > 22)
        broker.stop()
        pack("F6", {"data": broker.log_dir}, "tailgap-0".__eq__)


def moved_replica() -> None:
    """Make F7: a compacted topic that was moved to another disk in appends of many batches; after a clean stop.

    The entry of the aborted transaction contains the first offset of a transaction that began after its marker.
    """
    with tempfile.TemporaryDirectory() as temporary:
        home = Path(temporary, "broker")
        other = home / "disk2"
        config = CLEANER | {"log.dirs": f"{home / 'data'},{other}"}
        with LocalBroker("3.9.2", home, config) as broker, broker.connect() as client:
            client.create_topic("moved", COMPACT)
            client.await_leader("moved")
            fill(client, "moved", 5)
            time.sleep(1.2)
            fill(client, "moved", 5)
            place = next(path for path in (broker.log_dir, other) if (path / "moved-0").is_dir())
            await_true("cleaning", lambda: cleaned_to(place, "moved") == 5)
            for name, is_aborted in (("aborted", True), ("open", False)):
                producer = client.init_producer(name)
                client.join_transaction("moved", name, producer)
                data = keyed(name, **producer._asdict(), base_sequence=0, is_transactional=True)
                assert client.append("moved", data, transactional_id=name).error is None
                if is_aborted:
                    client.end_and_await_marker("moved", name, producer, commit=False)
                    fill(client, "moved", 2, prefix="l")
            target = broker.log_dir if place == other else other
            move(client, "moved", place, target)
            broker.stop()
            pack("F7", {"data": target}, "moved-0".__eq__)


def move(client: Client, topic: str, place: Path, target: Path) -> None:
    """Move partition 0 of a topic from one log directory to another, and wait until it has moved."""
    kind = request_class("AlterReplicaLogDirs").AlterReplicaLogDir
    topics = [kind.AlterReplicaLogDirTopic(name=topic, partitions=[0])]
    client._exchange(request_class("AlterReplicaLogDirs")(version=1, dirs=[kind(path=str(target), topics=topics)]))
    await_true("the move", lambda: (target / f"{topic}-0").is_dir() and not (place / f"{topic}-0").is_dir())


def half_an_entry() -> None:
    """Make F8: a ``.timeindex`` as a kill between writing the two fields of an entry leaves it.

    No kill hits that moment reliably, so the second field is reset to the zeros of the preallocated file.
    """
    config = {"log.segment.index.bytes": 1024, "log.index.interval.bytes": 512}
    with LocalBroker("3.9.2", config=config) as broker, broker.connect() as client:
        client.create_topic("half", {})
        client.await_leader("half")
        fill(client, "half", 40)
        broker.kill()
        path = broker.log_dir / "half-0" / f"{0:020d}.timeindex"
        data = path.read_bytes()
        used = len(data.rstrip(b"\0"))
        assert used % 12 == 0
        assert used > 12
        path.write_bytes(data[: used - 4] + bytes(len(data) - used + 4))
        pack("F8", {"data": broker.log_dir}, "half-0".__eq__)


def killed_in_an_append() -> None:
    """Make F9: a broker that was killed while a move to another disk appended batches, without its ``.txnindex``.

    No kill hits the moment before the index is written reliably, so the file is emptied.
    """
    with tempfile.TemporaryDirectory() as temporary:
        home = Path(temporary, "broker")
        other = home / "disk2"
        config = {"log.segment.index.bytes": 1024, "log.dirs": f"{home / 'data'},{other}"}
        with LocalBroker("4.3.1", home, config) as broker, broker.connect() as client:
            client.create_topic("copied", {})
            client.await_leader("copied")
            fill(client, "copied", 5)
            producer = client.init_producer("aborted")
            client.join_transaction("copied", "aborted", producer)
            data = keyed("aborted", **producer._asdict(), base_sequence=0, is_transactional=True)
            assert client.append("copied", data, transactional_id="aborted").error is None
            client.end_and_await_marker("copied", "aborted", producer, commit=False)
            fill(client, "copied", 5, prefix="l")
            place = next(path for path in (broker.log_dir, other) if (path / "copied-0").is_dir())
            target = broker.log_dir if place == other else other
            move(client, "copied", place, target)
            broker.kill()
            (path,) = (target / "copied-0").glob("*.txnindex")
            assert path.stat().st_size == 34
            os.truncate(path, 0)
            pack("F9", {"data": target}, "copied-0".__eq__)


RECIPES: Final[dict[str, Callable[[], None]]] = {
    "F1": metadata_log,
    "F2": aborted_over_a_boundary,
    "F3": deleted_records,
    "F4": deleted_topics,
    "F5": strays,
    "F6": superseded_ends,
    "F7": moved_replica,
    "F8": half_an_entry,
    "F9": killed_in_an_append,
}


def main(names: Iterable[str]) -> None:
    """Make the archives of these cases; by default all."""
    for name in names or RECIPES:
        RECIPES[name]()
        sys.stdout.write(f"{name} {(ARCHIVES / f'{name}.tar.xz').stat().st_size} bytes\n")


if __name__ == "__main__":
    main(sys.argv[1:])
