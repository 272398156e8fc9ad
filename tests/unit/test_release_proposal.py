"""Proposals for a release without its classes: clauses from known results, ranges, and the diff."""

from __future__ import annotations

import pytest
from thorough_params import thorough_except

from conformance.clauses import load_clauses
from conformance.clauses.release_ranges import with_release, without_release
from conformance.experiments.release_proposal.patch import change, changes_of, edited_rows, patch_of
from conformance.experiments.release_proposal.trials import Failing, Result, broken_clauses
from conformance.kafka.releases import RELEASES
from conformance.lockstep import Divergence
from conformance.operations import Operation
from conformance.operations.trace import Trace
from kidx.dialect import DIALECTS, ROWS, Dialect, dialect_of, override_dialect, with_overrides
from kidx.dialect.release_range import ReleaseRange

KNOWN = tuple(DIALECTS)
NOT_TAUGHT = {"2.5.1": {"LG-55c"}, "3.6.0": {"TL-13", "TL-24"}}
"""2.5.1 alone gives wrong inner offsets right ones and does not yet fail at it. No other release parts the two.

3.6.0 is the first release with tiers. In the rows of these clauses it has the values of the releases before it, in
which the clauses do not apply because they have no tiers.
"""


@pytest.mark.thorough
@pytest.mark.parametrize("release", thorough_except((*RELEASES[::6], *NOT_TAUGHT), KNOWN))
def test_proposals_from_the_other_releases_agree_with_the_catalogue(release):
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
def test_a_release_is_removed_from_a_range_and_added_again(release, text, without):
    others = [other for other in KNOWN if other != release]
    edited = without_release(text, release, others)
    assert edited == without
    again = ReleaseRange.parse(with_release(edited, release, others))
    assert [other in again for other in KNOWN] == [other in ReleaseRange.parse(text) for other in KNOWN]


def test_a_row_that_was_not_tested_stays_as_it_is():
    """Whatever is assumed of a release, only the rows that were tested are edited."""
    assumed = Dialect("4.3.1", DIALECTS["4.2.2"].like)
    rows = edited_rows(assumed)
    assert len(rows) > 3
    tested = min(rows)
    assert edited_rows(assumed, ROWS.keys() - {tested}) == {tested: rows[tested]}
    assert patch_of(assumed, [], ROWS) == ""
    assert edited_rows(Dialect("4.5.0", "4.3.1"), ROWS) == {}


def test_a_new_release_keeps_a_range_open():
    assert with_release("3.9.2", "4.5.0", KNOWN) == "3.9.2, 4.5.0.."
    with pytest.raises(ValueError, match="no other release"):
        without_release("4.4.0", "4.4.0", KNOWN)


def test_a_range_is_edited_where_the_dialect_differs():
    new = with_overrides(Dialect("4.2.9", "4.2.1"), limits_decompressed_size=True, close_trims=True)
    assert edited_rows(new) == {
        "limits_decompressed_size": (("4.2.2, 4.4.0..", "4.2.2, 4.2.9, 4.4.0.."),),
        "expires_at_exact_age": (("<=4.2.2", "<=4.2.2, 4.2.9"),),
        "metadata_versions": (("4.2.0..4.2.2", "4.2.0..4.2.2, 4.2.9"),),
    }
    assert edited_rows(DIALECTS["4.1.1"]) == {}
    newest = Dialect("4.5.0", "4.3.1")
    assert edited_rows(newest)["close_trims"] == (("<=4.3.1", "<=4.3.1, 4.5.0.."),)


def test_the_diff_has_the_release_the_row_and_the_clauses():
    new = with_overrides(Dialect("4.2.9", "4.2.1"), limits_decompressed_size=True)
    ended = change(load_clauses()["AI-42a"], "4.5.0", trace="3f9325713ea4", applies=False)
    patch = patch_of(new, [ended])
    added = [line[1:] for line in patch.splitlines() if line.startswith("+") and not line.startswith("+++")]
    assert any(" 4.2.9 4.3.0 " in line for line in added)
    assert any('leader.flag("4.2.2, 4.2.9, 4.4.0.."' in line for line in added)
    assert 'statement = ""' in added
    assert 'trace = "3f9325713ea4"' in added
    assert patch_of(DIALECTS["4.1.1"], []) == ""
    newest = [line for line in patch_of(Dialect("4.5.0", "4.4.0"), []).splitlines() if line.startswith("+")]
    assert newest[1].endswith(' 4.4.0 4.5.0"')


def test_a_dialect_is_assumed_for_a_while():
    other = with_overrides(Dialect("4.9.0", "4.4.0"), close_trims=True)
    assert not DIALECTS["4.4.0"].close_trims
    with override_dialect(other):
        assert dialect_of("4.9.0").close_trims
    assert "4.9.0" not in DIALECTS
    with pytest.raises(ValueError, match="unknown Kafka release"):
        dialect_of("4.9.0")
    with override_dialect(with_overrides(DIALECTS["4.3.1"], close_trims=False)):
        assert not dialect_of("4.3.1").close_trims
    assert dialect_of("4.3.1").close_trims
    with pytest.raises(ValueError, match="unknown behaviour closes_twice: "):
        with_overrides(other, closes_twice=True)


def failing(number, *clauses):
    """Make a trace of this number of steps that differs at a step about clauses."""
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
