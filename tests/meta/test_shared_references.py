"""One reference for several releases says what each release's own reference says."""

from __future__ import annotations

import pytest
from hypothesis import seed
from hypothesis.stateful import run_state_machine_as_test
from thorough_params import thorough_param

from conformance.implementations.kidx.log import ReferenceLog
from conformance.implementations.kidx.segment import ReferenceSegment
from conformance.implementations.kidx.shared_dialect import SharedDialect
from conformance.lockstep.scopes.log import LogLockstep
from conformance.lockstep.scopes.segment import SegmentLockstep
from conformance.machines import MACHINES
from conformance.operations import Operation
from conformance.runs.profiles import PROFILES
from kidx.dialect import BEHAVIOURS, DIALECTS
from kidx.log import UnifiedLog

EXAMPLES = 3
SOME = (
    "2.4.0",
    "2.5.1",
    "2.7.2",
    "2.8.2",
    "3.0.2",
    "3.4.1",
    "3.5.2",
    "3.7.2",
    "3.9.0",
    "3.9.1",
    "4.0.0",
    "4.1.0",
    "4.4.0",
)
"""Releases that differ from their neighbours in many fields."""


def alone(reference):
    """Return the references of some releases, one by one, as subjects of a lockstep."""

    class Alone(reference):
        def __init__(self, release):
            super().__init__(release)
            self.name = f"alone {release}"

    return Alone


def run(machine, lockstep, number):
    bound = seed(number)(MACHINES[machine].bind(lockstep))
    run_state_machine_as_test(bound, settings=PROFILES["ci"].settings(EXAMPLES))


@pytest.mark.in_turn(2)
@pytest.mark.parametrize("number", [0, thorough_param(1)])
@pytest.mark.parametrize(
    ("machine", "kind", "reference"),
    [thorough_param("log", LogLockstep, ReferenceLog), ("segment", SegmentLockstep, ReferenceSegment)],
    ids=["log", "segment"],
)
def test_shared_references_equal_separate_ones(tmp_path, machine, kind, reference, number):
    lockstep = kind(map(alone(reference), SOME), tmp_path, attribute=False)
    active, end = [], lockstep.end

    def count():
        active.append(sum(group.reference.active for group in lockstep.groups))
        end()

    lockstep.end = count
    run(machine, lockstep, number)
    assert lockstep.statistics.steps > 50
    assert min(active) < len(lockstep.groups), "no example was executed by fewer references than there are groups"
    assert max(active) > 1, "no example has told two releases apart"


class Wrong(UnifiedLog):
    """Deletes one record less in the releases before 3.0."""

    def delete_records(self, offset):
        super().delete_records(offset if self.dialect.snapshot_renamed_with_segment else offset - 1)


@pytest.mark.thorough
def test_a_reference_with_a_different_result_is_run_alone(tmp_path):
    """An error of the reference for one release is detected, though another release's executes for it at first."""
    lockstep = LogLockstep(map(alone(ReferenceLog), ("2.8.2", "3.9.2")), tmp_path)
    for group in lockstep.groups:
        group.reference.implementation.unified_log = Wrong
    with pytest.raises(AssertionError, match=r"alone 2\.8\.2 diverges"):
        run("log", lockstep, 1)


def test_a_release_that_raises_another_error_raises_it_alone(tmp_path):
    """From 3.8 on a corrupt batch is read for its largest timestamp, which 3.7 caches."""
    damaged = {"records": [[0, 0, 0], [1, 0, 0]], "codec": "lz4", "plain": [["set", 0, 0]]}
    settings = {"segment.bytes": 300, "segment.index.bytes": 24}
    lockstep = LogLockstep(map(alone(ReferenceLog), ("3.7.2", "3.8.1")), tmp_path)
    lockstep.begin()
    lockstep.perform(Operation("open_log", (settings, 0, 0, True, 0)))
    lockstep.perform(Operation("append_as_leader", ([damaged], 0)))
    lockstep.perform(Operation("list_offsets", ([0],)))
    assert not any(group.reference.active for group in lockstep.groups[:-1]), "one executes for both"
    lockstep.perform(Operation("list_offsets", ([-3],)))
    older, newer = [group.observation.outcome for group in lockstep.groups]
    lockstep.end()
    assert (older.value, newer.error) == (((0, 1, 0),), "invalid_record")


def test_a_field_in_which_all_members_agree_distinguishes_none():
    members = [DIALECTS[release] for release in ("3.1.2", "3.2.3", "4.4.0")]
    shared = SharedDialect(members)
    assert shared.start_moves_other_offsets
    assert not shared.pop_split_off()
    assert shared.loading_recovers_epochs
    assert not shared.truncation_applies_any_watermark
    assert shared.members == members


def test_members_leave_where_they_differ_from_the_newest():
    old, middle, new = (DIALECTS[release] for release in ("2.8.2", "3.9.2", "4.4.0"))
    shared = SharedDialect([old, middle, new])
    assert shared.snapshot_renamed_with_segment
    assert (shared.pop_split_off(), shared.pop_split_off()) == ([old], [])
    assert shared.close_finishes_segment is False
    assert shared.pop_split_off() == [middle]
    assert shared.members == [new]


@pytest.mark.parametrize("name", BEHAVIOURS)
def test_every_behaviour_is_the_newest_members(name):
    new = DIALECTS["4.4.0"]
    assert getattr(SharedDialect(list(DIALECTS.values())), name) == getattr(new, name)
