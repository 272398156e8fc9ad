"""What is proposed of a release, without its classes: clauses by what is known, ranges, and the diff."""

from __future__ import annotations

from dataclasses import replace
from importlib.resources import files

import pytest
from in_ci import all_but

from conformance.clauses import load_clauses
from conformance.clauses.edited_range import with_release, without_release
from conformance.clauses.release_range import ReleaseRange
from conformance.experiments.release_proposal.clause_changes import change, changes_of
from conformance.experiments.release_proposal.patch import patch_of, row_of
from conformance.experiments.release_proposal.probing import CANDIDATES, fitted
from conformance.experiments.release_proposal.suspects import broken_clauses
from conformance.experiments.release_proposal.trials import Failing, Result
from conformance.kafka.releases import RELEASES
from conformance.lockstep import Divergence
from conformance.operations import Operation
from conformance.operations.trace import Trace
from kidx.dialect import DIALECTS, assumed, dialect_of, varied

KNOWN = tuple(DIALECTS)
NOT_TAUGHT = {"2.5.1": {"LG-55c"}, "3.9.2": {"CL-15"}, "4.0.0": {"CL-15"}}
"""2.5.1 alone gives wrong inner offsets right ones and does not yet fail at it. 4.0.0 came before 3.9.2, and both have
CL-15. No other release parts either."""


@pytest.mark.parametrize("release", all_but((*RELEASES[::6], *NOT_TAUGHT), KNOWN))
def test_what_the_other_releases_teach_agrees_with_the_catalogue(release):
    assert {one.clause.id for one in changes_of(DIALECTS[release])} == NOT_TAUGHT.get(release, set())


@pytest.mark.parametrize(
    ("release", "text", "without"),
    [
        ("4.0.1", "3.9.2, 4.0.1..", "3.9.2, 4.0.2.."),
        ("4.0.1", "2.4.0..3.9.2, 4.0.0, 4.0.1", "<=4.0.0"),
        ("4.4.0", ">=2.4.0", "<=4.3.1"),
        ("3.9.1", ">=3.5.0", "3.5.0..3.9.0, 3.9.2.."),
        ("3.9.1", "3.9.1, 3.9.2", "3.9.2"),
    ],
)
def test_a_release_leaves_a_range_and_comes_back(release, text, without):
    others = [other for other in KNOWN if other != release]
    edited = without_release(text, release, others)
    assert edited == without
    again = ReleaseRange.parse(with_release(edited, release, others))
    assert [other in again for other in KNOWN] == [other in ReleaseRange.parse(text) for other in KNOWN]


def test_a_new_release_keeps_a_range_open():
    assert with_release("3.9.2", "4.5.0", KNOWN) == "3.9.2, 4.5.0.."
    with pytest.raises(ValueError, match="no other release"):
        without_release("4.4.0", "4.4.0", KNOWN)


def test_columns_go_together():
    three = replace(DIALECTS["3.9.0"], append="A2")
    assert fitted(three).leader_timestamp == "L4"
    assert fitted(DIALECTS["3.9.1"]) == DIALECTS["3.9.1"]
    assert all(fitted(dialect) == dialect for dialect in DIALECTS.values())
    assert set(CANDIDATES) == {"index", "append", "leader_timestamp", "max_lookup", "shutdown", "translate"}


def test_the_row_is_that_of_the_table():
    table = files("kidx").joinpath("dialect/__init__.py").read_text("utf-8")
    for release in ("3.9.0", "3.9.1", "3.9.2", "4.0.0", "4.4.0"):
        assert row_of(DIALECTS[release]) in table


def test_the_diff_has_the_row_in_its_place_and_the_clauses():
    new = replace(DIALECTS["4.0.2"], release="4.0.3")
    ended = change(load_clauses()["AI-42a"], "4.5.0", trace="3f9325713ea4", holds=False)
    patch = patch_of(new, [ended])
    added = [line[1:] for line in patch.splitlines() if line.startswith("+") and not line.startswith("+++")]
    assert added[0] == row_of(new)
    lines = patch.splitlines()
    assert lines[lines.index(f"+{row_of(new)}") - 1].lstrip().startswith('("X4", "A2"')
    assert 'statement = ""' in added
    assert 'trace = "3f9325713ea4"' in added
    assert patch_of(DIALECTS["4.1.1"], []) == ""


def test_a_dialect_is_assumed_for_a_while():
    other = varied(replace(DIALECTS["4.4.0"], release="4.9.0"), close_trims=True)
    assert not DIALECTS["4.4.0"].close_trims
    with assumed(other):
        assert dialect_of("4.9.0").close_trims
    assert "4.9.0" not in DIALECTS
    with pytest.raises(ValueError, match="unknown Kafka release"):
        dialect_of("4.9.0")
    with assumed(replace(DIALECTS["4.3.1"], index="X6")):
        assert dialect_of("4.3.1").index == "X6"
    assert dialect_of("4.3.1").index == "X5"
    with pytest.raises(ValueError, match="no dialect has a behaviour"):
        varied(other, closes_twice=True)


def failing(number, *clauses):
    """A trace of so many steps that differs at a step about clauses."""
    operations = (Operation("close"),) * number
    divergence = Divergence(0, Operation("close"), "jvm", "4.4.0", "kidx", ("bytes",), None, None, clauses)
    return Failing(Trace("offset", "4.4.0", operations), divergence)


def test_the_clause_that_most_traces_differ_at_is_broken():
    traces = {
        "a": failing(9, "LG-33", "SEG-24b"),
        "b": failing(5, "SEG-24b"),
        "c": failing(3, "TX-12b", "TX-12a"),
    }
    found = broken_clauses(Result(traces, {"LG-33": 1, "SEG-24b": 90, "TX-12b": 2, "TX-12a": 7}))
    assert found == {"SEG-24b": "b", "TX-12b": "c"}
    assert broken_clauses(Result({}, {})) == {}
