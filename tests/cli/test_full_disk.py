"""``kidx repair`` and ``rebuild`` on a disk that is nearly full: one line, no file lost, nothing half done."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from thorough_params import thorough_param

from conformance.pytest_plugin.tiers import SKIP_REASON

SUPPORT = Path(__file__).parents[1] / "support"
GOLDEN = Path(__file__).parents[1] / "golden" / "3.9.2" / "create-time-0"


def namespace(kind):
    """Return the command that starts a program with its own mounts."""
    for words in (["unshare", "-m"], ["unshare", "-Urm"]):
        made = ["mount", "-t", "tmpfs", "tmpfs", "/mnt"] if kind == "tmpfs" else ["test", "-b", "/dev/loop0"]
        if (
            shutil.which("unshare")
            and subprocess.run([*words, *made], capture_output=True, check=False).returncode == 0
        ):
            return words
    pytest.skip(f"the mount {SKIP_REASON}: no {kind} can be mounted here")


@pytest.fixture
def partition(tmp_path):
    """Make three segments, whose indexes have wrong entries."""
    partition = Path(shutil.copytree(GOLDEN, tmp_path / "orders-0"))
    for path in [*partition.glob("*.index"), *partition.glob("*.timeindex")]:
        path.write_bytes(bytes(24))
    return partition


@pytest.mark.parametrize(
    ("command", "kind"),
    [
        thorough_param("repair", "tmpfs"),
        thorough_param("out", "tmpfs"),
        thorough_param("repair", "ext4"),
    ],
)
def test_every_number_of_free_blocks_ends_well(partition, tmp_path, command, kind):
    words = [*namespace(kind), sys.executable, SUPPORT / "full_disk.py", command, kind, tmp_path, partition]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    *short, enough = map(json.loads, done.stdout.splitlines())
    assert len(short) > 3
    for told in short:
        assert told["code"] == 2, told
        assert told["err"].count("\n") == 1, told
        assert "No space left on device" in told["err"], told
    for told in (*short, enough):
        assert told["lost"] == [], told
        assert told["left"] == [], told
    assert enough["code"] == 0
    assert short[0]["same"]
