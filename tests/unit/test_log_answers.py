"""A difference in a log's answers is about the clauses of the targets that are answered otherwise, and of no others."""

from __future__ import annotations

import pytest

from conformance.attribution import is_observed_only
from conformance.attribution.log_answers import clauses_at_stake
from conformance.lockstep.levels.log import LogLockstep
from conformance.operations import Operation, Outcome
from kidx.dialect import dialect_of

RELEASE = "4.3.1"
SETTINGS = {"segment.bytes": 150, "segment.index.bytes": 120, "index.interval.bytes": 0}
TARGETS = [8_000, -3, 95, 150, -1]
"""One that deleted records hide (LO-23), two that are found, and two without a time."""


def appended(base, *timestamps):
    records = [[number, timestamp] for number, timestamp in enumerate(timestamps)]
    return Operation("append_as_follower", ([{"base": base, "epoch": 0, "records": records}], 0))


LIFE = (
    Operation("open_log", (SETTINGS, 0, 0, True, 0)),
    appended(0, 9_000, 100, 200),
    Operation("roll_log"),
    appended(3, 9_000),
    Operation("update_high_watermark", (4,)),
    Operation("delete_records", (1,)),
)
HIDDEN, LATER = 0, (9_000, 3, 0)


@pytest.fixture
def stake(tmp_path):
    """The clauses at stake where some of the targets are answered otherwise."""
    lockstep = LogLockstep([], tmp_path, releases=[RELEASE])
    lockstep.begin()
    for operation in LIFE:
        lockstep.perform(operation)
    (group,) = lockstep.groups
    before = group.observation
    asked = Operation("list_offsets", (TARGETS,))
    expected = lockstep.perform(asked)
    assert expected.outcome.value[:4] == (None, (9_000, 0, 0), (100, 1, 0), (200, 2, 0))
    exercised = tuple(lockstep.statistics.exercised(RELEASE))

    def of(answers):
        value = tuple(answers.get(number, answer) for number, answer in enumerate(expected.outcome.value))
        actual = expected._replace(outcome=Outcome(None, value))
        after = (expected, group.files)
        return clauses_at_stake(exercised, asked, dialect_of(RELEASE), before.state, after, expected, actual)

    yield of
    lockstep.end()


def test_only_those_of_the_targets(stake):
    assert {"LO-10", "FR-2"} <= set(stake({1: None})) <= {"LO-10", "FR-2", "LO-20", "LO-9", "LG-24"}
    assert stake({4: (-1, 9, -1)}) == ("LO-2a",)
    assert set(stake({2: None})) == {"LO-6", "FR-1"}


def test_what_the_promise_asks_for_is_no_breach_of_it(stake):
    clauses = stake({HIDDEN: LATER})
    assert "LO-23" in clauses
    assert "LO-6" not in clauses
    assert is_observed_only(clauses, ["outcome"])


def test_what_neither_kafka_nor_the_promise_says_is_one(stake):
    """A wrong record is not excused by Kafka having none."""
    clauses = stake({HIDDEN: (200, 2, 0)})
    assert set(clauses) == {"LO-6"}
    assert not is_observed_only(clauses, ["outcome"])


def test_a_breach_beside_what_only_kafka_does_is_told(stake):
    """One question of the call must not excuse the others."""
    clauses = stake({HIDDEN: LATER, 2: None})
    assert set(clauses) == {"LO-6", "FR-1"}
    assert not is_observed_only(clauses, ["outcome"])


def test_differences_of_another_kind_are_about_all_that_the_step_exercises(stake):
    assert len(stake({})) > 5
