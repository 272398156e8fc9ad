"""Choices that implementations have: kidx makes the other one, and no choice hides a defect."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace
from typing import TYPE_CHECKING

import pytest

from conformance.attribution import TrackedIndex
from conformance.attribution.history import hidden, rests_on
from conformance.attribution.log import clauses_of_log_step
from conformance.attribution.log_step import TrackedLog, track_corruption, track_log_step
from conformance.attribution.tables import machines_of
from conformance.attribution.verdict_levels import DivergentParts, counts_at_level
from conformance.clauses import load_clauses
from conformance.events import Diverged, Event
from conformance.experiments.mutation.choices import finds_both, judge, pairs_of, releases_of
from conformance.implementations.mutants import implementation_of
from conformance.implementations.mutants.choices import CHOICES, WITHOUT_A_CHOICE
from conformance.kafka.releases import RELEASES
from conformance.lockstep import Divergence
from conformance.lockstep.divergence import Decision, FileDifference, decide
from conformance.lockstep.scopes.index import IndexLockstep, IndexScope
from conformance.lockstep.scopes.log import LogLockstep, LogScope
from conformance.lockstep.scopes.segment import SegmentScope
from conformance.operations import Observation, Operation, Outcome, State
from conformance.operations.log import LogObservation
from conformance.operations.segment import IndexState, SegmentObservation, SegmentState
from conformance.runs.plan import Plan
from conformance.runs.profiles import PROFILES
from conformance.runs.runner import run
from kidx.dialect import dialect_of
from kidx.layout import OFFSET_INDEX, TIME_INDEX
from kidx.records import build_batch

if TYPE_CHECKING:
    from pathlib import Path


# -- A choice that a clause below MUST leaves open conforms at level must, and is found at the level of its clause -


PLAIN = "python:tests.adapters.plain_index:open_index"
MACHINES = ("offset", "time", "transaction")
WITHOUT_A_CHOICE_YET = ("LG-77", "SEG-37")
"""Clauses below MUST of segments and logs that no choice has proved yet; the list only gets shorter.

