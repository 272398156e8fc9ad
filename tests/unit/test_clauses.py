"""The loader of the catalogue, ranges of releases, and expectations: accepted input and errors."""

from __future__ import annotations

import pytest

from conformance.attribution.tables import clauses_for
from conformance.clauses import CatalogueError, load_clauses, read_catalogue
from conformance.expectations import ExpectationError, ExpectationTracker, load_expectations, read_expectations
from kidx.dialect.release_range import ReleaseRange, ReleaseRangeError

CLAUSE = """
[[clause]]
id = "ZZ-1"
title = "A title of words"
statement = "Something holds."
level = "MUST"
promise = "KIP-0"
releases = ">=2.4.0"
source = "Some.java"
evidence = "E"
"""
CHAPTER = 'section = "1"\n' + CLAUSE

EXPECTATION = """
[[expectation]]
clause = "OI-3"
machine = "offset"
implementation = "my-*"
releases = "3.9.0.."
reason = "checks come in another order"
link = "https://example.org/7"
"""


# -- ranges of releases -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "inside", "outside"),
    [
        ("3.9.2", ["3.9.2"], ["3.9.1", "4.0.0"]),
        ("2.4.0..3.4.1", ["2.4.0", "3.0.2", "3.4.1"], ["3.5.0"]),
        ("4.0.1..", ["4.0.1", "4.4.0"], ["4.0.0", "3.9.2"]),
        (">=3.5.0", ["3.5.0", "3.10.0"], ["3.4.1"]),
        (">3.5.0", ["3.5.1"], ["3.5.0"]),
        ("<=4.3.1", ["2.4.0", "4.3.1"], ["4.4.0"]),
        ("<4.4.0", ["4.3.1"], ["4.4.0"]),
        # 3.9.1 and 3.9.2 came after 4.0.0 and have what it lacks.
        ("3.9.2, 4.0.1..", ["3.9.2", "4.0.1", "4.1.0"], ["3.9.1", "4.0.0"]),
        ("2.4.0..3.9.1, 4.0.0", ["3.9.1", "4.0.0"], ["3.9.2", "4.0.1"]),
    ],
)
def test_a_range_contains_exactly_its_releases(text, inside, outside):
    releases = ReleaseRange.parse(text)
    assert [release for release in inside if release not in releases] == []
    assert [release for release in outside if release in releases] == []
    assert str(releases) == text


def test_releases_are_ordered_as_versions_and_not_as_text():
    assert "3.10.0" not in ReleaseRange.parse("3.1.0..3.9.2")


@pytest.mark.parametrize("text", ["", "3.9", "3.9.x", "2.4.0-3.4.1", "2.4.0..3.4.1,", "=3.9.0", "4.0.0..3.9.2"])
def test_an_invalid_range_is_rejected_by_name(text):
    with pytest.raises(ReleaseRangeError) as refusal:
        ReleaseRange.parse(text)
    assert repr(text) in str(refusal.value)
    assert isinstance(refusal.value, ValueError)


# -- the catalogue ----------------------------------------------------------------------------------------------------


def test_a_clause_has_the_fields_of_its_entry():
    clause = read_catalogue({"chapter": CHAPTER})["ZZ-1"]
    assert (clause.chapter, clause.section, clause.title, clause.level) == ("chapter", "1", "A title of words", "MUST")
    assert clause.excuses == frozenset()
    assert clause.applies_to("4.4.0")


def test_an_observed_clause_tolerates_everything_by_default():
    observed = CHAPTER.replace('"MUST"\npromise = "KIP-0"', '"OBSERVED"\nreason = "an accident"')
    assert read_catalogue({"c": observed})["ZZ-1"].excuses == {"outcome", "text", "state", "bytes"}
    assert read_catalogue({"c": observed + 'excuses = ["bytes"]'})["ZZ-1"].excuses == {"bytes"}


def test_clauses_are_ordered_by_section_and_number():
    ids = [*load_clauses()]
    assert ids.index("AI-9") < ids.index("AI-10") < ids.index("AI-30") < ids.index("OI-2") < ids.index("OI-10")


