"""Interrupted operations of Kafka's own classes: torn states are found, without false findings."""

import json

import msgspec
import pytest
from typer.testing import CliRunner

from conformance.cli import app
from conformance.errors import ToolError
from conformance.experiments.output_files import save_json
from conformance.studies.interleave import interrupter as experiment
from conformance.studies.interleave import trace
from conformance.studies.interleave.interrupter import Interrupter, Schedule
from conformance.studies.interleave.planted import PLANTED
from conformance.studies.interleave.scenarios import KINDS, Case, draw_scenario
from conformance.studies.interleave.study import INTERLEAVE
from conformance.studies.study import KnownCauses, Request, load

TORN = {
    "offset": {
        ("lookup", "truncateTo", "IV-1"),
        ("lookup", "truncate", "IV-1"),
        ("lookup", "truncateTo; append; append", "IV-2"),
        ("entry", "truncateTo; append; append", "IV-2"),
    },
    "time": {
        ("lookup", "truncateTo", "IV-1"),
        ("lookup", "truncate", "IV-1"),
        ("lookup", "truncateTo; maybeAppend", "IV-2"),
        ("entry", "truncateTo; maybeAppend", "IV-2"),
    },
    "lazy": {
        (first, closes, "IV-3")
        for first in ("lookup", "truncateTo")
        for closes in ("close", "closeHandler", "deleteIfExists")
    },
    "opened": set(),
}
OF_SEGMENT = {("read", "truncateTo", "IV-4"), ("find", "truncateTo", "IV-4"), ("read", "close", "IV-5")}
OF_CACHE = {("lookupOffset", "remove; deleteRemoved", "IV-7b")}
MIXED = Case("offset", ("append 10 100", "append 20 200", "append 30 300"), "lookup 35", "truncateTo 25;append 26 260")
LATE = Case("opened", ("append 0 1000", "append 1 1010", "reopen"), "largestTimestamp", "append 2 1020")
REMOVED = Case("cache", ("hold 0",), "lookupOffset 0 25", "remove 0")
LOG = draw_scenario("log", 0)
REPLICATED = draw_scenario("replicated", 0)
CLOSED = Case("lazy", ("append 10 100", "append 20 200"), "lookup 15", "closeHandler")


@pytest.fixture(scope="module")
def interrupter(tmp_path_factory):
    return Interrupter("4.3.1", tmp_path_factory.mktemp("races") / "work")


def clause_of(pair, release):
    sameness = INTERLEAVE.sameness(pair)
    return None if sameness is None else KnownCauses(INTERLEAVE).clause_of(sameness, release)


def torn_pairs(interrupter, kind, seed=0):
    pairs = map(interrupter.interrupt, INTERLEAVE.cases(interrupter, Request((kind,), seed)))
    return {(*pair.case.names, clause_of(pair, interrupter.release)) for pair in pairs if pair.violations}


def shown(case, interrupter):
    return INTERLEAVE.document(interrupter, interrupter.interrupt(case), "IV-2")


def searched(name, seeds, scratch):
    return list(INTERLEAVE.search_planted([name], seeds, INTERLEAVE.planted_release, scratch))


@pytest.mark.parametrize(
    "kind", ["offset", *(pytest.param(kind, marks=pytest.mark.thorough) for kind in ("time", "lazy", "opened"))]
)
def test_the_torn_pairs_are_the_known_ones(kind, interrupter):
    assert torn_pairs(interrupter, kind) == TORN[kind]


@pytest.mark.thorough
@pytest.mark.parametrize("kind", ["segment", "cache"])
def test_the_torn_pairs_of_long_operations_are_known(kind, interrupter):
    torn = torn_pairs(interrupter, kind)
    assert all(clause for *_, clause in torn), torn
    assert torn >= (OF_SEGMENT if kind == "segment" else OF_CACHE)


