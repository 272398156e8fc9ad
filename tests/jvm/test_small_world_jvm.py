"""The small world against Kafka's own classes: a release of each era."""

from __future__ import annotations

import pytest
from thorough_params import thorough_except, thorough_param

from conformance.experiments.small_world.crashes import explore_crashes
from conformance.experiments.small_world.sequences import check_all_sequences
from conformance.operations import KINDS

pytestmark = pytest.mark.jvm


@pytest.mark.parametrize("kind", thorough_except(["transaction"], KINDS))
def test_kafka_agrees_on_every_sequence_of_two(kind):
    explored = check_all_sequences(kind, 2, ("2.4.1", "3.9.2", "4.4.0"))
    assert explored.failure is None
    assert explored.sequences >= 100


@pytest.mark.parametrize("release", [thorough_param("3.9.2"), "4.4.0"])
@pytest.mark.thorough
def test_kafka_agrees_on_every_crash_point(release):
    crashed = list(explore_crashes(release))
    assert [row.failure for row in crashed] == [None] * 4
    assert sum(row.points for row in crashed) >= 200
