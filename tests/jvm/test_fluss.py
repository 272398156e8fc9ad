"""Fluss's forks of OffsetIndex and TimeIndex, driven as Kafka's own: where they differ, and where they agree."""

from __future__ import annotations

import pytest

from conformance.implementations.forms import is_server
from conformance.operations import Operation
from conformance.operations.trace import Trace
from conformance.runs.replay import replay

pytestmark = pytest.mark.maven
RELEASE = "3.6.2"
NAME = "subject:fluss"
WIDTHS = {"offset": 8, "time": 12}
SUFFIXES = {"offset": "index", "time": "timeindex"}


def opened(kind, size):
    return Operation("open", (kind, f"00000000000000000000.{SUFFIXES[kind]}", 0, size, True))


def replayed(kind, *steps):
    return replay(Trace(kind, RELEASE, steps, None), [RELEASE], [NAME])


def test_it_is_no_server():
    assert not is_server(NAME)


@pytest.mark.parametrize("kind", WIDTHS)
def test_an_index_is_kept_as_kafka_keeps_it(kind):
    name = {"offset": "append", "time": "maybe_append"}[kind]
    appends = [Operation(name, (10 * n, 10 * n, False)[: 2 if kind == "offset" else 3]) for n in range(1, 6)]
    found = replayed(
        kind,
        opened(kind, 20 * WIDTHS[kind]),
        *appends,
        Operation("lookup", (35,)),
        Operation("resize", (10 * WIDTHS[kind],)),
        Operation("truncate_to", (30,)),
        Operation("trim"),
        Operation("sanity_check"),
        Operation("close"),
        opened(kind, 20 * WIDTHS[kind]),
        Operation("entry", (1,)),
        Operation("delete"),
    )
    assert (found.verdict, found.steps) == ("FIXED", 15)


@pytest.mark.parametrize("kind", WIDTHS)
def test_a_refused_resize_leaves_it_without_a_mapping(kind):
    refused = -2 * WIDTHS[kind]
    found = replayed(kind, opened(kind, refused), opened(kind, refused), Operation("reset"), Operation("lookup", (0,)))
    assert (found.verdict, found.steps) == ("FAILED", 4)
    assert found.divergence.actual[0] == "closed"
