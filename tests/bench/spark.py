"""``kafka_segments`` next to Spark's own Kafka source: the same queries, in turns, in one session and on one broker.

``python3 bootstrap.py python -m tests.bench.spark --markdown reports/spark.md``. Each query runs once, and then
``--times`` times with each source; medians count. Both sources must give the same answer. Processor time covers the
driver, its JVM and all workers; the broker's is given apart, because ``kafka_segments`` needs none.
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from conformance.kafka.broker import LocalBroker
from conformance.kafka.broker.process import JavaProcess
from conformance.kafka.jar_fetch import fetch, tool_jar
from conformance.kafka.releases import load_release
from kidx.records import Codec, SimpleRecord, build_batch
from kidx.spark import session
from tests.bench.frame import Rows, bench, machine, processor_seconds

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, DataFrameReader

RELEASE = "3.9.2"
CODECS = (Codec.NONE, Codec.LZ4, Codec.ZSTD, Codec.GZIP)
PARTITIONS, BATCH, KEYS = 8, 200, 1000
START, STEP = 1_700_000_000_000, 1000
WORDS = b"order created shipped paid invoice customer address street number total amount currency item".split()

HEADS = (
    "codec", "query", "kafka_segments: s", "processor s", "Spark's source: s", "processor s", "of the broker",
    "ratio, wall", "ratio, processor", "without the broker",
)  # fmt: skip
INTRODUCTION = f"""Made by `{{command}}`.

{{records:,}} records with keys of 4 bytes and values of about 100 bytes in {PARTITIONS} partitions, {BATCH} records in
a batch, of a broker of {RELEASE}. The session has the master `{{master}}` and the settings of `kidx.spark.session()`.
No query has the option `columns`, and all have `pushDown`. Seconds by the clock, and of processor time of the driver,
its JVM and all workers, are medians of {{times}} run(s) in turns, after one that is not counted: it notes the times
of the records, compiles, and fills caches. *of the broker* is the broker's processor time while the other source runs
the query. Ratios are Spark's source to `kafka_segments`: above 1, `kafka_segments` is cheaper. The ratio of processor
time has the broker in it, and the last column does not. Spark 4.3 has no published connector: it runs the connector
of 4.2.0.

A profile of `count()` of 200,000 records with lz4 says what limits the rows below 1, in seconds of processor time: 1.4
in the JVM, of which 0.4 are a query without records; 1.35 in Python, of which 1.1 are records that are read one by one.
Without compiled kernels a record takes 5.7 µs, with kernels 1 µs. A worker loads them, in a second, once it has read
32 MB of logs, or 200,000 records in all its tasks."""


def batches(records: int, codec: Codec) -> Iterator[bytes]:
    """Yield the batches of a partition; times grow by a second from record to record."""
    for first in range(0, records, BATCH):
        numbers = range(first, min(first + BATCH, records))
        yield build_batch(
            [SimpleRecord(START + STEP * n, b"%04d" % (n % KEYS), value(n)) for n in numbers], codec=codec
        )


def value(number: int) -> bytes:
    """Return a value of about 100 bytes, of words that repeat and numbers that do not."""
    return b"%d %d " % (number, number * 7919) + b" ".join(WORDS[(number >> k) % len(WORDS)] for k in range(12))


def produce(broker: LocalBroker, records: int) -> None:
    """Write the topics of each codec; each has one partition, because the harness's client writes to the first."""
    with broker.connect() as client:
        for codec in CODECS:
            made = list(batches(records // PARTITIONS, codec))
            for number in range(PARTITIONS):
                topic = f"{codec.name.lower()}-{number}"
                client.create_topic(topic, {})
                client.leader_epoch(topic)
                for batch in made:
                    client.produce(topic, batch)


def queries(records: int) -> dict[str, Callable[[DataFrame], Any]]:
    """Return the queries by name."""
    middle, part = START + STEP * records // PARTITIONS // 2, STEP * records // PARTITIONS // 100
    hour = f"timestamp >= timestamp_millis({middle}) and timestamp < timestamp_millis({middle + part})"
    return {
        "count()": lambda rows: rows.count(),
        "count() of 1 % of the time": lambda rows: rows.where(hour).count(),
        "sum(length(value))": lambda rows: rows.selectExpr("sum(length(value))").collect(),
        "groupBy(key).count()": lambda rows: sorted(rows.groupBy("key").count().collect()),
        "select(value)": lambda rows: rows.select("value").write.format("noop").mode("overwrite").save(),
    }


def ask(query: Callable[[DataFrame], Any], source: DataFrameReader) -> Any:
    """Run a query on a new DataFrame: Spark would use the conditions of an earlier query again."""
    return query(source.load())


def measure(works: Sequence[Callable[[], Any]], times: int, broker: LocalBroker) -> list[tuple[float, ...]]:
    """Return the median seconds of each work: by the clock, of processor time, and of the broker; they run in turns."""
    assert isinstance(broker._process, JavaProcess)
    process = broker._process.pid
    taken: list[list[tuple[float, ...]]] = [[] for _ in works]
    for turn in range(times + 1):
        answers = []
        for work, seconds in zip(works, taken, strict=True):
            before = time.perf_counter(), processor_seconds(), processor_seconds(process)
            answers.append(work())
            after = time.perf_counter(), processor_seconds(), processor_seconds(process)
            clock, every, of_broker = (late - early for late, early in zip(after, before, strict=True))
            if turn:
                seconds.append((clock, every - of_broker, of_broker))
        assert answers[0] == answers[1], f"the sources give different answers: {answers}"
    return [tuple(map(statistics.median, zip(*seconds, strict=True))) for seconds in taken]


def row(codec: Codec, name: str, ours: tuple[float, ...], theirs: tuple[float, ...]) -> list[str]:
    """Return a row of the table."""
    ratios = theirs[0] / ours[0], (theirs[1] + theirs[2]) / (ours[1] + ours[2]), theirs[1] / ours[1]
    seconds = (*ours[:2], *theirs)
    return [codec.name.lower(), name, *(f"{each:.2f}" for each in seconds), *(f"{each:.1f}" for each in ratios)]


def rows(given: argparse.Namespace) -> Rows:
    """Yield a row for each codec and query."""
    with tempfile.TemporaryDirectory(prefix="kidx-bench-") as place, LocalBroker(RELEASE, base=Path(place)) as broker:
        produce(broker, given.records)
        spark = session(given.master)
        clients = [jar for jar in load_release(RELEASE).jars if jar.name.startswith("kafka-clients-")]
        jars = [tool_jar(name) for name in ("connector", "connector-tokens", "commons-pool2")]
        for jar in (*jars, *fetch(clients)):
            spark.sql(f"ADD JAR '{jar}'")
        yield f"{machine('pyspark')}."
        for codec in CODECS:
            topics = ",".join(f"{codec.name.lower()}-{number}" for number in range(PARTITIONS))
            ours = spark.read.format("kafka_segments").options(path=str(broker.log_dir), pushDown=True)
            theirs = spark.read.format("kafka").option("kafka.bootstrap.servers", broker.bootstrap)
            sources = [each.option("subscribe", topics) for each in (ours, theirs)]
            for name, query in queries(given.records).items():
                works = [partial(ask, query, each) for each in sources]
                yield row(codec, name, *measure(works, given.times, broker))
        spark.stop()


if __name__ == "__main__":
    title = "kafka_segments compared with Spark's own Kafka source"
    bench(__doc__, HEADS, rows, title, INTRODUCTION, records=2_000_000, times=3, master="local[2]")
