"""kidx.read: records as Arrow tables, of logs with one tier and with two."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from collections import Counter
from datetime import UTC, datetime
from pathlib import Path

import duckdb
import polars as pl
import pyarrow as pa
import pyarrow.parquet
import pytest
from pages import the_block
from remote_tier import bases_of, copy_segments, delete_local

import kidx
from kidx.errors import ToolError
from kidx.records import Codec, SimpleRecord, build_batch, file_batches
from kidx.tables import split_reader

# -- ``kidx.read``: segments as Arrow streams, compared with the reference's records, and read by other libraries --


GOLDEN = Path(__file__).parents[1] / "golden"
TOPICS = {"create-time", "log-append-time", "restarted", "transactions", "uncompressed", "untouched"}
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def golden(release):
    """Return topic, offset, milliseconds, key and value of every record outside control batches."""
    rows = []
    for log in sorted((GOLDEN / release).glob("*-0/*.log")):
        topic = log.parent.name.removesuffix("-0")
        for batch in file_batches(log):
            if not batch.is_control:
                rows += [(topic, each.offset, each.timestamp, each.key, each.value) for each in batch]
    return sorted(rows, key=lambda row: row[:2])


def tuples(reader):
    table = reader.read_all()
    stamps = table["timestamp"].cast(pa.int64()).to_pylist()
    columns = [table["topic"].to_pylist(), table["offset"].to_pylist(), [stamp // 1000 for stamp in stamps]]
    return list(zip(*columns, table["key"].to_pylist(), table["value"].to_pylist(), strict=True))


@pytest.mark.parametrize("release", ["2.4.1", "3.9.2", "4.4.0"])
@pytest.mark.parametrize("compiled", [False, True])
def test_the_records_equal_those_of_the_reference(release, compiled, monkeypatch):
    monkeypatch.setattr(split_reader, "worth_compiling", lambda _: compiled)
    rows = golden(release)
    assert len(rows) > 300
    assert tuples(kidx.read(GOLDEN / release)) == rows
    (topic, _, since, *_), until = rows[40], rows[90][2]
    some = [row for row in rows if row[0] == topic and since <= row[2] < until]
    assert tuples(kidx.read(GOLDEN / release, topics=topic, times=(since, until))) == some
    moments = tuple(datetime.fromtimestamp(each / 1000, UTC) for each in (since, until))
    assert tuples(kidx.read(GOLDEN / release, topics=[topic], partitions=0, times=moments)) == some
    part = [row for row in rows if row[0] == topic and 20 <= row[1] < 31]
    assert part
    assert tuples(kidx.read(GOLDEN / release, topics=topic, offsets=(20, 31))) == part
    assert tuples(kidx.read(GOLDEN / release, partitions=[0])) == rows


def test_records_that_a_process_has_read_one_by_one_are_a_reason_to_compile(tmp_path, monkeypatch):
    """Each task of a Spark worker reads few bytes of compressed logs."""
    sizes = []
    monkeypatch.setattr(split_reader, "worth_compiling", sizes.append)
    (log := tmp_path / "t-0" / f"{0:020d}.log").parent.mkdir()
    log.write_bytes(build_batch([(1, b"k", b"v")] * 30, codec=Codec.GZIP))
    for _ in range(2):
        assert kidx.read(tmp_path).read_all().num_rows == 30
    assert sizes[1] - sizes[0] == 30 * 160


@pytest.mark.parametrize("compiled", [False, True])
def test_unrequested_columns_are_not_decoded(compiled, tmp_path, monkeypatch):
    """Offsets come from the headers of batches, unless a compaction has left gaps."""
    monkeypatch.setattr(split_reader, "worth_compiling", lambda _: compiled)
    records = [(1000 + n, b"k", b"v" * n) for n in range(5)]
    data = b"".join(
        build_batch(records, base_offset=5 * n, codec=Codec.GZIP if n % 2 else Codec.NONE) for n in range(4)
    )
    data += build_batch(records[:2], base_offset=20, offsets=[20, 24], last_offset=24)
    log = tmp_path / "t-0" / f"{0:020d}.log"
    log.parent.mkdir()
    log.write_bytes(data)
    decoded = []
    monkeypatch.setattr(split_reader.SplitReader, "_add", _counting(split_reader.SplitReader._add, decoded))
    found = kidx.read(tmp_path, columns=["offset", "partition"], offsets=(3, None)).read_all()
    assert found.column_names == ["offset", "partition"]
    assert found["offset"].to_pylist() == [*range(3, 21), 24]
    assert decoded == [2]
    full = kidx.read(tmp_path, offsets=(3, None)).read_all()
    assert full["offset"].to_pylist() == found["offset"].to_pylist()
    log.write_bytes(data[:-1] + b"!")
    with pytest.raises(ToolError, match=r"CRC|checksum|corrupt"):
        kidx.read(tmp_path, columns=["offset"]).read_all()


def _counting(add, decoded):
    """Count the records of each batch that is read individually."""

    def counted(self, split, batch, buffer, *, compiled):
        decoded.append(batch.count)
        return add(self, split, batch, buffer, compiled=compiled)

    return counted


def test_duckdb_and_polars_read_segments_in_one_line():
    path = GOLDEN / "4.4.0"
    rows = golden("4.4.0")
    counted = duckdb.from_arrow(kidx.read(path, topics="create-time")).aggregate('count(*), max("offset")')
    ((count, last),) = counted.fetchall()
    mine = [row for row in rows if row[0] == "create-time"]
    assert (count, last) == (len(mine), mine[-1][1])
    frame = pl.DataFrame(kidx.read(path, columns=["topic", "offset", "timestamp"]))
    latest = dict(frame.group_by("topic").agg(pl.col("timestamp").max()).iter_rows())
    assert {topic: (time - EPOCH).total_seconds() * 1000 for topic, time in latest.items()} == {
        topic: max(row[2] for row in rows if row[0] == topic) for topic in latest
    }
    frame = kidx.read(path, "batches", topics="transactions").read_pandas()
    assert frame["count"].sum() == len([row for row in rows if row[0] == "transactions"]) + frame["control"].sum()


def test_an_error_is_one_line_in_duckdb_polars_and_arrow(tmp_path):
    log = tmp_path / "t-0" / f"{0:020d}.log"
    log.parent.mkdir()
    batch = build_batch([SimpleRecord(1, b"k", b"v")], base_offset=0)
    log.write_bytes(batch[:-1] + b"?" + batch)
    line = rf"{re.escape(str(log))} at byte 0: Record is corrupt [^\n]*continues with the next segment\)"
    for query, kind in (
        (lambda: duckdb.from_arrow(kidx.read(tmp_path)).fetchall(), duckdb.Error),
        (lambda: pl.DataFrame(kidx.read(tmp_path)), pl.exceptions.ComputeError),
        (lambda: kidx.read(tmp_path).read_all(), ToolError),
    ):
        with pytest.raises(kind, match=line) as caught:
            query()
        assert str(caught.value).strip().count("\n") == 0
    assert caught.value.__cause__ is None
    assert caught.value.__context__ is None


def test_the_program_of_the_querying_page_counts_each_hour(capsys):
    block = the_block("python", page="docs/querying.md", containing="aggregate(")
    exec(block.replace("/var/lib/kafka/data", str(GOLDEN / "4.4.0")).replace("orders", "create-time"), {})  # noqa: S102
    hours = Counter(row[2] // 3_600_000 for row in golden("4.4.0") if row[0] == "create-time")
    counted = re.findall(r"(\d+) │$", capsys.readouterr().out, re.MULTILINE)
    assert counted == [str(hours[hour]) for hour in sorted(hours)]


def test_the_program_of_the_querying_page_writes_an_hour_to_parquet(tmp_path, monkeypatch):
    """The hour has a null key, a null value and headers; other records have no time, or one of the far future."""
    (log := tmp_path / "orders-0" / f"{0:020d}.log").parent.mkdir()
    first, last = 1_699_999_200_000, 1_700_002_799_999
    times = (-1, first - 1, first, first + 7, last, last + 1, 9_000_000_000_000_000)
    headers = (("a", b"1"), ("a", None))
    made = [
        SimpleRecord(time, None if n == 2 else b"k", None if n == 3 else b"v", headers) for n, time in enumerate(times)
    ]
    log.write_bytes(build_batch(made))
    monkeypatch.chdir(tmp_path)
    block = the_block("python", page="docs/querying.md", containing="write_parquet")
    exec(block.replace("/var/lib/kafka/data", str(tmp_path)), {})  # noqa: S102
    for name in ("with-duckdb", "with-polars"):
        table = pyarrow.parquet.read_table(f"{name}.parquet")
        assert table["offset"].to_pylist() == [2, 3, 4]
        assert table["key"].to_pylist() == [None, b"k", b"k"]
        assert table["value"].to_pylist() == [b"v", None, b"v"]
        assert table["headers"].to_pylist() == [[{"key": key, "value": value} for key, value in headers]] * 3
        assert [time.timestamp() * 1000 for time in table["timestamp"].to_pylist()] == [first, first + 7, last]


def test_other_contents_and_hidden_transactions():
    path = GOLDEN / "4.4.0"
    segments = kidx.read(path, "segments").read_all()
    assert segments["size"].to_pylist() == [
        log.stat().st_size for log in sorted(path.glob("*-0/*.log"), key=lambda log: (log.parent.name, log.name))
    ]
    entries = kidx.read(path, "offset_index", topics="create-time").read_all()
    assert entries.num_rows == sum(index.stat().st_size // 8 for index in path.glob("create-time-0/*.index"))
    all_of_them = kidx.read(path, topics="transactions", columns=["offset"]).read_all().num_rows
    committed = kidx.read(path, topics="transactions", columns=["offset"], isolation="read_committed").read_all()
    assert 0 < committed.num_rows < all_of_them
    assert kidx.read(path, topics="create-time", headers=True).schema.names[-1] == "headers"


def test_a_url_of_fsspec_and_several_paths(tmp_path):
    rows = golden("4.4.0")
    copied = shutil.copytree(GOLDEN / "4.4.0" / "create-time-0", tmp_path / "create-time-0")
    mine = [row for row in rows if row[0] == "create-time"]
    assert tuples(kidx.read(f"local://{copied}")) == mine
    both = kidx.read([copied, GOLDEN / "4.4.0" / "uncompressed-0"])
    assert tuples(both) == [row for row in rows if row[0] in ("create-time", "uncompressed")]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"path": "/nowhere"}, "/nowhere does not exist"),
        ({"content": "lines"}, "content"),
        ({"columns": ["offset", "ofset"]}, "unknown column 'ofset' of records; choose from key, value, topic"),
        ({"content": "segments", "offsets": (1, None)}, "offsets and times apply to records, not to segments"),
        ({"times": (datetime(2024, 1, 1), None)}, "has no time zone"),  # noqa: DTZ001 -- that is the point
    ],
)
def test_errors_are_reported(arguments, message):
    with pytest.raises(ToolError, match=message):
        kidx.read(**{"path": GOLDEN / "4.4.0"} | arguments).read_all()


@pytest.mark.thorough
def test_neither_spark_nor_unused_modules_are_imported():
    script = (
        "import sys, json, kidx\n"
        "before = sorted(sys.modules)\n"
        f"rows = kidx.read({str(GOLDEN / '4.4.0')!r}).read_all().num_rows\n"
        "print(json.dumps([rows, 'pyarrow' in before, [m for m in sys.modules if m.partition('.')[0] == 'pyspark']]))"
    )
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True, env=environment)
    rows, early, spark = json.loads(done.stdout)
    assert rows == len(golden("4.4.0"))
    assert not early
    assert spark == []


def test_a_log_of_a_terabyte_is_rejected_by_its_size(tmp_path):
    """The file is sparse: reading its zeros would take hours."""
    directory = Path(shutil.copytree(GOLDEN / "3.9.2" / "create-time-0", tmp_path / "create-time-0"))
    os.truncate(max(directory.glob("*.log")), 1 << 40)
    for content in ("records", "batches"):
        with pytest.raises(ToolError, match="1,099,511,627,776 bytes long, and no segment has more than 2,147,483,647"):
            kidx.read(tmp_path, content).read_all()


# -- ``kidx.read`` over both tiers: the records of the whole log, each once, in the order of their offsets ---------


RELEASE = Path(__file__).parents[1] / "golden" / "4.3.1"


@pytest.fixture(params=["transactions-0", "create-time-0", "restarted-0"])
def tiers(request, tmp_path):
    """Return a log whose older segments are only in remote storage, the remote storage, and the whole log."""
    whole, partition = (tmp_path / name / request.param for name in ("whole", "data"))
    for path in (whole, partition):
        shutil.copytree(RELEASE / request.param, path)
    count = len(bases_of(whole)) - 1
    copy_segments(partition, tmp_path / "remote", count)
    delete_local(partition, count)
    return partition, tmp_path / "remote", whole


@pytest.mark.parametrize("isolation", ["read_uncommitted", "read_committed"])
def test_the_records_are_those_of_the_whole_log(tiers, isolation):
    partition, remote, whole = tiers
    expected = kidx.read(whole, isolation=isolation, headers=True).read_all()
    for path in (remote, f"local://{remote}"):
        found = kidx.read(partition, remote=path, isolation=isolation, headers=True).read_all()
        assert found.equals(expected)
    assert kidx.read(partition, isolation=isolation).read_all().num_rows < expected.num_rows


@pytest.mark.thorough
def test_offsets_and_times_reach_over_the_boundary(tiers):
    partition, remote, whole = tiers
    everything = kidx.read(whole, columns=["offset", "timestamp"]).read_all().to_pylist()
    boundary = bases_of(whole)[-1]
    for first in (0, 1, boundary - 1, boundary):
        for end in (boundary, boundary + 1, None):
            wanted = {"offsets": (first, end), "columns": ["offset", "timestamp"]}
            assert (
                kidx.read(partition, remote=remote, **wanted).read_all().equals(kidx.read(whole, **wanted).read_all())
            )
    for row in everything[:: max(1, len(everything) // 10)]:
        wanted = {"times": (row["timestamp"], None), "columns": ["offset", "timestamp"]}
        assert kidx.read(partition, remote=remote, **wanted).read_all().equals(kidx.read(whole, **wanted).read_all())


def test_an_offset_in_both_tiers_comes_once(tmp_path):
    whole = tmp_path / "data" / "transactions-0"
    shutil.copytree(RELEASE / "transactions-0", whole)
    expected = kidx.read(whole).read_all()
    copy_segments(whole, tmp_path / "remote", 3)
    assert kidx.read(whole, remote=tmp_path / "remote").read_all().equals(expected)
    delete_local(whole, 2)
    assert kidx.read(whole, remote=tmp_path / "remote").read_all().equals(expected)


def test_segments_that_overlap_or_lie_within_others(tmp_path):
    """After an election, another broker copies segments that begin at other offsets."""
    whole = tmp_path / "data" / "create-time-0"
    shutil.copytree(RELEASE / "create-time-0", whole)
    expected = kidx.read(whole).read_all()
    stored = copy_segments(whole, tmp_path / "remote", 2)
    delete_local(whole, 2)
    (stored / "README").touch()
    for path in list(stored.glob(f"{0:020d}-*")):  # a copy that failed: it ends with the first batches
        again = path.with_name(f"{path.name[:20]}-AAAAAAAAAAAAAAAAAAAAAA{path.suffix}")
        again.write_bytes(path.read_bytes()[:400] if path.suffix == ".log" else path.read_bytes()[:0])
        if path.suffix == ".leader_epoch_checkpoint":
            shutil.copyfile(path, again)
    assert kidx.read(whole, remote=tmp_path / "remote").read_all().equals(expected)


def test_index_entries_and_segments_of_both_tiers(tiers):
    partition, remote, whole = tiers
    for content in ("offset_index", "time_index", "txn_index", "batches"):
        columns = [name for name in kidx.read(whole, content).schema.names if name not in ("path", "segment")]
        found, expected = (
            kidx.read(path, content, columns=columns, **options).read_all()
            for path, options in ((partition, {"remote": remote}), (whole, {}))
        )
        assert found.equals(expected), content
    paths = kidx.read(partition, "segments", remote=remote, columns=["path"]).read_all()["path"].to_pylist()
    assert len(paths) == len(bases_of(whole))
    assert sum(path.startswith(str(remote)) for path in paths) == len(paths) - 1


def test_a_directory_that_is_not_remote_storage_is_rejected(tiers, tmp_path):
    partition, _, _ = tiers
    with pytest.raises(ToolError, match="has no remote segments"):
        kidx.read(partition, remote=tmp_path / "data").read_all()
