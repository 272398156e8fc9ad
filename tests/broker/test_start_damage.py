"""Predictions of ``kidx verify`` for a start with corrupt directories, compared with a real broker."""

import dataclasses
import sys

import pytest
import startups

from conformance import cli
from conformance.studies.start_damage import experiment
from conformance.studies.start_damage.cases import CASES
from conformance.studies.start_damage.corruptions import InapplicableError, Site
from conformance.studies.start_damage.experiment import Followed, StartResult, follow, try_starts
from conformance.studies.start_damage.study import DAMAGE, Options
from conformance.studies.study import Request
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
    found = {f"{outcome.damage} ({outcome.shutdown})": outcome for outcome in outcomes}
    assert {name: outcome.happened for name, outcome in found.items()} == TRIED
    assert [name for name, outcome in found.items() if not outcome.as_predicted] == [
        "partition.metadata deleted (killed)"
    ]
    assert found["active .log torn (killed)"].answer == "no"  # of the directory that they all share
    assert len(said) == 3
    assert "| 4.3.1 | 9 | 1 | 8 | 8/9 |" in DAMAGE.page([DAMAGE.row(KRAFT, each, None) for each in outcomes], "")


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
    found = {f"{each.damage} ({each.shutdown})": (each.predicted, each.happened) for each in outcomes}
    assert found == {name: (state, state) for name, state in BEFORE_3_7.items()}


# -- without a broker ------------------------------------------------------------------------------------------------

FIRST, SECOND = CASES[:2]


def test_what_a_release_does_not_have_is_no_case(tmp_path):
    site = Site(tmp_path, tmp_path / "other" / "damaged-1")
    for name in ("data", "other"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "meta.properties").write_text("version=0\nbroker.id=1\n")
    inapplicable = [case for case in CASES if case.shutdown == "clean" and is_inapplicable(case, site)]
    named = ("KRaft", "quorum-state", "bootstrap", "directory.id of")
    assert len(inapplicable) > 15
    assert all(any(name in str(case) for name in named) for case in inapplicable)


def is_inapplicable(case, site):
    try:
        case.do(site)
    except InapplicableError:
        return True
    except (OSError, ValueError, IndexError, StopIteration):
        pass  # there are no segments
    return False


def test_there_are_enough_kinds_of_corruption():
    names = {case.name for case in CASES}
    assert len(names) >= 60
    assert len({(case.name, case.shutdown) for case in CASES}) == len(CASES)


def test_rows_of_an_earlier_report_are_kept_if_only_some_cases_are_tried():
    right, wrong = (
        DAMAGE.row(KRAFT, StartResult(case.name, case.shutdown, "yes", "end 48", happened), None)
        for case, happened in ((FIRST, "end 48"), (SECOND, "end 36"))
    )
    fixed = wrong | {"predicted": "end 36", "as_predicted": True}
    some, every = (Request(DAMAGE.machines, options=Options(only)) for only in ("damage", None))
    assert DAMAGE.merged([], [right], some) == [right]
    assert DAMAGE.merged([right, wrong], [fixed], some) == [right, fixed]
    assert DAMAGE.merged([right | {"damage": "of an earlier version"}, wrong], [fixed], some) == [fixed]
    assert DAMAGE.merged([right, wrong], [fixed], every) == [fixed]
    assert "**end 36** (predicted: end 48)" in DAMAGE.page([right, wrong], "")
    assert "**" not in DAMAGE.page([right, fixed], "").partition("| corruption |")[2]


@pytest.mark.thorough
def test_printed_commands_are_followed_and_a_wrong_one_is_detected(tmp_path, monkeypatch):
    monkeypatch.setattr(experiment, "LOG_DIRS", ("data",))
    data = startups.stop_cleanly(startups.fill_partitions(tmp_path / "filled", 2), tmp_path / "data", {0: 48, 1: 48})
    startups.flip(data / "orders-0" / startups.log(12), 6)
    (data / "orders-1" / "leader-epoch-checkpoint").unlink()
    found, again = follow(tmp_path, KRAFT, startups.start(data), lambda _: startups.start(data))
    assert (found.cost, found.problem, "conv=notrunc" in found.command) == (0, "", True)
    assert again == Followed(f"kidx repair {data / 'orders-1'} ")
    assert startups.start(data).answer == "yes"
    startups.flip(data / "orders-0" / startups.log(12), 6)
    still = startups.start(data)
    assert [each.problem for each in follow(tmp_path, KRAFT, still, lambda _: still)] == ["it is advised again"]


def test_bad_arguments_are_one_line_and_exit_code_2(monkeypatch, capsys):
    monkeypatch.setattr(sys, "argv", ["conformance", "damage", "--kafka", KRAFT, "--only", "no such case"])
    with pytest.raises(SystemExit) as ended:
        cli.main()
    assert ended.value.code == 2
    assert capsys.readouterr().err.count("\n") == 1


@pytest.mark.parametrize("content", ["{}x", '[{"release": 3}]', "[1]"])
def test_an_earlier_report_that_cannot_be_read_is_said_before_a_broker_starts(content, tmp_path, monkeypatch, capsys):
    (tmp_path / "damage.json").write_text(content)
    monkeypatch.setattr(sys, "argv", ["conformance", "damage", "--kafka", KRAFT, "--report", str(tmp_path)])
    with pytest.raises(SystemExit) as ended:
        cli.main()
    assert ended.value.code == 2
    assert capsys.readouterr().err.startswith(f"conformance: cannot read {tmp_path / 'damage.json'}: ")
    assert (tmp_path / "damage.json").read_text() == content
