"""Plans of logs with many segments."""

from __future__ import annotations

import pickle

import pytest
from lying_logs import write_log

import kidx
from kidx.layout import ABORTED_TXN
from kidx.storage import Store
from kidx.tables import splits
from kidx.tables.segments import PartitionLog, Segment, TopicPartition


@pytest.mark.parametrize("indexed", [False, True])
def test_a_transaction_that_ends_many_segments_later_is_hidden(tmp_path, monkeypatch, indexed):
    monkeypatch.setattr(splits, "LATER", 2)
    plain = [[("plain", [number], None)] for number in range(5)]
    write_log(tmp_path / "t-0", [[("transaction", [5, 6], None)], *plain, [("abort", [0], None)], *plain])
    for offset in range(2, 8):
        if indexed:  # transactions of another producer, and the transaction that began at offset 0
            entry = (0, 1, 0, 7, 8) if offset == 7 else (0, 9, offset, offset, 0)
            (tmp_path / "t-0" / f"{offset:020d}.txnindex").write_bytes(ABORTED_TXN.struct.pack(*entry))
    for path in () if indexed else [*(tmp_path / "t-0").glob("*.txnindex"), *(tmp_path / "t-0").glob("*0.index")]:
        path.unlink()
    found = kidx.read(tmp_path, columns=["offset"], isolation="read_committed").read_all()["offset"].to_pylist()
    assert found == [offset for offset in range(13) if offset not in (0, 1, 7)]


@pytest.mark.thorough
@pytest.mark.parametrize("sizes", [{"log": 100}, {"log": 100, "index": 8, "txnindex": 34}])
def test_a_split_does_not_grow_with_its_log(sizes):
    """Without the indexes of 8,000 segments, a split had all later ones: 300 KB, and nine seconds for the plan."""
    store, key = Store("/nowhere"), TopicPartition("t", 0)

    def largest(count):
        segments = [
            Segment(store, "/nowhere/t-0", *key, base, sizes, 1, base + 1 if base + 1 < count else None, identity=base)
            for base in range(count)
        ]
        log = PartitionLog(key, store, "/nowhere/t-0", segments)
        return max(len(pickle.dumps(each)) for each in splits._whole_splits(log, 0, None, committed=True))

    assert largest(2000) < largest(200) * 1.2
