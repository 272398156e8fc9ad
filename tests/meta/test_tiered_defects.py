"""The machine of tiered logs finds every planted defect, from one seed here and from five in CI."""

from __future__ import annotations

import pytest
from defect_search import search_defect

from conformance.clauses import load_clauses
from conformance.implementations.mutants.tiered_registry import DEFECTS
from conformance.machines.tiered import TieredMachine

CHUNKS = 150
QUICK = {"KeepsTheLocalStart", "CopiesPastTheLso", "CountsFromOne"}


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
        found = search_defect(TieredMachine, each.implementation(), steps=20, chunks=CHUNKS, first_seed=number)
        assert found is not None, f"{each.row.title} survived seed {number}"
        assert found.against == "kidx"
