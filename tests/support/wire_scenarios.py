"""Scenarios for topics of a ``wire:`` broker, with which every planted defect is detected."""

from __future__ import annotations

import subprocess

import pytest

from conformance.lockstep.scopes.wire import WireLockstep
from conformance.operations import Operation
from conformance.runs.wire_options import WireOptions

T = 1_700_000_000_000
COMMON = {"segment.bytes": 1 << 20, "segment.ms": 3_600_000, "retention.ms": -1, "cleanup.policy": "delete"}
HOUR = 3_600_001


def batch(*times, producer=None, codec="none"):
    return Operation("append_batch", ([[time, None, 20] for time in times], codec, producer))


SCENARIO = (
    Operation("create_topic", (COMMON | {"message.timestamp.type": "CreateTime"},)),
    batch(T + 50, T + 80, T + 20, codec="gzip"),
    batch(T + 80, T + 80),
    batch(T + HOUR, T + HOUR + 300, T + HOUR + 100),
    batch(T + 10, T + HOUR + 200, producer="a"),
    Operation("end_transaction", ("a", False)),
    Operation("delete_before", (2,)),
    batch(T + 2 * HOUR, T + 2 * HOUR - 500, codec="lz4"),
    batch(T + 2 * HOUR + 10, producer="b"),
    batch(T + 2 * HOUR + 20),
)
"""Scenario with segments, descending and equal timestamps, deletions, an aborted and an open transaction."""
HIDDEN = (
    SCENARIO[0],
    batch(T + 50, T + 80, T + 20),
    Operation("delete_before", (2,)),
    batch(T + HOUR, T + HOUR + 300, T + HOUR + 100),
)
"""Scenario with a deleted record that hides later segments, and the largest timestamp in the middle of a batch."""
UNDECIDED = (SCENARIO[0], batch(T + 1), batch(T + 10, producer="a"), batch(T + 20))
"""Scenario with records after the start of an open transaction; a marker would have the largest timestamp."""
STAMPED = (
    Operation("create_topic", (COMMON | {"message.timestamp.type": "LogAppendTime"},)),
    batch(T + 50, T + 80, T + 20),
    batch(T + 10),
    batch(T + 20, producer="a"),
    Operation("end_transaction", ("a", True)),
    batch(T + 30),
)
"""Scenario with LogAppendTime. The coordinator sends the marker of a transaction without it."""
REBUILT = (
    Operation("create_topic", (COMMON | {"message.timestamp.type": "CreateTime", "compression.type": "gzip"},)),
    batch(T + 50, T + 80),
)
"""Scenario with a batch that the leader compresses, so that the reference appends it as a follower does."""
SCENARIOS = (SCENARIO, HIDDEN, UNDECIDED, STAMPED)


def run_scenarios(name, release, scratch, scenarios, versions=()):
    """Run the scenarios on a subject that pip installs, and return the lockstep.

    After each step the lockstep has sent every query, in these versions.
    """
    if subprocess.run(["python3", "-m", "pip", "--version"], capture_output=True, check=False).returncode:
        pytest.skip("it is fetched with pip")
    with WireOptions().open(name) as broker:
        assert broker.process is None
        broker.versions = tuple(versions) or broker.versions
        lockstep = WireLockstep(broker, release, scratch)
        for scenario in scenarios:
            for operation in scenario:
                lockstep.perform(operation)
            lockstep.finish()
        assert len(set(broker.made)) == len(scenarios)
    return lockstep
