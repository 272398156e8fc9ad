"""Tansu, a broker in Rust: its expected divergences are found, and no others."""

from __future__ import annotations

import platform
import sys

import pytest
from wire_scenarios import COMMON, REBUILT, STAMPED, T, batch, run_scenarios

from conformance.errors import ToolError
from conformance.expectations import load_expectations
from conformance.operations import Operation

pytestmark = [
    pytest.mark.broker,
    pytest.mark.in_turn(5, of="foreign implementations"),
    pytest.mark.thorough,  # its program is fetched and unpacked first
    pytest.mark.skipif((sys.platform, platform.machine()) != ("linux", "x86_64"), reason="its program is for Linux"),
]
NAME = "subject:tansu"
CREATE = Operation("create_topic", (COMMON | {"message.timestamp.type": "CreateTime"},))
SCENARIOS = (
    (CREATE, batch(T + 50, T + 80, T + 20, codec="gzip"), batch(T + 10), Operation("delete_before", (1,))),
    (CREATE, batch(T + 1), Operation("append_corrupt", ([[T, None, 20]],))),
    STAMPED,
    REBUILT,
)
"""Timestamps that go back, in a compressed batch; deleting; a wrong checksum; a broker's clock; leader epochs."""


def pinned():
    return [each for each in load_expectations() if each.implementation == NAME]


@pytest.fixture(scope="module")
def shapes(tmp_path_factory):
    with pytest.MonkeyPatch.context() as patched:
        # The scenarios meet 517 missing responses, at most 19 of them in a row.
        patched.setattr("conformance.implementations.wire.broker._FAILURES", 100)
        lockstep = run_scenarios(NAME, "4.3.1", tmp_path_factory.mktemp("tansu"), SCENARIOS, versions=(0, 2, 7))
    return list(lockstep.differences)


@pytest.mark.parametrize("expectation", pinned(), ids=lambda expectation: expectation.signature)
def test_each_expected_divergence_is_found(shapes, expectation):
    assert any(expectation.matches((clause,), shape) for clause, shape in shapes)


def test_only_expected_divergences_are_found(shapes):
    assert [found for found in shapes if not any(each.matches(found[:1], found[1]) for each in pinned())] == []


def test_requests_in_a_row_without_a_response_end_a_run(monkeypatch, tmp_path):
    monkeypatch.setattr("conformance.implementations.wire.broker._FAILURES", 0)
    with pytest.raises(ToolError, match="has left 0 requests in a row without a response"):
        run_scenarios(NAME, "4.3.1", tmp_path, SCENARIOS, versions=(0, 2, 7))
