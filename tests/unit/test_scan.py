"""Batches, checksums and lookups as arrays: the compiled kernels, the plain ones and the readable reference agree."""

from __future__ import annotations

import ctypes
import json
import os
import shutil
import struct
import subprocess
import sys
import zlib
from pathlib import Path

import google_crc32c
import numpy as np
import pytest
from google_crc32c import _crc32c
from hypothesis import given, settings
from hypothesis import strategies as st

from kidx import OffsetIndex, TimeIndex
from kidx.errors import KidxError
from kidx.records import Codec, SimpleRecord, build_batch, iter_batches
from kidx.scan import BATCH, COMPILED, BulkLookup, LogBlocks, checksum, parse_index, scan_log
from kidx.scan import blocks as blocks_module
from kidx.scan.batch_headers import walk
from kidx.scan.checksum import CASTAGNOLI, IEEE, crc32c, crc32c_address, crc_tables, table_crc

GOLDEN = Path(__file__).parents[1] / "golden"
LOGS = sorted(GOLDEN.glob("*/*/*.log"))
FIELDS = ("position", "base_offset", "last_offset", "max_timestamp", "producer_id", "producer_epoch", "crc")


def both(path):
    (compiled, ended), (plain, also) = scan_log(path, compiled=True), scan_log(path, compiled=False)
    assert ended == also
    assert (compiled == plain).all()
    return compiled, ended


def test_numba_is_installed_and_used():
    assert COMPILED
    assert crc32c_address()


@pytest.mark.parametrize("release", sorted({path.parts[-3] for path in LOGS}))
def test_logs_of_brokers_read_as_the_reference_reads_them(release):
    for path in (path for path in LOGS if path.parts[-3] == release):
        rows, tail = both(path)
        batches = list(iter_batches(path.read_bytes()))
        assert len(rows) == len(batches)
        assert tail.kind == "whole"
        assert tail.valid_bytes == path.stat().st_size
        for row, batch in zip(rows, batches, strict=True):
            assert [int(row[name]) for name in FIELDS] == [getattr(batch, name) for name in FIELDS]
            assert (row["size"], row["magic"], bool(row["crc_ok"])) == (batch.size_in_bytes, batch.magic, True)
            assert row["count"] == (-1 if batch.count is None else batch.count)


@st.composite
def batches(draw):
    base, parts = 0, []
    for _ in range(draw(st.integers(1, 6))):
        magic = draw(st.sampled_from([0, 1, 2, 2, 2]))
        codec = draw(st.sampled_from([Codec.NONE, Codec.NONE, Codec.GZIP]))
        stamps = draw(st.lists(st.integers(-1, 9), min_size=1, max_size=4))
        records = [SimpleRecord(stamp, b"k", b"v" * draw(st.integers(0, 40))) for stamp in stamps]
        parts.append(build_batch(records, base_offset=base, magic=magic, codec=codec))
        base += len(records)
    return b"".join(parts)