def of_log(scenario, kind, first, others):
    """Return the case of a log with these names."""
    return next(case for case in scenario.cases(kind) if case.names == (first, others))


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("first", "others", "clause"),
    [
        ("readBelow", "truncateToWatermark", None),
        ("timeBelow", "truncateToWatermark; deleteFiles", None),
        ("readAbove", "truncateTo", "IV-4"),
        ("readBelow", "truncateBelowWatermark", "IV-4"),
        ("offsets", "truncateFully", "IV-11"),
    ],
)
def test_what_two_threads_see_through_a_log(first, others, clause, interrupter):
    """IV-10: only above the high watermark, or during a truncation below it."""
    pair = interrupter.interrupt(of_log(LOG, "log", first, others))
    assert pair.points > 5
    assert bool(pair.violations) == bool(clause)
    assert clause_of(pair, "4.3.1") == clause


@pytest.mark.thorough
def test_the_torn_pairs_of_a_replicated_log_are_known(interrupter):
    torn = torn_pairs(interrupter, "replicated")  # kind "log" takes minutes
    assert all(clause for *_, clause in torn), torn
    below = {pair for pair in torn if any(name.endswith("Below") for name in pair[:2])}
    assert all({"close", "truncateBelowWatermark", "truncateFully"}.intersection(pair) for pair in below), below


@pytest.mark.thorough
def test_a_fetch_returns_more_than_the_high_watermark_allows_in_old_releases(interrupter, tmp_path):
    case = of_log(REPLICATED, "replicated", "readBelow", "append")
    old = Interrupter("2.4.0", tmp_path / "work").interrupt(case)
    assert clause_of(old, "2.4.0") == "IV-9"
    assert not interrupter.interrupt(case).violations


@pytest.mark.thorough
def test_a_log_whose_missing_locks_are_not_detected_is_an_error(interrupter, monkeypatch, tmp_path):
    monkeypatch.setattr(experiment, "APPENDS", experiment.APPENDS._replace(others="offsets"))
    monkeypatch.setattr(interrupter, "_locks_matter", False)  # another test may have searched a log
    monkeypatch.setattr(interrupter, "_scratch", tmp_path)
    with pytest.raises(ToolError, match="not detected after removing all its locks"):
        next(interrupter.cases(["log"]))


@pytest.mark.thorough
@pytest.mark.parametrize("seed", range(1, 5))
def test_no_seed_finds_more(seed, interrupter):
    for kind, known in TORN.items():
        torn = torn_pairs(interrupter, kind, seed)
        assert torn <= known, f"--machine {kind} --seed {seed}"


def test_an_entry_is_the_offset_of_one_with_the_position_of_another(interrupter):
    results = {violation.seen.first for violation in interrupter.interrupt(MIXED).violations}
    assert "offset=30, position=260" in results


@pytest.mark.parametrize(
    ("case", "with_it", "without"),
    [
        pytest.param(LATE, "3.9.2", "4.3.1", id="KAFKA-19407"),
        pytest.param(REMOVED, "3.9.2", "4.3.1", id="KAFKA-17184"),
    ],
)
def test_a_race_is_found_in_the_releases_that_have_it(case, with_it, without, interrupter, tmp_path):
    pair = Interrupter(with_it, tmp_path / "work").interrupt(case)
    assert pair.violations
    assert clause_of(pair, with_it)
    assert clause_of(pair, without) is None
    assert interrupter.release == without
    assert not interrupter.interrupt(case).violations


@pytest.mark.thorough
def test_a_lookup_reads_unmapped_memory_until_lookups_exclude_unmapping(interrupter, tmp_path):
    pair = Interrupter("3.9.1", tmp_path / "work").interrupt(CLOSED)
    assert "Unmapped" in {violation.seen.first for violation in pair.violations}
    assert clause_of(pair, "3.9.1") == "IV-8"
    assert clause_of(pair, "3.9.2") is None
    assert "Unmapped" not in {violation.seen.first for violation in interrupter.interrupt(CLOSED).violations}


