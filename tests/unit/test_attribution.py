"""Clauses that a step exercises: short scenarios on the reference, each with the expected clauses of its last step."""

from __future__ import annotations

import pytest

from conformance.attribution import TrackedIndex, clauses_of, is_observed_only, track_step
from conformance.attribution.rules import ANY, Row, Rules
from conformance.clauses import load_clauses
from conformance.implementations.kidx.index import ReferenceIndex
from conformance.lockstep.file_reader import corrupt
from conformance.operations import FILE_OPERATIONS, OK, SIGNATURES, Observation, Operation, Outcome, State

INT_MAX = 2**31 - 1


def op(text: str, *args: object) -> Operation:
    name = text.replace(" ", "_")
    assert name in SIGNATURES
    return Operation(name, args)


def offset(size: int = 80, *, base: int = 0, writable: bool = True) -> Operation:
    return op("open", "offset", "00.index", base, size, writable)


def time(size: int = 120, *, base: int = 0, writable: bool = True) -> Operation:
    return op("open", "time", "00.timeindex", base, size, writable)


def transaction(start: int = 0) -> Operation:
    return op("open", "transaction", "00.txnindex", start, -1, True)


def exercised(directory, steps, release="4.4.0"):
    """Return the clauses of the last step, after the reference has executed all steps."""
    reference, tracked = ReferenceIndex(release), TrackedIndex(release)
    reference.begin(directory)
    name, clauses = "", ()
    for step in steps:
        if step.name in FILE_OPERATIONS:
            corrupt(directory / name, step.name, step.args)
            observation = Observation(OK, tracked.state)
        else:
            if step.name == "open":
                name = step.args[1]
                tracked.preexisting = (directory / name).exists()
            observation = reference.perform(step)
            clauses = clauses_of(step, tracked, observation)
            name = step.args[0] if step.name == "rename" else name
        track_step(tracked, step, observation)
    reference.end()
    return clauses


ONE = op("append", 1, 10)
TWO = op("append", 2, 20)
LATE = op("maybe append", 5, 2**31, False)
ENTRY = op("maybe append", 5, 1, False)
ABORTED = op("append aborted", 1, 0, 4, 5)
CLOSE = op("close")

