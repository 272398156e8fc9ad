"""The C function that compiled kernels call for CRC-32C: checked when it is loaded, not used if it is missing."""

from __future__ import annotations

import ctypes
import json
import shutil
import subprocess
import sys
from pathlib import Path

import google_crc32c
import pytest
from google_crc32c import _crc32c

from kidx.scan import checksum

GOLDEN = Path(__file__).parents[1] / "golden" / "4.4.0"


@pytest.fixture
def uncached():
    """Call the uncached lookup, as a new process does."""
    return checksum.crc32c_address.__wrapped__


def test_the_function_is_found_or_not_used(uncached):
    """If it is found, it computes the same as the package."""
    address = uncached()
    if address:
        function = ctypes.CFUNCTYPE(ctypes.c_uint32, ctypes.c_char_p, ctypes.c_size_t)(address)
        assert function(b"123456789", 9) == google_crc32c.value(b"123456789") == 0xE3069283


def test_a_library_without_the_function_is_not_used(uncached, monkeypatch):
    """No such file, and one that has no such function."""
    monkeypatch.setattr(_crc32c, "__file__", "/nowhere.so")
    assert uncached() == 0
    monkeypatch.setattr(_crc32c, "__file__", None)  # the program itself
    assert uncached() == 0


@pytest.mark.skipif(shutil.which("cc") is None, reason="no C compiler")
def test_another_function_of_that_name_is_not_called(uncached, monkeypatch, tmp_path):
    """Its results are compared before anything relies on it."""
    (tmp_path / "other.c").write_text(
        "#include <stddef.h>\n#include <stdint.h>\n"
        "uint32_t crc32c_value(const uint8_t *data, size_t size) { return size ? ~data[0] : 0; }\n"
    )
    library = tmp_path / "other.so"
    subprocess.run(["cc", "-shared", "-fPIC", "-o", library, tmp_path / "other.c"], check=True)
    monkeypatch.setattr(_crc32c, "__file__", str(library))
    assert uncached() == 0


@pytest.mark.skipif(not checksum.COMPILED, reason="numba is missing")
@pytest.mark.thorough
def test_verdicts_are_the_same_without_it(tmp_path):
    """A verification of a corrupt batch by compiled kernels gives the same with and without it, in two processes."""
    data = shutil.copytree(GOLDEN / "create-time-0", tmp_path / "create-time-0")
    log = data / f"{0:020d}.log"
    content = bytearray(log.read_bytes())
    content[-3] ^= 0x40
    log.write_bytes(content)
    program = """
import json, sys
from kidx.scan import checksum, scan_log
if sys.argv[2] == "without":
    checksum.crc32c_address = lambda: 0
    from kidx.scan import batch_kernels
    batch_kernels.crc32c_address = checksum.crc32c_address
rows, tail = scan_log(sys.argv[1], compiled=True)
print(json.dumps([rows["crc_ok"].tolist(), rows["crc"].tolist(), tail.valid_bytes]))
"""
    results = []
    for how in ("with", "without"):
        command = [sys.executable, "-c", program, str(log), how]
        results.append(json.loads(subprocess.run(command, capture_output=True, check=True).stdout))
    assert results[0] == results[1]
    assert results[0][0].count(False) == 1
