"""Predictions of ``kidx verify`` for a start with corrupt directories, compared with a real broker."""

import dataclasses
import json
import sys

import pytest

from conformance import cli
from conformance.errors import ToolError
from conformance.experiments.start_damage import CASES, Outcome, try_starts
from conformance.experiments.start_damage.table import markdown, merged, to_json
from kidx.startup import predict

KRAFT = "4.3.1"
TRIED = {
    "unflushed sealed batch fails its checksum (killed)": "end 52, 48 cut to 478, 60 deleted, 72 deleted",
    "unflushed sealed batch: offset of an earlier one (killed)": "end 48, 48 emptied, 60 deleted, 72 deleted",
    "sealed batch fails its checksum (killed)": "end 84",
    "recovery point missing, sealed batch fails its checksum (killed)": (
        "end 16, 12 cut to 478, 24 deleted, 36 deleted, 48 deleted, 60 deleted, 72 deleted"
    ),
    "active .log torn (killed)": "end 82",
    "partition.metadata deleted (killed)": "stray, starts empty",
    "a segment renamed to .swap (killed)": "end 84",
    "foo.log in a partition (clean)": "does not start",
    "cleaner-offset-checkpoint is garbage (clean)": "other offline, partition offline",
}


def forgetful(*arguments):
    """Predict no stray partition."""
    found = predict(*arguments)
    kept = tuple(each for each in found.partitions if each.outcome != "stray")
    return dataclasses.replace(found, partitions=kept)


@pytest.mark.broker
@pytest.mark.thorough
def test_a_start_is_as_predicted_and_a_wrong_prediction_is_detected():
    said = []
    outcomes = try_starts(KRAFT, [case for case in CASES if str(case) in TRIED], said.append, forgetful)
    found = {str(outcome.case): outcome for outcome in outcomes}
    assert {name: outcome.happened for name, outcome in found.items()} == TRIED
    assert [name for name, outcome in found.items() if not outcome.is_right] == ["partition.metadata deleted (killed)"]
    assert found["active .log torn (killed)"].answer == "no"  # of the directory that they all share
    assert len(said) == 3
    assert "| 4.3.1 | 9 | 1 | 8 | 8/9 |" in markdown(outcomes)


BEFORE_3_7 = {
    "partition.metadata deleted (clean)": "end 48",
    "partition.metadata of another topic (clean)": "stray, starts empty",
    "partition.metadata of another topic (killed)": "not served",
    "partition.metadata is garbage (clean)": "other offline, partition ends at 0",
}


@pytest.mark.broker
@pytest.mark.thorough
def test_releases_before_3_7_serve_first_and_delete_strays_then():
    outcomes = try_starts("3.6.2", [case for case in CASES if str(case) in BEFORE_3_7])
    assert {str(each.case): (each.predicted, each.happened) for each in outcomes} == {
        name: (state, state) for name, state in BEFORE_3_7.items()
    }


# -- without a broker ------------------------------------------------------------------------------------------------

FIRST, SECOND = CASES[:2]


def test_there_are_enough_kinds_of_corruption():
    names = {case.name for case in CASES}
    assert len(names) >= 60
    assert len({(case.name, case.shutdown) for case in CASES}) == len(CASES)


def test_outcomes_are_read_again_and_replaced(tmp_path):
    path = tmp_path / "damage.json"
    right, wrong = Outcome(KRAFT, FIRST, "yes", "end 48", "end 48"), Outcome(KRAFT, SECOND, "yes", "end 48", "end 36")
    assert merged(path, [right]) == [right]
    path.write_text(json.dumps(to_json([right, wrong])))
    assert merged(path, []) == [right, wrong]
    fixed = dataclasses.replace(wrong, predicted="end 36")
    assert merged(path, [fixed]) == [right, fixed]
    assert "**end 36** (predicted: end 48)" in markdown([right, wrong])
    assert "**" not in markdown([right, fixed]).partition("| damage |")[2]
    path.write_text("{}x")
    with pytest.raises(ToolError, match="cannot read"):
        merged(path, [])


@pytest.mark.parametrize("arguments", [("--kafka", "2.8.2"), ("--kafka", KRAFT, "--only", "no such case")])
def test_bad_arguments_are_one_line_and_exit_code_2(arguments, monkeypatch, capsys):
    monkeypatch.setattr(sys, "argv", ["conformance", "damage", *arguments])
    with pytest.raises(SystemExit) as ended:
        cli.main()
    assert ended.value.code == 2
    assert capsys.readouterr().err.count("\n") == 1
