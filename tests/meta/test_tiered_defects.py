"""The machine of tiered logs finds every planted defect, from one seed here and from five in CI."""

from __future__ import annotations

import pytest
from hypothesis import seed
from hypothesis.stateful import run_state_machine_as_test

from conformance.clauses import load_clauses
from conformance.implementations.mutants.tiered_registry import DEFECTS
from conformance.lockstep import DivergenceError
from conformance.lockstep.scopes.tiered import TieredLockstep
from conformance.machines.tiered import TieredMachine
from conformance.runs.profiles import Profile
from conformance.scratch import scratch_directory

CHUNKS = 150
QUICK = {"KeepsTheLocalStart", "CopiesPastTheLso", "CountsFromOne"}


def found_by(each, first_seed):
    """Return the number of examples, and the divergence, or None."""
    with scratch_directory() as scratch:
        lockstep = TieredLockstep([each.implementation()], scratch, attribute=False)
        settings = Profile("defects", 10, 20, 1).settings(10)
        for number in range(CHUNKS):
            try:
                machine = seed(first_seed * 1000 + number)(TieredMachine.bind(lockstep))
                run_state_machine_as_test(machine, settings=settings)
            except DivergenceError as error:
                return lockstep.statistics.examples, error.divergence
    return None


def cases():
    for each in DEFECTS:
        name = each.row.name
        marks = () if name in QUICK else (pytest.mark.thorough,)
        yield pytest.param(each, (1,), id=name, marks=marks)
        yield pytest.param(each, (2, 3, 4, 5), id=f"{name}-more", marks=(pytest.mark.thorough, pytest.mark.in_turn(6)))


def test_a_defect_has_a_description_and_a_broken_clause():
    assert len({each.row.title for each in DEFECTS}) == len(DEFECTS)
    for each in DEFECTS:
        assert each.row.title.endswith("."), each
        assert load_clauses()[each.row.clause].applies_to(each.row.release), each
        assert issubclass(each.row.planted_in(each.original)(), each.original)


@pytest.mark.parametrize(("each", "seeds"), list(cases()))
def test_the_machine_finds_it(each, seeds):
    for number in seeds:
        found = found_by(each, number)
        assert found is not None, f"{each.row.title} survived seed {number}"
        assert found[1].against == "kidx"
