"""Whole batches after a hole or a wrong length, which no reader reaches: they are no unfinished write."""

import pytest
from startups import RELEASE, log, partitions, start, stop_cleanly, write_offsets

from kidx.layout import LOG_OVERHEAD, RECORD_BATCH
from kidx.scan import blocks
from kidx.scan.blocks import hidden_batches
from kidx.verify import verify_paths

filled = partitions(1)


@pytest.fixture
def data(filled, tmp_path):
    """Make a log directory of a broker that was killed, and had flushed the first two segments."""
    target = stop_cleanly(filled, tmp_path / "data", {0: 24})
    (target / ".kafka_cleanshutdown").unlink()
    return target


def overwrite(path, at, data):
    content = bytearray(path.read_bytes())
    content[at : at + len(data)] = data
    path.write_bytes(content)


def size_of_a_batch(path):
    return path.stat().st_size // 6


@pytest.mark.thorough
@pytest.mark.parametrize("length", [b"\0\0\0\0", b"\x7f\0\0\0"])
@pytest.mark.parametrize("base", [24, 36])
def test_batches_after_a_wrong_length_are_named_and_counted(data, base, length):
    path = data / "orders-0" / log(base)
    size = size_of_a_batch(path)
    overwrite(path, size + 8, length)
    found = hidden_batches(path, size)
    assert [each[:3] for each in found] == [(size * n, base + 2 * n, base + 2 * n + 1) for n in range(2, 6)]
    (fault,) = (each for each in verify_paths([data], release=RELEASE).faults() if each.clause == "RB-4")
    said = f"4 whole batches with offsets {base + 4} to {base + 11} follow, from byte {2 * size} on"
    assert said in fault.message
    (cut,) = start(data).of("cut")
    assert cut.readable == 8 + 12 * (36 - base) // 12
    assert start(data).answer == "no"


def test_a_batch_that_is_being_written_is_no_fault(data):
    path = data / "orders-0" / log(36)
    size = size_of_a_batch(path)
    path.write_bytes(path.read_bytes()[:-30])
    assert hidden_batches(path, 5 * size) == []
    assert [each for each in verify_paths([data], release=RELEASE).faults() if each.file == path.name] == []


def test_a_batch_with_a_wrong_checksum_is_not_counted(data):
    path = data / "orders-0" / log(36)
    size = size_of_a_batch(path)
    overwrite(path, size + 8, b"\x7f")
    overwrite(path, 3 * size - 3, b"\xff")
    assert [each.base_offset for each in hidden_batches(path, size)] == [42, 44, 46]


def test_false_headers_that_all_claim_the_rest_of_the_file_have_few_checksums(tmp_path, monkeypatch):
    path, size, header = tmp_path / log(0), 1 << 16, RECORD_BATCH.size
    headers = (
        RECORD_BATCH.struct.pack(0, size - at - LOG_OVERHEAD, 0, 2, *[0] * (len(RECORD_BATCH.fields) - 4))
        for at in range(0, size - header, header)
    )
    path.write_bytes(b"".join(headers).ljust(size, b"\0"))
    lengths = []
    monkeypatch.setattr(blocks, "_CHECKSUMMED", 4 * size)
    monkeypatch.setattr(blocks.google_crc32c, "value", lambda data: lengths.append(len(data)) or -1)
    assert hidden_batches(path, 0) == []
    assert 3 * size < sum(lengths) <= 4 * size


def test_a_log_that_begins_with_a_hole_loses_its_records(data):
    write_offsets(data / "recovery-point-offset-checkpoint", {})
    overwrite(data / "orders-0" / log(0), 0, bytes(100))
    (cut,) = start(data).of("cut")
    assert cut.readable == 46


@pytest.mark.parametrize("base", [24, 36])
def test_batches_that_an_index_leads_to_are_not_lost(data, base):
    """After a clean stop the end is read through the index, and lookups past the bad bytes succeed."""
    (data / ".kafka_cleanshutdown").write_text("")
    write_offsets(data / "recovery-point-offset-checkpoint", {0: 48})
    path = data / "orders-0" / log(base)
    size = size_of_a_batch(path)
    overwrite(path, 3 * size, bytes(RECORD_BATCH.size))
    faults = verify_paths([data], release=RELEASE).faults()
    positions = {each.position for each in faults if each.file == path.with_suffix(".index").name}
    assert {each.clause for each in faults} <= {"RB-4", "SEG-5"}
    assert positions <= {3 * size}
    assert not any("lost" in each.message or "offsets are given twice" in each.message for each in faults)
    (found,) = start(data).partitions or (None,)
    assert found is None or (found.outcome, found.end) == ("kept", (48, 48))
