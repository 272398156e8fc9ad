"""Patch releases that are not locked: changes of a later patch, checked with their own classes."""

from __future__ import annotations

import pytest

from conformance.runs.replay import load_regression_traces
from kidx.dialect import dialect_of

pytestmark = pytest.mark.jvm

CHANGED = {
    "log-780697667db6": ("2.6.0", "2.6.3", "idle_truncation_truncates_epochs"),
    "log-87e1d9a38167": ("2.6.0", "2.6.3", "idle_truncation_truncates_epochs"),
    "log-e69efbd3ac5a": ("2.7.0", "2.7.2", "loading_sets_watermark_metadata"),
    "cleaned-a3ba4adcb5d1": ("2.8.0", "2.8.2", "collects_aborted_to_segment_end"),
    "cleaned-6a4468d8d47c": ("3.2.0", "3.2.3", "maps_markers_by_key"),
    "segment-1bcc0c84ca40": ("3.0.0", "3.0.2", "truncated_records_are_null"),
}
"""The trace that showed it, a release before the change, one that has it, and the behaviour that changed."""


@pytest.mark.parametrize("name", CHANGED)
def test_the_patch_made_a_difference(name):
    """The row of the behaviour has different values on both sides of the patch."""
    before, since, behaviour = CHANGED[name]
    assert getattr(dialect_of(before), behaviour) != getattr(dialect_of(since), behaviour)


@pytest.mark.thorough
@pytest.mark.in_turn(3)
@pytest.mark.parametrize("name", CHANGED)
def test_the_release_before_it_conforms(name, in_process, tmp_path):
    """Kafka's own classes of the release before the patch do what its row says."""
    machine, _, trace = name.partition("-")
    assert trace in {kept.id for kept in load_regression_traces(machine)}
    done = in_process(
        "conformance",
        "replay",
        name,
        "--kafka",
        CHANGED[name][0],
        work=tmp_path,
        environment={"KIDX_CONFIG": str(tmp_path / "configuration"), "XDG_STATE_HOME": str(tmp_path)},
    )
    assert (done.returncode, done.stdout.splitlines()[-1].partition(" ")[0]) == (0, "FIXED"), done.stderr