LG-77: few truncations reach a corrupt batch.
SEG-37: zeros of an index that a release does not trim count, too.
"""
QUICK = (
    "offset-stays-read-only",
    "offset-reader-does-not-resize",
    "offset-reader-removes-its-file",
    "offset-mendsthefirstupperbound",
    "offset-preallocates-more",
    "segment-lz-3b-as-elsewhere",
)


def test_every_clause_of_an_index_below_must_has_a_choice() -> None:
    chosen = {choice.clause for choice in CHOICES.values()}
    below = {
        clause.id
        for clause in load_clauses().values()
        if clause.level != "MUST" and set(machines_of(clause.id)) & set(MACHINES)
    }
    assert below - chosen == set(WITHOUT_A_CHOICE)
    assert all(WITHOUT_A_CHOICE.values())


def test_which_clauses_of_segments_and_logs_have_a_choice() -> None:
    chosen = {choice.clause for choice in CHOICES.values()}
    below = {
        clause.id
        for clause in load_clauses().values()
        if clause.level != "MUST" and set(machines_of(clause.id)) & {"segment", "log"}
    }
    assert below - chosen == set(WITHOUT_A_CHOICE_YET)


def test_every_choice_fits_the_source() -> None:
    assert all(isinstance(choice.defect, type) for choice in CHOICES.values())


@pytest.mark.thorough
@pytest.mark.parametrize("name", QUICK)
def test_a_choice_is_promised_to_nobody(name: str) -> None:
    result = judge(name, 0, releases=["3.9.2", "4.4.0"], profile="dev", examples=20)
    assert result.conforms, result
    assert result.found


@pytest.mark.thorough
def test_the_first_position_is_known_in_a_file_that_was_not_corrupted() -> None:
    """Seeds at which an index was opened again with zeros, which count as entries."""
    for seed in (6, 8, 29):
        result = judge("offset-mendsthefirstupperbound", seed, profile="ci", examples=30)
        assert result.conforms, result


@pytest.mark.thorough
@pytest.mark.in_turn(20)
@pytest.mark.parametrize("name", sorted(CHOICES))
def test_choices_conform_on_all_releases(name: str) -> None:
    """``conformance mutate --choices`` does the same with five seeds and every example of the profile ci."""
    assert releases_of(CHOICES[name])
    for seed in range(5):  # few examples find most choices
        result = judge(name, seed, profile="ci", examples=8 if CHOICES[name].machine == "log" else 30)
        assert result.conforms, result
        if result.found:
            return
    assert result.found


def divergences_of_the_plain_index(
    releases: tuple[str, ...], profile: str, directory: Path, examples: int
) -> list[Event]:
    events: list[Event] = []
    plan = Plan(releases, (PLAIN,), ("offset", "time"), PROFILES[profile], directory, level="must", replays=False)
    run(replace(plan, max_examples=examples), events.append)
    return [event for event in events if isinstance(event, Diverged)]


@pytest.mark.thorough
def test_an_index_written_from_the_pages_alone_conforms(tmp_path: Path) -> None:
    assert divergences_of_the_plain_index(("3.9.2", "4.4.0"), "dev", tmp_path, 10) == []


@pytest.mark.thorough
def test_an_index_written_from_the_pages_alone_conforms_to_all_releases(tmp_path: Path) -> None:
    assert divergences_of_the_plain_index(tuple(RELEASES), "ci", tmp_path, 40) == []


# -- A choice that level must permits hides no defect --------------------------------------------------------------


AT_THE_LIMIT = ("AI-1", "AI-6", "AI-7", "OI-1", "OI-2", "OI-3")
"""Clauses of an append to the last slots of an index."""


def observed(**outcome):
    return Observation(Outcome(**outcome), None)


@pytest.mark.parametrize(
    ("facets", "counts"),
    [
        (("outcome", "state", "bytes"), False),  # one entry more is accepted, or one fewer
        (("bytes",), True),  # another entry is written
        (("state", "bytes"), True),
    ],
)
def test_a_full_index_excuses_bytes_only_after_another_outcome(facets, counts):
    parts = DivergentParts(AT_THE_LIMIT, facets, ("entries", "last"), (("0.index", ()),))
    assert counts_at_level(parts, "must") is counts


@pytest.mark.parametrize("clauses", [("AI-6", "AI-7", "AI-5")])
def test_an_index_that_forgets_its_entries_is_not_excused_by_its_limit(clauses):
    assert counts_at_level(DivergentParts(clauses, ("state",), ("entries", "last")), "must")


def test_when_a_segment_reads_a_value_is_promised_to_nobody():
    parts = DivergentParts(("SEG-6", "SEG-10b"), ("state",), ("maximum", "rolling_based_timestamp"))
    assert counts_at_level(parts, "must")
    assert counts_at_level(parts._replace(unread=("maximum",)), "must")  # and another timestamp
    assert not counts_at_level(parts._replace(unread=parts.fields), "must")


def test_a_rejected_index_entry_follows_from_its_place():
    fields = ("offset_index.entries", "maximum")
    parts = DivergentParts(("SEG-4", "SEG-5"), ("outcome", "state", "bytes"), fields, (("0.index", ()),))
    assert counts_at_level(parts._replace(results=("error",)), "must")  # the records are not in the log
    assert not counts_at_level(parts._replace(results=("entry",)), "must")


@pytest.mark.parametrize(
    ("kind", "data", "error", "is_promised"),
    [
        ("transaction", bytes(34) + b"\1" + bytes(33), "io", False),
        ("transaction", bytes(34) + b"\1" + bytes(33), None, True),
        ("transaction", bytes(68), "io", True),
        ("time", b"\1" * 36, "io", True),
    ],
)
def test_a_file_with_a_record_of_an_unknown_version_may_be_rejected_before_it_is_read(kind, data, error, is_promised):
    """Kafka ends a search before the record; whoever reads the whole file breaks no promise."""
    limits = (None, None, None) if kind == "transaction" else (8, False, 96)
    seen = Observation(Outcome(), State(2, *limits, ())), data
    actual = observed(error=error), data
    for name in ("truncate_to", "open", "lookup"):
        expected = is_promised or name == "lookup"
        assert IndexScope().is_of_a_broker(Operation(name), (), (seen, seen), actual) is expected


@pytest.mark.parametrize(("error", "rests"), [("invalid_argument", ["AI-3a"]), ("invalid_offset", [])])
def test_only_a_lack_of_space_rests_on_the_length(error, rests):
    append = Operation("append", (3, 2))
    history = {"length": frozenset({"AI-3a"})}
    found = rests_on(history, append, observed(error=error), observed(), of_length=False)
    assert list(found) == rests


@pytest.mark.parametrize(("kind", "counts"), [("io", False), (None, True)])
def test_another_length_is_tolerated_whatever_the_kind_of_error_is(kind, counts):
    """The kind of an error is not promised, so another kind does not make a tolerated length count."""
    lengths = ("max_entries", "length")
    append, files = Operation("maybe_append", (1, 0, True)), (FileDifference("0.timeindex", frozenset({"room"})),)
    one = Divergence(0, append, "mine", "4.4.0", "kidx", ("outcome", "state", "bytes"), Outcome("invalid_offset"),
                     Outcome(kind), ("TI-3b",), lengths, files)  # fmt: skip
    carried = IndexScope().carried({"length": frozenset({"AI-3a"})}, one)
    assert carried == ["AI-3a"]
    assert replace(one, carried=tuple(carried)).counts("must") is counts
    assert replace(one, carried=tuple(carried)).counts("api")
    assert IndexScope().carried({"length": frozenset({"AI-3a"})}, replace(one, fields=("entries",))) == ()


def test_an_index_without_space_is_known_by_its_state_if_it_names_another_error():
    history = {"length": frozenset({"AI-3a"})}
    full = Observation(Outcome("io"), State(1, 1, True, 8, (1,)))
    for one, other, rests in (
        (observed(error="invalid_argument"), observed(error="invalid_offset"), ["AI-3a"]),
        (observed(), full, ["AI-3a"]),
        (observed(), full._replace(state=full.state._replace(full=False)), []),
    ):
        assert list(rests_on(history, Operation("append", (3, 2)), one, other, of_length=False)) == rests


OPEN = Operation("open", ("offset", "0.index", 0, 16, True))
FULL = Observation(Outcome(), State(2, 2, True, 16, (1,)))


def test_a_permitted_outcome_permits_no_loss_of_entries():
    """A resize that returns another value (AI-10) still has to keep the entries."""
    parts = DivergentParts(("AI-10", "AI-5"), ("outcome", "state"), ("entries", "last"))
    assert counts_at_level(parts, "must")
    assert not counts_at_level(parts._replace(fields=("length", "full")), "must")


@pytest.mark.parametrize(
    ("operation", "marks"),
    [("lookup", ()), ("entry", ()), ("append", ("AI-40",)), ("trim", ("AI-40",)), ("rename", ("AI-21b",))],
)
def test_a_hidden_part_concerns_only_the_operations_that_use_it(operation, marks):
    tracked = TrackedIndex("4.4.0", drift="rewound", misnamed=operation == "rename")
    assert hidden(tracked, Operation(operation)) == marks


def steps_of(tmp_path, choice, *operations):
    """Return the differences of an index with a choice, and its history after the last step."""
    found = []

    def note(divergence):
        found.append(divergence)
        return decide(divergence, "must", tolerated=not divergence.counts("must"))

    subject = implementation_of(CHOICES[choice], "4.4.0")
    lockstep = IndexLockstep([subject], tmp_path, on_divergence=note)
    with lockstep.example():
        for operation in operations:
            lockstep.perform(operation)
        return found, lockstep.subjects_compared[0].history.copy()


def test_a_history_ends_when_state_and_files_are_equal_again(tmp_path):
    steps = OPEN, Operation("append", (1, 0)), Operation("resize", (8,)), Operation("append", (2, 1))
    found, history = steps_of(tmp_path, "offset-preallocates-more", *steps[:2])
    assert {each.aspect for each in found} == {"state"}
    assert history == {"length": {"AI-3a"}}
    found, history = steps_of(tmp_path, "offset-preallocates-more", *steps)
    assert history == {}
    reopened = Operation("close"), Operation("write_file", ("0000000100000000",)), OPEN
    found, history = steps_of(tmp_path, "offset-preallocates-more", *steps[:1], *reopened)
    assert history == {}  # the file has the same length on both sides


def test_a_transaction_index_that_remembers_its_last_offset_is_compared_on(tmp_path):
    opened = Operation("open", ("transaction", "0.txnindex", 0, 0, True))
    steps = opened, Operation("append_aborted", (1, 0, 5, 2)), Operation("close"), opened, Operation("all_aborted")
    found, history = steps_of(tmp_path, "transaction-remembers-the-last-record", *steps)
    assert [(each.operation.name, each.fields) for each in found] == [("open", ("last",)), ("all_aborted", ("last",))]
    assert not any(each.counts("must") for each in found)
    assert history == {"last": {"TX-4a"}}
    later = Operation("append_aborted", (2, 0, 9, 2))
    assert steps_of(tmp_path, "transaction-remembers-the-last-record", *steps, later)[1] == {}


SMALL = {"segment.bytes": 300, "segment.index.bytes": 120}
ENDED_BELOW_THE_HIGH_WATERMARK = (
    Operation("open_log", (SMALL, 0, 0, True, 0)),
    *(
        Operation("append_as_follower", ([{"base": base, "epoch": 0, "records": [[0, 0]], **more}], 0))
        for base, more in (
            (0, {"transactional": True, "producer": [1, 0, 0]}),
            (1, {"marker": "abort", "producer": [1, 0, 0]}),
            (3, {}),
        )
    ),
    Operation("update_high_watermark", (2,)),
    Operation("truncate_log", (3,)),
)
EMPTY_AND_PREALLOCATED_LATER = (
    Operation("open_log", (SMALL, 0, 0, True, 0)),
    Operation("truncate_fully", (0,)),
    Operation("open_log", ({**SMALL, "preallocate": "true"}, 0, 0, True, 0)),
    Operation("roll_log"),
)
ROLLED_AT_A_HIGHER_START = (
    Operation("open_log", (SMALL, 0, 0, True, 0)),
    Operation("truncate_fully", (5,)),
    Operation("close_log", (True,)),
    Operation("open_log", (SMALL, 0, 0, True, 0)),
    Operation("roll_log"),
)

REJECTED_AFTER_THE_EPOCH = (
    Operation("open_log", (SMALL, 0, 0, True, 0)),
    Operation("append_verified", ([{"records": [[0, 0, 0, 0]], "producer": [0, 0, 1]}], 0, 0)),
)
HIGH_WATERMARK_BEFORE_THE_START = (
    Operation("open_log", (SMALL, 0, 0, True, 0)),
    Operation("truncate_fully", (1,)),
    Operation("append_as_follower", ([{"base": 1, "epoch": 0, "records": [[0, 0]]}], 0)),
    Operation("truncate_log", (1,)),
)
OPENED_BEFORE_ITS_START = (
    Operation("open_log", (SMALL, 1, 0, True, 0)),
    Operation("open_log", (SMALL, 2, 0, True, 0)),
)

HIGH_WATERMARK_AT_ANOTHER_PLACE = (
    Operation("open_log", ({**SMALL, "segment.index.bytes": 24}, 0, 0, True, 0)),
    Operation("update_high_watermark", (0,)),
    Operation("append_as_follower", ([{"base": 0, "epoch": 0, "records": [[1, 0]]}], 0)),
    Operation("truncate_log", (1,)),
    Operation("raise_high_watermark", (0,)),
)

RAISED_FROM_BEFORE_THE_START = (
    Operation("open_log", (SMALL, 0, 0, True, 0)),
    Operation("append_as_follower", ([{"base": 0, "epoch": 0, "records": [[0, 0]]}], 0)),
    Operation("truncate_log", (0,)),
    Operation("truncate_fully", (1,)),
    Operation("raise_high_watermark", (1,)),
)
CLOSED_AFTER_BATCHES_OF_EQUAL_TIME = (
    Operation("open_log", (SMALL, 0, 0, True, 0)),
    Operation("append_as_follower", ([{"base": base, "epoch": 0, "records": [[0, 0]]} for base in (0, 1)], 0)),
    Operation("close_log", (True,)),
)


@pytest.mark.parametrize(
    ("choice", "clause", "steps"),
    [
        ("log-lg-11-as-elsewhere", "LG-10", RAISED_FROM_BEFORE_THE_START),
        ("log-followersindexthelastoffset", "SEG-3", CLOSED_AFTER_BATCHES_OF_EQUAL_TIME),
        ("log-lg-31c-as-elsewhere", "LG-31c", HIGH_WATERMARK_AT_ANOTHER_PLACE),
        ("log-lg-31c-as-elsewhere", "LG-31c", ENDED_BELOW_THE_HIGH_WATERMARK),
        ("log-keepsanemptysegment", "LG-6", EMPTY_AND_PREALLOCATED_LATER),
        ("log-keepsanemptysegment", "LG-6", ROLLED_AT_A_HIGHER_START),
        ("log-forgetsrejectedepochs", "LG-4b", REJECTED_AFTER_THE_EPOCH),
        ("log-lg-11-as-elsewhere", "LG-10", HIGH_WATERMARK_BEFORE_THE_START),
        ("log-lg-18a-as-elsewhere", "LG-33", OPENED_BEFORE_ITS_START),
    ],
)
def test_what_a_log_may_do_otherwise_is_tolerated_where_it_shows(choice, clause, steps, tmp_path):
    found = []

    def note(divergence):
        found.append(divergence)
        return decide(divergence, "must", tolerated=not divergence.counts("must"))

    release = "4.4.0" if clause in ("LG-31c", "LG-6") else "2.4.0"
    lockstep = LogLockstep([implementation_of(CHOICES[choice], release)], tmp_path, on_divergence=note)
    with lockstep.example():
        for operation in steps:
            lockstep.perform(operation)
    assert [each.operation for each in found] == [steps[-1]]
    assert clause in (*found[0].clauses, *found[0].rests_on)


def test_the_empty_file_of_a_choice_outlives_a_reset(tmp_path):
    """A reset cuts an open file, and never makes or removes one (TX-11)."""
    opened = Operation("open", ("transaction", "0.txnindex", 0, 0, True))
    found, history = steps_of(tmp_path, "transaction-creates-its-file", opened, Operation("reset"))
    assert [each.operation.name for each in found] == ["open", "reset"]
    assert not any(each.counts("must") for each in found)
    assert history == {"file": {"TX-2"}}


def test_a_difference_that_counts_leaves_no_mark(tmp_path):
    """Only what a clause permits excuses what follows."""
    history = {}
    one = Divergence(
        0, OPEN, "mine 4.4.0", "4.4.0", "kidx", ("state",), FULL, FULL, ("AI-3a", "OI-2"), ("length", "entries")
    )
    assert one.counts("must")
    participant = SimpleNamespace(
        implementation=SimpleNamespace(name="mine 4.4.0", release="4.4.0"), history=history, batched=False, active=True
    )
    lockstep = IndexLockstep([], tmp_path, releases=["4.4.0"], on_divergence=lambda _: Decision.CONTINUE)
    lockstep.operations.append(OPEN)
    differing = {"state": (FULL.state, FULL.state._replace(entries=1, length=8))}
    lockstep._diverged(participant, "kidx", differing, ("AI-3a", "OI-2"))
    assert participant.history == {}


RARE = {
    "always-says-it-deleted",
    "checks-the-order-first",
    "checks-the-range-first",
    "checks-the-timestamp-first",
    "cuts-the-partial-entry",
    "ignores-timestamps-going-back",
    "looks-at-the-low-byte",
    "never-checks-fullness",
    "other-refusal",
    "reads-positions-unsigned",
    "refuses-positions-going-back",
    "reset-remembers",
    "skips-the-zero-tail",
    "stops-one-below-the-range",
    "trims-whole-entries-only",
}
"""Defects that a hundred examples at level must do not always show, in an index without a choice either.

