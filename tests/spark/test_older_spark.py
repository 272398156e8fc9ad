"""Older versions of Spark: kidx does with each what its documentation says, or rejects it by name.

Each version is installed once, into a directory of the cache, and hides the version of the tests' environment.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest
from spark_cases import LIMITS

from conformance.kafka.jar_fetch import cache_directory
from kidx.records import build_batch

# pip unpacks 500 MB, and each of 15 queries starts several Python processes: 300 s on two cores at a load of 20.
pytestmark = [pytest.mark.spark, pytest.mark.thorough, pytest.mark.timeout(900)]

SUPPORT = Path(__file__).parents[1] / "support"
ROWS = 135
SELECTED = 19
SPLITTING = ("maxOffsetsPerTrigger", "maxBytesPerTrigger")


def install(version):
    """Return a directory with this version of Spark, which pip fetches once."""
    place = cache_directory() / "spark" / version
    if not place.exists():
        place.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=place.parent) as temporary:
            stored = Path(temporary) / "stored.cfg"  # pip makes a wheel of 500 MB, only to unpack it
            stored.write_text("[bdist_wheel]\ncompression = stored\n")
            command = [sys.executable, "-m", "pip", "install", "--quiet", "--no-compile"]
            command += ["--target", f"{temporary}/{version}", f"pyspark=={version}"]
            done = subprocess.run(
                command,
                env=os.environ | {"DIST_EXTRA_CONFIG": str(stored)},
                capture_output=True,
                text=True,
                check=False,
            )
            assert not done.returncode, done.stderr
            shutil.move(f"{temporary}/{version}", place)
    return place


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    """Write topic ``t``: a partition with two segments of 60 records, and one with 15 records."""
    place = tmp_path_factory.mktemp("data")
    for partition, base, batches in ((0, 0, 20), (0, 60, 20), (1, 0, 5)):
        log = place / f"t-{partition}" / f"{base:020d}.log"
        log.parent.mkdir(exist_ok=True)
        records = [(1_700_000_000_000, b"k", b"v")] * 3
        log.write_bytes(b"".join(build_batch(records, base_offset=base + 3 * n) for n in range(batches)))
    return place


@pytest.mark.parametrize(
    "version", [pytest.param(version, marks=pytest.mark.in_turn(3)) for version in ("4.0.5", "4.1.4", "4.2.1")]
)
def test_an_older_spark_reads_and_follows_a_directory(version, data, tmp_path):
    environment = os.environ | {"PYTHONPATH": f"{install(version)}:{SUPPORT}"}
    environment.pop("SPARK_HOME", None)
    done = subprocess.run(
        [sys.executable, SUPPORT / "spark_cases.py", data, tmp_path],
        env=environment,
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    results = {}
    for line in done.stdout.splitlines():
        results |= json.loads(line)
    assert results.pop("version", done.stderr[-2000:]) == version
    knows_limits, pushes = version >= "4.2", version >= "4.1"
    for name in LIMITS:
        result = results.pop(name)
        if knows_limits:
            assert (result["rows"], result["most"]) == (ROWS, 1)
            assert (len(result["sizes"]) > 1) == (name in SPLITTING), name
        else:
            assert f"{name} requires Spark 4.2 or later; this is {version}" in result["error"]
    assert "unknown option 'subscripe' of kafka_segments" in results.pop("unknown")["error"]
    pushed = results.pop("pushed")
    assert pushed.pop("bytes") > 0
    whole = {"rows": ROWS, "most": 1, "sizes": [ROWS]}
    assert results == {
        "rows": ROWS,
        "count": ROWS,
        "committed": ROWS,
        "batches": ROWS // 3,
        "table": {"rows": SELECTED, "files": 3},
        "stream": whole,
        "again": whole | {"sizes": []},
        "stream_committed": whole,
        "available_now": whole,
    }
    assert pushed == {
        "rows": SELECTED,
        "pushed": ["offset > 100", "topic = t", "partition = 0"] if pushes else [],
    }
