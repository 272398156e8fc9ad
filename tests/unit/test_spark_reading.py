"""Records for Spark by compiled columns and by the readable reference, which are equal, corruption included."""

import shutil
import tempfile
from itertools import islice
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pyspark.sql.types import LongType, StructField, StructType

from kidx.errors import ToolError
from kidx.java_values import LONG_MAX
from kidx.records import (
    Codec,
    ControlRecordType,
    EndTransactionMarker,
    SimpleRecord,
    TimestampType,
    build_batch,
    end_transaction_marker,
)
from kidx.spark.metrics import totals
from kidx.spark.source import SegmentsReader
from kidx.tables.columns import RowBuffer
from kidx.tables.indexes import Counter
from kidx.tables.options import read_options
from kidx.tables.predicates import Predicates
from kidx.tables.split_reader import SplitReader, reader_of
from kidx.tables.splits import plan_splits

GOLDEN = Path(__file__).parents[1] / "golden"
HEADERS = pa.list_(pa.struct([("key", pa.string()), ("value", pa.binary())]))
TYPES = {"key": pa.binary(), "value": pa.binary(), "topic": pa.string(), "partition": pa.int32(), "offset": pa.int64()}
SCHEMA = pa.schema(TYPES | {"timestamp": pa.timestamp("us", "UTC"), "timestampType": pa.int32(), "headers": HEADERS})
NARROW = [pa.schema([SCHEMA.field(name) for name in names]) for names in (["offset"], ["timestamp", "offset"])]
ABORT = EndTransactionMarker(ControlRecordType.ABORT, 0)


def rows(directory: Path, schema: pa.Schema = SCHEMA, predicates: Predicates | None = None, **options: str) -> list:
    """Return the rows of a query, and its error."""
    predicates = predicates or Predicates()
    loose = options.get("failOnDataLoss") == "false"
    buffer, reading, found = (
        RowBuffer(schema),
        SplitReader(predicates, not loose, options.get("checkCrcs") != "false"),
        [],
    )
    try:
        for task in plan_splits(read_options({"path": str(directory)} | options), predicates, Counter()):
            for split in task:
                for batch in reading.records(split, buffer, Counter()):
                    found += batch.to_pylist()
    except ToolError as error:
        found.append(str(error))
    for batch in buffer.flush():
        found += batch.to_pylist()
    return found


@pytest.fixture
def read(monkeypatch):
    """Return the result of :func:`rows`, which must be the same both ways."""

    def both(*arguments: object, **options: str) -> list:
        found = []
        for compiled in (False, True):
            monkeypatch.setattr("kidx.tables.split_reader.worth_compiling", lambda _, compiled=compiled: compiled)
            found.append(rows(*arguments, **options))
        assert found[0] == found[1]
        return found[0]

    return both


@pytest.mark.parametrize("release", ["2.4.1", "4.4.0"])
def test_all_records_of_brokers(release, read):
    found = read(GOLDEN / release)
    assert len(found) > 100
    assert any(row["headers"] for row in found)
    assert any(row["key"] is None for row in found)


