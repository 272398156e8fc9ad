"""Facts of a pass over a log, equal for the compiled kernel and for rows; expected entries are as in Kafka."""

import dataclasses
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kidx.dialect import dialect_of
from kidx.rebuild import rebuild
from kidx.records import Codec, SimpleRecord, build_batch
from kidx.scan import LogBlocks, parse_index, scan_log
from kidx.scan import blocks as blocks_module
from kidx.scan.entries import OFFSET_ENTRY, TIME_ENTRY, expected_indexes, read_index
from kidx.segment import LogSegment, SegmentConfig
from kidx.verify.facts import Gatherer

GOLDEN = Path(__file__).parents[1] / "golden"
LOGS = sorted(GOLDEN.glob("*/*/*.log"))


def told(path, base, offsets, times):
    """Return the facts by the compiled kernel and by rows."""
    both = []
    for compiled in (True, False):
        with LogBlocks(path, compiled=compiled) as blocks:
            facts = Gatherer(base, offsets, times)
            facts.read(blocks)
            both.append((dataclasses.asdict(facts.log), facts.offset_facts, facts.time_facts, blocks.tail))
    return both


def same(path, base, offsets, times):
    (log, at, when, tail), (log_2, at_2, when_2, tail_2) = told(path, base, offsets, times)
    assert log == log_2
    assert tail == tail_2
    assert at["at_batch"].tolist() == at_2["at_batch"].tolist()
    # A fact about a batch that the entry does not point at is not read.
    hit = at["at_batch"]
    assert at[hit].tolist() == at_2[hit].tolist()
    for name in ("around_position", "in_log", "ends_batch"):
        assert at[name].tolist() == at_2[name].tolist(), name
    assert when.tolist() == when_2.tolist()
    return log, at, when


@pytest.mark.parametrize("release", ["2.4.1", "4.4.0"])
@pytest.mark.parametrize("block", [300, 1 << 20])
def test_logs_of_brokers_have_equal_facts(release, block, monkeypatch):
    monkeypatch.setattr(blocks_module, "BLOCK_BYTES", block)
    for path in (path for path in LOGS if path.parts[-3] == release):
        base = int(path.stem)
        same(path, base, *(read_index(path.with_suffix(s), base).entries for s in (".index", ".timeindex")))


@st.composite
def logs(draw):
    """Return a strategy for batches: gaps, epochs, transactions, compression, old formats."""
    base, parts = 0, []
    for _ in range(draw(st.integers(0, 12))):
        stamps = draw(st.lists(st.integers(-1, 9), min_size=1, max_size=3))
        options = {"magic": 2, "partition_leader_epoch": draw(st.sampled_from([0, 0, 0, 1]))}
        kind = draw(st.sampled_from(["plain"] * 6 + ["transaction", "gzip", "old", "gap"]))
        if kind == "transaction":
            options |= {"producer_id": 5, "producer_epoch": 0, "base_sequence": 0, "is_transactional": True}
        if kind == "gzip":
            options |= {"codec": Codec.GZIP}
        if kind == "old":
            options = {"magic": 1}
        base += 3 * (kind == "gap")
        parts.append(build_batch([SimpleRecord(stamp, None, b"v") for stamp in stamps], base_offset=base, **options))
        base += len(stamps)
    return b"".join(parts)


@given(logs(), st.data())
@settings(max_examples=60, deadline=None)
def test_any_log_and_any_entries_have_equal_facts(tmp_path_factory, content, data):
    damaged = bytearray(content)
    for _ in range(data.draw(st.integers(0, 2)) if damaged else 0):
        damaged[data.draw(st.integers(0, len(damaged) - 1))] = data.draw(st.integers(0, 255))
    path = tmp_path_factory.getbasetemp() / f"{0:020d}.log"
    path.write_bytes(damaged)
    rows, _ = scan_log(path)
    places = st.sampled_from([*rows["position"].tolist(), 1, 10**6])
    numbers = st.integers(-1, 40)
    offsets = np.array(data.draw(st.lists(st.tuples(numbers, places), max_size=6)), OFFSET_ENTRY)
    times = np.array(data.draw(st.lists(st.tuples(st.integers(-1, 9), numbers), max_size=6)), TIME_ENTRY)
    same(path, 0, offsets, times)


