"""The example adapter in another language: complete, and right in every dialect.

It is compiled by the test. A machine without Go skips it, and says so; ``KIDX_REQUIRE=go`` makes that a failure.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings
from hypothesis.stateful import run_state_machine_as_test

from conformance.experiments.smoke.checks import smoke
from conformance.implementations.process import ProcessIndex
from conformance.lockstep import Lockstep
from conformance.machines.offset import OffsetMachine
from conformance.machines.time import TimeMachine
from conformance.machines.transaction import TransactionMachine

SOURCE = Path(__file__).parents[1] / "adapters" / "go"
MACHINES = (OffsetMachine, TimeMachine, TransactionMachine)
# One release of each dialect, and one between 3.9.2 and 4.1.1, where a rejected resize leaves another index.
RELEASES = ("2.4.1", "3.4.1", "3.9.1", "4.0.1", "4.1.2", "4.3.1", "4.4.0")

pytestmark = pytest.mark.thorough  # where Go has built nothing yet, it builds its own library first

EXAMPLES = settings.default.max_examples * 60 // 100


@pytest.fixture(scope="module")
def program(tmp_path_factory) -> Path:
    if shutil.which("go") is None:
        reason = "NOT TESTED: the Go adapter, because there is no go on the PATH"
        if "go" in os.environ.get("KIDX_REQUIRE", "").split(","):
            pytest.fail(reason)
        pytest.skip(reason)
    program = tmp_path_factory.mktemp("go") / "go-index"
    environment = {**os.environ, "GOTOOLCHAIN": "local", "GOFLAGS": "-mod=mod", "GOWORK": "off", "CGO_ENABLED": "0"}
    subprocess.run(["go", "build", "-o", program, "."], cwd=SOURCE, env=environment, check=True)
    return program


def test_the_adapter_is_sane(program):
    report = smoke(f"exec:{program}")
    assert report.sane, "\n".join(report.lines())
    assert {check.verdict for check in report.checks} == {"passed"}


@pytest.mark.parametrize("release", RELEASES)
@pytest.mark.parametrize("machine", MACHINES)
def test_the_implementation_conforms_in_every_dialect(program, tmp_path, machine, release):
    index = ProcessIndex([str(program), "--release", "{release}"], release)
    lockstep = Lockstep([index], tmp_path)
    run_state_machine_as_test(
        machine.bind(lockstep),
        settings=settings(
            max_examples=EXAMPLES,
            stateful_step_count=25,
            deadline=None,
            database=None,
            suppress_health_check=list(HealthCheck),
        ),
    )
    assert lockstep.statistics.steps > 16 * EXAMPLES
    assert not lockstep.statistics.unsupported
    assert not index.failures_between_examples
    index.close()


def test_an_unknown_release_is_rejected_in_one_line(program):
    run = subprocess.run([program, "--release", "4"], input="", capture_output=True, text=True, check=False)
    assert run.returncode == 2
    assert run.stderr == 'go-index: a release has three numbers, "4" has 1\n'