# fmt: off
SCENARIOS = [
    # what a step shows, what it does not show, the release, and the steps
    ("AI-3a AI-6 AI-7 OI-2",       "AI-5",        "4.4.0", [offset(8)]),
    ("AI-5",                       "AI-3a",       "4.4.0", [offset(), ONE, CLOSE, offset()]),
    ("AI-3b AI-3c",                "AI-2",        "4.4.0", [offset(7)]),
    ("AI-2 AI-3b AI-3c",           "AI-4a",       "4.4.0", [offset(7, writable=False)]),
    ("AI-2 AI-4a AI-4b",           "AI-4c",       "4.4.0", [offset(writable=False)]),
    ("AI-4c",                      "AI-4a",       "4.4.0", [op("open", "offset", "none/00.index", 0, 80, True)]),
    ("AI-1 AI-7 OI-1 OI-2 OI-3",   "OI-5 AI-6",   "4.4.0", [offset(), ONE]),
    ("AI-8 OI-3 OI-5",             "TI-20b",      "4.4.0", [offset(), op("append", 2**31, 0)]),
    ("AI-8 OI-5",                  "",            "4.4.0", [offset(), op("append", INT_MAX, 0)]),
    ("OI-5",                       "AI-8",        "4.4.0", [offset(base=7), op("append", 7, 0)]),
    ("AI-10 AI-13a",               "AI-13b TI-10", "4.4.0", [offset(), op("resize", 800)]),
    ("AI-10",                      "AI-13a",      "4.4.0", [offset(), op("resize", 83)]),
    ("AI-10 TI-10",                "OI-2",        "4.4.0", [time(), op("resize", 60)]),
    ("AI-10 OI-1",                 "",            "4.4.0",
        [offset(), ONE, CLOSE, offset(writable=False), op("resize", 800), op("append", 11, 0)]),
    ("AI-11a",                     "AI-11b",      "4.4.0", [offset(), ONE, TWO, op("resize", 8)]),
    ("AI-11b",                     "OI-7",        "4.4.0", [offset(), ONE, TWO, op("resize", 8), op("lookup", 9)]),
    ("AI-40 OI-6b",                "OI-3 OI-6a",  "4.4.0",
        [offset(), ONE, TWO, op("resize", 8), op("resize", 80), op("append", 3, 30)]),
    ("AI-40 OI-6a",                "OI-3 OI-6b",  "2.4.1",
        [offset(), ONE, TWO, op("resize", 8), op("resize", 80), op("append", 3, 30)]),
    ("AI-40 AI-42a",               "AI-42b",      "4.3.1", [offset(), ONE, TWO, op("resize", 8), CLOSE]),
    ("AI-41 OI-1",                 "OI-8a OI-8d", "4.4.0", [offset(), ONE, op("entry", -(2**29))]),
    ("AI-14a AI-14b OI-10",        "",            "4.4.0", [offset(), ONE, TWO, op("truncate to", 2)]),
    ("AI-14a OI-10",               "AI-14b",      "4.4.0", [offset(), ONE, TWO, op("truncate to", 3)]),
    ("AI-13a AI-13b",              "",            "4.4.0", [offset(), ONE, op("truncate"), op("resize", 160)]),
    ("AI-15a AI-15b",              "AI-15c",      "4.4.0", [offset(), ONE, op("reset")]),
    ("AI-15a AI-13b",              "AI-15c",      "4.3.1",
        [offset(), CLOSE, op("pad file", 3, 7), offset(), op("truncate to", 0), op("reset")]),
    ("AI-15a AI-15c",              "AI-15b",      "4.4.0", [offset(), ONE, CLOSE, offset(-1), op("reset")]),
    ("AI-16a AI-7",                "AI-16c",      "4.4.0", [offset(), ONE, op("trim")]),
    ("AI-16b",                     "AI-20a",      "3.9.1", [offset(), op("delete"), CLOSE]),
    ("AI-16c",                     "AI-16a",      "4.4.0", [offset(), CLOSE, op("trim")]),
    ("AI-18 AI-20b",               "",            "4.3.1", [offset(), op("delete")]),
    ("AI-20b",                     "AI-18",       "4.4.0", [offset(), op("delete")]),
    ("AI-19a",                     "OI-7",        "4.4.0", [offset(), CLOSE, op("lookup", 1)]),
    ("AI-19b",                     "AI-19c",      "4.3.1", [offset(), CLOSE, op("flush")]),
    ("AI-19c",                     "AI-19b",      "4.4.0", [offset(), CLOSE, op("flush")]),
    ("AI-19d",                     "OI-3",        "4.3.1", [offset(), CLOSE, ONE]),
    ("AI-19d",                     "OI-3",        "4.4.0", [offset(), CLOSE, ONE]),
    ("AI-19e AI-20a",              "AI-42b",      "4.4.0", [offset(), CLOSE, CLOSE]),
    ("AI-42a",                     "AI-42b",      "4.3.1", [offset(), ONE, CLOSE]),
    ("AI-42b",                     "AI-42a",      "4.4.0", [offset(), ONE, CLOSE]),
    ("AI-42a",                     "AI-42c",      "4.3.1", [offset(), ONE, CLOSE]),
    ("AI-42a AI-42c",              "AI-42b",      "4.3.1",
        [offset(), ONE, CLOSE, offset(writable=False), op("truncate"), CLOSE]),
    ("AI-21a",                     "AI-21b",      "4.4.0", [offset(), op("rename", "01.index")]),
    ("AI-21b",                     "AI-44a",      "4.4.0", [offset(), op("rename", "none/0"), op("delete")]),
    ("AI-44a",                     "AI-44b",      "4.1.0", [offset(), op("resize", -16)]),
    ("AI-44c OI-7",                "AI-44b",      "4.1.0", [offset(), op("resize", -16), op("lookup", 1)]),
    ("AI-44c AI-42a",              "AI-44b",      "4.1.0", [offset(), ONE, op("resize", -16), CLOSE]),
    ("AI-16c AI-20a",              "AI-42b",      "4.3.1", [offset(), op("delete"), CLOSE]),
    ("AI-20a",                     "AI-16c",      "4.4.0", [offset(), op("delete"), CLOSE]),

    ("AI-31 OI-7",                 "AI-33",       "4.4.0", [offset(), op("lookup", 1)]),
    ("AI-33 OI-7",                 "AI-32 AI-35", "4.4.0", [offset(), ONE, TWO, op("lookup", 1)]),
    ("AI-32 AI-33",                "AI-30",       "4.4.0",
        [offset(20000), op("bulk append", 1, 0, 1, 1, 1026), op("lookup", 1)]),
    ("AI-33",                      "AI-32",       "4.4.0",
        [offset(20000), op("bulk append", 1, 0, 1, 1, 1025), op("lookup", 1)]),
    ("AI-30 AI-35",                "",            "4.3.1",
        [offset(20000), op("bulk append", 1, 0, 1, 1, 1100), CLOSE, op("flip bit", 8, 6), offset(), op("lookup", 9)]),
    ("AI-35",                      "AI-30",       "4.4.0", [offset(), ONE, CLOSE, offset(), op("lookup", 9)]),
    ("AI-9 OI-7",                  "",            "4.3.1",
        [offset(base=9), op("append", 9, 0), CLOSE, op("flip bit", 0, 7), offset(base=9), op("lookup", 9)]),
    ("AI-36 OI-21",                "AI-43",       "4.4.0",
        [offset(), op("bulk append", 1, 7, 1, 1, 3), op("append", 9, 9), op("fetch upper bound", 0, 9, 0)]),
    ("AI-43 OI-21",                "AI-36",       "4.4.0", [offset(), ONE, TWO, op("fetch upper bound", 0, 4, 6)]),
    ("OI-22 OI-21",                "AI-43",       "4.4.0",
        [offset(), ONE, op("fetch upper bound", 0, 10, INT_MAX)]),
    ("AI-35 OI-21",                "AI-30",       "4.4.0",
        [offset(), TWO, op("append", 3, 5), op("fetch upper bound", 0, 4, 0)]),

    ("OI-3 OI-4a",                 "OI-4b",       "3.4.1", [offset(), ONE, ONE]),
    ("OI-3 OI-4b",                 "OI-4a",       "3.5.2", [offset(), ONE, ONE]),
    ("OI-3",                       "OI-13 OI-6a", "2.4.1", [offset(8), ONE, TWO]),
    ("OI-13 OI-3",                 "",            "4.4.0", [offset(), ONE, CLOSE, offset(writable=False), TWO]),
    ("OI-13",                      "OI-3",        "4.4.0",
        [offset(), ONE, CLOSE, offset(writable=False), op("truncate"), ONE]),
    ("OI-8a OI-8c",                "OI-8b OI-8d", "4.4.0", [offset(), op("entry", 0)]),
    ("OI-8d",                      "OI-8a AI-41", "4.4.0", [offset(), ONE, op("entry", -1)]),
    ("OI-11",                      "OI-12b",      "4.4.0", [offset(), op("sanity check")]),
    ("OI-11 OI-12b",               "OI-12a",      "4.4.0", [offset(), CLOSE, op("pad file", 3, 0), offset(),
                                                            op("sanity check")]),
    ("OI-2",                       "",            "4.4.0", [offset(), ONE, op("resize", 0), op("resize", 80)]),

    ("AI-1 TI-1 TI-2 TI-3d",       "TI-3e",       "4.4.0", [time(), ENTRY]),
    ("TI-3d TI-3e",                "TI-1",        "4.4.0", [time(), op("maybe append", -1, 2**40, False)]),
    ("TI-3d TI-3e",                "TI-1",        "4.4.0", [time(), op("bulk maybe append", -1, 1, 0, 2**30, 4)]),
    ("TI-3a TI-23b",               "TI-21b",      "4.4.0", [time(12), ENTRY]),
    ("TI-3a TI-23a",               "TI-21a",      "2.4.1", [time(12), ENTRY]),
    ("OI-3 OI-23b",                "OI-6b",       "4.4.0", [offset(8), ONE, TWO]),
    ("OI-3 OI-23a",                "OI-6a",       "3.4.1", [offset(8), ONE, TWO]),
    ("OI-6a",                      "OI-23a",      "3.4.1", [offset(), ONE, op("resize", 0), op("resize", 80), TWO]),
    ("AI-16b",                     "AI-42a",      "3.9.1",
        [offset(), ONE, op("rename", "none/00.index"), op("delete"), CLOSE]),
    ("TI-3b TI-4b",                "TI-4a",       "4.4.0", [time(), ENTRY, op("maybe append", 6, 0, False)]),
    ("TI-3b TI-3d",                "TI-4b",       "4.4.0", [time(), ENTRY, op("maybe append", 6, 1, False)]),
    ("TI-3c TI-4a",                "TI-4b",       "2.4.1", [time(), ENTRY, op("maybe append", 4, 1, False)]),
    ("TI-5 TI-1",                  "",            "4.4.0", [time(12), op("maybe append", 5, 1, True)]),
    ("TI-5",                       "TI-20b",      "4.4.0", [time(12), op("maybe append", 5, 1, True),
                                                            op("maybe append", 6, 1, True)]),
    ("TI-20a AI-8",                "TI-21b",      "4.4.0", [time(), LATE]),
    ("TI-20b TI-21b",              "TI-3c TI-4b", "4.4.0", [time(), LATE, ENTRY]),
    ("TI-20b TI-21a",              "TI-3a",       "3.4.1", [time(), LATE, ENTRY]),
    ("TI-3d TI-1",                 "TI-20b",      "4.4.0", [time(), LATE, op("truncate"), ENTRY]),
    ("AI-40 TI-21b",               "TI-20b",      "4.4.0", [time(), ENTRY, op("resize", 0), op("resize", 120),
                                                            op("maybe append", 6, 2, False)]),
    ("TI-10 AI-11a",                "",           "4.4.0", [time(), ENTRY, op("resize", 0)]),
    ("TI-22",                      "TI-20b",      "4.4.0",
        [time(), ENTRY, CLOSE, time(writable=False), op("truncate"), op("maybe append", 5, 2**40, False)]),
    ("TI-7 AI-31",                 "",            "4.4.0", [time(), op("lookup", 1)]),
    ("TI-8a TI-8b",                "TI-8c",       "2.4.1", [time(), op("entry", 0)]),
    ("TI-8d",                      "",            "4.4.0", [time(), op("entry", -1)]),
    ("TI-9 AI-36",                 "",            "4.4.0",
        [time(), ENTRY, op("maybe append", 6, 1, False), op("truncate to", 1)]),
    ("TI-9",                       "AI-36",       "4.4.0",
        [time(), ENTRY, op("maybe append", 6, 1, False), op("truncate to", 2)]),
    ("TI-11a TI-11c",              "TI-11b",      "4.4.0", [time(), ENTRY, CLOSE, time(), op("sanity check")]),
    ("AI-19a",                     "TI-11a",      "4.4.0", [time(), ENTRY, CLOSE, op("sanity check")]),

    ("TX-2",                       "TX-4a",       "4.4.0", [transaction()]),
    ("TX-1 TX-2",                  "TX-3 TX-4a",  "4.4.0", [transaction(), ABORTED]),
    ("TX-3",                       "TX-1",        "4.4.0", [transaction(), ABORTED, ABORTED]),
    ("TX-2 TX-4a",                 "",            "4.4.0", [transaction(), ABORTED, CLOSE, transaction()]),
    ("TX-4a TX-1",                 "TX-3",        "4.4.0", [transaction(), ABORTED, CLOSE, transaction(), ABORTED]),
    ("TX-4b TX-21",                "",            "4.4.0", [transaction(), ABORTED, CLOSE]),
    ("TX-4b TX-3",                 "TX-21",       "4.4.0", [transaction(), ABORTED, CLOSE, ABORTED]),
    ("TX-21 TX-4b",                "TX-23",       "4.4.0",
        [transaction(), ABORTED, CLOSE, op("append aborted", 1, 5, 9, 9)]),
    ("TX-21",                      "TX-9",        "4.4.0",
        [transaction(), ABORTED, CLOSE, op("collect aborted", 0, 9)]),
    ("TX-9",                       "TX-7c",       "4.3.1", [transaction(), ABORTED, op("collect aborted", 0, 9)]),
    ("TX-7a TX-8",                 "TX-7b",       "4.3.1",
        [transaction(), ABORTED, CLOSE, op("flip bit", 0, 0), transaction(), op("all aborted")]),
    ("TX-7b TX-8",                 "TX-7a",       "4.4.0",
        [transaction(), ABORTED, CLOSE, op("flip bit", 1, 0), transaction(), op("all aborted")]),
    ("TX-7c TX-1",                 "TX-8",        "4.3.1",
        [transaction(), ABORTED, CLOSE, op("flip bit", 1, 0), transaction(), op("all aborted")]),
    ("TX-10 TX-4b",                "TX-23",       "4.4.0", [transaction(), ABORTED, op("truncate to", 4)]),
    ("TX-11 TX-4b",                "",            "4.4.0", [transaction(), ABORTED, op("reset")]),
    ("TX-12a TX-12c",              "TX-12b",      "4.4.0", [transaction(9), ABORTED, op("sanity check")]),
    ("TX-12a TX-12b",              "TX-12c",      "4.3.1", [transaction(9), ABORTED, op("sanity check")]),
    ("TX-13a",                     "TX-4b",       "4.4.0", [transaction(), op("rename", "01.txnindex")]),
    ("TX-13b",                     "",            "4.4.0", [transaction(), op("delete")]),
    ("TX-23",                      "",            "4.4.0",
        [transaction(), ABORTED, CLOSE, op("pad file", 3, 0), transaction(), ABORTED]),
]
# fmt: on