def test_clauses_for_a_machine_belong_to_the_release():
    trims = {clause.id for clause in clauses_for("offset", "4.3.1")}
    leaves = {clause.id for clause in clauses_for("offset", "4.4.0")}
    assert "AI-42a" in trims
    assert "AI-42b" not in trims
    assert "AI-42b" in leaves
    assert "AI-42a" not in leaves
    assert not any(clause.id.startswith("TI-") for clause in clauses_for("offset", "4.4.0"))
    with pytest.raises(ValueError, match="unknown machine 'offsets'"):
        clauses_for("offsets", "4.4.0")


@pytest.mark.parametrize(
    ("chapters", "complaint"),
    [
        ({"one": CHAPTER, "two": CHAPTER}, "clause ZZ-1 is in one.toml and two.toml"),
        ({"one": CHAPTER + CLAUSE}, "clause ZZ-1 is in one.toml and one.toml"),
        ({"one": "section = "}, "one.toml is not TOML"),
        ({"one": CLAUSE}, "conformance/clauses/one.toml has no section; begin it with a line such as section"),
        ({"one": CHAPTER.replace('"MUST"', '"SHOULD"')}, "unknown level 'SHOULD'; choose from MUST, API, OBSERVED"),
        ({"one": CHAPTER.replace('">=2.4.0"', '"all"')}, "'all' in the range of releases"),
        ({"one": CHAPTER.replace('"E"', '"X"')}, "unknown evidence 'X'; choose from"),
        ({"one": CHAPTER.replace('"ZZ-1"', '"ZZ1"')}, "an id is two or three letters"),
        ({"one": CHAPTER.replace("title =", "titel =")}, "has no title"),
        ({"one": CHAPTER + 'tickets = "KAFKA-1"'}, "has unknown keys: tickets"),
        ({"one": CHAPTER + 'exercised_by = ["offset"]'}, "has unknown keys: exercised_by"),
        ({"one": CHAPTER.replace('"MUST"', '"OBSERVED"')}, "a clause of API or OBSERVED requires a reason"),
        ({"one": CHAPTER.replace('"MUST"', '"API"')}, "a clause of API or OBSERVED requires a reason"),
        ({"one": CHAPTER + 'promises = ["text"]'}, "unknown promise 'text'; choose from kind"),
        ({"one": CHAPTER + 'reason = "because"'}, "a clause of API or OBSERVED requires a reason"),
        ({"one": CHAPTER + 'excuses = ["bytes"]'}, "is MUST and cannot have excuses"),
    ],
)
def test_a_malformed_catalogue_is_rejected_by_name(chapters, complaint):
    with pytest.raises(CatalogueError) as refusal:
        read_catalogue(chapters)
    assert complaint in str(refusal.value)


# -- expectations -----------------------------------------------------------------------------------------------------


def ledger() -> ExpectationTracker:
    return ExpectationTracker(read_expectations("mine.toml", EXPECTATION))


def test_an_expectation_matches_its_clause_machine_implementation_and_release():
    book = ledger()
    assert book.match(("OI-1", "OI-3"), "offset", "my-index", "3.9.2") is book.expectations[0]
    assert book.match(("OI-1",), "offset", "my-index", "3.9.2") is None
    assert book.match(("OI-3",), "time", "my-index", "3.9.2") is None
    assert book.match(("OI-3",), "offset", "your-index", "3.9.2") is None
    assert book.match(("OI-3",), "offset", "my-index", "3.8.1") is None


def test_an_id_without_letter_stands_for_its_variants():
    (general,) = read_expectations("mine.toml", EXPECTATION.replace("OI-3", "OI-4"))
    (particular,) = read_expectations("mine.toml", EXPECTATION.replace("OI-3", "OI-4a"))
    assert general.covers_clause("OI-4b")
    assert not general.covers_clause("OI-40")
    assert not particular.covers_clause("OI-4b")


def test_an_expectation_that_was_met_is_not_stale():
    book = ledger()
    book.match(("OI-3",), "offset", "my-index", "3.9.2")
    assert book.stale({("offset", "my-index", "3.9.2"): {"OI-3"}}) == ()


