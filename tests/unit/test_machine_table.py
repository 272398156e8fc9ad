"""The table of machines, and what follows from it: which class each has, and which implementations it runs with."""

from __future__ import annotations

from pkgutil import resolve_name

import pytest

from conformance import machines
from conformance.attribution.tables import clauses_for
from conformance.clauses.machines import FILE_MACHINES, MACHINES, SERVER_MACHINES
from conformance.implementations.forms import FORMS
from conformance.machines import MACHINES as CLASSES
from conformance.pytest_plugin.items import SessionRuns
from conformance.runs.server_run import _RUNS


def test_every_machine_has_a_class_and_clauses():
    assert list(CLASSES) == list(MACHINES)
    assert all(clauses_for(machine, "4.4.0") for machine in MACHINES)


def test_a_suite_of_ones_own_imports_a_machine_from_the_package():
    assert machines.OffsetMachine is CLASSES["offset"]
    assert machines.CleanedMachine is CLASSES["cleaned"]
    assert issubclass(machines.OffsetMachine, machines.IndexMachine)
    with pytest.raises(AttributeError, match="has no attribute 'NoMachine'"):
        _ = machines.NoMachine


def test_every_machine_of_servers_has_a_run_and_a_form():
    assert {machine: resolve_name(path).machine for machine, path in _RUNS.items()} == dict(
        zip(SERVER_MACHINES, SERVER_MACHINES, strict=True)
    )
    assert {form.machine for form in FORMS.values()} == {"", *SERVER_MACHINES}


def test_a_session_of_pytest_runs_each_machine_with_its_implementations():
    """A broker of a build is run as this build."""
    runs = SessionRuns.__new__(SessionRuns)
    runs.implementations = ("jvm", "broker:build", "wire:localhost:9092", "exec:program", "subject:kfake")
    assert runs.names_for("broker") == ("broker:build",)
    assert runs.names_for("wire") == ("wire:localhost:9092", "subject:kfake")
    assert {runs.names_for(machine) for machine in FILE_MACHINES} == {("jvm", "exec:program")}
