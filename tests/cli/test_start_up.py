"""Imports that only one command needs, which no other command loads."""

from __future__ import annotations

import subprocess
import sys

import pytest

HEAVY = ("numpy", "numba", "pyarrow", "pyspark", "jpype", "testcontainers", "kafka")


@pytest.mark.thorough
@pytest.mark.parametrize("module", ["kidx.cli", "conformance.cli"])
def test_help_loads_no_heavy_module(module):
    said = f"import sys, {module}; print([name for name in {HEAVY} if name in sys.modules])"
    done = subprocess.run([sys.executable, "-c", said], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"


def test_an_index_is_opened_without_the_log_and_all_exports_exist():
    said = "import sys, kidx; kidx.OffsetIndex; print([name for name in sys.modules if name.startswith('kidx.log')])"
    said += "; print([name for name in kidx.__all__ if not hasattr(kidx, name) or name not in dir(kidx)])"
    said += "; print(hasattr(kidx, 'Nothing'))"
    done = subprocess.run([sys.executable, "-c", said], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n[]\nFalse\n"
