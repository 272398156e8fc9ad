"""Fleets whose segments and tables lie elsewhere: an S3 server, and a file system that only fsspec knows."""

from __future__ import annotations

import json
import logging
import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from kidx.verify import verify_paths

pytestmark = [pytest.mark.spark, pytest.mark.timeout(900)]  # each starts many Python processes

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
SPOILT = f"create-time-0/{0:020d}.index"


@pytest.fixture
def data(tmp_path, thorough):
    """Make a log directory with a fault; three partitions are enough for the transfers."""
    copy = tmp_path / "top" / "data"
    others = () if thorough else ("log-append-time-0", "message-*", "restarted-0", "untouched-0")
    left_out = shutil.ignore_patterns("running", "*.json", *others)
    shutil.copytree(ROOT / "tests" / "golden" / "3.9.2", copy, ignore=left_out)
    spoil(copy / f"uncompressed-0/{0:020d}.index")
    return copy


def spoil(path):
    content = bytearray(path.read_bytes())
    content[7] ^= 64
    path.write_bytes(content)


def told(findings, before, after):
    return [str(finding).replace(str(before), after) for finding in findings]


class KillsWorkers(logging.Handler):
    """Hook that kills the verifying processes when the server gets the first request for a log."""

    def __init__(self):
        super().__init__()
        self.killed = []

    def emit(self, record):
        from pyspark import SparkContext

        said = record.getMessage()
        if '"GET ' in said and ".log HTTP" in said and not self.killed:
            for process in children_of(*children_of(SparkContext._gateway.proc.pid)):
                os.kill(process, signal.SIGKILL)
                self.killed.append(process)


def children_of(*parents):
    found = []
    for status in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = status.read_text("utf-8").rpartition(")")[2].split()
        except (FileNotFoundError, ProcessLookupError):
            continue
        if int(fields[1]) in parents:
            found.append(int(status.parent.name))
    return found


@pytest.fixture
def killer():
    logger = logging.getLogger("werkzeug")
    before = logger.level, logger.handlers, logger.propagate
    handler = KillsWorkers()
    logger.setLevel(logging.INFO)
    logger.handlers, logger.propagate = [handler], False
    yield handler
    logger.setLevel(before[0])
    _, logger.handlers, logger.propagate = before


@pytest.mark.thorough
def test_an_s3_server_holds_segments_and_tables_though_workers_die(spark, data, killer, thorough, tmp_path):
    moto = pytest.importorskip("moto.server")
    fsspec = pytest.importorskip("fsspec")
    from kidx.spark import fleet

    server = moto.ThreadedMotoServer("127.0.0.1", 0)
    server.start()
    try:
        host, port = server.get_host_and_port()
        options = {"key": "key", "secret": "secret", "endpoint_url": f"http://{host}:{port}"}
        store = fsspec.filesystem("s3", **options)
        store.mkdir("fleet")
        store.put(str(data), "fleet/data", recursive=True)
        asked = {"out": "s3://fleet/verified", "run_id": "one", "storage_options": options}
        first = fleet.verify(spark, ["s3://fleet/data"], **asked)
        assert killer.killed
        plain = verify_paths([data], processes=1)
        assert plain.findings
        assert told(first.findings(), "", "") == told(plain.findings, data, "s3://fleet/data")
        if thorough:  # else the tests of the fleet compare the files of this machine
            here = fleet.verify(spark, [data], out=tmp_path / "verified", run_id="one")
            assert here.findings() == plain.findings
        assert first.frame("files").count() == len(plain.files)
        assert store.cat_file("fleet/verified/runs/one/report.html").startswith(b"<!doctype html>")

        # An object of the same size: its tag tells that it is another.
        spoil(data / SPOILT)
        store.put_file(str(data / SPOILT), f"fleet/data/{SPOILT}")
        second = fleet.verify(spark, ["s3://fleet/data"], **asked)
        assert second.resumed == plain.segments - 1
        again = verify_paths([data], processes=1)
        assert told(second.findings(), "", "") == told(again.findings, data, "s3://fleet/data")
        assert len(again.findings) > len(plain.findings)
    finally:
        server.stop()


@pytest.mark.in_turn(2)
@pytest.mark.parametrize(
    "changed",
    # The test above resumes a run with tables in fsspec, too.
    [pytest.param((), id="once"), pytest.param((f"data/{SPOILT}",), id="resumed", marks=pytest.mark.thorough)],
)
@pytest.mark.thorough
def test_a_custom_file_system_and_a_dying_worker_through_spark_connect(data, quick, changed, tmp_path):
    site = tmp_path / "site"
    (site / "drawer-1.dist-info").mkdir(parents=True)
    (site / "drawer-1.dist-info" / "METADATA").write_text("Metadata-Version: 2.1\nName: drawer\nVersion: 1\n")
    (site / "drawer-1.dist-info" / "entry_points.txt").write_text("[fsspec.specs]\ndrawer = drawer.Drawer\n")
    shutil.copy(HERE / "stores" / "drawer.py", site)
    (data.parent / "kill").touch()
    plain = [verify_paths([data], processes=1)]
    from kidx.java import find_java
    from kidx.spark.starting import spark_java_home

    environment = os.environ | {
        "DRAWER": str(data.parent),
        "JAVA_HOME": str(spark_java_home(find_java())),
        "PYSPARK_PYTHON": sys.executable,
        "PYTHONPATH": os.pathsep.join([str(site), str(ROOT)]),
        "SPARK_LOCAL_IP": "127.0.0.1",
    }
    script = HERE / "stores" / "through_connect.py"
    command = [sys.executable, script, json.dumps(quick), *changed]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-5000:]
    attempts = json.loads(done.stdout.splitlines()[-1])
    plain += [verify_paths([data], processes=1) for _ in changed]
    assert not (data.parent / "kill").exists()
    for attempt, expected in zip(attempts, plain, strict=True):
        wanted = json.dumps([finding.to_json() for finding in expected.findings]).replace(str(data), "drawer://data")
        assert attempt["findings"] == json.loads(wanted)
        assert attempt["files"] == len(expected.files)
        assert attempt["report"] == "drawer://out/runs/one/report.html"
    assert [attempt["resumed"] for attempt in attempts] == [0, plain[0].segments - 1][: len(plain)]
    assert (data.parent / "out" / "runs" / "one" / "report.html").read_text("utf-8").count("<svg") >= 3
