"""Recorder of a broker's internal logs: ``python internal_logs.py RELEASE DIRECTORY`` records and packs them.

They contain consumer groups that join, commit, leave and expire, and transactions. With KRaft, the metadata of the
cluster and a snapshot are recorded, too.
"""

from __future__ import annotations

import shutil
import sys
import time
from pathlib import Path

from kafka import KafkaAdminClient, KafkaConsumer, TopicPartition
from kafka.structs import OffsetAndMetadata

from conformance.experiments.golden.corpus import pack
from conformance.kafka.broker.local import LocalBroker
from kidx.records import build_batch

CONFIG = {
    "offsets.topic.compression.codec": 0,
    "metadata.log.max.record.bytes.between.snapshots": 1500,
    "transactional.id.expiration.ms": 604_800_000,
}
KEPT = (".log", ".checkpoint")


def consume(address: str, group: str, **options: object) -> None:
    """Join a group, commit twice, and leave."""
    consumer = KafkaConsumer(
        bootstrap_servers=address, group_id=group, enable_auto_commit=False, auto_offset_reset="earliest", **options
    )
    consumer.subscribe(["orders", "payments"])
    end = time.monotonic() + 60
    while not consumer.assignment() and time.monotonic() < end:
        consumer.poll(timeout_ms=500)
    for offset in (1, 3):
        consumer.commit({TopicPartition("orders", 0): OffsetAndMetadata(offset, 'ü "quoted" </x>', -1)})
    consumer.close()


def transact(client: object) -> None:
    """Commit and abort transactions, one after the other; leave one open."""
    for number, commit in enumerate([True, False, True]):
        producer = client.init_producer(f"tx-{number % 2}", timeout_ms=60_000)
        client.join_transaction("orders", f"tx-{number % 2}", producer)
        batch = build_batch(
            [(1_700_000_000_000, b"k", b"v")],
            producer_id=producer.producer_id,
            producer_epoch=producer.producer_epoch,
            base_sequence=0,
            is_transactional=True,
        )
        client.produce("orders", batch, transactional_id=f"tx-{number % 2}")
        client.end_and_await_marker("orders", f"tx-{number % 2}", producer, commit=commit)


def record(release: str, directory: Path) -> None:
    """Start a broker of the release, let clients use it, and save its internal logs below ``directory``."""
    with LocalBroker(release, config=CONFIG) as broker:
        with broker.connect() as client:
            for topic in ("orders", "payments"):
                client.create_topic(topic, {})
            client.produce("orders", build_batch([(1_700_000_000_000, b"k", b"v")] * 5))
            transact(client)
            address = broker.bootstrap
            consume(address, "plain")
            consume(address, "gruppe-ü", client_id='hard "name"')
            consume(address, "static", group_instance_id="one")
            admin = KafkaAdminClient(bootstrap_servers=address)
            admin.delete_groups(["plain"]) if hasattr(admin, "delete_groups") else admin.delete_consumer_groups(
                ["plain"]
            )
            admin.close()
            client.delete_topic("payments")
        time.sleep(3)  # a snapshot is written in the background
        broker.stop()
        for place in (broker.log_dir, broker.directory / "metadata"):
            for partition in sorted(place.glob("__*-*")) if place.exists() else ():
                for path in sorted(partition.iterdir()):
                    if path.suffix in KEPT and path.stat().st_size:
                        target = directory / release / partition.name
                        target.mkdir(parents=True, exist_ok=True)
                        shutil.copyfile(path, target / path.name)


if __name__ == "__main__":
    record(sys.argv[1], Path(sys.argv[2]))
    pack(Path(sys.argv[2]))
