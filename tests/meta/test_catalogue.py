"""The tester's own data: the packaged catalogue, the rows of attribution and the shipped expectations fit together."""

from __future__ import annotations

import re
from importlib.resources import files
from itertools import product
from pathlib import Path
from string import ascii_lowercase

import pytest

from conformance.attribution.broker import _FILES, _OPERATIONS, clauses_of_operation
from conformance.attribution.index import rules_of
from conformance.attribution.rules import Row, each_variant
from conformance.attribution.tables import machines_of, rows_of
from conformance.clauses import FACETS, load_clauses
from conformance.clauses.release_ranges import BehaviourRange
from conformance.expectations import load_expectations
from conformance.lockstep import Divergence
from conformance.machines import MACHINES
from conformance.operations import ERROR_KINDS, FILE_OPERATIONS, KINDS, SIGNATURES
from conformance.runs.replay import find_trace
from kidx.dialect import BEHAVIOURS, DIALECTS
from kidx.dialect import ROWS as TABLE

CLAUSES = load_clauses()
SECTIONS = {
    "1": "AI",
    "1.1": "AI",
    "2": "OI",
    "3": "TI",
    "4": "TX",
    "5": "LZ",
    "6": "SEG",
    "8": "LO",
    "10": "DL",
    "11": "RC",
}


@pytest.mark.parametrize("clause", CLAUSES.values(), ids=lambda clause: clause.id)
def test_a_clause_reads_well(clause):
    assert 3 <= len(clause.title.split()) <= 8
    assert not clause.title.endswith(".")
    assert len(clause.statement) <= 420
    assert ("MUST" in clause.statement) == (clause.level != "OBSERVED"), "a guarantee is normative"
    for text in (clause.statement, clause.reason, clause.not_exercised):
        assert text == text.strip()
        assert not text or text.endswith(".")
    assert not clause.ticket or re.fullmatch(r"KAFKA-\d+", clause.ticket)


@pytest.mark.parametrize("clause", CLAUSES.values(), ids=lambda clause: clause.id)
def test_a_clause_applies_to_an_existing_release(clause):
    assert any(clause.applies_to(release) for release in DIALECTS)


def test_ids_with_letters_exclude_the_plain_id_in_sections_one_to_five():
    plain = {clause.id for clause in CLAUSES.values() if clause.id[-1].isdigit()}
    lettered = {
        clause.id[:-1] for clause in CLAUSES.values() if clause.section[0] in "12345" and clause.id[-1].isalpha()
    }
    assert plain & lettered == set()


def test_a_family_of_ids_is_in_one_section():
    for clause in CLAUSES.values():
        family = SECTIONS.get(clause.section)
        assert family is None or clause.id.startswith(family + "-"), clause.id


def test_every_release_has_exactly_one_of_the_variants_that_differ_by_release():
    for variants in (
        ("AI-16b", "AI-16c"),
        ("AI-19b", "AI-19c"),
        ("AI-42a", "AI-42b"),
        ("AI-44a", "AI-44b"),
        ("OI-4a", "OI-4b"),
        ("OI-6a", "OI-6b"),
        ("OI-8b", "OI-8c"),
        ("OI-12a", "OI-12b"),
        ("TI-4a", "TI-4b"),
        ("TI-8b", "TI-8c"),
        ("TI-11b", "TI-11c"),
        ("TI-21a", "TI-21b"),
        ("OI-23a", "OI-23b"),
        ("TI-23a", "TI-23b"),
        ("TX-7a", "TX-7b"),
        ("TX-12b", "TX-12c"),
        ("LZ-3a", "LZ-3b"),
        ("SEG-2d", "SEG-2e"),
        ("SEG-3", "SEG-4"),
        ("SEG-10a", "SEG-10b"),
        ("SEG-24a", "SEG-24b", "SEG-24c"),
        ("SEG-24d", "SEG-24e"),
        ("SEG-31a", "SEG-31b"),
        ("SEG-50a", "SEG-50b"),
        ("LO-3a", "LO-3b"),
        ("LO-20", "LO-9", "LO-10"),
        ("LO-15b", "LO-15c"),
        ("LG-31a", "LG-31b", "LG-31c"),
    ):
        for release in DIALECTS:
            assert sum(CLAUSES[clause].applies_to(release) for clause in variants) == 1, (variants, release)


@pytest.mark.parametrize("name", BEHAVIOURS)
def test_a_clause_that_a_behaviour_decides_names_it(name):
    """A range that stands in a row and in a clause would have to be edited twice."""
    row = TABLE[name]
    held = {value: {r for r, d in DIALECTS.items() if getattr(d, name) == value} for value in row.values}
    for clause in CLAUSES.values():
        if clause.id.rstrip(ascii_lowercase) in row.clauses and not isinstance(clause.releases, BehaviourRange):
            assert {release for release in DIALECTS if clause.applies_to(release)} not in held.values(), clause.id


@pytest.mark.parametrize("machine", KINDS)
def test_a_row_has_an_existing_clause_operation_and_result(machine):
    for row in rows_of(machine):
        assert row.clause in CLAUSES
        assert set(row.operations.split()) <= set(SIGNATURES) - FILE_OPERATIONS, row
        assert set(row.results.split()) <= {"ok", *ERROR_KINDS}, row
        assert row.why


def test_a_row_of_a_family_is_about_each_variant():
    """The id of a clause means this clause only, even if it has variants."""
    rows = [Row(clause, "open", "ok", "the text") for clause in ("OI-4", "LG-4", "OI-3")]
    assert [row.clause for row in each_variant(rows)] == ["OI-4a", "OI-4b", "LG-4", "OI-3"]
    with pytest.raises(KeyError, match="OI-99"):
        each_variant([Row("OI-99", "open", "ok", "the text")])


