"""The tester's own data: the packaged catalogue, the rows of attribution and the shipped expectations fit together."""

from __future__ import annotations

import re
from importlib.resources import files
from itertools import product
from pathlib import Path

import pytest

from conformance.attribution import ROWS
from conformance.attribution.index import rules_of
from conformance.clauses import FACETS, load_clauses
from conformance.expectations import load_expectations
from conformance.lockstep import Divergence
from conformance.machines import MACHINES
from conformance.operations import ERROR_KINDS, FILE_OPERATIONS, SIGNATURES
from conformance.operations.trace import Trace
from kidx.dialect import DIALECTS

CLAUSES = load_clauses()
SECTIONS = {"1": "AI", "1.1": "AI", "2": "OI", "3": "TI", "4": "TX", "5": "LZ", "6": "SEG", "8": "LO", "10": "DL"}


@pytest.mark.parametrize("clause", CLAUSES.values(), ids=lambda clause: clause.id)
def test_a_clause_reads_well(clause):
    assert 3 <= len(clause.title.split()) <= 8
    assert not clause.title.endswith(".")
    assert len(clause.statement) <= 420
    for text in (clause.statement, clause.reason, clause.not_exercised):
        assert text == text.strip()
        assert not text or text.endswith(".")
    assert not clause.ticket or re.fullmatch(r"KAFKA-\d+", clause.ticket)


@pytest.mark.parametrize("clause", CLAUSES.values(), ids=lambda clause: clause.id)
def test_a_clause_says_something_about_a_release_there_is(clause):
    assert any(clause.applies_to(release) for release in DIALECTS)


def test_the_letters_of_an_id_do_not_stand_beside_the_plain_id_in_sections_one_to_five():
    plain = {clause.id for clause in CLAUSES.values() if clause.id[-1].isdigit()}
    lettered = {
        clause.id[:-1] for clause in CLAUSES.values() if clause.section[0] in "12345" and clause.id[-1].isalpha()
    }
    assert plain & lettered == set()


def test_a_family_of_ids_stays_in_its_section():
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


def test_the_clauses_that_follow_from_a_dialect_agree_with_it():
    for release, dialect in DIALECTS.items():
        assert CLAUSES["OI-4a"].applies_to(release) == dialect.scala_texts
        assert CLAUSES["OI-6b"].applies_to(release) == dialect.position_mismatch_is_state
        assert CLAUSES["AI-16c"].applies_to(release) == dialect.unmapped_trim_is_noop
        assert CLAUSES["AI-44b"].applies_to(release) == dialect.resize_unmaps_first
        assert CLAUSES["AI-42a"].applies_to(release) == dialect.close_trims
        assert CLAUSES["AI-19c"].applies_to(release) == dialect.unmapped_flush_is_noop
        assert CLAUSES["TX-7b"].applies_to(release) == dialect.strict_txn_version
        assert CLAUSES["TX-12b"].applies_to(release) == dialect.txn_text_has_version
        assert CLAUSES["SEG-3"].applies_to(release) == (dialect.append == "A1")
        assert CLAUSES["SEG-50a"].applies_to(release) == (dialect.translate == "last")
        assert CLAUSES["LG-11"].applies_to(release) == dialect.truncation_looks_for_transactions
        assert CLAUSES["LG-31a"].applies_to(release) == dialect.truncation_looks_for_transactions
        assert CLAUSES["LG-31c"].applies_to(release) != dialect.truncation_applies_any_watermark
        assert CLAUSES["LO-9"].applies_to(release) == (dialect.max_lookup == "M1")


@pytest.mark.parametrize("machine", ROWS)
def test_a_row_is_about_a_clause_an_operation_and_a_result_there_are(machine):
    for row in ROWS[machine]:
        assert row.clause in CLAUSES
        assert machine in CLAUSES[row.clause].exercised_by, row
        assert set(row.operations.split()) <= set(SIGNATURES) - FILE_OPERATIONS, row
        assert set(row.results.split()) <= {"ok", *ERROR_KINDS}, row
        assert row.why


@pytest.mark.parametrize("machine", ROWS)
def test_every_clause_that_a_machine_exercises_has_a_row(machine):
    exercised = {clause.id for clause in CLAUSES.values() if machine in clause.exercised_by}
    assert exercised - {row.clause for row in ROWS[machine]} == set()


@pytest.mark.parametrize("release", DIALECTS)
def test_the_rows_of_a_release_are_about_clauses_of_that_release(release):
    seen = set()
    for rules, name, error in product(rules_of(release).values(), SIGNATURES, (None, *ERROR_KINDS)):
        always, conditional = rules[name, error]
        ids = [*always, *(clause for clause, _ in conditional)]
        assert len(set(ids)) == len(ids)
        assert all(CLAUSES[clause].applies_to(release) for clause in ids)
        seen.update(ids)
    rows = {row.clause for table in ROWS.values() for row in table}
    assert seen == {clause for clause in rows if CLAUSES[clause].applies_to(release)}


@pytest.mark.parametrize("clause", [c for c in CLAUSES.values() if c.trace], ids=lambda clause: clause.id)
def test_a_clause_is_shown_by_the_trace_that_it_names(clause, tmp_path):
    """In the trace's release or in the one that it tells from it, the reference exercises the clause."""
    machine = clause.trace.partition("-")[0]
    trace = Trace.load(Path(str(files("conformance"))) / "traces" / machine / f"{clause.trace}.json")
    other = str((trace.failure or {}).get("party", "")).rpartition(" ")[2]
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


@pytest.mark.parametrize("clause", [c for c in CLAUSES.values() if c.level == "MUST"], ids=lambda clause: clause.id)
def test_a_promise_says_who_gives_it(clause):
    """A KIP, a page of Kafka's documentation, public Javadoc, the protocol; or what of Kafka reads the files."""
    assert PROMISED.match(clause.promise)


def test_facets_are_called_as_the_lockstep_calls_them():
    documented = Divergence.__doc__ or ""
    assert all(f'"{facet}"' in documented for facet in FACETS)


def test_the_shipped_expectations_can_be_read():
    load_expectations()
