"""Interrupted operations of Kafka's own indexes: torn states are found, without false findings."""

import pytest

from conformance.errors import ToolError
from conformance.experiments.interleave import experiment
from conformance.experiments.interleave.experiment import Interrupter
from conformance.experiments.interleave.known import KnownPairs


@pytest.mark.parametrize("release", [pytest.param("2.4.0", marks=pytest.mark.thorough), "4.3.1"])
def test_the_torn_pairs_are_the_known_ones(release, tmp_path):
    known = KnownPairs()
    pairs = list(Interrupter(release, tmp_path / "work").explore())
    torn = {(pair.kind, *pair.names, known.clause_of(pair, release)) for pair in pairs if pair.violations}
    assert torn == {
        ("offset", "lookup", "truncateTo", "IV-1"),
        ("offset", "lookup", "truncate", "IV-1"),
        ("offset", "lookup", "truncateTo; append; append", "IV-2"),
        ("offset", "entry", "truncateTo; append; append", "IV-2"),
        ("time", "lookup", "truncateTo", "IV-1"),
        ("time", "lookup", "truncate", "IV-1"),
        ("time", "lookup", "truncateTo; maybeAppend", "IV-2"),
        ("time", "entry", "truncateTo; maybeAppend", "IV-2"),
    }
    [mixed] = [p for p in pairs if (p.first, p.names[1]) == ("lookup 35", "truncateTo; append; append")]
    assert "30" in mixed.violations[0].seen.first
    assert "260" in mixed.violations[0].seen.first, "the offset of one entry with the position of another"


def test_a_pair_is_interrupted_at_many_points_and_waits_for_locks(tmp_path):
    pairs = list(Interrupter("4.3.1", tmp_path / "work").explore(["offset"]))
    assert min(pair.points for pair in pairs) >= 1
    assert sum(pair.points for pair in pairs) > 500
    assert any(pair.waits for pair in pairs)


def test_a_run_that_misses_the_planted_race_is_an_error(tmp_path, monkeypatch):
    harmless = experiment.PLANTED._replace(readers=("value",), writers=("value",))
    monkeypatch.setattr(experiment, "PLANTED", harmless)
    with pytest.raises(ToolError, match="race planted next to"):
        Interrupter("4.3.1", tmp_path / "work")
