"""kfake, franz-go's broker in memory: what it does otherwise than Kafka 4.3.1 is known, and nothing else differs.

It is built by the test. A machine without Go skips it, and says so; ``KIDX_REQUIRE=go`` makes that a failure.
"""

from __future__ import annotations

import os
import shutil

import pytest

from conformance.events import Diverged
from conformance.implementations.subject.build import build
from conformance.runs.wire import WireRun, run_wire
from conformance.subjects import load_subject

pytestmark = pytest.mark.broker
RELEASE = "4.3.1"


@pytest.fixture(scope="module")
def built():
    if shutil.which("go") is None:
        reason = "NOT TESTED: kfake, because there is no go on the PATH"
        if "go" in os.environ.get("KIDX_REQUIRE", "").split(","):
            pytest.fail(reason)
        pytest.skip(reason)
    return build(load_subject("kfake"))


def found(tmp_path, ledger, level, topics=6):
    events, announced = [], []
    run = WireRun("subject:kfake", 1, "dev", level, tmp_path, events.append, ledger, topics=topics, shrink_time=2)
    (result,) = run_wire([RELEASE], run, announced.append)
    assert len(announced) == 1
    return result, [event for event in events if isinstance(event, Diverged)]