@pytest.mark.parametrize(
    ("shown", "not_shown", "release", "steps"),
    SCENARIOS,
    ids=[f"{shown.split()[0]}-{release}-{steps[-1].name}" for shown, _, release, steps in SCENARIOS],
)
def test_the_last_step_exercises_exactly_these_clauses(tmp_path, shown, not_shown, release, steps):
    clauses = exercised(tmp_path, steps, release)
    assert [clause for clause in shown.split() if clause not in clauses] == []
    assert [clause for clause in not_shown.split() if clause in clauses] == []
    assert len(set(clauses)) == len(clauses)


def test_observed_clauses_come_first(tmp_path):
    assert exercised(tmp_path, [time(), LATE]) == ("TI-20a", "AI-8")


def test_clauses_with_a_condition_come_before_all_others():
    levels = {"TI-20a": "OBSERVED", "AI-14b": "OBSERVED", "AI-8": "MUST", "OI-10": "MUST"}
    assert {clause: load_clauses()[clause].level for clause in levels} == levels
    rows = [Row(name, ANY, ANY, "", holds) for name, holds in zip(levels, (None, bool, None, bool), strict=True)]
    assert Rules(rows[::-1], "4.4.0").exercised("append", None, True) == ("AI-14b", "OI-10", "TI-20a", "AI-8")


