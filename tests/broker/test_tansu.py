"""Tansu, a broker in Rust: what it does otherwise than Kafka is pinned, and nothing else differs."""

from __future__ import annotations

import platform
import subprocess
import sys

import pytest
from wire_lives import COMMON, STAMPED, T, batch

from conformance.expectations import load_expectations
from conformance.lockstep.levels.wire import WireLockstep
from conformance.operations import Operation
from conformance.runs.wire_options import WireOptions

pytestmark = [
    pytest.mark.broker,
    pytest.mark.thorough,  # its program is fetched and unpacked first
    pytest.mark.skipif((sys.platform, platform.machine()) != ("linux", "x86_64"), reason="its program is for Linux"),
]
NAME = "subject:tansu"
CREATE = Operation("create_topic", (COMMON | {"message.timestamp.type": "CreateTime"},))
LIVES = (
    (CREATE, batch(T + 50, T + 80, T + 20, codec="gzip"), batch(T + 10), Operation("delete_before", (1,))),
    (CREATE, batch(T + 1), Operation("append_corrupt", ([[T, None, 20]],))),
    STAMPED,
)
"""Timestamps that go back, in a compressed batch; deleting; a wrong checksum; a broker's clock."""


def pinned():
    return [each for each in load_expectations() if each.implementation == NAME]


@pytest.fixture(scope="module")
def shapes(tmp_path_factory):
    if subprocess.run(["python3", "-m", "pip", "--version"], capture_output=True, check=False).returncode:
        pytest.skip("its program is fetched with pip")
    with WireOptions().open(NAME) as broker:
        assert broker.process is None
        broker.versions = (0, 2, 7)
        lockstep = WireLockstep(broker, "4.3.1", tmp_path_factory.mktemp("tansu"))
        for life in LIVES:
            for operation in life:
                lockstep.perform(operation)
            lockstep.close_topic()
    return list(lockstep.differences)


@pytest.mark.parametrize("expectation", pinned(), ids=lambda expectation: expectation.shape)
def test_each_pinned_difference_is_there(shapes, expectation):
    assert any(expectation.is_about((clause,), shape) for clause, shape in shapes)


def test_nothing_differs_but_what_is_pinned(shapes):
    assert [found for found in shapes if not any(each.is_about(found[:1], found[1]) for each in pinned())] == []
