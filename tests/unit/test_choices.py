"""A choice that a clause below MUST leaves open conforms at level must, and is found at the level of its clause."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from conformance.attribution.tables import machines_of
from conformance.clauses import load_clauses
from conformance.events import Diverged, Event
from conformance.experiments.mutation.choices import judge, releases_of
from conformance.implementations.mutants.choices import CHOICES, WITHOUT_A_CHOICE
from conformance.kafka.releases import RELEASES
from conformance.runs.plan import Plan
from conformance.runs.profiles import PROFILES
from conformance.runs.runner import run

if TYPE_CHECKING:
    from pathlib import Path

PLAIN = "python:tests.adapters.plain_index:open_index"
MACHINES = ("offset", "time", "transaction")
QUICK = (
    "offset-stays-read-only",  # USERS.md, I3
    "offset-reader-does-not-resize",  # I4
    "offset-reader-removes-its-file",  # I4
    "offset-mendsthefirstupperbound",  # I2
    "offset-preallocates-more",
)


def test_every_clause_of_an_index_below_must_has_a_choice() -> None:
    chosen = {choice.clause for choice in CHOICES.values()}
    below = {
        clause.id
        for clause in load_clauses().values()
        if clause.level != "MUST" and set(machines_of(clause.id)) & set(MACHINES)
    }
    assert below - chosen == set(WITHOUT_A_CHOICE)
    assert all(WITHOUT_A_CHOICE.values())


def test_every_choice_fits_the_source() -> None:
    assert all(isinstance(choice.defect, type) for choice in CHOICES.values())


@pytest.mark.thorough
@pytest.mark.parametrize("name", QUICK)
def test_a_choice_is_promised_to_nobody(name: str) -> None:
    result = judge(name, 0, releases=["3.9.2", "4.4.0"], profile="dev", examples=20)
    assert result.conforms, result
    assert result.found


@pytest.mark.thorough
def test_the_first_position_is_known_in_a_file_that_was_not_corrupted() -> None:
    """Seeds at which an index was opened again with zeros, which count as entries."""
    for seed in (6, 8, 29):
        result = judge("offset-mendsthefirstupperbound", seed, profile="ci", examples=30)
        assert result.conforms, result


@pytest.mark.thorough
@pytest.mark.in_turn(20)
@pytest.mark.parametrize("name", sorted(CHOICES))
def test_choices_conform_on_all_releases(name: str) -> None:
    """``conformance mutate --choices`` does the same with five seeds and every example of the profile ci."""
    assert releases_of(CHOICES[name])
    result = judge(name, 0, profile="ci", examples=30)
    assert result.conforms, result
    assert result.found


def divergences_of_the_plain_index(
    releases: tuple[str, ...], profile: str, directory: Path, examples: int
) -> list[Event]:
    events: list[Event] = []
    plan = Plan(releases, (PLAIN,), ("offset", "time"), PROFILES[profile], directory, level="must", kept=False)
    run(replace(plan, max_examples=examples), events.append)
    return [event for event in events if isinstance(event, Diverged)]


@pytest.mark.thorough
def test_an_index_written_from_the_pages_alone_conforms(tmp_path: Path) -> None:
    assert divergences_of_the_plain_index(("3.9.2", "4.4.0"), "dev", tmp_path, 10) == []


@pytest.mark.thorough
def test_an_index_written_from_the_pages_alone_conforms_to_all_releases(tmp_path: Path) -> None:
    assert divergences_of_the_plain_index(tuple(RELEASES), "ci", tmp_path, 40) == []
