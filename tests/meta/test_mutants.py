"""Every mutant is killed by the trace that once killed it, and is what it says: one thing wrong, with its clause.

That the machines find all of them unaided, in the ci profile, is what ``conformance mutate`` shows; CI runs it.
"""

from __future__ import annotations

import json

import pytest

from conformance.clauses import load_clauses
from conformance.clauses.machines import FILE_MACHINES
from conformance.experiments.mutation.measuring import MAX_EXAMPLES, chosen_mutants, measure, search_kill
from conformance.implementations.mutants import MUTANTS, implementation_of, mutant
from conformance.implementations.mutants.planting import FragmentError
from conformance.implementations.mutants.registry import Row
from conformance.operations.outcomes import FAILURE
from conformance.runs.replay import replay
from kidx import OffsetIndex
from kidx.errors import ToolError


def test_there_are_enough_mutants_of_every_machine():
    assert len(MUTANTS) >= 60
    by_machine = {machine: [m for m in MUTANTS.values() if m.machine == machine] for machine in FILE_MACHINES}
    assert all(len(mutants) >= 15 for mutants in by_machine.values()), by_machine


def test_a_mutant_has_a_description_and_a_broken_clause():
    clauses = load_clauses()
    for each in MUTANTS.values():
        assert each.title.endswith("."), each
        assert clauses[each.clause].applies_to(each.release), each
    titles = [(each.machine, each.title) for each in MUTANTS.values()]
    assert len(set(titles)) == len(titles)


def test_every_row_fits_the_source_of_kidx():
    """A change of kidx may need another fragment, or another function, in the rows that this test names."""
    wrong = []
    for each in MUTANTS.values():
        try:
            each.build()
        except FragmentError as error:
            wrong.append(str(error))
    assert wrong == []


def test_the_error_of_a_row_that_does_not_fit_names_the_row():
    row = Row("AI-6", "never-full", "Another title.", "is_full", "self.entries > 1", "True")
    with pytest.raises(FragmentError, match=r"^never-full: AbstractIndex.is_full has 'self.entries > 1' 0 times"):
        row.planted_in(OffsetIndex)()


@pytest.mark.parametrize("each", MUTANTS.values(), ids=lambda each: each.name)
def test_the_trace_that_killed_a_mutant_kills_it(kills, each):
    """By a wrong answer, not because the mutant crashed; the reference and the model agree on the same steps."""
    trace = kills.kill_of(each)
    found = replay(trace, [each.release], [f"mutant:{each.name}"])
    assert found.verdict == "FAILED", f"record it again: python -m tests.meta.kills {each.name}"
    assert found.steps == len(trace.operations), "what comes after the difference shows nothing"
    assert found.divergence.participant == f"mutant:{each.name} {each.release}"
    assert f"error='{FAILURE}'" not in str(found.divergence.actual)
    assert replay(trace, [each.release], []).verdict == "FIXED"


def test_no_trace_of_a_removed_mutant_remains(kills):
    assert kills.load_kills(kills.KILLS).keys() == MUTANTS.keys()


def test_a_kill_is_recorded_as_it_is_stored(kills):
    each = mutant("forgets-to-trim")
    made = kills.record(each)
    assert (made.machine, made.release, made.title) == (each.machine, each.release, each.title)
    assert replay(made, [each.release], [f"mutant:{each.name}"]).verdict == "FAILED"


@pytest.mark.parametrize("machine", ["time", "segment"])
def test_a_mutant_is_found_in_the_ci_profile(machine):
    """Two machines are enough here; ``conformance mutate``, which CI runs, searches all mutants of all machines."""
    name = max(each.name for each in chosen_mutants(machines=(machine,)))
    found = search_kill(MUTANTS[name], seed=0)
    assert found.examples is not None, f"survived {MAX_EXAMPLES} examples"
    assert f"error='{FAILURE}'" not in found.actual, found


def test_results_are_in_order_and_a_survivor_is_named():
    few = chosen_mutants(("forgets-the-length-check", "never-full"))
    measured = measure(few, (1, 2), limit=1, jobs=1)
    assert [each.mutant for each in measured] == list(few)
    assert [[each.seed for each in row.searches] for row in measured] == [[1, 2], [1, 2]]
    survivor = next(row for row in measured if row.survived)
    assert (survivor.median, survivor.worst) == (None, None)
    assert json.loads(json.dumps(survivor.to_json()))["survived"] is True


def test_a_mutant_is_an_implementation_of_its_release():
    each = mutant("forgets-to-trim")
    made = implementation_of(each, each.release)
    assert (made.name, made.release, made.speaks_kafka) == ("mutant:forgets-to-trim 3.9.2", "3.9.2", True)


def test_an_unknown_mutant_is_one_clear_line():
    with pytest.raises(ToolError, match="unknown mutant 'nobody'"):
        mutant("nobody")
    with pytest.raises(ToolError, match="no mutant of the offset machine is called nobody"):
        chosen_mutants(("nobody",), ("offset",))