def test_only_wanted_records_and_columns(read):
    """Offsets and times that begin and end inside batches."""
    times = sorted({row["timestamp"] for row in read(GOLDEN / "4.4.0")})
    middle = [int(times[len(times) * part // 3].timestamp() * 1000) for part in (1, 2)]
    predicates = Predicates(min_offset=3, max_offset=LONG_MAX, min_time=middle[0], max_time=middle[1])
    found = read(GOLDEN / "4.4.0", pa.schema([("offset", pa.int64()), ("value", pa.binary())]), predicates)
    assert found
    assert set(found[0]) == {"offset", "value"}


@pytest.mark.parametrize("loss", ["true", "false"])
def test_damage(loss, read, tmp_path):
    """If a later record has a wrong size and a wrong checksum, the earlier ones are returned, or one line of error."""
    log = tmp_path / "logs" / "t-0" / f"{0:020d}.log"
    log.parent.mkdir(parents=True)
    batch = bytearray(build_batch([SimpleRecord(n, b"key", b"value") for n in range(3)]))
    batch[61 + 2 * 15] = 0x7E
    log.write_bytes(build_batch([SimpleRecord(0, None, None)] * 2) + _at(bytes(batch), 2))
    found = read(tmp_path / "logs", failOnDataLoss=loss, checkCrcs="false")
    texts = [row for row in found if isinstance(row, str)]
    assert [row["offset"] for row in found if not isinstance(row, str)] == [0, 1, 2, 3]
    assert len(texts) == (loss == "true")
    assert all("record" in text and log.name in text for text in texts)


BATCHES = st.lists(
    st.tuples(
        st.sampled_from(["plain", "plain", "plain", "stamped", "zstd", "gap", "transaction", "marker", "old", "large"]),
        st.integers(0, 12),
    ),
    min_size=3,
    max_size=24,
)
BOUNDS = st.tuples(*[st.none() | st.integers(0, 30), st.none() | st.integers(30, 300)] * 2)


def _log(batches: list[tuple[str, int]]) -> bytes:
    """Build batches of some kinds, one after the other; times go up and down."""
    data, base = b"", 0
    for kind, number in batches:
        base += 1
        stamps = [base + 7 * n % 5 for n in range(number + 1)]
        records = [SimpleRecord(each, None, b"v" * number, (("h", None),)[: each % 2]) for each in stamps]
        if kind == "marker":
            data += end_transaction_marker(ABORT, producer_id=1, producer_epoch=0, offset=base)
        elif kind == "old":
            data += build_batch([SimpleRecord(base, b"k", b"v")], base_offset=base, magic=1)
        elif kind == "gap":
            offsets = [base, base + 20][: len(records)]
            data += build_batch(records[:2], base_offset=base, offsets=offsets, last_offset=base + 30)
            base += 30
        else:
            more = {
                "stamped": {"timestamp_type": TimestampType.LOG_APPEND_TIME, "log_append_time": base},
                "zstd": {"codec": Codec.ZSTD},
                "transaction": {"producer_id": 1, "producer_epoch": 0, "base_sequence": 0, "is_transactional": True},
            }
            records = [SimpleRecord(base, b"k", b"l" * 70)] * 50 if kind == "large" else records
            data += build_batch(records, base_offset=base, **more.get(kind, {}))
            base += len(records) - 1
    return data


@settings(max_examples=settings.default.max_examples // 2)
@given(
    batches=BATCHES,
    bounds=BOUNDS,
    window=st.sampled_from([100, 400, 1 << 20]),
    most=st.sampled_from([60, 1 << 14]),
    damaged=st.none() | st.none() | st.integers(0, 2000),
)
def test_joined_batches_equal_batches_read_one_by_one(batches, bounds, window, most, damaged):
    """Of any kind and order, in windows of any size, whole or with a wrong byte; so are offsets and times alone."""
    predicates = Predicates(None, None, *bounds)
    data = bytearray(_log(batches))
    if damaged is not None and damaged < len(data):
        data[damaged] ^= 1
    with pytest.MonkeyPatch.context() as patch, tempfile.TemporaryDirectory() as place:
        patch.setattr("kidx.tables.batch_walk.WINDOW", window)
        patch.setattr("kidx.tables.vectorized.ROWS", most)
        log = Path(place) / "t-0" / f"{0:020d}.log"
        log.parent.mkdir()
        log.write_bytes(data)
        found = []
        for compiled, schema in [(False, SCHEMA), (True, SCHEMA), *((c, s) for c in (False, True) for s in NARROW)]:
            patch.setattr("kidx.tables.split_reader.worth_compiling", lambda _, compiled=compiled: compiled)
            found.append(rows(Path(place), schema, predicates) if data else [])
    assert found[1] == found[0]
    for schema, narrow in zip(NARROW * 2, found[2:], strict=True):
        assert narrow == [
            row if isinstance(row, str) else {name: row[name] for name in schema.names} for row in found[0]
        ]


def _at(batch: bytes, base_offset: int) -> bytes:
    return base_offset.to_bytes(8) + batch[8:]


@pytest.mark.parametrize("damage", ["missing", "zeros", "of no transaction"])
def test_without_indexes_aborted_transactions_are_found_in_the_log(tmp_path, damage, monkeypatch):
    """Transactions end in later segments, too, and a task knows few of the segments after its own."""
    monkeypatch.setattr("kidx.tables.splits.LATER", 2)

    def committed(**options: str) -> list[int]:
        asked = read_options({"path": str(directory), "isolationLevel": "read_committed"} | options)
        reading, buffer = reader_of(asked, Predicates()), RowBuffer(pa.schema([SCHEMA.field("offset")]))
        found: list[int] = []
        for task in plan_splits(asked, Predicates(), Counter()):
            for split in task:
                for batch in (*reading.records(split, buffer, Counter()), *buffer.flush()):
                    found += batch.column("offset").to_pylist()
        return found

    directory = shutil.copytree(GOLDEN / "4.4.0" / "transactions-0", tmp_path / "transactions-0")
    right = committed()
    assert committed(useIndexes="false") == right
    for path in directory.glob("*.txnindex"):
        if damage == "missing":
            path.unlink()
        else:
            path.write_bytes(bytes(path.stat().st_size) if damage == "zeros" else b"")
    assert set(committed()) > set(right)
    assert committed(useIndexes="false") == right


@pytest.mark.parametrize("wrapped", [False, True])
@pytest.mark.parametrize("index", [None, b""])
def test_a_segment_without_its_index_is_cut_at_batches_of_the_log(tmp_path, index, wrapped):
    more = {"magic": 1, "codec": Codec.GZIP} if wrapped else {"partition_leader_epoch": 0}
    # The value of a record has what looks like batches.
    decoys = build_batch([SimpleRecord(1, b"k", b"v")] * 3, base_offset=0) * 4
    batches = [
        build_batch(
            [SimpleRecord(1, b"k", np.random.default_rng(n).bytes(6000) + decoys)] * 5, base_offset=5 * n, **more
        )
        for n in range(80)
    ]
    directory = tmp_path / "t-0"
    directory.mkdir()
    for base, part in ((0, batches[:40]), (200, batches[40:])):
        (directory / f"{base:020d}.log").write_bytes(b"".join(part))
        if index is not None:
            (directory / f"{base:020d}.index").write_bytes(index)

    def tasks(path=tmp_path, **options):
        asked = read_options({"path": str(path)} | options)
        return plan_splits(asked, Predicates(), Counter())

    planned = tasks(minPartitions="6")
    sizes = [sum(split.size for split in task) for task in planned]
    assert len(sizes) >= 6
    assert max(sizes) < 3 * min(sizes)
    assert [split.is_continuation for task in planned for split in task].count(True) >= 4
    assert [row["offset"] for row in rows(tmp_path, minPartitions="6")] == list(range(400))
    # One read of the log in the driver only gives all tasks a share, as there are enough of them otherwise.
    assert len(tasks(minPartitions="2", maxPartitionBytes="20000")) == 2
    log = directory / f"{200:020d}.log"
    content = bytearray(log.read_bytes())
    position = sum(map(len, batches[40:60]))
    content[position : position + 12] = bytes(12)
    log.write_bytes(content)
    found = rows(tmp_path, minPartitions="6")
    assert [row["offset"] for row in found if isinstance(row, dict)] == list(range(300))
    assert [f"{log.name} at byte {position}" in row for row in found if isinstance(row, str)] == [True]


@pytest.mark.thorough
@pytest.mark.parametrize("most", [1, None])
def test_a_task_that_ends_early_writes_its_metrics_too(tmp_path, most):
    directory = tmp_path / "data" / "t-0"
    directory.mkdir(parents=True)
    batches = [build_batch([SimpleRecord(1, b"k", b"v")] * 50, base_offset=50 * n) for n in range(4000)]
    (directory / f"{0:020d}.log").write_bytes(b"".join(batches))
    options = read_options({"path": str(tmp_path / "data"), "metrics": str(tmp_path / "metrics")})
    reader = SegmentsReader(StructType([StructField("offset", LongType(), nullable=False)]), options)
    (task,) = reader.partitions()
    rows = reader.read(task)
    number = sum(batch.num_rows for batch in islice(rows, most))
    rows.close()
    found = totals(tmp_path / "metrics")
    assert (found.tasks, found.rows) == (1, number)
    assert number == 200_000 if most is None else 0 < number < 200_000
    assert found.log_bytes > 0


def test_the_metrics_count_segments_that_are_skipped(tmp_path):
    for number in (0, 1):
        for base in (0, 50, 100):
            log = tmp_path / "data" / f"t-{number}" / f"{base:020d}.log"
            log.parent.mkdir(parents=True, exist_ok=True)
            log.write_bytes(build_batch([SimpleRecord(1, b"k", b"v")] * 50, base_offset=base))
    for bounds, skipped in (({}, 0), ({"min_offset": 60, "max_offset": 70}, 4), ({"partitions": frozenset({1})}, 3)):
        metrics = tmp_path / str(skipped)
        options = read_options({"path": str(tmp_path / "data"), "metrics": str(metrics)})
        reader = SegmentsReader(StructType([StructField("offset", LongType(), nullable=False)]), options)
        reader.conditions = Predicates(**bounds)
        rows = sum(batch.num_rows for task in reader.partitions() for batch in reader.read(task))
        found = totals(metrics)
        assert (found.segments, found.skipped) == (6 - skipped, skipped)
        assert found.rows == rows
