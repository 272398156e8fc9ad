"""What only one command needs is loaded by that command, not by every one."""

from __future__ import annotations

import subprocess
import sys

import pytest

HEAVY = ("numpy", "numba", "pyarrow", "pyspark", "jpype", "testcontainers", "kafka")


@pytest.mark.parametrize("module", ["kidx.cli", "conformance.cli"])
def test_a_command_line_loads_nothing_heavy_to_say_what_it_can(module):
    said = f"import sys, {module}; print([name for name in {HEAVY} if name in sys.modules])"
    done = subprocess.run([sys.executable, "-c", said], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"
