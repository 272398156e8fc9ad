"""A fleet on Spark: the same findings as on one machine, kept, resumed, compared, drawn."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from kidx.verify import verify_paths

pytestmark = pytest.mark.spark

GOLDEN = Path(__file__).parents[1] / "golden"


def flip(path, position, bit=1):
    data = bytearray(path.read_bytes())
    data[position] ^= bit
    path.write_bytes(data)


@pytest.fixture(scope="module")
def brokers(tmp_path_factory):
    """Two brokers' directories from golden corpora, and what was done to them."""
    root = tmp_path_factory.mktemp("fleet")
    for number, release in ((1, "3.9.2"), (2, "4.0.2")):
        shutil.copytree(GOLDEN / release, root / f"broker{number}", ignore=shutil.ignore_patterns("running", "*.json"))
        (root / f"broker{number}" / "meta.properties").write_text(f"version=1\nnode.id={number}\n")
    one, two = root / "broker1", root / "broker2"
    for partition in ("restarted-0", "untouched-0"):  # replicas, of which one has another batch
        shutil.rmtree(two / partition)
        shutil.copytree(one / partition, two / partition)
    flip(two / "restarted-0" / f"{0:020d}.log", 18)  # of the first checksum
    index = next(path for path in sorted((one / "create-time-0").glob("*.index")) if path.stat().st_size >= 24)
    flip(index, 15, 64)
    times = next(path for path in sorted((one / "uncompressed-0").glob("*.timeindex")) if path.stat().st_size >= 24)
    times.write_bytes(times.read_bytes()[:-5])
    next((two / "transactions-0").glob("*.index")).unlink()
    return root


def test_planted_faults_are_the_same_findings_on_spark_and_on_one_machine(spark, brokers, tmp_path):
    from kidx.spark import fleet

    plain = verify_paths([brokers], processes=1)
    told = []
    result = fleet.verify(spark, [brokers], out=tmp_path, run_id="first", progress=lambda *each: told.append(each))
    assert plain.findings
    assert result.findings() == plain.findings
    assert result.verdict == plain.verdict == "broken"
    assert result.exit_code == 1
    verdicts = {(row.path, row.verdict) for row in result.frame("files").collect()}
    assert verdicts == {(file.path, file.verdict) for file in plain.files}
    assert (result.summary.segments, result.summary.partitions) == (plain.segments, plain.partitions)
    assert result.summary.bytes_read == plain.bytes_read
    assert told[-1][0] == told[-1][1] > 0

    # By every way of counting there are as many files, and the broker is known by its id.
    for way in ("verdict", "topic", "release", "broker", "age"):
        counts = result.summary.by(way)
        assert sum(sum(each.values()) for each in counts.values()) == len(plain.files), way
    assert set(result.summary.by("broker")) == {"1", "2"}
    assert set(spark.read.parquet(str(tmp_path / "findings")).columns) >= {"run_id", "topic", "clause", "verdict"}

    # Two of the partitions that both brokers have were stamped by their brokers; of the others one was changed.
    differences = result.frame("replicas").collect()
    assert {(Path(row.path).parent.name, Path(row.other).parent.name) for row in differences} == {
        ("broker2", "broker1")
    }
    assert {row.topic for row in differences} == {"log-append-time", "transactions", "restarted"}
    page = result.report.read_text("utf-8")
    assert page.count("<svg") >= 6
    assert "restarted-0" in page
    assert "http" not in page.replace("http://www.w3.org", "")


def test_a_run_goes_on_where_it_was_and_ends_the_same(spark, brokers, tmp_path):
    from kidx.errors import ToolError
    from kidx.spark import fleet

    first = fleet.verify(spark, [brokers], out=tmp_path, run_id="again")
    work = tmp_path / "runs" / "again" / "work"
    kept = sorted(path for path in work.glob("*.done") if not path.name.startswith("replicas"))
    assert first.resumed == 0
    assert len(kept) >= 4
    kept[0].unlink()
    before = {path: path.stat().st_mtime_ns for path in kept[1:]}
    second = fleet.verify(spark, [brokers], out=tmp_path, run_id="again")
    assert second.resumed == len(kept) - 1
    assert {path: path.stat().st_mtime_ns for path in kept[1:]} == before
    assert second.findings() == first.findings()
    with pytest.raises(ToolError, match="was started with other release"):
        fleet.verify(spark, [brokers], out=tmp_path, run_id="again", release="3.9.2")
    with pytest.raises(ToolError, match="is no run id"):
        fleet.verify(spark, [brokers], out=tmp_path, run_id="../x")
    with pytest.raises(ToolError, match=r"nothing to verify: .*nowhere"):
        fleet.verify(spark, [tmp_path / "nowhere"], out=tmp_path, run_id="none")
    assert not (tmp_path / "runs" / "none").exists()

    # A repaired file is gone from the next run, and a new fault is new.
    times = next(
        path for path in (brokers / "broker1" / "uncompressed-0").glob("*.timeindex") if path.stat().st_size % 12
    )
    content = times.read_bytes()
    times.write_bytes(content[: len(content) // 12 * 12])
    try:
        third = fleet.verify(spark, [brokers], out=tmp_path, run_id="third")
        trend = fleet.compare(first.frame("findings"), third.frame("findings"))
    finally:
        times.write_bytes(content)
    assert str(times) in {row["path"] for row in trend.gone}
    assert trend.stayed > 0
    assert json.dumps(trend.to_json())


def test_a_partition_too_big_for_a_task_is_put_together_again(spark, long_log, tmp_path, monkeypatch):
    from kidx.spark import fleet
    from kidx.spark.fleet import work

    monkeypatch.setattr(work, "LARGEST", 1 << 20)
    result = fleet.verify(spark, [long_log], out=tmp_path, run_id="split")
    assert len(list((tmp_path / "runs" / "split" / "work").glob("*.done"))) >= 3
    plain = verify_paths([long_log], processes=1)
    assert result.findings() == plain.findings
    assert (result.verdict, result.summary.files) == (plain.verdict, len(plain.files))


def test_a_file_that_breaks_the_verifier_is_a_finding(spark, long_log, tmp_path):
    from kidx.spark import fleet

    copy = tmp_path / "log" / "long-0"
    shutil.copytree(long_log / "long-0", copy)
    index = copy / f"{0:020d}.index"
    index.unlink()
    index.mkdir()
    result = fleet.verify(spark, [copy.parent], out=tmp_path / "out", run_id="odd")
    assert result.summary.by_verdict["unreadable"] >= 1
    assert result.exit_code == 1
