"""Compiled kernels of an archive, as Spark distributes packages: one process compiles them, others find them."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

import kidx

pytestmark = pytest.mark.thorough

TINY = "from kidx.scan.jit import kernel\n\n\n@kernel\ndef double(value):\n    return value + value\n"
PROGRAM = """
import json, sys
sys.path.insert(0, sys.argv[1])
from tiny import double
assert ".zip" in sys.modules["kidx"].__file__, sys.modules["kidx"].__file__
print(json.dumps([double(21), sum(double.stats.cache_hits.values()), sum(double.stats.cache_misses.values())]))
"""


def test_a_kernel_of_an_archive_is_compiled_once_wherever_the_archive_is(tmp_path):
    pytest.importorskip("numba")
    package = Path(kidx.__file__).parents[1]
    archive = Path(shutil.make_archive(str(tmp_path / "kidx"), "zip", package, "kidx"))
    with zipfile.ZipFile(archive, "a") as files:
        files.writestr("tiny.py", TINY)
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "NUMBA"))}
    environment |= {"XDG_CACHE_HOME": str(tmp_path / "cache"), "HOME": str(tmp_path)}
    found = []
    for name in ("one", "two"):  # the directories of two executors
        (tmp_path / name).mkdir()
        copy = shutil.copy2(archive, tmp_path / name)
        command = [sys.executable, "-P", "-c", PROGRAM, copy]
        done = subprocess.run(command, env=environment, cwd=tmp_path, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        found.append(json.loads(done.stdout))
    assert found == [[42, 0, 1], [42, 1, 0]]
    (tmp_path / "cache" / "kidx").rename(tmp_path / "gone")
    (tmp_path / "cache" / "kidx").write_text("no directory", "utf-8")
    done = subprocess.run(command, env=environment, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert (json.loads(done.stdout)[0], done.stderr) == (42, ""), "compiled without a cache of its source"
