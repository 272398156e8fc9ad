"""The commands and the program of docs/clusters.md on a standalone cluster whose workers lack kidx."""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
import sysconfig
import tarfile
import venv
from datetime import UTC, datetime
from pathlib import Path

import pyarrow.parquet
import pytest
import standalone

import kidx
from kidx.verify import verify_paths

pytestmark = [pytest.mark.spark, pytest.mark.thorough]

PAGE = Path(__file__).parents[2] / "docs" / "clusters.md"
LIMIT = 280


@pytest.fixture(scope="module")
def environment(tmp_path_factory):
    """Return the environment of the cluster: its Python lacks kidx."""
    place = tmp_path_factory.mktemp("python")
    return standalone.environment(place, str(standalone.python_without_kidx(place)))


@pytest.fixture(scope="module")
def cluster(environment, tmp_path_factory):
    """Start a master and two workers."""
    with standalone.Standalone(tmp_path_factory.mktemp("cluster"), environment) as cluster:
        cluster.start_master()
        cluster.start_worker()
        cluster.start_worker()
        yield cluster


@pytest.fixture(scope="module")
def master(cluster):
    """Return the master's URL."""
    return cluster.url


def blocks(language):
    """Return the page's blocks of a language, in order."""
    return re.findall(rf"```{language}\n(.*?)```", PAGE.read_text("utf-8"), re.DOTALL)


@pytest.fixture(scope="module")
def server(cluster, master, tmp_path_factory):
    """Start the page's server of Spark Connect, with kidx for it and the executors; return its URL and directory."""
    place = tmp_path_factory.mktemp("server")
    (command,) = re.findall(r"^.*start-connect-server.*$", "\n".join(blocks("sh")), re.MULTILINE)
    command = command.replace("$SPARK_HOME", str(standalone.SPARK)).replace("spark://HOST:7077", master)
    installed = shlex.quote(str(Path(kidx.__file__).parents[1]))
    settings = {"connect.grpc.binding.address": "127.0.0.1", "connect.grpc.binding.port": "0"}
    for name, value in (settings | {"executorEnv.PYTHONPATH": installed}).items():
        command += f" --conf spark.{name}={value}"
    command = (
        f"cd {shlex.quote(str(place))} && PYTHONPATH={installed} SPARK_NO_DAEMONIZE=1 SPARK_LOG_DIR=. exec {command}"
    )
    _, port = cluster.start("connect", "sh", "-c", command, until=r"server started at: \S+:(\d+)")
    return f"sc://127.0.0.1:{port}", place


def submit(script, environment, place):
    return subprocess.run(
        ["sh", "-e", "-c", script],
        env={"PYTHONPATH": str(Path(kidx.__file__).parents[1])} | environment,  # the driver has kidx
        cwd=place,
        capture_output=True,
        text=True,
        timeout=LIMIT,
        check=False,
    )


@pytest.fixture(scope="module")
def script(master, tmp_path_factory):
    """Return the page's commands for a small fleet, and the fleet's log directories."""
    fleet = tmp_path_factory.mktemp("fleet")
    with tarfile.open(Path(__file__).parents[1] / "golden-fleet" / "F1.tar.xz") as files:
        files.extractall(fleet, filter="data")
    roots = sorted({path.parent.parent for path in fleet.rglob("*.log")})
    text = blocks("sh")[0]
    for old, new in (
        ("spark://HOST:7077", master),
        ("partitions=32", "partitions=2"),
        ("/mnt/broker1 /mnt/broker2", shlex.join(map(str, roots))),
    ):
        assert text.count(old) == 1
        text = text.replace(old, new)
    return text, roots


def test_the_commands_verify_a_fleet(environment, script, tmp_path):
    text, roots = script
    found = submit(text, environment, tmp_path)
    assert found.returncode in (0, 1), found.stdout + found.stderr
    verified = pyarrow.parquet.read_table(tmp_path / "verified" / "files" / "run_id=monday")["path"].to_pylist()
    alone = subprocess.run([sys.executable, "-m", "kidx", "verify", *roots], capture_output=True, check=False)
    assert found.returncode == alone.returncode
    assert {str(path) for root in roots for path in root.rglob("*.log")} <= set(verified)


def test_workers_without_kidx_are_named(environment, script, tmp_path):
    found = submit(re.sub(r"--py-files \S+ ", "", script[0]), environment, tmp_path)
    assert found.returncode == 2
    assert (
        "the workers' Python has no kidx; pass --py-files kidx.zip, or install it there (docs/clusters.md)"
        in found.stdout + found.stderr
    )


UNSTEADY = """
import os, time
from pathlib import Path
from pyspark import TaskContext
from kidx.__main__ import main
from kidx.spark.fleet import run

place, verify_rows = Path.cwd(), run.verify_rows

def unsteady(request, done, batches):
    task = TaskContext.get()
    name = f"{task.partitionId()}-{task.attemptNumber()}"
    for number, rows in enumerate(verify_rows(request, done, batches)):
        yield rows
        if name == "0-0":
            (place / "killed").touch()
            os.kill(os.getpid(), 9)
        while name == "1-0":
            time.sleep(1)
    (place / f"ended-{name}").touch()

run.verify_rows, run.tasks_of = unsteady, lambda cost: 4
main()
"""
"""A program for the page's command: one task loses its worker, and the first attempt of another never ends."""
SPECULATION = {"": "true", ".quantile": "0.1", ".multiplier": "1.1", ".minTaskRuntime": "1s", ".interval": "1s"}