def test_an_unsupported_operation_exercises_no_clause():
    tracked = TrackedIndex("4.4.0")
    track_step(tracked, offset(), Observation(OK, State(0, 10, False, 80, (0,))))
    assert clauses_of(ONE, tracked, Observation(Outcome("unsupported"), State(0, 10, False, 80, (0,)))) == ()


def test_a_rejected_length_unmaps_where_the_mapping_is_released_first():
    # What Kafka does from 3.9.2 on, whatever the reference makes of it.
    state = State(0, 10, False, 80, (0,))
    for release, lost in (("3.9.2", True), ("4.1.0", False)):
        tracked = TrackedIndex(release)
        track_step(tracked, offset(), Observation(OK, state))
        track_step(tracked, op("resize", -16), Observation(Outcome("io"), state))
        assert tracked.lost_mapping is tracked.closed is lost
    assert "AI-44b" in clauses_of(op("lookup", 1), _unmapped(state), Observation(Outcome("closed"), state))


def _unmapped(state: State) -> TrackedIndex:
    tracked = TrackedIndex("3.9.2")
    track_step(tracked, offset(), Observation(OK, state))
    track_step(tracked, op("resize", -16), Observation(Outcome("io"), state))
    return tracked


@pytest.mark.parametrize(
    ("clauses", "facets", "left_out"),
    [
        (("TI-20a", "AI-8"), ("bytes",), True),
        # Accepting the offset is not an allowed alternative to the error.
        (("TI-20a", "AI-8"), ("outcome", "state", "bytes"), False),
        (("TI-20b", "TI-21b"), ("outcome", "state", "bytes"), True),
        (("AI-14b", "AI-14a", "OI-10"), ("bytes",), True),
        # Other entries are left: no way of clearing stale bytes.
        (("AI-14b", "AI-14a", "OI-10"), ("state", "bytes"), False),
        (("AI-3c", "AI-3b"), ("outcome",), False),
        (("OI-3", "AI-8"), ("text",), False),
        (("OI-3", "OI-4b"), ("text",), True),
        (("OI-3", "OI-4b"), ("outcome", "text"), False),
        (("AI-14b", "AI-43"), ("outcome", "bytes"), True),
        (("AI-14b",), (), True),
        (("OI-3",), (), False),
        ((), (), False),
        ((), ("bytes",), False),
        # A flush after closing may succeed instead of raising, but leaves the same state.
        (("AI-19b",), ("outcome",), True),
        (("AI-19b",), ("outcome", "state"), False),
        (("AI-19b",), ("state",), False),
        (("AI-19b",), ("outcome", "bytes"), False),
    ],
)
def test_the_specific_clause_decides_what_it_tolerates(clauses, facets, left_out):
    assert is_observed_only(clauses, facets) is left_out


