"""Rust tests of the finding in commitlog fail on the locked version, each with its message, and pass with the fix."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest
from foreign_findings import FOREIGN, assert_each_fails
from rust_builds import use_fixed_crate

pytestmark = [pytest.mark.cargo, pytest.mark.thorough, pytest.mark.in_turn(5, of="foreign implementations")]
SOURCES = FOREIGN / "rust" / "commitlog"
MESSAGES = dict.fromkeys(
    ("append_after_truncate_into_closed_segment", "reopen_after_truncate_into_closed_segment"),
    ("Attempt to append to readonly index",),
)
"""Messages of each test on the locked version."""


def cargo(work, *words):
    environment = {**os.environ, "CARGO_TARGET_DIR": str(work / "target"), "RUST_BACKTRACE": "0"}
    return subprocess.run(["cargo", *words], cwd=work, env=environment, capture_output=True, text=True, check=False)


def failures(package):
    """Run the tests of a package. Return the messages of each; empty if it passed."""
    done = cargo(package, "test", "--quiet", "--no-fail-fast", "--", "--format=pretty")
    results = dict(re.findall(r"^test (\w+) \.\.\. (ok|FAILED)$", done.stdout, re.MULTILINE))
    assert results, done.stdout + done.stderr
    failed = re.findall(r"^---- (\w+) stdout ----\n\n.* panicked at .*:\n(.*)$", done.stdout, re.MULTILINE)
    found = {name: [message] for name, message in failed}
    assert found.keys() == {name for name, result in results.items() if result == "FAILED"}, done.stdout
    return {name: found.get(name, []) for name in results}


@pytest.fixture
def package(tmp_path):
    return Path(shutil.copytree(SOURCES, tmp_path / "package", ignore=shutil.ignore_patterns("target", "Cargo.lock")))


def test_each_fails_on_the_locked_version(package):
    assert_each_fails(failures(package), MESSAGES, "commitlog 0.2.0")


def test_each_passes_with_the_proposed_fix(package):
    """The tests can pass: what they expect needs no other change of commitlog."""
    use_fixed_crate(cargo, package, "commitlog", "0.2.0")
    assert failures(package) == {name: [] for name in MESSAGES}
