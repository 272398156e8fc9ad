"""``conformance run --operation``: only some operations are executed, and the verdict says which are not."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from conformance.clauses.machines import FILE_MACHINES, MACHINES
from conformance.machines import MACHINES as MACHINE_TYPES
from conformance.operations.operation import operations_of
from conformance.runs.chunks import run_chunk
from conformance.runs.plan import Plan
from conformance.runs.profiles import PROFILES

RELEASE = "4.3.1"
SMALL = ("--kafka", RELEASE, "--max-examples", 20, "-j", 1, "--no-shrink")
FEW = ("run", "-i", "mutant:starts-over-after-a-resize", *SMALL)
TWO = ("--operation", "append", "--operation", "lookup")


@pytest.mark.thorough
def test_only_the_named_operations_run_and_the_others_are_said(typed):
    assert typed(*FEW, "--machine", "offset").returncode == 1  # the mutant's defect is in resize
    done = typed(*FEW, "--machine", "offset", *TWO, "--json")
    document = json.loads(done.stdout)
    (result,) = document["results"]
    assert (done.returncode, result["machine"], result["divergences"]) == (3, "offset", 0)
    done_ones = {"open", "append", "lookup", "close", "crash", "delete"}
    assert set(result["operations"]) == done_ones
    assert result["details"]["operations not run"] == sorted(operations_of("offset").keys() - done_ones)
    assert result["verdicts"]["AI-10"] == "not-run"
    assert "--operation append --operation lookup" in document["run"]["command"]


@pytest.mark.thorough
def test_the_verdict_is_incomplete_unless_allowed(typed):
    done = typed(*FEW, *TWO, "--allow-incomplete")
    assert done.returncode == 0
    assert "truncate, truncate_to, write_file, zero_range of the offset machine not run (--operation)" in done.stdout
    assert "\nINCOMPLETE: " in done.stdout
    assert done.stderr == "not run, because they have no append or lookup: transaction, segment, log, cleaned\n"


def test_an_unknown_operation_is_one_line_that_names_the_known_ones(typed):
    done = typed(*FEW, "--machine", "offset", "--operation", "push")
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("conformance: unknown operation 'push' of offset; choose from append, bulk_append, ")
    done = typed(*FEW, "--machine", "offset", "--machine", "log", "--operation", "lookup")
    assert (done.returncode, done.stderr.count("\n")) == (2, 1)
    assert "the log machine has none of the operations; choose from append_as_follower, " in done.stderr


@pytest.mark.thorough
@pytest.mark.parametrize("machine", FILE_MACHINES)
def test_a_machine_runs_with_two_operations(machine, tmp_path):
    wanted = tuple(each.split()[0] for each in MACHINES[machine].needs[1:3])
    plan = Plan((RELEASE,), (), (machine,), PROFILES["dev"], Path(), operations=wanted)
    lockstep = MACHINE_TYPES[machine].new_lockstep([], tmp_path, releases=[RELEASE])
    lockstep.omitted = plan.omitted(machine)
    assert run_chunk(MACHINE_TYPES[machine].bind(lockstep), PROFILES["dev"].settings(10), 3, 10)
    done = {operation for operation, _, _ in lockstep.statistics.kinds}
    assert done >= set(wanted)
    assert done <= operations_of(machine).keys() - plan.omitted(machine)