@pytest.mark.parametrize(
    ("fields", "left_out"), [(("length",), True), (("length", "full", "max_entries"), True), (("entries",), False)]
)
def test_fields_of_the_file_length_follow_from_its_bytes(fields, left_out):
    assert is_observed_only(("AI-14b", "AI-14a"), ("state", "bytes"), fields) is left_out
    assert is_observed_only(("AI-14b", "AI-14a"), ("state",), fields) is False


@pytest.mark.parametrize(
    ("clauses", "files", "left_out"),
    [
        # The number of zeros after the entries is Kafka's choice, and so are the offsets of entries, if the entries are
        # true.
        (("AI-42b",), (("0.index", ("room",)),), True),
        (("AI-42b",), (("0.index", ()),), False),
        (("SEG-4", "SEG-5"), (("0.index", ("sound",)), ("0.timeindex", ("room",))), True),
        (("SEG-4", "SEG-5"), (("0.index", ("sound",)), ("0.timeindex", ())), False),
        (("SEG-4", "SEG-5"), (("0.log", ()), ("0.index", ("sound",))), False),
        # A snapshot may be missing, but not wrong.
        (("LG-33", "LG-7"), (("00000000000000000002.snapshot", ("absent.snapshot",)),), True),
        (("LG-33", "LG-7"), (("00000000000000000002.snapshot", ()),), False),
        (("LG-33", "LG-7"), (("00000000000000000002.timeindex", ("absent.timeindex",)),), False),
        (("LG-4b",), (("leader-epoch-checkpoint", ()),), True),
        (("LG-4",), (("leader-epoch-checkpoint", ()),), False),
        (("AI-32", "AI-33", "OI-7"), (("0.index", ("room",)),), False),
    ],
)
def test_different_files_are_judged_by_the_kind_of_difference(clauses, files, left_out):
    assert is_observed_only(clauses, ("bytes",), files=files) is left_out


def test_a_clause_that_tolerates_nothing_omits_nothing():
    assert not is_observed_only(("AI-32", "AI-33"))
    assert not is_observed_only(("AI-32", "AI-33", "OI-7"), ("outcome",))


def test_a_field_is_tolerated_with_its_parts():
    fields = ("bytes_since_last_index_entry", "offset_index.entries", "offset_index.last")
    files = (("0.index", ("sound",)),)
    assert is_observed_only(("SEG-4",), ("state", "bytes"), fields, files)
    assert not is_observed_only(("SEG-4",), ("state", "bytes"), (*fields, "size"), files)


def test_an_unknown_facet_is_rejected():
    with pytest.raises(ValueError, match="unknown facet file; choose from outcome, text, state, bytes"):
        is_observed_only(("AI-14b",), ("file",))
