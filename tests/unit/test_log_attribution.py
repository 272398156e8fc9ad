"""Clauses that a step on a log exercises: the table, and short runs of the reference that show its rows.

A divergence in a log's results implicates the clauses of the targets with another result, and no others.
"""

from __future__ import annotations

import pytest

from conformance.attribution import is_observed_only
from conformance.attribution.log_implicated import implicated_clauses, narrow_clauses
from conformance.attribution.tables import rows_of
from conformance.clauses import family, load_clauses
from conformance.lockstep.scopes.log import LogLockstep
from conformance.operations import OK, Operation, Outcome
from conformance.operations.log import LOG_ERROR_KINDS, LOG_OPS, LogObservation, LogState
from kidx.dialect import dialect_of

CATALOGUE = load_clauses()
SETTINGS = {"segment.bytes": 150, "segment.index.bytes": 120, "index.interval.bytes": 0}


def opened(start=0, *, clean=True, now=10_000, **settings):
    return Operation("open_log", (SETTINGS | settings, start, 0, clean, now))


def replicated(base, *timestamps, epoch=0):
    records = [[number, timestamp] for number, timestamp in enumerate(timestamps)]
    return Operation("append_as_follower", ([{"base": base, "epoch": epoch, "records": records}], epoch))


def asked(*targets):
    return Operation("list_offsets", (list(targets),))


def exercised(directory, steps, release="4.4.0"):
    """Return the clauses of the last step, after the reference has executed all steps."""
    lockstep = LogLockstep([], directory, releases=[release])
    lockstep.begin()
    for step in steps[:-1]:
        lockstep.perform(step)
    before = lockstep.statistics.exercised(release).copy()
    lockstep.perform(steps[-1])
    after = lockstep.statistics.exercised(release)
    lockstep.end()
    return set(after - before)


@pytest.mark.parametrize("row", rows_of("log"), ids=lambda row: f"{row.clause} {row.operations[:12]}")
def test_every_row_has_an_existing_clause_operation_and_result(row):
    assert row.clause in CATALOGUE
    assert row.operations == "*" or set(row.operations.split()) <= set(LOG_OPS)
    assert row.results == "*" or set(row.results.split()) <= {"ok", *LOG_ERROR_KINDS}
    assert row.why


APPENDS = {"append_as_leader", "append_verified", "append_as_follower"}


@pytest.mark.parametrize("row", [row for row in rows_of("log") if "ok" in row.results.split() and
                                 (row.operations == "*" or APPENDS & set(row.operations.split()))],
                         ids=lambda row: f"{row.clause} {row.operations[:12]}")  # fmt: skip
def test_no_clause_excuses_every_result_of_an_append(row):
    """A clause that permits to reject a batch, or to keep it otherwise, permits no other offset."""
    variants = [clause for clause in CATALOGUE.values() if row.clause in (clause.id, family(clause.id))]
    assert variants
    assert all("outcome" not in clause.excuses for clause in variants)


def test_records_without_timestamps_that_hide_later_ones(tmp_path):
    """The result is none, although the oracle finds one (LG-22)."""
    life = [opened(now=50_000), replicated(0, -1, -1), replicated(2, -1, -1), Operation("roll_log")]
    life += [replicated(4, 7000), asked(6000)]
    assert {"LO-6", "LO-23", "LG-22"} <= exercised(tmp_path, life)
    assert "LG-22" not in exercised(tmp_path, [opened(), replicated(0, 1000), asked(6000)])


def test_deleted_records_that_hide_later_ones(tmp_path):
    life = [opened(), replicated(0, 9000, 10, 10), Operation("roll_log"), replicated(3, 9000)]
    life += [Operation("update_high_watermark", (3,)), Operation("delete_records", (2,)), asked(8000, -3)]
    assert {"LG-23", "LG-24"} <= exercised(tmp_path, life)
    assert not {"LG-23", "LG-24"} & exercised(tmp_path, [*life[:4], asked(8000, -3)])


def test_the_largest_timestamp_of_a_log_without_timestamps(tmp_path):
    assert {"LO-10", "FR-2", "LG-25"} <= exercised(tmp_path, [opened(), replicated(0, -1), asked(-3)])
    assert "LG-25" not in exercised(tmp_path, [opened(), replicated(0, -1), asked(-3)], "2.8.2")


