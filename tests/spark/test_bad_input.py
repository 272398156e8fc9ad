"""Invalid input is rejected with a line that lists the alternatives; corruption fails, or is skipped on request."""

from __future__ import annotations

import shutil

import pytest

pytestmark = pytest.mark.spark


def test_spark_shows_the_line(segments, tmp_path, spark, long_log):
    from pyspark.errors import AnalysisException

    with pytest.raises(
        AnalysisException, match="choose from records, batches, offset_index, time_index, txn_index, seg"
    ):
        segments(long_log, "recrods")
    with pytest.raises(AnalysisException, match="holds no Kafka segments"):
        segments(tmp_path).count()
    with pytest.raises(AnalysisException, match="unknown topic or partition other; choose from long"):
        segments(long_log, subscribe="other").count()
    with pytest.raises(AnalysisException, match="has no column offset string; choose from key binary, value binary"):
        spark.read.format("kafka_segments").schema("offset string").load(str(long_log)).count()
    with pytest.raises(AnalysisException, match="missing: long-0, unknown: long-1"):
        segments(long_log, startingOffsets='{"long": {"1": 5}}').count()


@pytest.mark.thorough
def test_corruption_fails_or_is_skipped(segments, tmp_path, long_log):
    from pyspark.errors import PythonException

    copy = tmp_path / "log" / "long-0"
    shutil.copytree(long_log / "long-0", copy)
    log = copy / f"{10_000:020d}.log"
    data = bytearray(log.read_bytes())
    data[600_000] ^= 1
    log.write_bytes(data)
    with pytest.raises(PythonException, match=rf"{log.name} at byte \d+: Record is corrupt .*failOnDataLoss=false"):
        segments(copy.parent).count()
    left = {row.offset for row in segments(copy.parent, failOnDataLoss=False).select("offset").collect()}
    lost = set(range(40_000)) - left
    assert 4000 < len(lost) < 6000
    assert lost == set(range(min(lost), 20_000)), "the rest of the corrupt segment, and nothing else"
    assert segments(copy.parent, checkCrcs=False).count() == 40_000
    rows = segments(copy.parent, "batches").where("not valid").select("segment", "base_offset").collect()
    assert [tuple(row) for row in rows] == [(10_000, min(lost))]
    log.write_bytes(data[:-7])
    found = segments(copy.parent, "batches").where("error is not null").select("segment", "error").collect()
    assert [(row.segment, "no complete batch" in row.error) for row in found] == [(10_000, True)]


def test_a_log_that_is_truncated_between_planning_and_reading_fails(segments, tmp_path, long_log):
    from pyspark.errors import PythonException

    copy = tmp_path / "log" / "long-0"
    shutil.copytree(long_log / "long-0", copy)
    found = segments(copy.parent).select("offset")
    assert found.rdd.getNumPartitions() > 0  # plans
    log = max(copy.glob("*.log"))
    with log.open("r+b") as file:
        file.truncate(log.stat().st_size // 2)
    with pytest.raises(PythonException, match=r"long-0 was truncated .*; offset 39999 was requested"):
        found.rdd.count()
