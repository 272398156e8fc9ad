"""Fuzzing against Kafka's own classes."""

from __future__ import annotations

import pytest
from in_ci import in_ci

from conformance.experiments.fuzz.campaign import FuzzPlan, fuzz

pytestmark = pytest.mark.jvm


@pytest.mark.parametrize("format_name", ["offset", in_ci("time"), in_ci("txn")])
def test_damaged_files_are_read_alike(format_name, tmp_path):
    releases = ("2.4.1", "3.9.2", "4.4.0")
    plan = FuzzPlan(
        (format_name,), releases, ("jvm",), tmp_path / "corpus", tmp_path / "found", 0, 300.0, max_cases=100
    )
    (result,) = fuzz(plan)
    assert result.findings == {}
    assert sum(result.flips.values()) > 200
    assert not result.flips["implementations differ"]
