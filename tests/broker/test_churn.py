"""Checks of a busy broker, which find no fault; ``tests/support/churn.py`` describes its load."""

from __future__ import annotations

import pytest
from churn import churn

pytestmark = [pytest.mark.broker, pytest.mark.thorough]


@pytest.mark.parametrize("release", ["2.8.2", "4.3.1"])
def test_no_check_of_a_busy_broker_finds_a_fault(release, tmp_path):
    result = churn(release, 12, limit=20.0, evidence=tmp_path)
    assert not result.faults, str(result)
    assert result.looks >= 1, str(result)
    assert result.seen["segments"] > result.looks, str(result)
