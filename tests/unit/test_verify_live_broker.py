"""Verifying while a broker works, on several processors, and without writing anything."""

import os
import shutil
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from kidx.discovery import discover
from kidx.records import SimpleRecord, build_batch
from kidx.segment import LogSegment, SegmentConfig
from kidx.verify import verify_paths

GOLDEN = Path(__file__).parents[1] / "golden"


def test_a_growing_segment_has_no_fault(tmp_path):
    """Index files are read before the log, so they are never ahead of it; their preallocated tail is normal."""
    directory = tmp_path / "t-0"
    directory.mkdir()
    config = SegmentConfig(index_interval_bytes=100, segment_index_bytes=1 << 20)
    started, stop = threading.Event(), threading.Event()

    def write():
        with LogSegment.open(directory, 0, config) as segment:
            offset = 0
            while not stop.is_set() and offset < 100_000:  # the indexes have a preallocated tail
                segment.append(build_batch([SimpleRecord(offset, None, b"x" * 50)] * 2, base_offset=offset))
                offset += 2
                started.set()

    writer = threading.Thread(target=write)
    writer.start()
    try:
        assert started.wait(60)
        results = [verify_paths([directory]) for _ in range(15)]
    finally:
        stop.set()
        writer.join()
    assert {result.verdict for result in results} <= {"exact", "sound"}, [r.findings for r in results]
    assert results[-1].batches >= results[0].batches > 0
    assert verify_paths([directory]).verdict == "exact"


def test_a_segment_that_retention_deletes_concurrently_is_skipped(tmp_path):
    shutil.copytree(GOLDEN / "4.4.0" / "create-time-0", tmp_path / "create-time-0")
    found = discover([tmp_path])
    for path in (tmp_path / "create-time-0").glob(f"{0:020d}.*"):
        path.unlink()
    result = verify_paths(found)
    assert result.exit_code == 0
    assert result.segments == 2


def test_nothing_is_opened_for_writing(tmp_path):
    """A process that compiles and imports code while it verifies writes only its own caches."""
    data, caches = tmp_path / "data", tmp_path / "caches"
    shutil.copytree(GOLDEN / "4.4.0" / "transactions-0", data / "transactions-0")
    program = """
import os, sys
data, caches = sys.argv[1:]
read, changed = [], []
def watch(event, arguments):
    if event == "open" and str(arguments[0]).startswith(data):
        read.append(arguments[0])
        if arguments[2] & (os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC):
            changed.append((event, arguments))
    if event in ("os.remove", "os.rename", "os.truncate", "os.mkdir", "os.chmod", "os.utime"):
        paths = [str(each) for each in arguments if isinstance(each, (str, os.PathLike))]
        if not paths or not all(path.startswith(caches) for path in paths):
            changed.append((event, arguments))
sys.addaudithook(watch)
from kidx.verify import verify_paths
assert verify_paths([data]).exit_code == 0
assert len(read) > 10
assert not changed, changed
assert any(files for _, _, files in os.walk(caches)), "nothing was compiled: the process was not a cold one"
"""
    environment = os.environ | {"PYTHONPYCACHEPREFIX": str(caches), "NUMBA_CACHE_DIR": str(caches / "numba")}
    environment.pop("PYTHONDONTWRITEBYTECODE", None)
    subprocess.run([sys.executable, "-c", program, str(data), str(caches)], check=True, env=environment)


@pytest.mark.parametrize("threads", [0, 1])
def test_several_processes_find_the_same(tmp_path, threads):
    """The result is the same for forked and spawned processes."""
    for name in ("create-time-0", "transactions-0"):
        shutil.copytree(GOLDEN / "4.4.0" / name, tmp_path / name)
    os.truncate(tmp_path / "create-time-0" / f"{0:020d}.index", 8)
    os.truncate(tmp_path / "create-time-0" / f"{0:020d}.timeindex", 12)
    hold = threading.Event()
    others = [threading.Thread(target=hold.wait) for _ in range(threads)]
    for other in others:
        other.start()
    seen = []
    try:
        several = verify_paths([tmp_path], processes=2, progress=lambda segment, _: seen.append(segment))
    finally:
        hold.set()
        for other in others:
            other.join()
    assert several.to_json() == verify_paths([tmp_path], processes=1).to_json()
    assert seen == list(discover([tmp_path]).segments)