Some need a corrupt file, others only return another error.
"""
AT_THE_SAME_PLACE = {
    ("time-uses-every-slot", "checks-fullness-always"),  # both are about the last slot of an index
}
"""A choice and a defect that the choice may hide, with the reason."""
PAIRS = [
    pytest.param(choice, defect, id=f"{choice.name} and {defect.name}")
    for machine in ("offset", "time", "transaction")
    for choice, defect in pairs_of(machine)
    if defect.name not in RARE and (choice.name, defect.name) not in AT_THE_SAME_PLACE
]


@pytest.mark.thorough
@pytest.mark.parametrize(("choice", "defect"), PAIRS[:: len(PAIRS) // 8])
def test_a_choice_hides_no_defect(choice, defect):
    assert finds_both(choice, defect, 0, examples=100)


@pytest.mark.thorough
@pytest.mark.in_turn(60)
@pytest.mark.parametrize(("choice", "defect"), PAIRS)
def test_no_choice_hides_a_defect(choice, defect):
    assert finds_both(choice, defect, 0, examples=300)


# -- What no broker does -------------------------------------------------------------------------------------------


BATCH = build_batch([(500, b"key", b"value")], base_offset=7)


@pytest.mark.parametrize(
    ("copies", "named", "is_honest"), [(1, 7, True), (1, None, True), (1, 8, False), (2, 7, False)]
)
def test_a_broker_appends_batches_in_order_and_names_their_end(copies, named, is_honest):
    records = BATCH * copies
    append = Operation("append_records", (records.hex(), named, None, None))
    opened = SegmentObservation(Outcome(), SegmentState(0, 0, 0, None, None, None, None, None))
    seen = (opened, (b"", None, None, None)), (opened, (records, None, None, None))
    assert SegmentScope().is_of_a_broker(append, (), seen, seen[1]) is is_honest


@pytest.mark.parametrize(
    ("position", "time", "is_own"), [(len(BATCH), 500, True), (0, 500, False), (5, 500, False), (len(BATCH), 0, False)]
)
def test_a_broker_appends_to_a_segment_whose_indexes_are_its_own(position, time, is_own):
    log = BATCH + build_batch([(400, b"key", b"value")], base_offset=8)
    indexes = [IndexState(1, 8, 96, (8,)), IndexState(1, 8, 96, (time, 7))]
    after = SegmentObservation(Outcome(), SegmentState(len(log), 0, 0, None, None, *indexes, None))
    files = log, OFFSET_INDEX.struct.pack(8, position), TIME_INDEX.struct.pack(time, 7), None
    append = Operation("append_records", (log.hex(), 8, None, None))
    seen = (after, (b"", None, None, None)), (after, files)
    assert SegmentScope().is_of_a_broker(append, (), seen, seen[1]) is is_own


def test_what_follows_a_renamed_directory_counts_only_after_the_log_was_opened_again():
    tracked, done = TrackedLog(), LogObservation(Outcome(), None)
    for name, is_promised in (("rename_log", True), ("roll_log", False), ("open_log", False), ("roll_log", True)):
        operation = Operation(name, ("future",) if name == "rename_log" else ({},))
        assert LogScope().is_reachable_by_broker(operation, tracked, (done, {})) is is_promised
        track_log_step(tracked, operation, done)


@pytest.mark.parametrize(("how", "rests"), [({"sound"}, ("LG-83",)), ({"sparse.index"}, ("LG-83",)), (set(), ())])
def test_entries_that_a_truncation_left_show_in_no_state(how, rests):
    tracked, seen = TrackedLog(), LogObservation(Outcome(None, True), None)
    assert LogScope().hidden(tracked, Operation("roll_log")) == ()
    track_log_step(tracked, Operation("truncate_log", (7,)), seen)
    hidden = LogScope().hidden(tracked, Operation("roll_log"))
    files = (FileDifference("00000000000000000000.index", frozenset(how)),)
    one = Divergence(0, Operation("roll_log"), "mine", "4.4.0", "kidx", ("bytes",), None, None, ("SEG-22",), (), files)
    assert LogScope().rests_on(None, hidden, one, seen, seen) == rests
    assert LogScope().rests_on(None, hidden, replace(one, aspects=("state", "bytes")), seen, seen) == ()


@pytest.mark.parametrize(
    ("timestamps", "depends"), [((100, 200), False), ((200, 100), True), ((-1, 200), True), ((100, -1), True)]
)
def test_the_order_of_the_rules_of_retention_matters_only_if_a_younger_segment_precedes(timestamps, depends):
    logs = {f"{at}.log": build_batch([(time, b"", b"")]) for at, time in enumerate(timestamps)}
    seen = LogObservation(Outcome(None, 1), None)
    found = clauses_of_log_step(Operation("apply_retention"), dialect_of("4.4.0"), None, seen, None, logs, logs)
    assert ("LG-13b" in found) is depends


def test_a_corrupt_topic_id_is_tracked_by_the_name_of_its_file():
    tracked = TrackedLog()
    for path in ("partition.metadata", "00000000000000000000.index", "leader-epoch-checkpoint"):
        track_corruption(tracked, path)
    assert tracked.corrupted == {"partition.metadata", ".index", "leader-epoch-checkpoint"}
