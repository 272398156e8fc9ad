"""Collections are rare inside a run, and what they were before afterwards."""

from __future__ import annotations

import gc
import weakref

import pytest

from conformance.runs.gc_tuning import RARE, infrequent_gc


class Node:
    """Something that can be in a cycle."""


def test_thresholds_are_restored_and_nothing_remains_frozen():
    before = gc.get_threshold()
    with infrequent_gc():
        assert gc.get_threshold() == RARE
        assert gc.get_freeze_count() > 0
    assert gc.get_threshold() == before
    assert gc.get_freeze_count() == 0


def test_an_error_passes_and_restores_them_as_well():
    before = gc.get_threshold()
    with pytest.raises(KeyError), infrequent_gc():
        {}["nothing"]
    assert gc.get_threshold() == before
    assert gc.get_freeze_count() == 0


def test_cycles_of_a_run_are_still_found():
    with infrequent_gc():
        node = Node()
        node.itself = node
        gone = weakref.ref(node)
        del node
        gc.collect()
        assert gone() is None
