"""Excerpts of a broker's log in the pages of findings: a stock broker writes them in the steps of the page."""

import re
import time

import pytest
from kafka_findings import findings

from conformance.kafka.broker import BrokerError
from conformance.kafka.broker.local import LocalBroker
from conformance.studies.tiers.experiment import query_with_corrupt_index
from conformance.studies.tiers.prepared import cache_of, prepare, tiered_broker
from kidx.records import build_batch

pytestmark = [pytest.mark.broker, pytest.mark.thorough, pytest.mark.in_turn(3)]

RELEASE = "4.3.1"
SEGMENT = 1 << 20


def zeroed_time_index(directory):
    """Zero the time index of a segment of new records after a clean stop; start, and wait for retention."""
    soon = {"log.retention.check.interval.ms": 1000, "log.initial.task.delay.ms": 1000}
    with LocalBroker(RELEASE, directory) as broker:
        with broker.connect() as client:
            client.create_topic("orders", {"segment.bytes": str(SEGMENT), "retention.ms": "604800000"})
            client.await_leader("orders", 0)
            for _ in range(4):
                data = build_batch([(int(time.time() * 1000), None, bytes(SEGMENT // 2 - 1000))])
                assert client.append("orders", data).error is None
        partition = next(broker.log_dir.glob("orders-0"))
        broker.stop()
        (index,) = partition.glob(f"{0:020}.timeindex")
        index.write_bytes(bytes(index.stat().st_size))
        broker.close(keep=True)
    broker = LocalBroker(RELEASE, directory, soon)
    with broker:
        deadline = time.monotonic() + 60
        while (partition / f"{0:020}.log").exists() and time.monotonic() < deadline:
            time.sleep(0.2)
        return broker.output


def corrupt_transaction_index_fetched(directory):
    """Let remote storage return a zeroed transaction index once; the next start fails."""
    prepared = prepare(RELEASE, directory)
    query_with_corrupt_index(RELEASE, prepared, ".txnindex")
    return failed_start(directory)


def cut_cached_time_index(directory):
    """Cut a file of the cache after a stop; the next start fails."""
    prepare(RELEASE, directory)
    next(cache_of(directory).glob("*.timeindex")).write_bytes(bytes(13))
    return failed_start(directory)


def failed_start(directory):
    broker = tiered_broker(RELEASE, directory)
    with pytest.raises(BrokerError):
        broker.start()
    said = broker.output
    broker.close(keep=True)
    return said


SHOWN = {5: zeroed_time_index, 1: corrupt_transaction_index_fetched, 3: cut_cached_time_index}


@pytest.mark.timeout(300)
@pytest.mark.parametrize("number", SHOWN)
def test_a_stock_broker_writes_the_excerpt(number, tmp_path):
    """A line of the excerpt has … for what differs from run to run."""
    (page,) = (each.page for each in findings() if each.number == number)
    (excerpt,) = re.findall(
        rf"The log of {re.escape(RELEASE)}:\n\n```text\n(.*?)```", page.read_text("utf-8"), re.DOTALL
    )
    written = SHOWN[number](tmp_path / "broker")
    (tmp_path / "output").write_text(written, "utf-8")
    for line in excerpt.splitlines():
        assert re.search(".*".join(map(re.escape, line.split("…"))), written), line
