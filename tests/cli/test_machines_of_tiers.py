"""``conformance run`` with the machines of remote storage, which a run without ``--machine`` omits."""

from __future__ import annotations

import json

import pytest
from typer.testing import CliRunner

from conformance.clauses.machines import DEFAULT_MACHINES, driven_releases
from conformance.cli import app
from conformance.commands.options import resolve_machines

SMALL = ("--max-examples", 10, "-j", 1)


def test_a_run_without_machines_omits_them():
    assert set(DEFAULT_MACHINES).isdisjoint({"cache", "tiered"})
    assert resolve_machines(None) == DEFAULT_MACHINES
    assert resolve_machines(["tiered", "cache"]) == ("tiered", "cache")


@pytest.mark.thorough
@pytest.mark.parametrize(("machine", "since"), [("cache", "3.6.0"), ("tiered", "3.6.0")])
def test_a_release_without_tiers_is_refused_in_one_line(typed, machine, since):
    done = typed("run", "--machine", machine, "--kafka", "3.5.2", *SMALL)
    assert (done.returncode, done.stdout.splitlines()[1:]) == (2, [])
    assert done.stderr == f"conformance: the {machine} machine drives Kafka {since} and later\n"
    assert driven_releases(machine, ("3.5.2", "4.4.0")) == ("4.4.0",)


@pytest.mark.thorough
def test_a_planted_defect_is_found_shrunk_and_can_be_replayed(typed):
    """A release without tiers is unsupported next to one with them, and does not change the verdict."""
    defect = ("-i", "mutant:counts-from-one")
    releases = ("--kafka", "3.5.2", "--kafka", "4.4.0")
    done = typed("run", "--machine", "tiered", *defect, *releases, *SMALL, "--max-shrink-time", 4, "--json")
    assert (done.returncode, done.stderr) == (1, "")
    document = json.loads(done.stdout)
    assert [(each["release"], bool(each["steps"])) for each in document["results"]] == [
        ("4.4.0", True),
        ("3.5.2", False),
    ]
    assert document["results"][1]["details"] == {"why": "the tiered machine drives Kafka 3.6.0 and later"}
    (divergence,) = document["divergences"]
    assert "LO-4" in divergence["failure"]["clauses"]
    assert len(divergence["steps"]) <= 3
    replayed = typed("replay", divergence["trace"], *defect, "--kafka", "4.4.0")
    assert replayed.returncode == 1
    assert typed("replay", divergence["trace"], "--kafka", "3.5.2").returncode == 2


def test_the_help_names_them():
    assert "except cache and tiered" in " ".join(
        CliRunner().invoke(app, ["run", "--help"]).output.replace("│", "").split()
    )
