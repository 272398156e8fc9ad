"""Records as columns are those that the readable reference reads."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from kidx.errors import KidxError
from kidx.records import Codec, SimpleRecord, TimestampType, build_batch, iter_batches
from kidx.scan import decode_records

GOLDEN = Path(__file__).parents[1] / "golden"
LOGS = [path for path in sorted(GOLDEN.glob("4.4.0/*/*.log")) if path.stat().st_size]


@pytest.mark.parametrize("path", LOGS, ids=lambda path: f"{path.parent.name}/{path.stem[-3:]}")
def test_records_of_brokers(path):
    data = path.read_bytes()
    for columns, batch in zip(decode_records(data), iter_batches(data), strict=True):
        records = list(batch)
        assert list(columns.tuples()) == [(r.offset, r.timestamp, r.key, r.value) for r in records]
        assert columns.rows["headers"].tolist() == [len(r.headers) for r in records]


@pytest.mark.parametrize("codec", Codec)
@pytest.mark.parametrize("kind", [TimestampType.CREATE_TIME, TimestampType.LOG_APPEND_TIME])
def test_nulls_empties_and_both_kinds_of_time(codec, kind):
    made = [SimpleRecord(5, None, b""), SimpleRecord(9, b"", None), SimpleRecord(7, b"k" * 200, b"v", (("h", None),))]
    data = build_batch(made, base_offset=2**40, codec=codec, timestamp_type=kind)
    (columns,) = decode_records(data)
    (batch,) = iter_batches(data)
    assert list(columns.tuples()) == [(r.offset, r.timestamp, r.key, r.value) for r in batch]


def test_damage_is_refused():
    data = bytearray(build_batch([SimpleRecord(5, b"key", b"value")] * 3))
    data[61] = 0x7E
    with pytest.raises(KidxError, match="record 0 of the batch"):
        list(decode_records(bytes(data)))
    with pytest.raises(KidxError, match="only v2"):
        list(decode_records(build_batch([SimpleRecord(5, b"key", b"value")], magic=1)))


def test_without_numba_the_columns_are_the_same():
    code = "import sys; from kidx.scan import decode_records as d; data = open(sys.argv[1], 'rb').read()"
    code += "; print([c.rows.tolist() for c in d(data)])"
    outputs = [
        subprocess.run(
            [sys.executable, "-c", code, LOGS[0]],
            env=os.environ | {"KIDX_PLAIN": plain},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for plain in "01"
    ]
    assert outputs[0] == outputs[1]
