"""Dialects are data: which release behaves how, as the tables of :mod:`kidx.dialect` say."""

from __future__ import annotations

import dataclasses
import re
from pathlib import Path

import pytest

import kidx
from conformance.clauses import load_clauses
from kidx import DIALECTS, Dialect, dialect_of
from kidx.dialect import BEHAVIOURS, NEWEST, ROWS, representative, version_of, with_overrides
from kidx.dialect.behaviour import Section

INDEX_GROUPS = (
    {"2.4.0", "2.4.1", "2.5.1", "2.6.0", "2.8.2", "3.4.1"},
    {"3.5.0", "3.9.0", "3.9.1", "4.0.0"},
    {"4.0.1", "4.1.0"},
    {"3.9.2", "4.0.2", "4.1.2", "4.2.0", "4.3.1"},
    {"4.4.0"},
)
"""Releases whose index objects behave alike. The index code of 4.0.0 is older than in 3.9.2."""


def test_releases_are_equal_if_their_rows_are():
    """Equality is computed from the rows; no list of equal releases exists."""
    groups = [{dialect_of(release).rules("index") for release in releases} for releases in INDEX_GROUPS]
    assert [len(group) for group in groups] == [1] * len(INDEX_GROUPS)
    assert len(set.union(*groups)) == len(INDEX_GROUPS)
    assert {dialect.rules("index") for dialect in DIALECTS.values()} == set.union(*groups)


def test_the_representative_is_the_oldest_release_with_the_same_rules():
    assert representative("4.3.1", "index") == "3.9.2"
    assert representative("4.3.1") == "4.3.0"


def test_no_release_is_named_twice_and_all_are_in_order():
    """Oldest first: a caller that lists them need not sort."""
    assert list(DIALECTS) == sorted(DIALECTS, key=version_of)
    assert all(dialect.release == release for release, dialect in DIALECTS.items())


@pytest.mark.parametrize(
    ("behaviour", "releases"),
    [
        ("scala_texts", {"2.4.1", "3.4.1"}),
        ("position_mismatch_is_state", {"3.9.1", "3.9.2", "4.0.1", "4.3.1", "4.4.0"}),
        ("unmapped_trim_is_noop", {"3.9.2", "4.0.1", "4.3.1", "4.4.0"}),
        ("resize_unmaps_first", {"3.9.2", "4.3.1", "4.4.0"}),
        ("close_trims", {"2.4.1", "3.4.1", "3.9.1", "3.9.2", "4.0.1", "4.3.1"}),
        ("unmapped_flush_is_noop", {"4.4.0"}),
        ("flush_syncs_file", {"4.4.0"}),
        ("strict_txn_version", {"4.4.0"}),
        ("txn_text_has_version", {"2.4.1", "3.4.1", "3.9.1", "3.9.2", "4.0.1", "4.3.1"}),
        ("append_per_batch", {"3.9.1", "3.9.2", "4.0.1", "4.3.1", "4.4.0"}),
        ("translates_to_base_offset", {"4.0.1", "4.3.1", "4.4.0"}),
        ("close_loads_indexes", {"2.4.1"}),
        ("close_finishes_segment", {"2.4.1", "3.4.1", "3.9.1", "3.9.2", "4.0.1", "4.3.1"}),
        ("searches_by_base_offset", {"4.3.1", "4.4.0"}),
    ],
)
def test_a_behaviour_applies_to_exactly_these_releases(behaviour, releases):
    """Among one release of each group, the value is true for exactly the expected ones.

    4.0.1 is there because it translates to the base offset but does not unmap before a resize.
    """
    compared = ("2.4.1", "3.4.1", "3.9.1", "3.9.2", "4.0.1", "4.3.1", "4.4.0")
    assert {release for release in compared if getattr(dialect_of(release), behaviour)} == releases


@pytest.mark.parametrize("name", BEHAVIOURS)
def test_a_row_distinguishes_releases_and_describes_the_difference(name):
    """Each row has at least two distinct values, cites only existing clauses, and has a one-sentence description."""
    row = ROWS[name]
    assert len({getattr(dialect, name) for dialect in DIALECTS.values()}) > 1
    assert row.__doc__
    assert row.__doc__[0].isupper() or row.__doc__[0] == "`"
    assert row.__doc__.endswith(".")
    families = {clause.rstrip("abcdefghijklmnopqrstuvwxyz") for clause in load_clauses()}
    assert families.issuperset(row.clauses), name


@pytest.mark.parametrize("name", BEHAVIOURS)
def test_a_release_has_one_value_per_row(name):
    """The ranges of a row do not overlap, and none names a release that was never published."""
    for release in DIALECTS:
        assert sum(release in releases for releases in ROWS[name].values.values() if releases.text) <= 1
    for releases in ROWS[name].values.values():
        assert set(re.findall(r"\d+\.\d+\.\d+", releases.text)) <= set(DIALECTS), releases


def test_no_code_compares_the_number_of_a_release():
    """A patch release can get anything back-ported, so that a threshold says nothing."""
    compared = re.compile(r"\bversion\s*(?:>=|<=|<|>)\s*\(|dialect\.version")
    package = Path(kidx.__file__).parent
    found = [path.name for path in package.rglob("*.py") if compared.search(path.read_text("utf-8"))]
    assert found == []


def test_a_row_without_a_value_for_a_release_raises():
    row = Section("index").choice({1: "<=3.0.0", 2: ">=3.5.0"}, "", "A number.")
    assert (row.value_in("2.4.0"), row.value_in("4.4.0")) == (1, 2)
    with pytest.raises(ValueError, match=r"no value for Kafka 3\.4\.1"):
        row.value_in("3.4.1")


def test_texts_of_segments_change_with_the_release():
    """The text of a segment in an error changes at these releases.

    ``segment_text`` is the form of the largest timestamp: ``largestTime=5``, ``largestRecordTimestamp=Some(5)`` or
    ``largestRecordTimestamp=5``. ``offset_metadata_gap`` is the text before the segment in ``(offset=1 segment=…``.
    """
    releases = ("2.6.3", "2.7.0", "3.4.1", "3.5.2", "3.6.2", "3.7.0", "4.4.0")
    assert [dialect_of(release).segment_text for release in releases] == [
        "time",
        "option",
        "option",
        "option",
        "option",
        "plain",
        "plain",
    ]
    assert [dialect_of(release).offset_metadata_gap for release in releases] == [" ", " ", " ", "", ", ", ", ", ", "]


def test_the_newest_release_is_the_default():
    """Newest by number, not by text: 4.10 would follow 4.9."""
    assert NEWEST == "4.4.0"
    assert dialect_of() is dialect_of(None) is dialect_of("4.4.0") is DIALECTS["4.4.0"]
    assert version_of("4.10.0") > version_of("4.9.1")
    with pytest.raises(ValueError, match="invalid literal"):
        version_of("4.x")


def test_a_custom_dialect():
    """A release unknown to kidx behaves like a known release, except for the overridden rows.

    ``dialect_of`` returns a given :class:`Dialect` unchanged.
    """
    fork = with_overrides(Dialect("4.3.2", "4.3.1"), close_trims=False)
    assert dialect_of(fork) is fork
    assert not fork.close_trims
    assert fork.searches_by_base_offset
    with pytest.raises(dataclasses.FrozenInstanceError):
        fork.release = "4.3.3"
    assert Dialect("3.9.3", "3.9.2").append_per_batch
    assert fork.with_libraries(None, None).rules() == fork.rules()
