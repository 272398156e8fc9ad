"""The segments that speed is measured with are what a client and a broker would have written."""

import importlib.util
from pathlib import Path

import pytest
from aiokafka.record.default_records import DefaultRecordBatchBuilder

from kidx.rebuild import rebuild
from kidx.records import file_batches
from kidx.verify import verify_segment

_SPEC = importlib.util.spec_from_file_location("segments", Path(__file__).parents[1] / "bench" / "segments.py")
segments = importlib.util.module_from_spec(_SPEC)
_SPEC.loader.exec_module(segments)


def sent(records, value_size, timestamp):
    """Return the bytes that aiokafka's producer sends; the broker sets base offset and leader epoch."""
    builder = DefaultRecordBatchBuilder(
        magic=2,
        compression_type=0,
        is_transactional=False,
        producer_id=-1,
        producer_epoch=-1,
        base_sequence=-1,
        batch_size=1 << 20,
    )
    for number in range(records):
        builder.append(number, timestamp, f"{number:08d}".encode(), segments.payload(value_size), [])
    return bytes(builder.build())


@pytest.mark.parametrize(("records", "value_size"), [(1, 78), (16, 996)])
def test_batches_equal_those_of_a_real_client(tmp_path, records, value_size):
    log = segments.write_segment(tmp_path / "t-0", 100_000, records=records, value_size=value_size, base_offset=7)
    for number, batch in enumerate(file_batches(log)):
        stored, produced = batch.to_bytes(), sent(records, value_size, segments.FIRST_TIMESTAMP + number)
        assert stored[8:12] + stored[16:] == produced[8:12] + produced[16:]
        assert (batch.base_offset, batch.partition_leader_epoch) == (7 + number * records, 0)


@pytest.mark.thorough
def test_indexes_equal_those_of_a_recovery(tmp_path):
    log = segments.write_segment(tmp_path / "t-0", 100_000, records=1, value_size=78)
    rebuilt = rebuild(log, tmp_path / "out")
    assert log.with_suffix(".index").read_bytes() == rebuilt.offset_index.read_bytes()
    assert log.with_suffix(".timeindex").read_bytes() == rebuilt.time_index.read_bytes()
    assert [file.verdict for file in verify_segment(log).files] == ["exact"] * 3