def test_two_threads_show_what_one_thread_showed_and_it_is_shrunk(interrupter):
    content = shown(MIXED, interrupter)
    assert len(content.setup) < len(MIXED.setup)
    again = interrupter.perform(*trace.case_of(content))
    assert (again[0], again[2]) == (content.where, content.result)
    assert {point.split()[0] for point in content.points} == {"0", "1"}


def test_two_threads_hand_back_and_wait_for_locks(interrupter):
    case = Case("offset", ("append 10 100",), "append 20 200", "append 30 300")
    assert any(interrupter.perform(case, Schedule(stop))[1] for stop in range(4))
    orders = interrupter.orders(case)
    assert all(interrupter.perform(case, Schedule(0, back))[2] in orders for back in range(4))


def test_a_pair_is_interrupted_at_many_points_and_waits_for_locks(interrupter):
    pair = interrupter.interrupt(Case("offset", ("append 10 100",), "append 20 200", "truncateTo 5"))
    assert pair.points > 10
    assert pair.waits


def test_a_run_that_misses_the_planted_race_is_an_error(tmp_path, monkeypatch):
    harmless = experiment.PLANTED._replace(readers=("value",), writers=("value",))
    monkeypatch.setattr(experiment, "PLANTED", harmless)
    with pytest.raises(ToolError, match="planted for comparison was not detected"):
        Interrupter("4.3.1", tmp_path / "work")


@pytest.mark.parametrize("kind", KINDS)
def test_a_seed_draws_the_same_operations_again(kind):
    drawn = [draw_scenario(kind, seed) for seed in range(8)]
    assert drawn == [draw_scenario(kind, seed) for seed in range(8)]
    assert len(set(drawn)) > 1


@pytest.mark.parametrize("name", ["offset-entry-before-its-bytes", "largest-timestamp-without-lock"])
def test_planted_races_are_found(name, tmp_path):
    assert all(search.found for search in searched(name, [0], tmp_path))


@pytest.mark.thorough
@pytest.mark.parametrize("name", PLANTED)
def test_every_planted_race_is_found_from_five_seeds(name, tmp_path):
    missed = [search.seed for search in searched(name, range(5), tmp_path) if search.found is None]
    assert not missed


@pytest.mark.thorough
def test_a_planted_race_that_is_not_found_is_an_error(monkeypatch):
    name = "renamed-while-loaded"
    harmless = PLANTED[name]._replace(change=lambda node: str(node.name).endswith("/LazyIndex"))
    monkeypatch.setitem(PLANTED, name, harmless)
    monkeypatch.setattr("conformance.commands.study._SEEDS", 1)
    result = CliRunner().invoke(app, ["interleave", "--planted", name], standalone_mode=False)
    assert result.return_value == 2, result.output
    assert "SURVIVED" in result.output


def test_a_violation_is_replayed_from_its_file(interrupter, tmp_path):
    content = shown(MIXED, interrupter)
    path = save_json(msgspec.to_builtins(content), tmp_path, "interleaving", "interleaving")
    assert load(INTERLEAVE, path) == content
    assert any("stops before" in line for line in trace.readable(content))
    result = CliRunner().invoke(app, ["interleave", "--replay", str(path), "--json"], standalone_mode=False)
    assert result.return_value == 1, result.output
    told = json.loads(result.output)
    assert told == {
        "torn": True,
        "same": True,
        "where": content.where,
        "result": msgspec.structs.asdict(content.result),
    }


@pytest.mark.parametrize("text", ["", "[]", '{"format": "kidx-interleaving", "version": 1}'])
def test_a_file_that_is_no_interleaving_is_refused(text, tmp_path):
    path = tmp_path / "broken.json"
    path.write_text(text)
    with pytest.raises(ToolError, match="cannot read"):
        load(INTERLEAVE, path)