def test_every_expectation_that_a_divergence_meets_is_met():
    """A broad one that stands first does not make a particular one stale."""
    text = EXPECTATION + EXPECTATION.replace('clause = "OI-3"', 'signature = "append: state*"')
    book = ExpectationTracker(read_expectations("mine.toml", text))
    assert book.match_all(("OI-3",), "append: state", "offset", "my-index", "3.9.2") == (0, 1)
    assert book.stale({("offset", "my-index", "3.9.2"): {"OI-3"}}, {"offset": {"append"}}) == ()


def test_an_expectation_of_an_exercised_clause_without_divergence_is_stale():
    (stale,) = ledger().stale({("offset", "my-index", "3.9.2"): {"OI-3"}})
    assert str(stale) == "mine.toml, entry 1: OI-3, offset machine, my-* on 3.9.0.."


@pytest.mark.parametrize(
    ("performed", "is_stale"),
    [
        ({"list_offsets -3, with all deleted: a record"}, True),
        ({"list_offsets -3, with all deleted, with an open transaction"}, True),
        ({"list_offsets -3, with all deleted: nothing"}, False),
        ({"list_offsets -3: a record"}, False),
        (set(), False),
    ],
)
def test_a_signature_is_stale_if_its_operation_ran_and_nothing_matched(performed, is_stale):
    shape = "list_offsets -3, with all deleted*: a record -> nothing"
    text = EXPECTATION.replace('clause = "OI-3"', f'signature = "{shape}"').replace('"offset"', '"wire"')
    book, exercised = (
        ExpectationTracker(read_expectations("mine.toml", text)),
        {("wire", "my-index", "3.9.2"): {"LO-1"}},
    )
    assert bool(book.stale(exercised, {"wire": performed})) is is_stale
    met = shape.replace("*", ", with an open transaction")
    assert book.find((), met, "wire", "my-index", "3.9.2") == 0
    assert book.find((), "list_offsets -3: a record -> nothing", "wire", "my-index", "3.9.2") is None
    assert book.stale(exercised, {"wire": performed}) == ()


@pytest.mark.parametrize(
    "exercised",
    [
        {},
        {("offset", "my-index", "3.9.2"): {"OI-1"}},
        {("offset", "my-index", "3.8.1"): {"OI-3"}},
        {("offset", "other", "3.9.2"): {"OI-3"}},
        {("time", "my-index", "3.9.2"): {"OI-3"}},
    ],
)
def test_an_expectation_that_could_not_show_is_not_stale(exercised):
    assert ledger().stale(exercised) == ()


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("expectation", "mine.toml is not TOML"),
        ("[expected]", "mine.toml has expected"),
        ("expectation = 7", "Expected `array`, got `int`"),
        ("[expectation]", "Expected `array`, got `object`"),
        (EXPECTATION + "shape = 7", "Expected `str`, got `int` - at `$[0]"),
        (EXPECTATION.replace("reason", "because"), "entry 1 has no reason"),
        (EXPECTATION + 'since = "today"', "has since, which is not a key of an expectation"),
        (EXPECTATION.replace('"offset"', '"index"'), "unknown machine 'index'; choose from"),
        (EXPECTATION.replace("3.9.0..", "3.9"), "'3.9' in the range of releases"),
        (EXPECTATION.replace("OI-3", "OI-99"), "unknown clause 'OI-99'"),
    ],
)
def test_a_malformed_expectation_is_rejected_by_name(text, complaint):
    with pytest.raises(ExpectationError) as refusal:
        read_expectations("mine.toml", text)
    assert complaint in str(refusal.value)


def test_expectations_are_read_from_a_directory(tmp_path):
    (tmp_path / "b.toml").write_text(EXPECTATION)
    (tmp_path / "a.toml").write_text(EXPECTATION.replace("OI-3", "OI-5"))
    (tmp_path / "notes.txt").write_text("not one of them")
    assert [expectation.clause for expectation in load_expectations(tmp_path)] == ["OI-5", "OI-3"]


def test_a_missing_directory_is_rejected(tmp_path):
    with pytest.raises(ExpectationError, match="cannot read expectations"):
        load_expectations(tmp_path / "missing")
