"""The seed of a run: given, fixed by the profile, or drawn."""

from __future__ import annotations

import pytest

from conformance.runs.profiles import PROFILES
from conformance.runs.seeds import RANDOM, Seed, format_seed, parse_seed, resolve_seed


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
