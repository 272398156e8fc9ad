"""Bulk lookups, which return the same as single lookups."""

import struct

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kidx import OffsetIndex, TimeIndex
from kidx.scan import BulkLookup, parse_index

BASE = 1000
LAYOUTS = {".index": (">ii", OffsetIndex), ".timeindex": (">qi", TimeIndex)}


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
