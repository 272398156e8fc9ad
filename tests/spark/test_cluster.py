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
def master(environment, tmp_path_factory):
    """Start a master and two workers; return the master's URL."""
    place = tmp_path_factory.mktemp("cluster")
    with ExitStack() as stack:

        def start(name, *arguments, until):
            log = place / f"{name}.log"
            with log.open("wb") as out:
                process = subprocess.Popen(
                    [SPARK / "bin" / "spark-class", *arguments],
                    env=environment,
                    stdout=out,
                    stderr=out,
                    cwd=place,
                    start_new_session=True,
                )
            stack.callback(process.wait)
            stack.callback(os.killpg, process.pid, signal.SIGKILL)
            with log.open("rb") as lines:
                while process.poll() is None:
                    if match := re.search(until, lines.readline().decode()):
                        return match
            pytest.fail(log.read_text())

        deploy = "org.apache.spark.deploy"
        options = ("--host", "127.0.0.1", "--port", "0", "--webui-port", "0")
        url = start("master", f"{deploy}.master.Master", *options, until=r"master at (spark://\S+?)\.?$")[1]
        for number in range(2):
            of_worker = ("--cores", "1", "--memory", "1g")
            start(f"worker{number}", f"{deploy}.worker.Worker", *options, *of_worker, url, until="registered with")
        yield url


def blocks(language):
    """Return the page's blocks of a language, in order."""
    return re.findall(rf"```{language}\n(.*?)```", PAGE.read_text("utf-8"), re.DOTALL)


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


def test_the_program_reads_and_follows(environment, master, tmp_path):
    root = Path(__file__).parents[1] / "golden" / "3.9.2"
    (program,), (archive, start) = blocks("python"), blocks("sh")
    assert program.count('"/mnt/broker1"') == 2
    (tmp_path / "segments.py").write_text(program.replace("/mnt/broker1", str(root)), "utf-8")
    making = next(line for line in archive.splitlines() if "make_archive" in line)
    assert "spark://HOST:7077" in start
    text = f"{making}\n{start.replace('spark://HOST:7077', master)}"
    found = submit(text, environment, tmp_path)
    assert found.returncode == 0, found.stdout + found.stderr
    every = kidx.read(root).read_all()
    copied = pyarrow.parquet.read_table(tmp_path / "records", columns=["topic", "partition", "offset"])
    names = ("topic", "partition", "offset")
    assert sorted(zip(*(copied[name].to_pylist() for name in names), strict=True)) == sorted(
        zip(*(every[name].to_pylist() for name in names), strict=True)
    )
    since, until = (datetime(2023, 11, 14, hour, tzinfo=UTC) for hour in (22, 23))
    counted = pyarrow.parquet.read_table(tmp_path / "counts")["count"].to_pylist()
    assert sum(counted) == kidx.read(root, times=(since, until)).read_all().num_rows
