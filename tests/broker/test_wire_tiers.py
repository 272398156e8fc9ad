"""A broker of ``wire:`` with tiered storage: the same queries, answered across tiers."""

from __future__ import annotations

import pytest
from wire_scenarios import SCENARIO

from conformance.kafka.polling import Deadline
from conformance.lockstep.scopes.wire import WireLockstep
from conformance.operations import Operation
from conformance.runs.wire_options import WireOptions
from conformance.studies.tiers.prepared import remote_files, tiered_broker

pytestmark = [pytest.mark.broker, pytest.mark.thorough]
TIERED = {"remote.storage.enable": "true", "local.retention.bytes": 1, "retention.bytes": -1}
LOCAL_START = -4
VERSION = 8
"""First version of ListOffsets with the local log start."""
LIMIT_S = 90


@pytest.mark.parametrize("release", ["3.9.2", "4.3.1"])
def test_kafka_conforms_across_tiers(release, tmp_path):
    (settings,) = SCENARIO[0].args
    steps = (Operation("create_topic", (settings | TIERED,)), *SCENARIO[1:])
    with tiered_broker(release, tmp_path / "broker") as kafka:
        with WireOptions(limit=LIMIT_S).open(f"wire:{kafka.bootstrap}") as broker:
            broker.versions = (1, VERSION)
            lockstep = WireLockstep(broker, release, tmp_path / "references")
            lockstep.watches = False
            for step in steps:
                lockstep.perform(step)
            topic, deadline = lockstep.topic, Deadline(LIMIT_S)
            start = topic.account.start
            while (broker.client.list_offset(topic.name, LOCAL_START, version=VERSION).offset or 0) <= start:
                assert deadline.pause(), "no segment is in the remote tier alone"
            assert remote_files(kafka.directory, ".log")
            lockstep.compare(topic, every=True)
            assert lockstep.differences == {}
            assert lockstep.statistics.answers > 100
            lockstep.level = "must"
            topic.account.start += 1
            lockstep.compare(topic, every=True)
            assert {"LO-1", "FE-3"} <= {clause for clause, _ in lockstep.differences}, "another log start"
            lockstep.finish()
        # A clean stop of 3.9 waits until the deletion of the topic is noted in a topic that it no longer serves.
        kafka.kill()