@given(batches(), st.data())
@settings(max_examples=settings.default.max_examples * 60 // 100, deadline=None)
def test_damaged_bytes_read_the_same_by_both_walks(content, data):
    """And as the reference reads them, as far as it gets."""
    damaged = bytearray(content)
    for _ in range(data.draw(st.integers(0, 3))):
        damaged[data.draw(st.integers(0, len(damaged) - 1))] = data.draw(st.integers(0, 255))
    damaged = damaged[: data.draw(st.integers(0, len(damaged)))]
    buffer = np.frombuffer(bytes(damaged), np.uint8)
    first, second = np.zeros(64, BATCH), np.zeros(64, BATCH)
    compiled = walk(buffer, len(buffer), first, compiled=True)
    assert compiled == walk(buffer, len(buffer), second, compiled=False)
    assert (first == second).all()
    try:
        positions = []
        for batch in iter_batches(bytes(damaged)):
            positions.append(batch.position)
            row = first[len(positions) - 1]
            if batch.magic >= 0 and batch.position + 61 <= len(damaged):
                assert bool(row["crc_ok"]) == batch.is_valid
                assert row["last_offset"] == batch.last_offset
    except KidxError:
        pass
    assert first["position"][: compiled.rows].tolist() == positions


@given(st.binary(max_size=70), st.integers(0, 9))
def test_the_tables_compute_both_checksums(data, start):
    start = min(start, len(data))
    buffer = np.frombuffer(data, np.uint8)
    assert table_crc(crc_tables(CASTAGNOLI), buffer, start, len(data)) == google_crc32c.value(data[start:])
    assert table_crc(crc_tables(IEEE), buffer, start, len(data)) == zlib.crc32(data[start:])


@pytest.mark.skipif(not COMPILED, reason="needs numba")
def test_compiled_code_computes_the_checksum_of_any_length():
    """Long pieces are checked by the library; short ones end with any number of bytes less than a word."""
    data = bytes(range(256)) * 5
    buffer = np.frombuffer(data, np.uint8)
    for library in (crc32c_address(), 0):
        for end in (*range(3, 140), 1026, 1027, 1028, 1280):
            expected = google_crc32c.value(data[3:end])
            assert crc32c(library, crc_tables(CASTAGNOLI), buffer, 3, end) == expected


def test_without_the_library_a_table_does_the_work(monkeypatch):
    path = LOGS[0]
    expected, _ = scan_log(path, compiled=True)
    monkeypatch.setattr("kidx.scan.batch_kernels.crc32c_address", lambda: 0)
    assert (scan_log(path, compiled=True)[0] == expected).all()


@pytest.mark.thorough
@pytest.mark.skipif(not COMPILED, reason="needs numba")
def test_loaded_kernels_read_small_logs_too():
    """Any loaded kernel suffices, because loading numba takes most of the time."""
    code = """
import sys
from kidx.records import iter_memory_batches
from kidx.scan import LogBlocks, decode_batch
print(LogBlocks(sys.argv[1]).compiled, 'numba' in sys.modules)
decode_batch(next(iter_memory_batches(open(sys.argv[1], 'rb').read())))
print(LogBlocks(sys.argv[1]).compiled, 'kidx.scan.batch_kernels' in sys.modules)
"""
    log = next(path for path in LOGS if path.read_bytes()[16:17] == b"\x02")
    run = subprocess.run([sys.executable, "-c", code, log], capture_output=True, text=True, check=True)
    assert run.stdout.split() == ["False", "False", "True", "False"]


@pytest.mark.parametrize("variable", ["KIDX_PLAIN", "NUMBA_DISABLE_JIT"])
def test_numba_can_be_turned_off(variable):
    code = "import sys, kidx.scan as s; s.scan_log(sys.argv[1]); print(s.COMPILED, 'numba' in sys.modules)"
    run = subprocess.run(
        [sys.executable, "-c", code, LOGS[0]],
        env=os.environ | {variable: "1"},
        capture_output=True,
        text=True,
        check=True,
    )
    assert run.stdout.split() == ["False", "False"]


@pytest.mark.parametrize("size", [61, 100, 1000])
def test_blocks_of_any_size_give_the_same(monkeypatch, size):
    """Batches across the end of a block, and larger than one."""
    path = LOGS[0]
    expected, tail = scan_log(path)
    monkeypatch.setattr(blocks_module, "BLOCK_BYTES", size)
    monkeypatch.setattr(blocks_module, "_ROWS", 3)
    rows, ended = both(path)
    assert (rows == expected).all()
    assert ended == tail


ENDS = {
    "nothing": (b"", "whole"),
    "a few bytes": (b"\1" * 17, "partial"),
    "half a batch": (build_batch([SimpleRecord(1, None, b"x")])[:-1], "partial"),
    "zeros": (bytes(500), "zeros"),
    "an impossible length": (b"\1" * 8 + struct.pack(">i", 13) + b"\1" * 90, "corrupt"),
}


@pytest.mark.parametrize(("tail", "kind"), ENDS.values(), ids=ENDS)
def test_how_a_log_ends(tmp_path, tail, kind):
    batch = build_batch([SimpleRecord(1, None, b"x")])
    path = tmp_path / "00000000000000000000.log"
    path.write_bytes(batch + tail)
    rows, ended = both(path)
    assert len(rows) == 1
    assert (ended.valid_bytes, ended.file_size, ended.kind) == (len(batch), len(batch) + len(tail), kind)


def test_a_file_that_shrinks_while_it_is_read(tmp_path, monkeypatch):
    monkeypatch.setattr(blocks_module, "BLOCK_BYTES", 1 << 12)
    batch = build_batch([SimpleRecord(1, None, b"x" * 100)])
    path = tmp_path / "00000000000000000000.log"
    path.write_bytes(batch * 100)
    with LogBlocks(path) as blocks:
        count = 0
        for rows in blocks:
            count += len(rows)
            os.truncate(path, len(batch) * 50 + 30)
    assert count == 50
    assert blocks.tail.shrank_while_reading
    assert (blocks.tail.kind, blocks.tail.file_size) == ("partial", len(batch) * 50 + 30)


@pytest.mark.parametrize("make", [os.mkdir, os.mkfifo])
def test_a_path_that_is_no_file_is_rejected(tmp_path, make):
    path = tmp_path / "00000000000000000000.log"
    make(path)
    with pytest.raises(OSError, match=r"directory|regular"):
        scan_log(path)


def test_entries_of_an_index_are_absolute_and_trailing_zeros_are_counted():
    content = parse_index(struct.pack(">iiii", 5, 100, 9, 300) + bytes(19), 1000, ".index")
    assert content.entries.tolist() == [(1005, 100), (1009, 300)]
    assert (content.padding_entries, content.trailing_bytes, content.size) == (2, 3, 35)
    content = parse_index(struct.pack(">qi", 77, 5) + bytes(12), 1000, ".timeindex")
    assert content.entries.tolist() == [(77, 1005)]
    assert content.padding_entries == 1
    content = parse_index(struct.pack(">hqqqq", 0, 1, 2, 3, 4), 0, ".txnindex")
    assert content.entries.tolist() == [(0, 1, 2, 3, 4)]


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
    data = shutil.copytree(GOLDEN / "4.4.0" / "create-time-0", tmp_path / "create-time-0")
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


BASE = 1000
LAYOUTS = {".index": (">ii", OffsetIndex), ".timeindex": (">qi", TimeIndex)}


@pytest.mark.thorough
@pytest.mark.parametrize("compiled", [True, False])
@pytest.mark.parametrize("suffix", LAYOUTS)
@given(st.data())
@settings(max_examples=40, deadline=None)
def test_results_equal_those_of_the_index(tmp_path_factory, suffix, compiled, data):
    code, index_class = LAYOUTS[suffix]
    first = st.integers(1, 60) | st.sampled_from([2**31 - 1])
    keys = data.draw(st.lists(first, max_size=12))
    if data.draw(st.booleans()):
        keys = sorted(set(keys))
    count = len(keys)
    packed = b"".join(struct.pack(code, key, number + 1) for number, key in enumerate(keys))
    path = tmp_path_factory.getbasetemp() / f"bulk{suffix}"
    path.write_bytes(packed)
    targets = data.draw(st.lists(st.integers(-5, 70) | st.sampled_from([2**31, 2**62, -(2**63)]), max_size=8))
    targets = [target + (BASE if suffix == ".index" and target > -(2**63) else 0) for target in targets]
    bulk = BulkLookup(parse_index(packed, BASE, suffix), BASE)
    with index_class(path, BASE, writable=False) as index:
        expected = [tuple(index.lookup(target)) for target in targets]
    assert bulk.lookup(np.array(targets, np.int64), compiled=compiled).tolist() == expected
    assert count == index.entries


@pytest.mark.parametrize("compiled", [True, False])
@pytest.mark.parametrize("ordered", [True, False])
@pytest.mark.parametrize("count", [1024, 1025, 1026, 3000])
def test_the_warm_section_counts_where_keys_are_out_of_order(tmp_path, count, ordered, compiled):
    """Kafka's search of corrupt files is defined by its loop, warm section included (AI-35)."""
    keys = np.arange(1, count + 1) * 3
    if not ordered:
        np.random.default_rng(7).shuffle(keys)
    packed = np.stack([keys, np.arange(1, count + 1)], axis=1).astype(">i4").tobytes()
    path = tmp_path / "x.index"
    path.write_bytes(packed)
    targets = np.arange(BASE - 1, BASE + 3 * count + 5, 7)
    bulk = BulkLookup(parse_index(packed, BASE, ".index"), BASE)
    assert bulk.ordered == ordered
    with OffsetIndex(path, BASE, writable=False) as index:
        expected = [tuple(index.lookup(target)) for target in targets.tolist()]
    assert bulk.lookup(targets, compiled=compiled).tolist() == expected
    assert bulk.lookup(targets[::-1], compiled=compiled).tolist() == expected[::-1]
