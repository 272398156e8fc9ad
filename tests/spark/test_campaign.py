"""A campaign on Spark is the runs of its cells, and a worker that dies costs its task only."""

from __future__ import annotations

import json
import os
import signal
import threading
import time
from dataclasses import replace

import pytest

from conformance.report.stream import read_streams
from conformance.runs.profiles import PROFILES
from conformance.runs.runner import Plan

pytestmark = [pytest.mark.spark, pytest.mark.jvm]

BROKEN = "python:tests.adapters.python_index:open_off_by_one"


def plan_of(directory, **changes):
    plan = Plan(
        ("3.9.2", "4.4.0"), ("jvm",), ("offset", "time"), PROFILES["dev"], directory / "traces", max_examples=10
    )
    return replace(plan, **changes)


def figures(streams):
    return sorted(
        (r.machine, r.release, r.examples, r.steps, r.divergences, sorted(r.clauses.items()))
        for s in streams
        for r in s.results
    )


@pytest.mark.thorough
def test_a_killed_worker_loses_nothing(spark, tmp_path):
    from conformance.experiments.campaign import PARTIAL, cells_of, run_on_spark
    from conformance.report.stream import NdjsonWriter
    from conformance.runs.runner import run

    directory = tmp_path / "campaign"
    plan = plan_of(directory, machines=("offset",), max_examples=30)
    killed = []

    def kill_one():
        """Kill the first worker that is running a cell, by the process id in the name of its directory."""
        until = time.monotonic() + 120
        while not killed and time.monotonic() < until:
            for path in directory.glob(f"{PARTIAL}-*"):
                pid = int(path.name.split("-")[1])
                os.kill(pid, signal.SIGKILL)
                killed.append((pid, path.name))
                return
            time.sleep(0.02)

    killer = threading.Thread(target=kill_one)
    killer.start()
    told = []
    campaign = run_on_spark(spark, plan, (1, 2), directory, progress=lambda *each: told.append(each))
    killer.join()
    cells = cells_of(plan, (1, 2))
    assert killed
    assert (campaign.errors, campaign.left, campaign.comparison.exit_code()) == ({}, (), 0)
    assert campaign.done == tuple(cells)
    assert told[-1] == (len(cells), len(cells))
    assert {path.name for path in directory.glob("*/events.ndjson")} == {"events.ndjson"}

    # The cell whose worker was killed did what the same run does here: the seed decides, not what else is loaded.
    name = killed[0][1].split("-", 2)[2]
    cell = next(cell for cell in cells if cell.name == name)
    with NdjsonWriter(tmp_path / "here") as writer:
        run(replace(plan, releases=(cell.release,), machines=(cell.machine,), seed=cell.seed), writer)
    assert figures(read_streams([tmp_path / "here"])) == figures(read_streams([directory / name]))

    table = spark.read.parquet(str(directory / "tables" / "results.parquet"))
    assert table.count() == len(cells)
    assert table.where("verdict = 'conforms' and steps > 0").count() == len(cells)
    again = run_on_spark(spark, plan, (1, 2), directory)
    assert again.done == campaign.done


@pytest.mark.thorough
def test_divergences_have_their_trace_and_nothing_is_run_without_time(spark, tmp_path):
    from conformance.errors import ToolError
    from conformance.experiments.campaign import document, run_on_spark
    from kidx.spark import fleet

    plan = plan_of(
        tmp_path / "a", releases=("4.4.0",), machines=("offset",), implementations=(BROKEN,), max_examples=30
    )
    campaign = run_on_spark(spark, plan, (2,), tmp_path / "a")
    assert campaign.comparison.exit_code() == 1
    # A run that failed as well does not hide the divergence.
    assert replace(campaign, errors={"4.4.0-time-2": "no space"}).settle() == 1
    row = spark.read.parquet(str(tmp_path / "a" / "tables" / "divergences.parquet")).first()
    assert (row.release, row.machine, row.seed, row.implementation) == ("4.4.0", "offset", 2, BROKEN)
    assert "OI-7" in row.clauses
    assert json.loads(row.trace)["machine"] == "offset"
    assert row.replay.startswith("conformance replay ")
    assert json.dumps(document(campaign))

    none = run_on_spark(spark, plan_of(tmp_path / "b", max_time=0.0), (1,), tmp_path / "b")
    assert (len(none.left), none.done, none.comparison.exit_code()) == (4, (), 3)
    with pytest.raises(ToolError, match="has a campaign with other implementations"):
        run_on_spark(spark, plan, (1,), tmp_path / "b")
    with pytest.raises(ToolError, match="run -i broker with --engine local"):
        run_on_spark(spark, replace(plan, implementations=("broker",)), (1,), tmp_path / "c")

    right = run_on_spark(spark, replace(plan, implementations=("jvm",)), (2,), tmp_path / "d")
    tables = [spark.read.parquet(str(tmp_path / name / "tables" / "clauses.parquet")) for name in ("d", "a")]
    trend = fleet.compare(
        *(table.drop("implementation") for table in tables), key=("release", "machine", "clause", "verdict")
    )
    assert right.comparison.exit_code() == right.settle() == 0
    with pytest.raises(ToolError, match=r"1 run of the campaign failed, such as 4\.4\.0-time-2: no space"):
        replace(right, errors={"4.4.0-time-2": "no space"}).settle()
    assert {"OI-7"} <= {row["clause"] for row in trend.new if row["verdict"] == "diverges"}
    assert trend.is_worse


@pytest.mark.thorough
def test_a_cell_that_the_time_limit_cuts_is_reported_and_repeated(spark, tmp_path):
    from conformance.experiments.campaign import cells_of, document, perform, run_on_spark

    directory = tmp_path / "campaign"
    plan = plan_of(directory, releases=("4.4.0",), machines=("offset",), max_examples=150)
    (cell,) = cells_of(plan, (1,))
    perform(plan, {cell.name: cell}, directory, time.time() + 0.1, cell.name)
    (result,) = read_streams([directory / cell.name])[0].results
    assert 0 < result.examples < 150

    nothing = run_on_spark(spark, replace(plan, max_time=0.0), (1,), directory)
    assert (nothing.cut, nothing.done, nothing.left, nothing.comparison.exit_code()) == ((cell,), (), (), 3)
    assert (document(nothing)["verdict"], document(nothing)["cut"]) == ("incomplete", [cell.name])
    assert [row.cut for row in spark.read.parquet(str(directory / "tables" / "results.parquet")).collect()] == [True]
    whole = run_on_spark(spark, plan, (1,), directory)
    assert (whole.cut, whole.done, whole.comparison.exit_code()) == ((), (cell,), 0)
    assert read_streams([directory / cell.name])[0].results[0].examples >= 150
