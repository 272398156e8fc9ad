"""Power failures of Kafka's own log: known findings are found, in exactly the expected releases."""

import json
from random import Random

import pytest
from typer.testing import CliRunner

from conformance.cli import app
from conformance.commands.power_loss import _replay
from conformance.errors import ToolError
from conformance.experiments.power_loss import trace
from conformance.experiments.power_loss.experiment import Explorer, Plan
from conformance.experiments.power_loss.failures import Failure, losses, moments
from conformance.experiments.power_loss.judging import Judge
from conformance.experiments.power_loss.promises import Promise
from conformance.experiments.power_loss.signatures import Finding, signature_of
from conformance.operations import Operation

SETTINGS = {"segment.bytes": 1000, "segment.index.bytes": 120, "index.interval.bytes": 0}


def life_of(preallocate=False, *after):
    settings = SETTINGS | ({"preallocate": "true"} if preallocate else {})
    appends = [Operation("append_as_leader", ([{"records": [[0, 100 + n]]}], 0)) for n in range(3)]
    return [Operation("open_log", (settings, 0, 0, True, 1000)), *appends, *after]


def findings_of(explorer, operations):
    """Return the findings at the last moment, for any loss, by promise."""
    life = explorer.recorder.perform(operations)
    judge = Judge(life, explorer.opener)
    *_, last = moments(life)
    found = {}
    for loss in losses(last.disk, 64, Random(0)):  # noqa: S311
        failure = Failure(last, loss, last.restarts[0])
        for promise, text in judge.judge(failure, lockstep=True).items():
            found.setdefault(promise, Finding(signature_of(life, failure, promise), life, failure, text))
    return found


@pytest.fixture(scope="module", params=["4.3.1", "4.4.0"])
def explorer(request, tmp_path_factory):
    return Explorer(request.param, tmp_path_factory.mktemp("power"))


def test_a_clean_shutdown_may_leave_zeros_in_an_index_before_4_4(explorer):
    found = findings_of(explorer, life_of(False, Operation("close_log", (True,))))
    assert set(found) == ({Promise.BY_TIME} if explorer.release == "4.3.1" else set())


def test_a_clean_shutdown_may_leave_zeros_in_a_preallocated_log(explorer):
    found = findings_of(explorer, life_of(True, Operation("close_log", (True,))))
    assert (Promise.OPENS in found) == (explorer.release == "4.3.1")


def test_a_finding_is_replayed_from_its_file(explorer, tmp_path, capsys):
    found = findings_of(explorer, life_of(True, Operation("close_log", (True,))))
    if not found:
        return
    path = trace.save(found[Promise.OPENS], tmp_path)
    assert _replay(trace.load(path), explorer, as_json=True) == 1
    assert json.loads(capsys.readouterr().out)["shown"]
    assert CliRunner().invoke(app, ["power-loss", "--replay", str(path)], standalone_mode=False).return_value == 1


def test_an_invalid_power_failure_file_is_reported_in_a_line(tmp_path):
    path = tmp_path / "other.json"
    path.write_text('{"format": "kidx-trace"}')
    with pytest.raises(ToolError, match="is not a power failure of version 1"):
        trace.load(path)


@pytest.mark.thorough
def test_a_lost_synced_record_would_be_found(explorer):
    """The check can fail: a disk that forgets its syncs breaks promises."""
    plan = Plan(lives=2, lockstep=False)
    explored = explorer.explore(plan, _without_syncs, lambda so_far: bool(_lost(so_far)))
    assert _lost(explored)


def _without_syncs(life):
    from dataclasses import replace

    return replace(life, events=tuple(event for event in life.events if "Synced" not in type(event).__name__))


def _lost(explored):
    return [one for one in explored.findings if one.signature.promise is Promise.DURABLE]