# -- expected entries --------------------------------------------------------------------------------------------------


@pytest.fixture(params=[True, False], ids=["compiled", "plain"])
def kernels(request, monkeypatch):
    monkeypatch.setattr("kidx.scan.entries.kernels_loaded", lambda: request.param)


@pytest.mark.usefixtures("kernels")
@pytest.mark.parametrize("release", ["2.4.1", "3.9.2"])
def test_expected_entries_equal_those_of_a_recovery(release, tmp_path):
    for path in (path for path in LOGS if path.parts[-3] == release):
        rows, _ = scan_log(path, compiled=False)
        base = int(path.stem)
        for interval in (0, 250, 4096):
            rebuild(path, tmp_path, dialect=release, index_interval_bytes=interval)
            expected = expected_indexes(rows, dialect=release, index_interval_bytes=interval)
            for suffix, entries in zip((".index", ".timeindex"), expected, strict=True):
                found = parse_index((tmp_path / f"{path.stem}{suffix}").read_bytes(), base, suffix)
                assert entries.tolist() == found.entries.tolist()


@given(
    st.lists(st.lists(st.lists(st.integers(-1, 9), min_size=1, max_size=3), min_size=1, max_size=3), max_size=8),
    st.sampled_from(["2.4.1", "3.9.0", "3.9.1", "4.4.0"]),
    st.integers(0, 300),
)
@settings(max_examples=60, deadline=None)
def test_expected_entries_equal_those_of_appends(tmp_path_factory, calls, release, interval):
    """Each call appends several batches, as a follower does."""
    directory = tmp_path_factory.mktemp("segment")
    config = SegmentConfig(index_interval_bytes=interval, segment_index_bytes=4096)
    starts, count, offset = [], 0, 0
    with LogSegment.open(directory, 0, config, dialect=release) as segment:
        for call in calls:
            parts = []
            starts.append(count)
            for stamps in call:
                records = [SimpleRecord(stamp, None, b"x" * 20) for stamp in stamps]
                parts.append(build_batch(records, base_offset=offset))
                offset += len(stamps)
                count += 1
            segment.append(b"".join(parts))
        segment.on_become_inactive_segment()
        rows, _ = scan_log(segment.log.path, compiled=False)
        expected = expected_indexes(
            rows, dialect=release, index_interval_bytes=interval, appends=np.array(starts, np.int64)
        )
        assert expected.offsets.tolist() == [tuple(entry) for entry in segment.offset_index]
        assert expected.times.tolist() == [tuple(entry) for entry in segment.time_index]
    assert dialect_of(release).append_per_batch or len(expected.offsets) <= len(calls)


def test_a_follower_records_the_earliest_transaction_open_at_the_end_of_its_call():
    """Observed in a replica of 3.9.2 that moved between disks: the entry (0, 563, 568, 575) for the marker at 568."""
    from kidx.verify.facts import TransactionEvent
    from kidx.verify.transactions import OpenTransactions

    events = [
        TransactionEvent("data", 0, 563, 563),
        TransactionEvent("abort", 0, 568, 568),
        TransactionEvent("data", 1, 575, 575),
    ]
    (aborted,) = OpenTransactions(whole=True).follow(events)
    assert aborted.allows((0, 0, 563, 568, 569), 0)  # as its leader has it
    assert aborted.allows((0, 0, 563, 568, 575), 0)
    assert not aborted.allows((0, 0, 563, 568, 574), 0)
    assert not aborted.allows((0, 0, 562, 568, 575), 0)
