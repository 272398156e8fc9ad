"""A choice that level must permits hides no defect."""

import pytest

from conformance.attribution.history import rests_on
from conformance.attribution.verdict_levels import DivergentParts, counts_at_level
from conformance.operations import Observation, Operation, Outcome

AT_THE_LIMIT = ("AI-1", "AI-6", "AI-7", "OI-1", "OI-2", "OI-3")
"""Clauses of an append to the last slots of an index."""


def observed(**outcome):
    return Observation(Outcome(**outcome), None)


@pytest.mark.parametrize(
    ("facets", "counts"),
    [
        (("outcome", "state", "bytes"), False),  # one entry more is accepted, or one fewer
        (("bytes",), True),  # another entry is written
        (("state", "bytes"), True),
    ],
)
def test_a_full_index_excuses_bytes_only_after_another_outcome(facets, counts):
    parts = DivergentParts(AT_THE_LIMIT, facets, ("entries", "last"), (("0.index", ()),))
    assert counts_at_level(parts, "must") is counts


@pytest.mark.parametrize("clauses", [("AI-6", "AI-7", "AI-5")])
def test_an_index_that_forgets_its_entries_is_not_excused_by_its_limit(clauses):
    assert counts_at_level(DivergentParts(clauses, ("state",), ("entries", "last")), "must")


@pytest.mark.parametrize(("error", "rests"), [("invalid_argument", ["AI-3a"]), ("invalid_offset", [])])
def test_only_a_lack_of_space_rests_on_the_length(error, rests):
    append = Operation("append", (3, 2))
    history = {"length": frozenset({"AI-3a"})}
    found = rests_on(history, append, observed(error=error), observed(), of_length=False)
    assert list(found) == rests
