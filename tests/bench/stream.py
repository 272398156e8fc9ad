"""A stream of ``kafka_segments`` next to a busy broker: every record must arrive once, over rolls, retention, restarts.

``python3 bootstrap.py python -m tests.bench.stream --seconds 1200 --rate 2500 --restarts 2``. A producer writes two
topics, one of them to logs of full size (``preallocate``). Another thread creates topics, writes to them and deletes
them. The query has its own process. It is killed or stopped ``--restarts`` times, and started again with its
checkpoint. ``--broker-restarts 2`` stops the broker once and kills it once, and starts it again, while the query
runs. ``--workers 2`` runs the query on a standalone cluster, of which one worker is killed and replaced.
``--recreate`` deletes another topic, half of the time after its creation, and creates it again; what the query lost
of the earlier topic must be in its warnings. Finally the query reads the remaining records with ``availableNow``, and
the rows in its sink are counted. With ``--without-spark`` the process calls the source as Spark does, and stores
offsets, commits and rows as Spark does. That is for machines that are too busy for Spark, which gives a source ten
seconds to start.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from conformance.kafka.broker import LocalBroker
from conformance.kafka.client import kafka_python
from tests.support.busy_broker import (
    CONFIG,
    HIGH_WATERMARKS_SECONDS,
    LIMIT_MS,
    TOPICS,
    print_line,
    start_again,
    traffic,
)
from tests.support.standalone import Standalone, environment

AGAIN = "again"
"""Topic that is created twice; the first digit of a value says which of the two the record is of."""
NAME = f"topic || '-' || partition || if(topic = '{AGAIN}', '-' || substring(value, 1, 1), '') as name"


def follow(directory: str, checkpoint: str, sink: str, trigger: str, master: str = "local[1]") -> None:
    """Run the query; it ends with SIGTERM, or when it has read everything."""
    from pyspark.errors import StreamingQueryException

    from kidx.spark import session

    settings = {"driver__host": "127.0.0.1", "driver__memory": "500m", "sql__shuffle__partitions": "1"}
    settings["executorEnv__PYTHONPATH"] = str(Path(__file__).parents[2])
    os.environ["PYSPARK_PYTHON"] = sys.executable
    spark = session(master, **{f"spark__{name}": value for name, value in settings.items()})
    stream = spark.readStream.format("kafka_segments").option("failOnDataLoss", "false")
    stream = stream.option("subscribe", ",".join((*TOPICS, AGAIN)))
    writer = stream.load(directory).selectExpr(NAME, "offset").writeStream.format("parquet")
    writer = writer.option("checkpointLocation", checkpoint).option("path", sink)
    stopping = threading.Event()
    # A handler runs within whatever call to Java it interrupts, and can make none itself.
    signal.signal(signal.SIGTERM, lambda *_: stopping.set())
    writer = writer.trigger(availableNow=True) if trigger == "now" else writer.trigger(processingTime=trigger)
    done: bool | None = False
    while not done:
        query = writer.start()
        try:
            while not (done := query.awaitTermination(1)):
                if stopping.is_set():
                    query.stop()
        except StreamingQueryException as error:
            # Spark gives the Python of a source ten seconds to start, which a busy machine exceeds.
            if "failed to connect back" not in str(error):
                raise
            print_line("Spark did not wait for its Python: started again")
    spark.stop()


def follow_without_spark(directory: str, checkpoint: str, sink: str, trigger: str) -> None:
    """Run the query by the calls that Spark makes: offsets are stored before a micro-batch, its end after it."""
    from pyspark.sql.types import BinaryType, IntegerType, LongType, StringType, StructType

    from kidx.spark.source import SegmentsReader
    from kidx.spark.streaming import StreamReader
    from kidx.tables.options import read_options

    given = {"path": directory, "subscribe": ",".join((*TOPICS, AGAIN)), "failOnDataLoss": "false"}
    options = read_options(given, may_stream=True)
    kinds = {"topic": StringType(), "partition": IntegerType(), "offset": LongType(), "value": BinaryType()}
    schema = StructType()
    for name, kind in kinds.items():
        schema.add(name, kind)
    reader = StreamReader(SegmentsReader(schema, options), options)
    for path in (Path(checkpoint) / "offsets", Path(checkpoint) / "commits", Path(sink)):
        path.mkdir(parents=True, exist_ok=True)

    def noted(number: int) -> dict[str, int] | None:
        path = Path(checkpoint) / "offsets" / str(number)
        return json.loads(path.read_text("utf-8")) if path.exists() else None

    def note(path: Path, value: object) -> None:
        temporary = path.with_suffix(".new")
        temporary.write_text(json.dumps(value), "utf-8")
        temporary.replace(path)

    number = max(
        (int(path.name) for path in (Path(checkpoint) / "commits").iterdir() if path.name.isdigit()), default=-1
    )
    start = noted(number) or noted(-1)
    if start is None:
        start = json.loads(json.dumps(reader.initialOffset()))
        note(Path(checkpoint) / "offsets" / "-1", start)
    if trigger == "now":
        reader.prepareForTriggerAvailableNow()
    while True:
        end = noted(number + 1) or json.loads(json.dumps(reader.latestOffset(start, reader.getDefaultReadLimit())))
        if end == start:
            if trigger == "now":
                return
            time.sleep(1)
            continue
        number += 1
        note(Path(checkpoint) / "offsets" / str(number), end)
        tables = [batch for task in reader.partitions(start, end) for batch in reader.read(task)]
        rows = pa.Table.from_batches(tables) if tables else None
        note(Path(sink) / str(number), [] if rows is None else runs_of(rows))
        note(Path(checkpoint) / "commits" / str(number), {})
        start = end


def runs_of(rows: pa.Table) -> list[tuple[str, int, int]]:
    """Yield partition, first offset and end offset of each run of consecutive offsets."""
    runs: list[tuple[str, int, int]] = []
    for topic, partition, offset, value in zip(*(rows[name].to_pylist() for name in rows.column_names), strict=True):
        name = f"{topic}-{partition}" + (f"-{value[:1].decode()}" if topic == AGAIN else "")
        if runs and runs[-1][0] == name and runs[-1][2] == offset:
            runs[-1] = name, runs[-1][1], offset + 1
        else:
            runs.append((name, offset, offset + 1))
    return runs


def count_runs(sink: str) -> dict[str, tuple[int, int, int]]:
    """Return the values of :func:`count` for rows that were read without Spark."""
    runs = sorted(tuple(run) for path in Path(sink).glob("*[0-9]") for run in json.loads(path.read_text("utf-8")))
    found: dict[str, tuple[int, int, int]] = {}
    for name, first, end in runs:
        rows, different, behind = found.get(name, (0, 0, 0))
        found[name] = rows + end - first, different + max(0, end - max(first, behind)), max(end, behind)
    print_line(f"{len(list(Path(sink).glob('*[0-9]')))} micro-batches")
    return found


def count(sink: str) -> dict[str, tuple[int, int, int]]:
    """Return the numbers of rows and of different offsets, and the end offset, of each partition in the sink."""
    kept = set()
    for noted in (Path(sink) / "_spark_metadata").glob("[0-9]*"):  # files of attempts that failed are in none of them
        kept |= {json.loads(line)["path"] for line in noted.read_text("utf-8").splitlines()[1:]}
    rows = pq.ParquetDataset([each.removeprefix("file:") for each in kept]).read()
    grouped = rows.group_by("name").aggregate([("offset", each) for each in ("count", "count_distinct", "max")])
    print_line(f"{len(kept)} files of the sink")
    return {
        row["name"]: (row["offset_count"], row["offset_count_distinct"], row["offset_max"] + 1)
        for row in grouped.to_pylist()
    }


def restart(broker: LocalBroker, times: int, seconds: float) -> None:
    """Stop and kill the broker in turn, at even intervals, and start it again each time."""
    for number in range(times):
        time.sleep(seconds / (times + 1))
        (broker.kill if number % 2 else broker.stop)()
        start_again(broker)
        print_line(f"the broker was {'killed' if number % 2 else 'stopped'}, and started again")


def recreate(bootstrap: str, seconds: float, ends: dict[str, int]) -> None:
    """Write a topic, delete it, create it again and write it again; store the ends of both."""
    kafka = kafka_python()
    options = {"request_timeout_ms": LIMIT_MS, "max_block_ms": 5 * LIMIT_MS, "delivery_timeout_ms": 5 * LIMIT_MS}
    producer = kafka.KafkaProducer(bootstrap_servers=bootstrap, acks="all", enable_idempotence=True, **options)
    admin = kafka.KafkaAdminClient(bootstrap_servers=bootstrap, request_timeout_ms=LIMIT_MS)

    def patiently(what: str, argument: object) -> None:
        for _ in range(30):  # the broker may be down, or still deleting
            try:
                getattr(admin, what)(argument, timeout_ms=LIMIT_MS)
            except kafka.errors.KafkaError as error:
                print_line(f"{what} {AGAIN}: {type(error).__name__}")
                time.sleep(2)
            else:
                return

    for number in range(2):
        if number:
            patiently("delete_topics", [AGAIN])
        patiently("create_topics", {AGAIN: {"num_partitions": 1, "replication_factor": 1}})
        until, sent = time.monotonic() + seconds / 2, 0
        while time.monotonic() < until:
            for _ in range(10):
                producer.send(AGAIN, b"%d %d" % (number, sent), partition=0)
                sent += 1
            producer.flush(5 * LIMIT_MS / 1000)
            time.sleep(0.1)
        ends[f"{AGAIN}-0-{number}"] = sent
        print_line(f"{AGAIN}: {sent:,} records")
    producer.close()
    admin.close()


def replace_worker(cluster: Standalone, seconds: float) -> None:
    """Kill a worker of a cluster after a third of the time, and start another."""
    time.sleep(seconds / 3)
    cluster.kill_worker(0)
    cluster.start_worker()
    print_line("a worker was killed, and another started")


@dataclass(frozen=True)
class Load:
    """Work of a run, as in the options of the command."""

    release: str
    seconds: float
    rate: int
    restarts: int
    broker_restarts: int
    trigger: str
    segment: int
    spark: bool
    workers: int
    recreate: bool


def run(directory: Path, load: Load) -> bool:
    """Run the stream; return True if every record arrived once, and the queries told each loss."""
    sizes = {"segment.bytes": str(load.segment), "retention.bytes": str(12 * load.segment)}
    sizes["index.interval.bytes"] = "4096"
    query = "follow" if load.spark else "follow_without_spark", str(directory / "checkpoint"), str(directory / "sink")
    ends: dict[str, int] = {}
    recreated: dict[str, int] = {}
    with ExitStack() as stack:
        broker = stack.enter_context(LocalBroker(load.release, base=directory, config=CONFIG))
        follow = partial(start, directory / "queries.log", query[0], str(broker.log_dir), *query[1:])
        numbers = broker.bootstrap, load.seconds, load.rate, sizes
        works: list[Callable[[], Any]] = [lambda: ends.update(traffic(*numbers, may_expire=True))]
        works.append(partial(restart, broker, load.broker_restarts, load.seconds))
        master: list[str] = []
        if load.workers:
            (directory / "cluster").mkdir()
            cluster = stack.enter_context(Standalone(directory, environment(directory / "cluster", sys.executable)))
            cluster.start_master()
            for _ in range(load.workers):
                cluster.start_worker()
            master.append(cluster.url)
            works.append(partial(replace_worker, cluster, load.seconds))
        if load.recreate:
            works.append(partial(recreate, broker.bootstrap, load.seconds, recreated))
        threads = [threading.Thread(target=work) for work in works]
        for thread in threads:
            thread.start()
        while not list(broker.log_dir.glob("prealloc-0/*.log")):
            time.sleep(0.2)
        lived = run_queries(load, lambda: follow(load.trigger, *master))
        for thread in threads:
            thread.join()
        if not lived:
            return False
        time.sleep(HIGH_WATERMARKS_SECONDS)
        left = follow("now", *master).wait()
        bases = {name: min(int(log.stem) for log in (broker.log_dir / name).glob("*.log")) for name in ends}
        print_line(f"first segments that retention has left: {bases}")
    found = (count if load.spark else count_runs)(query[2])
    told = sorted(set(re.findall(r"data loss: .*", (directory / "queries.log").read_text("utf-8"))))
    return left == 0 and bool(ends) and is_once(found, ends, recreated, told)


def run_queries(load: Load, follow: Callable[[], subprocess.Popen[bytes]]) -> bool:
    """Start the query, and stop or kill it in turn; return False if one ends on its own."""
    for number in range(load.restarts + 1):
        query = follow()
        until = time.monotonic() + load.seconds / (load.restarts + 1)
        while query.poll() is None and time.monotonic() < until:
            time.sleep(0.2)
        died = query.poll()
        query.send_signal(signal.SIGKILL if number % 2 else signal.SIGTERM)
        query.wait()
        if died is not None:
            print_line(f"query {number} ended unexpectedly: {died}")
            return False
        print_line(f"query {number} was {'killed' if number % 2 else 'stopped'}")
    return True


def is_once(
    found: dict[str, tuple[int, int, int]], ends: dict[str, int], recreated: dict[str, int], told: list[str]
) -> bool:
    """Return True if every record of the topics arrived once, except of a deleted topic what the queries told.

    Args:
        found: numbers of rows and of different offsets, and the end offset, by partition.
        ends: ends of partitions.
        recreated: ends of the partitions of the topic that was deleted, and of those after it.
        told: losses that the queries told.
    """
    print_line(f"rows, different offsets, end of each: {found}")
    print_line("\n".join([f"of the topic that was created again: {recreated}; the queries told:", *told]))
    wanted = ends | recreated
    lost: set[str] = set()
    for name in (name for name in recreated if name.endswith("-0")):
        wanted[name] = min(recreated[name], found.get(name, (0, 0, 0))[2])
        lost.add(rf"{AGAIN}-0 .* offset {wanted[name]}\b")
    missing = sum(wanted.values()) - sum(different for _, different, _ in found.values())
    twice = sum(rows - different for rows, different, _ in found.values())
    print_line(f"{sum(wanted.values()):,} records: {missing:,} missing, {twice:,} more than once")
    is_told = all(any(re.search(each, line) for line in told) for each in lost)
    is_told &= all(f"{AGAIN}-0 " in line for line in told)
    return is_told and found == {name: (end, end, end) for name, end in wanted.items()}


def start(log: Path, *arguments: str) -> subprocess.Popen[bytes]:
    """Start a process of this file, whose errors go to a log."""
    with log.open("ab") as errors:
        return subprocess.Popen([sys.executable, "-m", "tests.bench.stream", *arguments], stderr=errors)


def main() -> int:
    """Measure; the exit code is 1 if a record is missing or arrived twice."""
    if sys.argv[1:2] in (["follow"], ["follow_without_spark"]):
        globals()[sys.argv[1]](*sys.argv[2:])
        return 0
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--rate", type=int, default=2500)
    parser.add_argument("--restarts", type=int, default=2)
    parser.add_argument("--broker-restarts", type=int, default=0)
    parser.add_argument("--trigger", default="1 second")
    parser.add_argument("--segment", type=int, default=1 << 20)
    parser.add_argument("--kafka", default="4.3.1")
    parser.add_argument("--without-spark", action="store_true")
    parser.add_argument("--workers", type=int, default=0)
    parser.add_argument("--recreate", action="store_true")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="kidx-stream-") as place:
        once = run(
            Path(place),
            Load(
                release=given.kafka,
                seconds=given.seconds,
                rate=given.rate,
                restarts=given.restarts,
                broker_restarts=given.broker_restarts,
                trigger=given.trigger,
                segment=given.segment,
                spark=not given.without_spark,
                workers=given.workers,
                recreate=given.recreate,
            ),
        )
    print_line("every record once" if once else "NOT every record once")
    return 0 if once else 1


if __name__ == "__main__":
    sys.exit(main())
