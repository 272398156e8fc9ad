"""The reference's cache of results of ListOffsets, which never returns outdated ones.

In each scenario one dependency changes, and nothing else that results depend on. Afterwards the results must equal
the results of a reference without a cache. If that dependency is ignored, they must be the old ones, which shows
that the scenario would detect a missing dependency.
"""

from __future__ import annotations

import os
import struct
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from hypothesis import seed
from hypothesis.stateful import run_state_machine_as_test

from conformance.implementations.kidx.list_offsets import ListOffsetsCache, LogCacheKey, SegmentCacheKey
from conformance.implementations.kidx.log import ReferenceLog
from conformance.machines import MACHINES
from conformance.operations import Operation
from conformance.operations.log import TOPIC_DIRECTORY
from conformance.runs.profiles import PROFILES
from kidx.index.time import TimestampOffset

SETTINGS = {"segment.bytes": 1 << 20, "segment.index.bytes": 120, "index.interval.bytes": 0}
TARGETS = [(1 << 63) - 1, *range(900, 1100, 10), -7, -6, -5, -4, -3, -2, -1]
LOG = "00000000000000000000.log"


class Asking(ListOffsetsCache):
    """Keeps nothing."""

    def answers(self, log: Any, targets: Any, also: Any, answer: Callable[[], Any]) -> Any:
        del log, targets, also
        return answer()


class Without(ListOffsetsCache):
    """Cache that ignores one dependency."""

    def __init__(self, ground: str) -> None:
        super().__init__()
        self.ground = ground
        self.nothing: dict[str, Any] = {ground: None}

    def cache_key(self, log: Any) -> LogCacheKey:
        found = super().cache_key(log)
        if self.ground in LogCacheKey._fields:
            return found._replace(**self.nothing)
        return found._replace(segments=tuple(each._replace(**self.nothing) for each in found.segments))


class Life:
    """The life of a log, in a few words."""

    def __init__(self, directory: Path, release: str, listing: ListOffsetsCache) -> None:
        self.directory = directory / TOPIC_DIRECTORY
        self.reference = ReferenceLog(release)
        self.reference.listing = listing
        self.reference.begin(directory)
        self.do("open_log", SETTINGS, 0, 0, True, 1005)

    def do(self, name: str, *arguments: Any) -> Any:
        outcome = self.reference.perform(Operation(name, arguments)).outcome
        assert outcome.error is None, outcome
        return outcome.value

    def append(self, base: int, *timestamps: int) -> None:
        records = [[number, timestamp] for number, timestamp in enumerate(timestamps)]
        self.do("append_as_follower", [{"base": base, "epoch": 0, "records": records}], 0)

    def answers(self) -> Any:
        return self.do("list_offsets", TARGETS)

    @property
    def log(self) -> Any:
        return self.reference.log

    def modify(self, milliseconds: int) -> None:
        os.utime(self.directory / LOG, ns=(milliseconds * 1_000_000, milliseconds * 1_000_000))

    def reopen(self) -> None:
        self.do("close_log", True)
        self.do("open_log", SETTINGS, 0, 0, True, 1005)


def two_batches(life: Life) -> None:
    life.append(0, 1000, 1020)
    life.append(2, 1040, 1060)


def two_batches_after_a_cut(life: Life) -> None:
    two_batches(life)
    another_second_batch(life, 1040)


def another_second_batch(life: Life, first: int) -> None:
    life.do("truncate_log", 2)
    life.append(2, first, 1060)


def two_batches_reopened(life: Life) -> None:
    two_batches(life)
    life.reopen()


def two_batches_behind_untimed_ones(life: Life) -> None:
    life.append(0, -1, -1)
    life.do("roll_log")
    life.append(2, 1000, 1020)
    life.modify(0)


def reopen_with_another_log(life: Life) -> None:
    """Reopen with a log of the same length in which only one timestamp differs."""
    life.do("close_log", True)
    path = life.directory / LOG
    path.write_bytes(path.read_bytes().replace((1040).to_bytes(8), (1050).to_bytes(8)))
    life.do("open_log", SETTINGS, 0, 0, True, 1005)
    (segment,) = life.log.segments
    assert len(segment.offset_index)  # open again, with the same state
    assert segment.maximum.timestamp == 1060


def overwrite(suffix: str, entry: bytes) -> Callable[[Life], None]:
    """Write to an index from another process while it is open."""

    def change(life: Life) -> None:
        with (life.directory / LOG).with_suffix(suffix).open("r+b") as file:
            file.write(entry)

    return change


class Scenario(NamedTuple):
    """Scenario: the ignored dependency, the steps before, the change, and a release in which it is visible."""

    ground: str
    before: Callable[[Life], None]
    change: Callable[[Life], object]
    release: str = "4.3.1"


SCENARIOS = (
    Scenario("start_offset", two_batches, lambda life: setattr(life.log, "start_offset", 1)),
    Scenario("search_start", two_batches, lambda life: setattr(life.log, "search_start", 2), "3.5.2"),
    Scenario("end_offset", two_batches, lambda life: setattr(life.log, "end_offset", 7)),
    Scenario("epochs", two_batches, lambda life: life.do("assign_epoch", 1, 4)),
    Scenario("segments", two_batches_after_a_cut, lambda life: another_second_batch(life, 1050)),
    Scenario("writes", two_batches_after_a_cut, lambda life: another_second_batch(life, 1050)),
    Scenario("log", two_batches_reopened, reopen_with_another_log),
    Scenario("maximum", two_batches, lambda life: life.log.segments.active.maximum.set(TimestampOffset(1030, 1))),
    Scenario("last_modified", two_batches_behind_untimed_ones, lambda life: life.modify(2000)),
    Scenario("offset_index", two_batches, overwrite(".index", struct.pack(">ii", 3, 1 << 16))),
    Scenario("time_index", two_batches, overwrite(".timeindex", struct.pack(">qi", 1000, 3))),
)


def answers_of(scenario: Scenario, directory: Path, listing: ListOffsetsCache) -> tuple[Any, Any]:
    """Return the results before the change, and those after it."""
    directory.mkdir()
    life = Life(directory, scenario.release, listing)
    scenario.before(life)
    life.answers()  # opens what is not open yet
    before = life.answers()
    assert life.answers() == before
    scenario.change(life)
    after = life.answers()
    life.reference.end()
    return before, after


@pytest.mark.parametrize("scenario", SCENARIOS, ids=lambda scenario: scenario.ground)
def test_results_follow_their_dependencies(scenario: Scenario, tmp_path: Path) -> None:
    before, after = answers_of(scenario, tmp_path / "asking", Asking())
    assert before != after, "the scenario shows nothing"
    assert answers_of(scenario, tmp_path / "keeping", ListOffsetsCache()) == (before, after)
    assert answers_of(scenario, tmp_path / "without", Without(scenario.ground)) == (before, before)


def test_every_ground_has_a_scenario() -> None:
    assert {scenario.ground for scenario in SCENARIOS} == {*LogCacheKey._fields, *SegmentCacheKey._fields}


@pytest.mark.thorough
def test_lives_of_a_log_with_and_without_keeping(tmp_path: Path) -> None:
    """The caching reference executes for three releases, and one without a cache is compared with it."""
    asking = ReferenceLog("3.5.2")
    asking.listing = Asking()
    machine: Any = MACHINES["log"]
    lockstep = machine.lockstep_type([asking], tmp_path, releases=["2.8.2", "3.0.2"])
    run_state_machine_as_test(seed(1)(machine.bind(lockstep)), settings=PROFILES["ci"].settings(5))
    assert lockstep.statistics.steps > 200
