"""Standalone cluster of the installed Spark on this machine: a master and workers."""

from __future__ import annotations

import os
import re
import shlex
import signal
import subprocess
import sys
import sysconfig
from contextlib import ExitStack
from pathlib import Path
from typing import Self

import pyspark

from kidx.java import find_java
from kidx.spark.starting import spark_java_home

SPARK = Path(pyspark.__file__).parent


def python_without_kidx(place: Path) -> Path:
    """Write a program that is this Python without kidx, and return its path."""
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
    return python


def environment(place: Path, python: str) -> dict[str, str]:
    """Return the environment of a cluster.

    Args:
        place: directory for the files of executors.
        python: the executors' Python.
    """
    found = {name: value for name, value in os.environ.items() if not name.startswith(("PYSPARK", "SPARK", "PYTHON"))}
    return found | {
        "JAVA_HOME": str(spark_java_home(find_java())),
        "SPARK_LOCAL_IP": "127.0.0.1",
        "TZ": "UTC",
        "SPARK_WORKER_DIR": str(place / "work"),
        "PYSPARK_PYTHON": python,
        "PYSPARK_DRIVER_PYTHON": sys.executable,
        "XDG_CACHE_HOME": os.environ.get("XDG_CACHE_HOME", str(Path.home() / ".cache")),
        "PATH": f"{SPARK / 'bin'}:{Path(sys.executable).parent}:{os.environ['PATH']}",
    }


class Standalone:
    """Processes of a cluster; leaving it kills them, with everything that they have started.

    Args:
        place: directory for logs.
        environ: environment of the processes.

    Attributes:
        url: URL of the master.
    """

    def __init__(self, place: Path, environ: dict[str, str]) -> None:
        self._place, self._environ, self._stack = place, environ, ExitStack()
        self._workers: list[subprocess.Popen[bytes]] = []
        self.url = ""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    def start(self, name: str, *command: str | Path, until: str) -> tuple[subprocess.Popen[bytes], str]:
        """Start a process, wait for a line of its output, and return the process and the first group in the line."""
        log = self._place / f"{name}.log"
        with log.open("wb") as out:
            process = subprocess.Popen(
                command, env=self._environ, stdout=out, stderr=out, cwd=self._place, start_new_session=True
            )
        self._stack.callback(kill, process)
        with log.open("rb") as lines:
            while process.poll() is None:
                if match := re.search(until, lines.readline().decode()):
                    return process, match[match.lastindex or 0]
        raise AssertionError(log.read_text("utf-8"))

    def start_master(self) -> None:
        """Start the master."""
        main = "org.apache.spark.deploy.master.Master"
        _, self.url = self.start("master", *_class(main), until=r"master at (spark://\S+?)\.?$")

    def start_worker(self, cores: int = 1, memory: str = "1g") -> None:
        """Start another worker."""
        options = ("--cores", str(cores), "--memory", memory, self.url)
        number = len(self._workers)
        # Spark gives no host a second attempt of a slow task.
        command = (*_class("org.apache.spark.deploy.worker.Worker", f"127.0.0.{number + 1}"), *options)
        process, _ = self.start(f"worker{number}", *command, until="registered with")
        self._workers.append(process)

    def kill_worker(self, number: int) -> None:
        """Kill a worker and its executors."""
        kill(self._workers[number])


def kill(process: subprocess.Popen[bytes]) -> None:
    """Kill a process and its group."""
    if process.poll() is None:
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()


def _class(name: str, host: str = "127.0.0.1") -> tuple[str | Path, ...]:
    return SPARK / "bin" / "spark-class", name, "--host", host, "--port", "0", "--webui-port", "0"
