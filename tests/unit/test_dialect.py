"""Dialects are data: which release behaves how, as the tables of :mod:`kidx.dialect` say."""

from __future__ import annotations

import dataclasses

import pytest

from kidx import DIALECTS, Dialect, dialect_of
from kidx.dialect import BEHAVIOURS, NEWEST, version_of

INDEX_RULES = {
    "X1": ("2.4.0", "2.4.1", "2.5.1"),
    "X2": ("2.6.0", "2.8.2", "3.4.1"),
    "X3": ("3.5.0", "3.9.0", "3.9.1", "4.0.0"),
    "X4": ("3.9.2", "4.0.1", "4.0.2", "4.1.0", "4.1.2"),
    "X5": ("4.2.0", "4.3.1"),
    "X6": ("4.4.0",),
}


@pytest.mark.parametrize(
    ("release", "rules"), [(release, rules) for rules, releases in INDEX_RULES.items() for release in releases]
)
def test_a_release_has_its_index_rules(release, rules):
    """Both ends of every span of table 0.1; 4.0.0 is older inside than 3.9.2."""
    assert dialect_of(release).index == rules


def test_no_release_is_named_twice_and_all_are_in_order():
    """Oldest first: a caller that lists them need not sort."""
    assert list(DIALECTS) == sorted(DIALECTS, key=version_of)
    assert {dialect.index for dialect in DIALECTS.values()} == set(INDEX_RULES)
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
def test_a_behaviour_holds_in_these_releases_and_no_other(behaviour, releases):
    """One release of each dialect (and 4.0.1, which has X4 without the remap lock) says yes or no."""
    asked = ("2.4.1", "3.4.1", "3.9.1", "3.9.2", "4.0.1", "4.3.1", "4.4.0")
    assert {release for release in asked if getattr(dialect_of(release), behaviour)} == releases


def test_the_remap_lock_divides_x4():
    """4.0.1 and 4.1.0 are X4 without the lock of KAFKA-19390 (AI-44b): two kinds of objects, one letter."""
    x4 = [dialect for dialect in DIALECTS.values() if dialect.index == "X4"]
    assert {dialect.release for dialect in x4 if not dialect.resize_unmaps_first} == {"4.0.1", "4.1.0"}
    assert {dialect.release: dialect.index_rules for dialect in x4} == {
        "3.9.2": "X4",
        "4.0.1": "X4a",
        "4.0.2": "X4",
        "4.1.0": "X4a",
        "4.1.1": "X4",
        "4.1.2": "X4",
    }
    assert dialect_of("3.9.1").index_rules == "X3"


PROPERTIES = BEHAVIOURS
INDEX_LEVEL = PROPERTIES[PROPERTIES.index("scala_texts") : PROPERTIES.index("segment_rules")]


@pytest.mark.parametrize("name", PROPERTIES)
def test_what_never_changes_is_no_difference(name):
    """Each property has at least two values among the releases, and says in its docstring what it is about."""
    assert len({getattr(dialect, name) for dialect in DIALECTS.values()}) > 1
    assert getattr(Dialect, name).__doc__


@pytest.mark.parametrize("name", INDEX_LEVEL)
def test_releases_of_one_group_differ_in_nothing_that_an_index_shows(name):
    """A group stands for every behaviour of an index object, so two members never disagree in one of them."""
    seen: dict[str, object] = {}
    for dialect in DIALECTS.values():
        assert seen.setdefault(dialect.index_rules, getattr(dialect, name)) == getattr(dialect, name)
    assert set(seen) == {*INDEX_RULES, "X4a"}


def test_texts_of_segments_change_with_the_release():
    """How a segment prints itself in an error, by the steps at which that changed."""
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


def test_a_dialect_of_ones_own():
    """A release that kidx does not know is a copy of the nearest one; it is taken as it is."""
    fork = dataclasses.replace(dialect_of("4.3.1"), release="4.3.2", index="X6")
    assert dialect_of(fork) is fork
    assert not fork.close_trims
    with pytest.raises(dataclasses.FrozenInstanceError):
        fork.release = "4.3.3"
    assert isinstance(fork, Dialect)


@pytest.mark.parametrize("release", ["4.3", "", "3.9.2 ", "0.11.0"])
def test_an_unknown_release_is_refused_with_the_known_ones(release):
    """The message names what was asked for and what there is."""
    with pytest.raises(ValueError, match=f"unknown Kafka release {release!r}; kidx knows 2.4.0, .*, 4.4.0"):
        dialect_of(release)
