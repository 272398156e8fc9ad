"""Plan of a run: its profile, its seed, and the chunks that helpers take ahead of it.

Profiles decide how much a run does, and nothing in the environment does.
"""

from __future__ import annotations

import time

import pytest
from hypothesis import HealthCheck, Phase, settings

from conformance.runs.chunk_result import ChunkResult
from conformance.runs.chunk_workers import ChunkQueue, ChunkQueues
from conformance.runs.chunks import CHUNK, chunks_of
from conformance.runs.profiles import PROFILES, ROUND
from conformance.runs.seeds import RANDOM, Seed, format_seed, parse_seed, resolve_seed


def test_the_profiles_are_ordered_by_size():
    assert list(PROFILES) == ["dev", "ci", "nightly"]
    assert all(profile.name == name for name, profile in PROFILES.items())
    sizes = [profile.examples * profile.steps for profile in PROFILES.values()]
    assert sizes == sorted(sizes)


def test_dev_and_ci_are_deterministic_and_nightly_is_not():
    assert {name: profile.seed is not None for name, profile in PROFILES.items()} == {
        "dev": True,
        "ci": True,
        "nightly": False,
    }


@pytest.mark.parametrize("name", PROFILES)
def test_settings(name):
    made = PROFILES[name].settings(7)
    assert (made.max_examples, made.stateful_step_count) == (7, PROFILES[name].steps)
    assert made.deadline is None
    assert made.database is None
    assert made.backend == "hypothesis"
    assert not made.derandomize, "the seed is ours"
    assert set(made.phases) == {Phase.generate}
    assert set(made.suppress_health_check) == set(HealthCheck)
    assert not made.print_blob
    assert not made.report_multiple_bugs


def test_no_profile_of_hypothesis_changes_a_run():
    before = settings.get_profile("kidx")
    settings.register_profile("hasty", max_examples=1, stateful_step_count=1, derandomize=True, deadline=1)
    settings.load_profile("hasty")
    try:
        made = PROFILES["dev"].settings(50)
        assert (made.max_examples, made.stateful_step_count, made.derandomize, made.deadline) == (50, 30, False, None)
    finally:
        settings.load_profile("kidx")
    assert settings.get_profile("kidx") is before


def test_a_round_is_a_number_of_whole_hands():
    """Ten examples: after the tenth Hypothesis starts to vary the last one (see ``CHUNK``)."""
    assert CHUNK == 10
    assert ROUND % CHUNK == 0


@pytest.mark.parametrize("name", ["dev", "ci"])
def test_a_fixed_profile_has_the_same_seed_every_time(name):
    assert resolve_seed(None, PROFILES[name].seed) == Seed(0, "fixed")


def test_nightly_draws_a_new_seed_each_time():
    drawn = {resolve_seed(None, PROFILES["nightly"].seed) for _ in range(3)}
    assert {seed.source for seed in drawn} == {"drawn"}
    assert len(drawn) > 1


def test_random_draws_a_seed_for_any_profile():
    drawn = {resolve_seed(RANDOM, 0) for _ in range(3)}
    assert {seed.source for seed in drawn} == {"drawn"}
    assert len(drawn) > 1


@pytest.mark.parametrize("fixed", [None, 0])
def test_a_given_seed_is_used(fixed):
    assert resolve_seed(0, fixed) == Seed(0, "given")
    assert resolve_seed(7, fixed) == Seed(7, "given")


def test_how_a_seed_is_written():
    assert (parse_seed("7"), parse_seed("-1"), parse_seed("random")) == (7, -1, RANDOM)
    for text in ("", "x", "7.5", "RANDOM"):
        with pytest.raises(ValueError, match="neither a number nor 'random'"):
            parse_seed(text)


def test_how_a_seed_is_shown():
    assert [str(Seed(7, source)) for source in ("given", "fixed", "drawn")] == ["7", "7 (fixed)", "7 (drawn)"]
    assert format_seed(7, "") == "7", "of a stream that does not tell"


def chunks(machine, examples=20):
    return list(chunks_of(machine, examples, 0))


def taken(tables):
    found = tables.take()
    return None if found is None else (found[0].machine, found[1].number)


def test_workers_continue_with_the_next_machine_and_the_run_finds_their_results():
    tables = ChunkQueues(ChunkQueue(name, chunks(name), None) for name in ("offset", "time"))
    assert taken(tables) == ("offset", 0)  # before the run has come to it
    offset = tables.advance_to("offset", chunks("offset"), None)
    assert [chunk.number for chunk in (offset.take(), tables.take()[1]) if chunk] == [1, 0]
    assert offset.take() is None
    time_table, chunk = tables.take()
    assert (time_table.machine, chunk.number) == ("time", 1)
    time_table.put(chunk, ChunkResult(1))
    assert tables.advance_to("time", chunks("time"), None) is time_table
    assert time_table.is_done(time_table.chunks[1])
    assert time_table.wait(time_table.chunks[1]).number == 1
    assert tables.take() is None


def test_remaining_chunks_of_a_skipped_machine_are_not_run():
    tables = ChunkQueues(ChunkQueue(name, chunks(name), None) for name in ("offset", "segment", "time"))
    offset = tables.advance_to("offset", chunks("offset"), None)
    tables.advance_to("time", chunks("time"), None)
    assert offset.take() is None
    assert taken(tables) == ("time", 0)


def test_a_machine_that_cannot_start_early_is_run_from_its_own_chunks():
    tables = ChunkQueues(())
    assert tables.take() is None
    late = tables.advance_to("time", chunks("time", 10), time.monotonic() - 1)
    assert late.is_late()
    assert taken(tables) == ("time", 0)
    assert tables.take() is None