def test_epochs_that_a_recovery_finds_again(tmp_path):
    """Only where the file that names them is gone would forgetting them show (SEG-31)."""
    life = [opened(), replicated(0, 1000), Operation("crash_log"), opened(clean=False)]
    lost = Operation("damage_log_file", ("leader-epoch-checkpoint", "remove_file", []))
    assert "SEG-31b" in exercised(tmp_path, [*life[:3], lost, life[3]])
    assert not {"SEG-31a", "SEG-31b"} & exercised(tmp_path, life)


def test_a_close_without_preparation(tmp_path):
    life = [opened(), replicated(0, 1000), Operation("close_log", (False,)), opened()]
    assert "SEG-27" in exercised(tmp_path, life)
    assert "SEG-27" not in exercised(tmp_path, [*life[:2], Operation("close_log", (True,)), opened()])
    assert "SEG-27" not in exercised(tmp_path, life, "4.3.1")


def test_a_step_that_failed_has_neither_opened_nor_closed_the_log(tmp_path):
    life = [opened(), replicated(0, 1000)]
    broken = Operation("damage_log_file", ("leader-epoch-checkpoint", "write_file", ["01" * 3]))
    assert "LG-78" in exercised(tmp_path, [*life, Operation("close_log", (True,)), broken, opened(), opened()])
    lost = [*life, Operation("fail_log"), Operation("close_log", (True,)), Operation("crash_log"), opened()]
    assert "LG-81" not in exercised(tmp_path, lost)
    assert "LG-81" in exercised(tmp_path, [*life, Operation("close_log", (True,)), opened()])


def test_a_missing_time_index(tmp_path):
    life = [opened(), replicated(0, 1000), Operation("close_log", (True,))]
    lost = Operation("damage_log_file", (f"{0:020d}.timeindex", "remove_file", []))
    assert "SEG-36" in exercised(tmp_path, [*life, lost, opened()])


def test_lookups_past_a_missing_time_index(tmp_path):
    """If it is removed or corrupt, the record is found; a clean start trusts zeros, and does not find it."""
    life = [opened(), replicated(0, 1000), Operation("crash_log"), opened(clean=False), asked(500)]
    closed = [*life[:2], replicated(1, 500), replicated(2, 400), Operation("close_log", (True,))]
    lost = Operation("damage_log_file", (f"{0:020d}.timeindex", "remove_file", []))
    zeroed = Operation("damage_log_file", (f"{0:020d}.timeindex", "zero_range", [0, 12]))
    assert "LG-70" in exercised(tmp_path, [*life[:3], lost, *life[3:]])
    assert "LG-70" in exercised(tmp_path, [*life[:3], zeroed, *life[3:]])
    assert "LG-70" in exercised(tmp_path, [*closed, lost, opened(), asked(500)])
    assert "LG-70" not in exercised(tmp_path, [*closed, zeroed, opened(), asked(500)])
    assert "LG-70" not in exercised(tmp_path, life)


@pytest.mark.parametrize(("start", "offset", "is_about"), [(1, 2, True), (1, 1, True), (2, 1, False), (0, 1, False)])
@pytest.mark.parametrize("release", ["2.4.0", "4.4.0"])
def test_a_truncation_into_the_batch_that_the_log_begins_in(tmp_path, start, offset, is_about, release):
    life = [opened(), replicated(0, 1000, 1000, 1000), Operation("update_high_watermark", (2,))]
    life += [Operation("delete_records", (start,)), Operation("truncate_log", (offset,))]
    assert ("LG-69" in exercised(tmp_path, life, release)) is is_about


def test_the_search_that_begins_where_the_start_once_was(tmp_path):
    life = [opened(), replicated(0, 1000), replicated(1, 2000), Operation("update_high_watermark", (2,))]
    life += [Operation("delete_records", (2,)), Operation("truncate_log", (1,)), asked(1500)]
    assert "LG-21" in exercised(tmp_path, life, "3.5.2")
    assert "LG-21" not in exercised(tmp_path, life, "3.6.2")


ONE_SEGMENT = opened(**{"segment.bytes": 1000})
SETTLING = {"LG-31a", "LG-31b", "LG-31c"}
BATCH = {"epoch": 0, "records": [[0, 1000]]}
COMMITTED = Operation(
    "append_as_follower",
    (
        [
            BATCH | {"base": 0, "transactional": True, "producer": [1, 0, 0]},
            BATCH | {"base": 1, "producer": [1, 0, -1], "marker": "commit"},
        ],
        0,
    ),
)
"""A transaction of one record, and its end."""
THEN = [replicated(2, 1000), replicated(3, 1000)]


