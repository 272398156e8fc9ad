"""The machine of the cache finds every planted defect, from one seed here and from five in CI."""

from __future__ import annotations

import pytest
from defect_search import search_defect

from conformance.clauses import load_clauses
from conformance.implementations.mutants import cache, cache_removals
from conformance.implementations.mutants.cache_registry import DEFECTS
from conformance.machines.cache import CacheMachine
from kidx.remote import RemoteIndexCache

FILES = (cache, cache_removals)
"""Each puts its defects down when it is imported."""
CHUNKS = 60
QUICK = {"BeginsEmpty", "LooksBeforeTheOffset", "DeletesAtOnce", "KeepsUnusedEntries", "AlwaysFetches"}


def cases():
    for each in DEFECTS:
        name = each.name
        marks = () if name in QUICK else (pytest.mark.thorough,)
        yield pytest.param(each, (1,), id=name, marks=marks)
        yield pytest.param(each, (2, 3, 4, 5), id=f"{name}-more", marks=(pytest.mark.thorough,))


def test_a_defect_has_a_description_and_a_broken_clause():
    assert len(DEFECTS) >= 25
    assert len({each.title for each in DEFECTS}) == len(DEFECTS)
    for each in DEFECTS:
        assert each.title.endswith("."), each
        assert load_clauses()[each.clause].applies_to(each.release), each
        assert issubclass(each.build(), RemoteIndexCache)


@pytest.mark.parametrize(("each", "seeds"), list(cases()))
def test_the_machine_finds_it(each, seeds):
    for number in seeds:
        found = search_defect(CacheMachine, each.implementation(), steps=30, chunks=CHUNKS, first_seed=number)
        assert found is not None, f"{each.title} survived seed {number}"
        assert found.against == "kidx"
