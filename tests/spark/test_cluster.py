"""The commands and the program of docs/clusters.md on a standalone cluster whose workers lack kidx."""

from __future__ import annotations

import os
import re
import shlex
import signal
import subprocess
import sys
import sysconfig
import tarfile
from contextlib import ExitStack
from datetime import UTC, datetime
from pathlib import Path

import pyarrow.parquet
import pyspark
import pytest

import kidx
from kidx.java import find_java
from kidx.spark.starting import spark_java_home

pytestmark = [pytest.mark.spark, pytest.mark.thorough]

PAGE = Path(__file__).parents[2] / "docs" / "clusters.md"
SPARK = Path(pyspark.__file__).parent
LIMIT = 280


@pytest.fixture(scope="module")
def environment(tmp_path_factory):
    """Return the environment of the cluster: its Python lacks kidx."""
    place = tmp_path_factory.mktemp("python")
    packages = place / "packages"
    packages.mkdir()
    for name in ("purelib", "platlib"):
        for each in Path(sysconfig.get_path(name)).iterdir():
            link = packages / each.name
            if not each.name.startswith(("kidx", "conformance", "__editable__")) and not link.exists():
                link.symlink_to(each)
    python = place / "python"
    options = f'PYTHONPATH={shlex.quote(str(packages))}:"$PYTHONPATH"'
    python.write_text(f'#!/bin/sh\n{options} exec {shlex.quote(sys.executable)} -S "$@"\n', "utf-8")
    python.chmod(0o755)
    found = {name: value for name, value in os.environ.items() if not name.startswith(("PYSPARK", "SPARK", "PYTHON"))}
    return found | {
        "JAVA_HOME": str(spark_java_home(find_java())),
        "SPARK_LOCAL_IP": "127.0.0.1",
        "TZ": "UTC",
        "SPARK_WORKER_DIR": str(place / "work"),
        "PYSPARK_PYTHON": str(python),
        "PYSPARK_DRIVER_PYTHON": sys.executable,
        "XDG_CACHE_HOME": os.environ.get("XDG_CACHE_HOME", str(Path.home() / ".cache")),
        "PATH": f"{SPARK / 'bin'}:{Path(sys.executable).parent}:{os.environ['PATH']}",
    }


@pytest.fixture(scope="module")
def start(environment, tmp_path_factory):
    """Return a function that starts a process, and waits for a line of its output."""
    place = tmp_path_factory.mktemp("cluster")
    with ExitStack() as stack:

        def start(name, *command, until):
            log = place / f"{name}.log"
            with log.open("wb") as out:
                process = subprocess.Popen(
                    command, env=environment, stdout=out, stderr=out, cwd=place, start_new_session=True
                )
            stack.callback(process.wait)
            stack.callback(os.killpg, process.pid, signal.SIGKILL)
            with log.open("rb") as lines:
                while process.poll() is None:
                    if match := re.search(until, lines.readline().decode()):
                        return match
            pytest.fail(log.read_text())

        yield start


@pytest.fixture(scope="module")
def master(start):
    """Start a master and two workers; return the master's URL."""
    options = ("--host", "127.0.0.1", "--port", "0", "--webui-port", "0")
    deploy = "org.apache.spark.deploy"
    command = SPARK / "bin" / "spark-class"
    url = start("master", command, f"{deploy}.master.Master", *options, until=r"master at (spark://\S+?)\.?$")[1]
    for number in range(2):
        of_worker = (f"{deploy}.worker.Worker", *options, "--cores", "1", "--memory", "1g", url)
        start(f"worker{number}", command, *of_worker, until="registered with")
    return url


def blocks(language):
    """Return the page's blocks of a language, in order."""
    return re.findall(rf"```{language}\n(.*?)```", PAGE.read_text("utf-8"), re.DOTALL)


@pytest.fixture(scope="module")
def server(start, master, tmp_path_factory):
    """Start the page's server of Spark Connect, with kidx for it and the executors; return its URL and directory."""
    place = tmp_path_factory.mktemp("server")
    (command,) = re.findall(r"^.*start-connect-server.*$", "\n".join(blocks("sh")), re.MULTILINE)
    command = command.replace("$SPARK_HOME", str(SPARK)).replace("spark://HOST:7077", master)
    installed = shlex.quote(str(Path(kidx.__file__).parents[1]))
    settings = {"connect.grpc.binding.address": "127.0.0.1", "connect.grpc.binding.port": "0"}
    for name, value in (settings | {"executorEnv.PYTHONPATH": installed}).items():
        command += f" --conf spark.{name}={value}"
    command = (
        f"cd {shlex.quote(str(place))} && PYTHONPATH={installed} SPARK_NO_DAEMONIZE=1 SPARK_LOG_DIR=. exec {command}"
    )
    found = start("connect", "sh", "-c", command, until=r"server started at: \S+:(\d+)")
    return f"sc://127.0.0.1:{found[1]}", place


def submit(script, environment, place):
    return subprocess.run(
        ["sh", "-e", "-c", script],
        env=environment | {"PYTHONPATH": str(Path(kidx.__file__).parents[1])},  # the driver has kidx
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
    archive, start, _ = blocks("sh")
    making = next(line for line in archive.splitlines() if "make_archive" in line)
    assert "spark://HOST:7077" in start
    text = f"{making}\n{start.replace('spark://HOST:7077', master)}"
    found = submit(text, environment, tmp_path)
    assert found.returncode == 0, found.stdout + found.stderr
    check_copies(program, tmp_path)


def test_the_program_runs_through_spark_connect(environment, server, program, tmp_path):
    pytest.importorskip("grpc")
    text = next(line for line in blocks("sh")[2].splitlines() if "segments.py" in line)
    url, place = server
    found = submit(text.replace("sc://HOST:15002", url), environment, tmp_path)
    assert found.returncode == 0, found.stdout + found.stderr
    check_copies(program, place)