def cut(high_watermark, offset):
    return [Operation("update_high_watermark", (high_watermark,)), Operation("truncate_log", (offset,))]


@pytest.mark.parametrize(
    ("release", "at_truncation", "at_append"),
    [("2.6.3", {"LG-31a"}, set()), ("3.0.2", {"LG-31b"}, set()), ("3.1.2", {"LG-31c"}, {"LG-31c"})],
)
def test_transactions_completed_when_a_truncation_does_not_reach_the_watermark(
    tmp_path, release, at_truncation, at_append
):
    life = [ONE_SEGMENT, COMMITTED, *THEN, *cut(2, 3)]
    assert exercised(tmp_path, life, release) & SETTLING == at_truncation
    assert exercised(tmp_path, [*life, replicated(3, 1000)], release) & SETTLING == at_append


@pytest.mark.parametrize(("release", "clauses"), [("2.6.3", {"LG-31a"}), ("3.0.2", {"LG-31b"}), ("3.1.2", set())])
def test_transactions_completed_when_a_truncation_moves_the_watermark_back(tmp_path, release, clauses):
    life = [ONE_SEGMENT, COMMITTED, *THEN, *cut(4, 3)]
    assert exercised(tmp_path, life, release) & SETTLING == clauses
    assert not exercised(tmp_path, [*life, replicated(3, 1000)], release) & SETTLING


def test_a_transaction_that_only_a_snapshot_has_forgotten(tmp_path):
    """Kafka does not look for the last stable offset again before something is appended (LG-31c)."""
    life = [ONE_SEGMENT, COMMITTED, Operation("roll_log"), *THEN, *cut(1, 3)]
    assert "LG-31c" in exercised(tmp_path, life)
    assert "LG-31c" not in exercised(tmp_path, life, "3.0.2")
    assert "LG-31c" not in exercised(tmp_path, [*life, replicated(3, 1000)])


@pytest.mark.parametrize("release", ["2.6.3", "3.0.2", "4.4.0"])
def test_a_transaction_whose_end_is_cut_off(tmp_path, release):
    """It is undecided in every release, which is no evidence for any of LG-31."""
    batches, epoch = COMMITTED.args
    life = [ONE_SEGMENT, *(Operation("append_as_follower", ([batch], epoch)) for batch in batches), *cut(2, 1)]
    assert not exercised(tmp_path, life, release) & SETTLING


@pytest.mark.parametrize(
    ("operation", "exercised", "error", "stake"),
    [
        # As seen on 4.2.2, which limits what is decompressed: three of the four have no text about an error.
        ("append_as_leader", ("LG-4", "SEG-20", "LG-1", "SEG-4"), "invalid_record", ("LG-1",)),
        ("append_as_leader", ("LG-50b", "LG-1", "LG-4"), "invalid_timestamp", ("LG-50b",)),
        ("append_as_leader", ("LG-35", "LG-1", "LG-4"), "out_of_order_sequence", ("LG-35",)),
        ("append_as_follower", ("SEG-5", "LG-2", "LG-4", "SEG-4"), "out_of_order", ("LG-2",)),
        ("append_as_follower", ("SEG-5", "LG-2", "LG-4", "SEG-4"), "kafka", ("LG-2",)),
        ("append_as_follower", ("LG-2", "LG-4"), "failure", ("LG-2", "LG-4")),
    ],
)
def test_an_append_that_is_refused_is_about_one_clause(operation, exercised, error, stake):
    done, refused = LogObservation(OK, None), LogObservation(Outcome(error), None)
    assert narrow_clauses(exercised, Operation(operation, ([], 0)), (done, {}), (refused, {})) == stake


def test_where_nothing_but_aborted_transactions_differ_the_clause_about_them_is_at_stake():
    append = Operation("append_as_follower", ([], 0))
    seen = LogObservation(OK, None)
    sides = [(seen, {"0.log": b"x", name: data}) for name, data in (("0.txnindex", b"\0"), ("0.txnindex", b"\1"))]
    assert narrow_clauses(("TX-15", "SEG-4", "LG-2", "LG-82"), append, *sides) == ("TX-15", "SEG-4")
    assert narrow_clauses(("SEG-4", "LG-2"), append, *sides) == ("SEG-4", "LG-2")
    both = (sides[0], (seen, {"0.log": b"y", "0.txnindex": b"\1"}))
    assert narrow_clauses(("TX-15", "LG-2"), append, *both) == ("TX-15", "LG-2")


RELEASE = "4.3.1"
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
