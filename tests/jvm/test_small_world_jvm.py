"""The small world against Kafka's own classes: a release of each era."""

from __future__ import annotations

import pytest
from thorough_params import thorough_except, thorough_param

from conformance.operations import KINDS
from conformance.studies.small_world.study import EXHAUSTIVE, Options
from conformance.studies.study import Request

pytestmark = pytest.mark.jvm


def rows_of(directory, machine, releases, implementations=("jvm",)):
    """Return the results of a machine, with sequences of two operations."""
    request = Request((machine,), options=Options(2), releases=releases, implementations=implementations)
    return EXHAUSTIVE.search(request, releases[-1], directory)[0]


@pytest.mark.parametrize("kind", thorough_except(["transaction"], KINDS))
def test_kafka_agrees_on_every_sequence_of_two(kind, tmp_path):
    (explored,) = rows_of(tmp_path, kind, ("2.4.1", "3.9.2", "4.4.0"))
    assert explored["agree"]
    assert explored["sequences"] >= 100


@pytest.mark.parametrize("release", [thorough_param("3.9.2"), "4.4.0"])
@pytest.mark.thorough
def test_kafka_agrees_on_every_crash_point(release, tmp_path):
    crashed = rows_of(tmp_path, "segment", (release,))
    assert [each["agree"] for each in crashed] == [True] * 4
    assert sum(each["points"] for each in crashed) >= 200
