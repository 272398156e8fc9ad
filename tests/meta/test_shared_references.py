"""One reference for several releases says what each release's own reference says."""

from __future__ import annotations

import pytest
from hypothesis import seed
from hypothesis.stateful import run_state_machine_as_test

from conformance.implementations.kidx.log import ReferenceLog
from conformance.implementations.kidx.shared_dialect import SharedDialect
from conformance.kafka.releases import RELEASES
from conformance.lockstep.levels.log import LogLockstep
from conformance.machines import MACHINES
from conformance.runs.profiles import PROFILES
from kidx.dialect import BEHAVIOURS, DIALECTS
from kidx.log import UnifiedLog

EXAMPLES = 12


class Alone(ReferenceLog):
    """The reference of one release, beside the shared ones."""

    def __init__(self, release):
        super().__init__(release)
        self.name = f"alone {release}"


def run(lockstep, number):
    bound = seed(number)(MACHINES["log"].bind(lockstep))
    run_state_machine_as_test(bound, settings=PROFILES["ci"].settings(EXAMPLES))


@pytest.mark.parametrize("number", range(4))
def test_shared_references_say_what_each_one_says(tmp_path, number):
    lockstep = LogLockstep(map(Alone, RELEASES), tmp_path, attribute=False)
    shared, end = [], lockstep.end

    def count():
        shared.append(sum(group.reference.active for group in lockstep.groups) < len(lockstep.groups))
        end()

    lockstep.end = count
    run(lockstep, number)
    assert lockstep.statistics.steps > 300
    assert any(shared), "no example was performed by fewer references than there are groups"


class Forgetful(UnifiedLog):
    """Follows the newest rule in every release where the log start is concerned."""

    def delete_records(self, offset):
        super().delete_records(offset if self.dialect.snapshots_go_at_once else offset - 1)


def test_a_reference_that_is_told_apart_is_asked_alone(tmp_path):
    """What only one release's reference does wrong is seen: it does not perform for the others from there on."""
    lockstep = LogLockstep(map(Alone, ("2.8.2", "3.9.2")), tmp_path)
    for group in lockstep.groups:
        group.reference.implementation.unified_log = Forgetful
    with pytest.raises(AssertionError, match=r"alone 2\.8\.2 diverges"):
        run(lockstep, 1)


def test_a_field_that_all_members_agree_in_tells_nobody_apart():
    members = [DIALECTS[release] for release in ("3.1.2", "3.2.3", "4.4.0")]
    shared = SharedDialect(members)
    assert shared.start_moves_other_offsets
    assert not shared.take_left()
    assert shared.loading_recovers_epochs
    assert not shared.truncation_applies_any_watermark
    assert shared.members == members


def test_members_leave_where_they_differ_from_the_newest():
    old, middle, new = (DIALECTS[release] for release in ("2.8.2", "3.9.2", "4.4.0"))
    shared = SharedDialect([old, middle, new])
    assert shared.snapshots_go_at_once
    assert (shared.take_left(), shared.take_left()) == ([old], [])
    assert shared.close_finishes_segment is False
    assert shared.take_left() == [middle]
    assert shared.members == [new]


@pytest.mark.parametrize("name", BEHAVIOURS)
def test_every_behaviour_is_the_newest_members(name):
    new = DIALECTS["4.4.0"]
    assert getattr(SharedDialect(list(DIALECTS.values())), name) == getattr(new, name)
