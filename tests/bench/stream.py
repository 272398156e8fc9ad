"""A stream of ``kafka_segments`` next to a busy broker: every record must arrive once, over rolls, retention, restarts.

``python3 bootstrap.py python -m tests.bench.stream --seconds 1200 --rate 2500 --restarts 2``. A producer writes two
topics, one of them to logs of full size (``preallocate``). Another thread creates topics, writes to them and deletes
them. The query has its own process. It is killed or stopped ``--restarts`` times, and started again with its
checkpoint. ``--broker-restarts 2`` stops the broker once and kills it once, and starts it again, while the query runs.
Finally the query reads the remaining records with ``availableNow``, and the rows in its sink are counted. With
``--without-spark`` the process calls the source as Spark does, and stores offsets, commits and rows as Spark does. That
is for machines that are too busy for Spark, which gives a source ten seconds to start.
"""

from __future__ import annotations

import argparse
import json
import signal
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from conformance.kafka.broker import LocalBroker
from tests.support.busy_broker import CONFIG, HIGH_WATERMARKS_SECONDS, TOPICS, print_line, start_again, traffic


def follow(directory: str, checkpoint: str, sink: str, trigger: str) -> None:
    """Run the query; it ends with SIGTERM, or when it has read everything."""
    from pyspark.errors import StreamingQueryException

    from kidx.spark import session

    spark = session("local[1]", spark__driver__memory="500m", spark__sql__shuffle__partitions="1")
    stream = spark.readStream.format("kafka_segments").option("subscribe", ",".join(TOPICS)).load(directory)
    writer = stream.selectExpr("topic || '-' || partition as name", "offset").writeStream.format("parquet")
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
    from pyspark.sql.types import IntegerType, LongType, StringType, StructType

    from kidx.spark.source import SegmentsReader
    from kidx.spark.streaming import StreamReader
    from kidx.tables.options import read_options

    options = read_options({"path": directory, "subscribe": ",".join(TOPICS)}, may_stream=True)
    schema = StructType().add("topic", StringType()).add("partition", IntegerType()).add("offset", LongType())
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
    for topic, partition, offset in zip(*(rows[name].to_pylist() for name in rows.column_names), strict=True):
        name = f"{topic}-{partition}"
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


def run(
    directory: Path,
    release: str,
    seconds: float,
    rate: int,
    restarts: int,
    broker_restarts: int,
    trigger: str,
    segment: int,
    *,
    spark: bool,
) -> bool:
    """Run the stream; return True if every record arrived once."""
    query_of = "follow" if spark else "follow_without_spark"
    sizes = {"segment.bytes": str(segment), "retention.bytes": str(12 * segment), "index.interval.bytes": "4096"}
    with LocalBroker(release, base=directory, config=CONFIG) as broker:
        places = [str(broker.log_dir), str(directory / "checkpoint"), str(directory / "sink")]
        ends: dict[str, int] = {}
        load = broker.bootstrap, seconds, rate, sizes
        writing = threading.Thread(target=lambda: ends.update(traffic(*load, may_expire=True)))
        writing.start()
        while not list(broker.log_dir.glob("prealloc-0/*.log")):
            time.sleep(0.2)
        restarting = threading.Thread(target=restart, args=(broker, broker_restarts, seconds))
        restarting.start()
        for number in range(restarts + 1):
            query = start(query_of, *places, trigger)
            until = time.monotonic() + seconds / (restarts + 1)
            while query.poll() is None and time.monotonic() < until:
                time.sleep(0.2)
            died = query.poll()
            query.send_signal(signal.SIGKILL if number % 2 else signal.SIGTERM)
            query.wait()
            if died is not None:
                print_line(f"query {number} ended unexpectedly: {died}")
                return False
        writing.join()
        restarting.join()
        time.sleep(HIGH_WATERMARKS_SECONDS)
        left = start(query_of, *places, "now").wait()
        bases = {name: min(int(log.stem) for log in (broker.log_dir / name).glob("*.log")) for name in ends}
        print_line(f"first segments that retention has left: {bases}")
    found = (count if spark else count_runs)(places[2])
    print_line(f"rows, different offsets, end of each: {found}")
    missing = sum(ends.values()) - sum(different for _, different, _ in found.values())
    twice = sum(rows - different for rows, different, _ in found.values())
    print_line(f"{sum(ends.values()):,} records: {missing:,} missing, {twice:,} more than once")
    return bool(ends) and left == 0 and found == {name: (end, end, end) for name, end in ends.items()}


def start(*arguments: str) -> subprocess.Popen[bytes]:
    """Start a process of this file."""
    return subprocess.Popen([sys.executable, "-m", "tests.bench.stream", *arguments])


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
    given = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="kidx-stream-") as place:
        restarts = given.restarts, given.broker_restarts
        numbers = given.seconds, given.rate, *restarts, given.trigger, given.segment
        once = run(Path(place), given.kafka, *numbers, spark=not given.without_spark)
    print_line("every record once" if once else "NOT every record once")
    return 0 if once else 1


if __name__ == "__main__":
    sys.exit(main())
