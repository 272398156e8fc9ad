"""Fluss's forks of Kafka's indexes and of its cache of remote index files: where they differ, and where they agree."""

from __future__ import annotations

import struct

import pytest

from conformance.errors import NotDrivenError
from conformance.events import Diverged, RunFinished
from conformance.implementations.forms import is_server
from conformance.implementations.jvm.cache import FlussCache
from conformance.machines.cache import CacheMachine
from conformance.operations import Operation
from conformance.operations.trace import Trace
from conformance.runs.profiles import PROFILES
from conformance.runs.replay import replay
from conformance.runs.runner import Plan, run

pytestmark = [pytest.mark.maven, pytest.mark.thorough, pytest.mark.in_turn(5, of="foreign implementations")]
# Maven fetches its jars first.
RELEASE = "3.6.2"
NAME = "subject:fluss"
SEGMENT = "b-_UbGhWQSyTrDfNnQxAAw"
WIDTHS = {"offset": 8, "time": 12}
SUFFIXES = {"offset": "index", "time": "timeindex"}


def opened(kind, size):
    return Operation("open", (kind, f"00000000000000000000.{SUFFIXES[kind]}", 0, size, True))


def replayed(kind, *steps):
    return replay(Trace(kind, RELEASE, steps, None), [RELEASE], [NAME])


def test_it_is_no_server():
    assert not is_server(NAME)


@pytest.mark.parametrize("kind", WIDTHS)
def test_an_index_behaves_like_kafkas(kind):
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
def test_a_rejected_resize_leaves_it_unmapped(kind):
    refused = -2 * WIDTHS[kind]
    found = replayed(kind, opened(kind, refused), opened(kind, refused), Operation("reset"), Operation("lookup", (0,)))
    assert (found.verdict, found.steps) == ("FAILED", 4)
    assert found.divergence.actual[0] == "closed"


def told_of_a_run(tmp_path, expectations):
    events = []
    plan = Plan(
        (RELEASE, "4.3.1"),
        (NAME,),
        ("offset", "time"),
        PROFILES["ci"],
        tmp_path / "traces",
        seed=2,
        max_examples=150,
        expectations=expectations,
        replays=False,
        shrink_time=5,
    )
    run(plan, events.append)
    finished = events[-1]
    assert isinstance(finished, RunFinished)
    return [event for event in events if isinstance(event, Diverged)], finished.verdict


def test_a_run_finds_two_causes_one_in_each_release(tmp_path):
    (tmp_path / "none").mkdir()
    found, verdict = told_of_a_run(tmp_path, tmp_path / "none")
    assert verdict == "diverges"
    assert {(event.clause, event.releases, event.machines) for event in found} == {
        ("AI-44c", (RELEASE,), ("offset", "time")),
        ("AI-16c", ("4.3.1",), ("offset", "time")),
    }
    # Four steps would do; that no step can be omitted holds for five, too.
    assert all(len(event.steps) <= 5 for event in found)


def test_a_run_finds_exactly_the_expected_divergences(tmp_path):
    assert told_of_a_run(tmp_path, None) == ([], "conforms")


def cache_run(tmp_path, expectations, examples=12):
    events = []
    plan = Plan(
        ("3.9.2",),
        (NAME,),
        ("cache",),
        PROFILES["ci"],
        tmp_path / "traces",
        seed=5,
        max_examples=examples,
        expectations=expectations,
        replays=False,
        shrink_time=0,
    )
    run(plan, events.append)
    return [event for event in events if isinstance(event, Diverged)], events[-1]


def test_a_cache_is_compared_with_one_without_transaction_indexes():
    """RC-1, RC-6, RC-8: names, files and lookups of a segment whose transaction index remote storage has."""
    stored = [
        Operation("store_index", (SEGMENT, kind, "gives", content.hex()))
        for kind, content in (
            (".index", struct.pack(">4i", 5, 61, 9, 161)),
            (".timeindex", struct.pack(">qiqi", 1000, 2, 1010, 5)),
            (".txnindex", bytes(33)),  # Kafka fetches it, and rejects it
        )
    ]
    opened = Operation("open_cache", (1 << 20, -1, 0))
    steps = (
        *stored,
        opened,
        Operation("look_up_offset", (SEGMENT, 100, 107)),
        Operation("look_up_timestamp", (SEGMENT, 100, 1010, 109)),  # Fluss has no starting offset
        Operation("crash_cache"),
        opened,
        Operation("remove_entries", ([SEGMENT],)),
    )
    found = replay(Trace("cache", "3.9.2", steps, None), ["3.9.2"], [NAME])
    assert (found.verdict, found.steps) == ("FIXED", len(steps))


def test_a_cache_has_the_expected_divergences_and_no_others(tmp_path):
    (tmp_path / "none").mkdir()
    found, finished = cache_run(tmp_path, tmp_path / "none")
    assert finished.verdict == "diverges"
    assert {"RC-5", "RC-12b"} <= {clause for event in found for clause in event.clauses}
    found, finished = cache_run(tmp_path, None)
    assert (found, finished.verdict) == ([], "conforms")


def test_a_wrong_lookup_is_no_expected_divergence(tmp_path, monkeypatch):
    """RC-8: a defect of the fork is planted where its replies arrive."""
    right = FlussCache.perform

    def wrong(self, operation):
        seen = right(self, operation)
        if operation.name != "look_up_offset" or not seen.outcome.value:
            return seen
        return seen._replace(outcome=seen.outcome._replace(value=seen.outcome.value + 1))

    monkeypatch.setattr(FlussCache, "perform", wrong)
    found, finished = cache_run(tmp_path, None, examples=6)
    assert (found[0].clause, finished.verdict) == ("RC-8", "diverges")


def test_a_cache_of_entries_is_not_compared():
    """RC-12a: 3.6 limits the number of entries, not of bytes."""
    with pytest.raises(NotDrivenError, match="limits the cache in bytes"):
        CacheMachine.subject(NAME, "3.6.2")


@pytest.mark.parametrize(
    ("name", "own"),
    [
        ("100_b-_UbGhWQSyTrDfNnQxAAw.index", "100_6fefd46c-6856-412c-93ac-37cd9d0c4003.index"),
        ("7_AAAAAAAAAAAAAAAAAAAAbB.timeindex.tmp", "7_00000000-0000-0000-0000-00000000006C.timeindex.tmp"),
        ("AAAAAAAAAAAAAAAAAAAAbA.index", "00000000-0000-0000-0000-00000000006c.index"),
        ("0_AAAAAAAAAAAAAAAAAAAAbA_7.index", "0_AAAAAAAAAAAAAAAAAAAAbA_7.index"),
        ("0_AAAAAAAAAAAAAAAAAAAAbA==.index", None),
        *((foreign, foreign) for foreign in ("README", ".nfs0001", "lost+found", "0_notauuid.index", ".deleted")),
    ],
)
def test_an_id_in_a_name_is_translated_where_kafka_reads_one(name, own):
    assert FlussCache.own_name(name) == own
