"""A fleet on Spark: the same findings as on one machine, kept, resumed, compared, drawn."""

from __future__ import annotations

import json
import os
import pickle
import shutil
import time
from pathlib import Path

import pytest

from kidx.records import build_batch
from kidx.verify import verify_paths

pytestmark = pytest.mark.spark

GOLDEN = Path(__file__).parents[1] / "golden"


def flip(path, position, bit=1):
    data = bytearray(path.read_bytes())
    data[position] ^= bit
    path.write_bytes(data)


@pytest.fixture(scope="module")
def brokers(tmp_path_factory):
    """Make two brokers' directories from golden corpora, and return their planted faults."""
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
    time.sleep(2.1)  # what has just been written is verified again, as its time stamp may hide a later change
    return root


def verdicts_of(result):
    return {(row.path, row.verdict) for row in result.frame("files").collect()}


@pytest.mark.thorough
def test_planted_faults_are_the_same_findings_on_spark_and_on_one_machine(spark, brokers, tmp_path):
    from kidx.spark import fleet

    plain = verify_paths([brokers], processes=1)
    told = []
    result = fleet.verify(spark, [brokers], out=tmp_path, run_id="first", progress=lambda *each: told.append(each))
    assert plain.findings
    assert result.findings() == plain.findings
    assert result.verdict == plain.verdict == "broken"
    assert result.exit_code == 1
    assert verdicts_of(result) == {(file.path, file.verdict) for file in plain.files}
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


@pytest.mark.thorough
def test_a_run_continues_where_it_was_and_has_the_same_result(spark, brokers, tmp_path, monkeypatch):
    from kidx.errors import ToolError
    from kidx.spark import fleet
    from kidx.spark.fleet import run

    monkeypatch.setattr(run, "SMALLEST", 1 << 20)
    first = fleet.verify(spark, [brokers], out=tmp_path, run_id="again")
    kept = sorted((tmp_path / "verdicts" / "run_id=again").glob("*.parquet"))
    assert first.resumed == 0
    assert len(kept) >= 4
    lost = spark.read.parquet(str(kept[0])).count()
    kept[0].unlink()
    before = {path: path.stat().st_mtime_ns for path in kept[1:]}
    second = fleet.verify(spark, [brokers], out=tmp_path, run_id="again")
    assert 0 < second.resumed == first.summary.segments - lost
    assert {path: path.stat().st_mtime_ns for path in kept[1:]} == before
    assert second.findings() == first.findings()
    with pytest.raises(ToolError, match="was started with other release"):
        fleet.verify(spark, [brokers], out=tmp_path, run_id="again", release="3.9.2")
    with pytest.raises(ToolError, match="invalid run id"):
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
    assert trend.in_both > 0
    assert json.dumps(trend.to_json())


@pytest.mark.thorough
def test_the_segments_of_a_partition_are_distributed_and_joined_again(spark, long_log, tmp_path, monkeypatch):
    from kidx.spark import fleet
    from kidx.spark.fleet import run

    monkeypatch.setattr(run, "SMALLEST", 1 << 20)
    result = fleet.verify(spark, [long_log], out=tmp_path, run_id="split")
    assert len(list((tmp_path / "verdicts" / "run_id=split").glob("*.parquet"))) >= 3
    plain = verify_paths([long_log], processes=1)
    assert result.findings() == plain.findings
    assert (result.verdict, result.summary.files) == (plain.verdict, len(plain.files))


@pytest.fixture
def changing(tmp_path, write_partition):
    """Make two log directories with partitions of three segments, each for another change."""
    root = tmp_path / "changing"
    for number, names in ((1, "start recovery epochs leftover last spoilt repaired untouched"), (2, "clean")):
        data = root / f"broker{number}"
        for name in names.split():
            directory = data / f"{name}-0"
            batches = [[(n, build_batch([(n, b"k", b"v" * 80)] * 1, base_offset=n, partition_leader_epoch=0))
                        for n in range(start, start + 30)] for start in (0, 30, 60)]  # fmt: skip
            write_partition(directory, batches, interval=256)
            (directory / "leader-epoch-checkpoint").write_text("0\n1\n0 0\n")
        (data / "meta.properties").write_text(f"version=1\nnode.id={number}\n")
    for name in ("index", "timeindex"):  # room that a broker had reserved
        with (root / "broker2" / "clean-0" / f"{60:020d}.{name}").open("ab") as file:
            file.write(bytes(24))
    flip(root / "broker1" / "repaired-0" / f"{0:020d}.index", 3, 64)
    time.sleep(2.1)
    return root


def change(root):
    """Change everything that affects a verdict and is not size or time of a segment's files."""
    one, two = root / "broker1", root / "broker2"
    (one / "log-start-offset-checkpoint").write_text("0\n1\nstart 0 500\n")
    (one / "recovery-point-offset-checkpoint").write_text("0\n1\nrecovery 0 500\n")
    (one / "epochs-0" / "leader-epoch-checkpoint").write_text("0\n1\n7 0\n")
    (one / "leftover-0" / f"{0:020d}.log.deleted").write_bytes(b"")
    for path in (one / "last-0").glob(f"{60:020d}.*"):
        path.unlink()
    for name in ("spoilt", "repaired"):
        index = one / f"{name}-0" / f"{0:020d}.index"
        status = index.stat()
        flip(index, 3, 64)
        os.utime(index, ns=(status.st_atime_ns, status.st_mtime_ns))
        assert (index.stat().st_size, index.stat().st_mtime_ns) == (status.st_size, status.st_mtime_ns)
    (two / ".kafka_cleanshutdown").write_text("")


@pytest.mark.thorough
def test_a_resumed_run_depends_on_all_that_a_verdict_depends_on(spark, changing, tmp_path):
    from kidx.spark import fleet

    first = fleet.verify(spark, [changing], out=tmp_path / "out", run_id="one")
    before = verify_paths([changing], processes=1)
    assert first.findings() == before.findings
    change(changing)
    second = fleet.verify(spark, [changing], out=tmp_path / "out", run_id="one")
    after = verify_paths([changing], processes=1)
    assert after.findings != before.findings
    assert second.findings() == after.findings
    assert verdicts_of(second) == {(file.path, file.verdict) for file in after.files}
    # Verified again: all of broker 2, the last segment and the segment that has become the last, and two indexes.
    assert second.resumed == first.summary.segments - 3 - 1 - 1 - 2


class Trap:
    def __init__(self, path):
        self.path = path

    def __reduce__(self):
        return (Path.touch, (self.path,))


@pytest.mark.thorough
def test_nothing_under_the_output_is_executed(spark, changing, tmp_path):
    from kidx.errors import ToolError
    from kidx.spark import fleet

    out, sprung = tmp_path / "out", tmp_path / "sprung"
    fleet.verify(spark, [changing], out=out, run_id="one")
    planted = [path for path in out.rglob("*") if path.is_file() and path.suffix not in {".json", ".html"}]
    for path in planted:
        path.write_bytes(pickle.dumps(Trap(sprung)))
    with pytest.raises(ToolError, match=r"the run one in .* ended early"):
        fleet.verify(spark, [changing], out=out, run_id="one")
    assert planted
    assert not sprung.exists()


@pytest.mark.thorough
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
