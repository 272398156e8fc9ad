"""A divergence in a log's results implicates the clauses of the targets with another result, and no others."""

from __future__ import annotations

import pytest

from conformance.attribution import is_observed_only
from conformance.attribution.log_implicated import implicated_clauses
from conformance.lockstep.scopes.log import LogLockstep
from conformance.operations import Operation, Outcome
from conformance.operations.log import LogObservation, LogState
from kidx.dialect import dialect_of

RELEASE = "4.3.1"
SETTINGS = {"segment.bytes": 150, "segment.index.bytes": 120, "index.interval.bytes": 0}
TARGETS = [8_000, -3, 95, 150, -1]
"""One that deleted records hide (LO-23), two that are found, and two without a time."""


def appended(base, *timestamps):
    records = [[number, timestamp] for number, timestamp in enumerate(timestamps)]
    return Operation("append_as_follower", ([{"base": base, "epoch": 0, "records": records}], 0))


SCENARIO = (
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
    """Return the implicated clauses if some of the targets have another result."""
    lockstep = LogLockstep([], tmp_path, releases=[RELEASE])
    lockstep.begin()
    for operation in SCENARIO:
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
        return implicated_clauses(exercised, asked, dialect_of(RELEASE), before.state, after, expected, actual)

    yield of
    lockstep.end()


def test_only_clauses_of_the_targets_are_implicated(stake):
    assert {"LO-10", "FR-2"} <= set(stake({1: None})) <= {"LO-10", "FR-2", "LO-20", "LO-9", "LG-24"}
    assert stake({4: (-1, 9, -1)}) == ("LO-2a",)
    assert set(stake({2: None})) == {"LO-6", "FR-1"}


def test_a_result_that_the_promise_allows_is_no_breach(stake):
    clauses = stake({HIDDEN: LATER})
    assert "LO-23" in clauses
    assert "LO-6" not in clauses
    assert is_observed_only(clauses, ["outcome"])


def test_a_result_that_neither_kafka_nor_the_promise_allows_is_a_breach(stake):
    """A wrong record is not excused by Kafka having none."""
    clauses = stake({HIDDEN: (200, 2, 0)})
    assert set(clauses) == {"LO-6"}
    assert not is_observed_only(clauses, ["outcome"])


def test_a_breach_is_reported_next_to_a_divergence_from_kafka_only(stake):
    """One query of the call must not excuse the others."""
    clauses = stake({HIDDEN: LATER, 2: None})
    assert set(clauses) == {"LO-6", "FR-1"}
    assert not is_observed_only(clauses, ["outcome"])


def test_other_kinds_of_divergence_implicate_all_clauses_of_the_step(stake):
    assert len(stake({})) > 5


def test_a_batch_that_is_not_read_does_not_determine_its_epoch():
    """Nor does a wrong end of the log, after an append."""
    exercised = ("LG-1", "LG-80", "LG-82")
    right = LogObservation(Outcome(None, (0, 75, 1, 0, 1)), None)

    def of(operation, expected, actual):
        return implicated_clauses(exercised, operation, dialect_of(RELEASE), None, (expected, {}), expected, actual)

    read = Operation("read_log", (1,))
    assert of(read, right, right._replace(outcome=Outcome(None, None))) == ("LG-80",)
    assert "LG-82" in of(read, right, right._replace(outcome=Outcome(None, (0, 75, 1, 7, 1))))
    append = Operation("append_as_leader", ([{}], 0))
    done = LogObservation(Outcome(None, None), None)
    assert of(append, done, done._replace(outcome=Outcome("closed"))) == exercised
    assert of(append, done, done._replace(state=LogState(*[0] * len(LogState._fields)))) == ("LG-1", "LG-80")
