"""Tables of a catalog, by ``CREATE TABLE ... USING kafka_segments``: they keep their options, and write nothing."""

from __future__ import annotations

import pytest
from streaming_query import begin

from kidx.records import build_batch

pytestmark = pytest.mark.spark


@pytest.fixture
def disk(tmp_path):
    """Write topics ``t`` and ``other``, six records each, to a directory whose name has to be escaped in a URI."""
    for topic in ("t", "other"):
        log = tmp_path / "of 100 % ü" / f"{topic}-0" / f"{0:020d}.log"
        log.parent.mkdir(parents=True)
        records = [(1_700_000_000_000, b"k", b"v")] * 3
        log.write_bytes(b"".join(build_batch(records, base_offset=base) for base in (0, 3)))
    return tmp_path / "of 100 % ü"


@pytest.fixture
def table(spark):
    """Create a table from what follows its name; it is dropped after the test."""

    def create(definition):
        spark.sql(f"CREATE TABLE segments_of_t {definition}")
        return spark.table("segments_of_t")

    yield create
    spark.sql("DROP TABLE IF EXISTS segments_of_t")


def contents(disk):
    return {path: (path.read_bytes(), path.stat().st_mtime_ns) for path in disk.rglob("*.log")}


@pytest.mark.thorough
@pytest.mark.parametrize("form", ["OPTIONS (path '{}', subscribe 't')", "OPTIONS (subscribe 't') LOCATION '{}'"])
def test_a_table_keeps_its_options(form, spark, disk, table):
    frame = table("USING kafka_segments " + form.format(disk))
    assert [(row.topic, row.offset) for row in frame.orderBy("offset").collect()] == [("t", n) for n in range(6)]
    assert spark.sql("SELECT count(*) FROM segments_of_t WHERE offset > 3").first()[0] == 2
    of_query = spark.sql('SELECT count(*) FROM segments_of_t WITH (endingOffsets = \'{"t": {"0": 4}}\')')
    assert of_query.first()[0] == 4


def test_a_table_of_some_columns(spark, disk, table):
    frame = table(f"USING kafka_segments OPTIONS (path '{disk}', columns 'partition, offset')")
    assert frame.columns == ["partition", "offset"]
    assert spark.sql("SELECT count(*), max(offset) FROM segments_of_t").first() == (12, 5)


def test_a_table_of_another_content(disk, table):
    frame = table(f"USING kafka_segments OPTIONS (path '{disk}', content 'batches')")
    assert frame.count() == 4


@pytest.mark.thorough
def test_files_of_a_dropped_table_stay(spark, disk, table):
    before = contents(disk)
    table(f"USING kafka_segments LOCATION '{disk}'")
    with pytest.raises(Exception, match=r"not support|Failed to initialize"):
        spark.sql("INSERT INTO segments_of_t SELECT * FROM segments_of_t")
    with pytest.raises(Exception, match="not support"):
        spark.sql("TRUNCATE TABLE segments_of_t")
    spark.sql("DROP TABLE segments_of_t PURGE")
    assert contents(disk) == before


@pytest.mark.parametrize(
    ("definition", "message"),
    [
        ("USING kafka_segments", "requires a path"),
        ("USING kafka_segments OPTIONS (path '/data', subscripe 't')", "unknown option 'subscripe'"),
    ],
)
def test_a_wrong_table_is_not_created(definition, message, spark, table):
    with pytest.raises(Exception, match=message):
        table(definition)
    assert not spark.catalog.tableExists("segments_of_t")


@pytest.mark.thorough
def test_a_table_can_be_streamed(spark, disk, table):
    table(f"USING kafka_segments OPTIONS (path '{disk}', subscribe 't')")
    stream = spark.readStream.table("segments_of_t").select("topic", "offset")
    query = begin(stream.writeStream.format("memory").queryName("streamed_table"))
    query.stop()
    rows = spark.table("streamed_table").collect()
    assert sorted((row.topic, row.offset) for row in rows) == [("t", offset) for offset in range(6)]