def test_a_clause_that_no_machine_exercises_has_a_reason():
    for clause in CLAUSES.values():
        assert bool(clause.not_exercised) != bool(machines_of(clause.id)), clause.id


@pytest.mark.thorough
@pytest.mark.parametrize("release", DIALECTS)
def test_the_rows_of_a_release_are_about_clauses_of_that_release(release):
    seen = set()
    for rules, name, error in product(rules_of(release).values(), SIGNATURES, (None, *ERROR_KINDS)):
        always, conditional = rules[name, error]
        ids = [*always, *(clause for clause, _ in conditional)]
        assert len(set(ids)) == len(ids)
        assert all(CLAUSES[clause].applies_to(release) for clause in ids)
        seen.update(ids)
    rows = {row.clause for kind in KINDS for row in rows_of(kind)}
    assert seen == {clause for clause in rows if CLAUSES[clause].applies_to(release)}


@pytest.mark.thorough
@pytest.mark.parametrize("clause", [c for c in CLAUSES.values() if c.trace], ids=lambda clause: clause.id)
def test_a_clause_is_shown_by_the_trace_that_it_names(clause, tmp_path):
    """The reference exercises the clause in the trace's release or in the release that it is compared with."""
    machine = clause.trace.partition("-")[0]
    trace = find_trace(clause.trace, [Path(str(files("conformance"))) / "traces"])
    other = str((trace.failure or {}).get("participant", "")).rpartition(" ")[2]
    exercised = set()
    for release in {trace.release, other} & set(DIALECTS):
        lockstep = MACHINES[machine].new_lockstep([], tmp_path / release, releases=[release])
        lockstep.begin()
        for operation in trace.operations:
            lockstep.perform(operation)
        lockstep.end()
        exercised |= lockstep.statistics.exercised(release).keys()
    assert clause.id in exercised


PROMISED = re.compile(r"(KIP-\d+|docs|javadoc|protocol|files): \S")


@pytest.mark.parametrize("clause", [c for c in CLAUSES.values() if c.level != "OBSERVED"], ids=lambda clause: clause.id)
def test_a_promise_names_its_source(clause):
    """A KIP, a page of Kafka's documentation, public Javadoc, the protocol; or what of Kafka reads the files."""
    assert PROMISED.match(clause.promise)


def test_a_promise_of_level_must_says_what_is_promised():
    """A name of a setting or of an error does not."""
    word = re.compile(r"(?<![\w.])[a-z]{2,}(?![\w.])")
    promised = {c.id: c.promise.partition(": ")[2] for c in CLAUSES.values() if c.level == "MUST"}
    assert [clause for clause, text in promised.items() if len(word.findall(text)) < 3] == []


def test_a_clause_with_the_javadoc_of_the_jdk_as_only_source_has_level_api():
    """Kafka's own public Javadoc promises something to its users; Closeable and the like are Java's to its callers."""
    of_the_jdk = re.compile(r"(javadoc|docs): java\.")
    resting = {clause.id for clause in CLAUSES.values() if of_the_jdk.match(clause.promise)}
    assert resting >= {"AI-4a", "AI-4c", "AI-16c", "AI-20a", "AI-21a", "AI-22", "OI-13"}
    assert {CLAUSES[clause].level for clause in resting} == {"API"}


def test_every_clause_that_the_harness_names_is_in_the_catalogue():
    """A misspelt id would be evidence for nothing; the tables of capabilities name clauses without their letters."""
    known = {*CLAUSES, *(clause.rstrip(ascii_lowercase) for clause in CLAUSES)}
    families = "|".join(sorted({clause.split("-")[0] for clause in CLAUSES}))
    mentioned = re.compile(rf"\b(?:{families})-\d+[a-z]?\b")
    sources = [file for package in ("conformance", "kidx") for file in Path(str(files(package))).rglob("*.py")]
    named = {id_ for file in sources for id_ in mentioned.findall(file.read_text("utf-8"))}
    assert len(named) > 200
    assert named - known == set()


def test_the_clauses_of_the_wire_machine_are_among_those_that_it_exercises():
    source = Path(str(files("conformance")))
    quoted = re.compile(r"\"((?:LO|LG|FE|SEG)-\d+[a-z]?)\"")
    sources = [*source.glob("lockstep/scopes/wire*.py"), *source.glob("implementations/wire/*.py")]
    named = {id_ for file in sources for id_ in quoted.findall(file.read_text("utf-8"))}
    assert len(named) > 15
    assert {id_ for id_ in named if "wire" not in machines_of(id_)} == set()


@pytest.mark.parametrize("table", [_FILES, _OPERATIONS])
def test_the_clauses_of_a_broker_are_in_the_catalogue(table):
    assert {clause for clauses in table.values() for clause in clauses} <= CLAUSES.keys()


def test_a_misspelt_clause_of_a_broker_is_an_error(monkeypatch):
    monkeypatch.setitem(_OPERATIONS, "append_batch", ("LG-1x",))
    with pytest.raises(KeyError, match="LG-1x"):
        clauses_of_operation("append_batch", "4.4.0")


def test_facets_are_called_as_the_lockstep_calls_them():
    documented = Divergence.__doc__ or ""
    assert all(f'"{facet}"' in documented for facet in FACETS)


def test_the_shipped_expectations_can_be_read():
    load_expectations()