def test_a_killed_worker_and_a_second_attempt_change_no_finding(environment, script, tmp_path):
    text, roots = script
    (tmp_path / "kidx_main.py").write_text(UNSTEADY, "utf-8")
    options = " ".join(f"--conf spark.speculation{name}={value}" for name, value in SPECULATION.items())
    _, *lines = text.replace("spark-submit", f"spark-submit {options}", 1).splitlines(keepends=True)
    found = submit("".join(lines), environment, tmp_path)
    assert found.returncode in (0, 1), found.stdout + found.stderr
    assert (tmp_path / "killed").exists()
    assert list(tmp_path.glob("ended-0-[1-9]"))
    assert list(tmp_path.glob("ended-1-[1-9]"))
    assert not (tmp_path / "ended-1-0").exists()
    tables = {
        name: pyarrow.parquet.read_table(tmp_path / "verified" / name / "run_id=monday")
        for name in ("findings", "files", "verdicts")
    }
    alone = verify_paths(roots, processes=1)
    assert sorted(tables["files"]["path"].to_pylist()) == sorted(file.path for file in alone.files)
    assert sorted(tables["findings"]["message"].to_pylist()) == sorted(each.message for each in alone.findings)
    assert alone.findings
    assert len(set(tables["verdicts"]["key"].to_pylist())) == tables["verdicts"].num_rows


@pytest.fixture
def program(tmp_path):
    """Write the page's program; return the root that it reads."""
    root = Path(__file__).parents[1] / "golden" / "3.9.2"
    (text,) = blocks("python")
    assert text.count('"/mnt/broker1"') == 2
    (tmp_path / "segments.py").write_text(text.replace("/mnt/broker1", str(root)), "utf-8")
    return root


def check_copies(root, place):
    """Check what the page's program has written."""
    names = ["topic", "partition", "offset"]
    every, copied = kidx.read(root).read_all(), pyarrow.parquet.read_table(place / "records", columns=names)
    rows, wanted = (zip(*(table[name].to_pylist() for name in names), strict=True) for table in (copied, every))
    assert sorted(rows) == sorted(wanted)
    since, until = (datetime(2023, 11, 14, hour, tzinfo=UTC) for hour in (22, 23))
    counted = pyarrow.parquet.read_table(place / "counts")["count"].to_pylist()
    assert sum(counted) == kidx.read(root, times=(since, until)).read_all().num_rows


def test_the_program_reads_and_follows(environment, master, program, tmp_path):
    archive, start, *_ = blocks("sh")
    making = next(line for line in archive.splitlines() if "make_archive" in line)
    assert "spark://HOST:7077" in start
    text = f"{making}\n{start.replace('spark://HOST:7077', master)}"
    found = submit(text, environment, tmp_path)
    assert found.returncode == 0, found.stdout + found.stderr
    check_copies(program, tmp_path)


def test_the_program_runs_with_a_packed_environment(environment, master, program, tmp_path):
    """The environment has paths to the packages of this Python, as packing all of them takes minutes."""
    packed = tmp_path / "packed"
    venv.create(packed, with_pip=False, symlinks=True)
    (library,) = packed.glob("lib/*/site-packages")
    source = Path(kidx.__file__).parents[1]
    paths = [source, *(sysconfig.get_path(name) for name in ("purelib", "platlib"))]
    (library / "packages.pth").write_text("\n".join(map(str, paths)), "utf-8")
    with tarfile.open(tmp_path / "environment.tar.gz", "w:gz") as archive:
        archive.add(packed, "")
    (command,) = (text for text in blocks("sh") if "venv-pack" in text)
    command = command[command.index("mkdir") :].replace("spark://HOST:7077", master)
    found = submit(command, {**environment, "PYTHONPATH": ""}, tmp_path)
    assert found.returncode == 0, found.stdout + found.stderr
    check_copies(program, tmp_path)


ASKING = """
import sys
import kidx.spark
spark = kidx.spark.session(sys.argv[1], spark__pyspark__python=sys.executable)
print(spark.sparkContext.parallelize([0], 1).map(lambda _: sys.executable).first())
"""


def test_a_session_obeys_the_setting_of_the_workers_python(environment, master, tmp_path):
    assert environment["PYSPARK_PYTHON"] != sys.executable
    found = submit(shlex.join([sys.executable, "-c", ASKING, master]), environment, tmp_path)
    assert found.returncode == 0, found.stdout + found.stderr
    assert found.stdout.splitlines()[-1] == sys.executable


def test_the_program_runs_through_spark_connect(environment, server, program, tmp_path):
    pytest.importorskip("grpc")
    text = next(line for line in blocks("sh")[2].splitlines() if "segments.py" in line)
    url, place = server
    found = submit(text.replace("sc://HOST:15002", url), environment, tmp_path)
    assert found.returncode == 0, found.stdout + found.stderr
    check_copies(program, place)
