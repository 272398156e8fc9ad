"""Level must: divergences that count are checked, shrunk and replayed by the same rules."""

from __future__ import annotations

import runpy
import shlex
import sys
from dataclasses import replace

import pytest

from conformance.errors import ToolError
from conformance.events import Diverged, Event, Result
from conformance.implementations.kidx.index import ReferenceIndex
from conformance.lockstep import Divergence, DivergenceError, Lockstep
from conformance.lockstep.comparison import compare_with_reference
from conformance.operations import Observation, Operation, Outcome
from conformance.operations.trace import Trace
from conformance.runs.divergences.deduplication import deduplicate
from conformance.runs.divergences.signatures import Buckets
from conformance.runs.plan import Plan
from conformance.runs.profiles import PROFILES
from conformance.runs.replay import replay
from conformance.runs.reproducers import python_reproducer
from conformance.runs.runner import run

TRIMMING = "python:tests.adapters.trimming_index:open_index"
OFF_BY_ONE = "python:tests.adapters.trimming_index:open_off_by_one"
OPEN = Operation("open", ("offset", "0.index", 0, 64, True))
STEPS = (OPEN, Operation("append", (1, 0)), Operation("close"), OPEN, Operation("lookup", (1,)))


def divergence(*clauses, expected=None, actual=None, aspects=("outcome",), **options):
    pair = (Outcome(None, None) if expected is None else expected, Outcome(None, 2) if actual is None else actual)
    return Divergence(1, Operation("append", (1, 0)), "mine 4.4.0", "4.4.0", "kidx", aspects, *pair, clauses, **options)


@pytest.mark.parametrize(
    ("clauses", "options", "counts"),
    [
        (("OI-7",), {}, True),
        # Kafka's own way alone, whatever differs.
        (("AI-42b",), {"aspects": ("bytes",), "files": (("0.index", ()),)}, False),
        (("AI-19d", "OI-23b"), {"aspects": ("outcome", "bytes")}, False),
        ((), {}, False),
        # A program that has crashed breaks whatever was promised.
        ((), {"actual": Outcome("failure", None, "ended")}, True),
    ],
)
def test_which_divergences_count_at_level_must(clauses, options, counts):
    assert divergence(*clauses, **options).counts("must") is counts
    assert divergence(*clauses, **options).counts("observed")


@pytest.mark.parametrize("shown", [(), (5, -1), (1, 2, 3, 4), 7, "starts"])
def test_what_a_broker_shows_is_no_outcome(shown):
    one = divergence("OI-7", expected=shown, actual=Outcome(None, 2))
    assert (one.outcomes, one.are_errors, one.counts("must")) == (None, (False, False), True)


def distinct(one):
    buckets = Buckets()
    buckets.record(one, [OPEN, one.operation])
    (found,) = deduplicate("offset", buckets, lambda _: "mine", {})
    return found


def test_shrinking_keeps_that_a_promise_is_broken():
    found = distinct(divergence("AI-19d", "OI-3"))
    assert found.matches_participant(divergence("AI-19d", "OI-3"))
    assert not distinct(divergence("OI-3", aspects=("bytes",))).matches_participant(
        divergence("AI-14b", "OI-3", aspects=("bytes",))
    )
    observed = distinct(divergence("AI-42b", aspects=("bytes",)))
    assert observed.matches_participant(divergence("AI-42b", aspects=("bytes",)))


def test_shrinking_does_not_turn_an_accepted_call_into_an_error():
    closed, offset = Outcome("closed", None), Outcome("invalid_offset", None)
    accepted = distinct(divergence("OI-3", expected=closed))
    assert accepted.matches_participant(divergence("OI-3", expected=offset))
    assert not accepted.matches_participant(divergence("OI-3", expected=closed, actual=offset))
    refused = distinct(divergence("OI-3", expected=closed, actual=offset))
    assert not refused.matches_participant(divergence("OI-3", expected=closed))


def test_two_kinds_of_crash_are_equally_grave():
    """Whatever else is left different by it: its steps may become fewer."""
    crash = Outcome("failure", None, "ended")
    several = distinct(divergence("OI-3", actual=crash, aspects=("outcome", "bytes")))
    assert several.matches_participant(divergence("OI-5", "OI-3", actual=crash))


def events_of(implementation, directory, level, kind=Diverged, **options):
    events: list[Event] = []
    plan = Plan(("4.4.0",), (implementation,), ("offset",), PROFILES["dev"], directory, level=level, replays=False)
    run(replace(plan, max_examples=15, **options), events.append)
    return [event for event in events if isinstance(event, kind)]


@pytest.mark.thorough
def test_a_file_that_is_trimmed_on_close_is_no_divergence(tmp_path):
    """That also holds where the tail that 4.4.0 keeps after the entries is not zeros."""
    assert events_of(TRIMMING, tmp_path, "must") == []
    assert {event.clause for event in events_of(TRIMMING, tmp_path, "observed")} == {"AI-42b"}


@pytest.mark.thorough
@pytest.mark.parametrize(("level", "said"), [("must", "tolerated"), ("observed", "diverges")])
def test_clauses_below_the_level_do_not_diverge(tmp_path, level, said):
    """A step that breaks a guarantee may also contradict a clause about callers of the class."""
    (result,) = events_of("mutant:forgets-to-delete", tmp_path, level, Result, shrink_time=0.0)
    assert {
        clause: said
        for clause, said in result.verdicts.items()
        if said in ("diverges", "tolerated", "expected-divergence")
    } == {
        "AI-20a": said,
        "AI-20b": "diverges",
    }


@pytest.mark.thorough
def test_the_printed_command_stops_where_the_run_has_stopped(tmp_path):
    (event,) = events_of(OFF_BY_ONE, tmp_path, "must")
    words = shlex.split(event.replay)
    assert words[-2:] == ["--level", "must"]
    trace = Trace.load(event.trace)
    assert trace.provenance["level"] == "must"
    for level in ("must", None):
        found = replay(trace, ["4.4.0"], [OFF_BY_ONE], level=level)
        assert (found.verdict, found.steps) == ("FAILED", len(trace.operations))
        assert replay(trace, ["4.4.0"], [TRIMMING], level=level).verdict == "FIXED"


def test_a_replay_ignores_divergences_below_its_level():
    trace = Trace("offset", "4.4.0", STEPS[:3], provenance={"level": "must"})
    assert replay(trace, ["4.4.0"], [TRIMMING]).verdict == "FIXED"
    assert replay(trace, ["4.4.0"], [TRIMMING], level="observed").steps == 3


@pytest.mark.parametrize(("level", "says"), [("must", "FIXED"), ("observed", None)])
def test_an_exported_program_judges_at_the_level_of_its_trace(level, says, tmp_path, monkeypatch, capsys):
    """The index trims its file when it is closed, which 4.4.0 does not (AI-42b)."""
    program = tmp_path / "ticket.py"
    trace = Trace("offset", "4.4.0", STEPS[:3], provenance={"level": level})
    program.write_text(python_reproducer(trace, "4.4.0", TRIMMING, "ticket"), "utf-8")
    monkeypatch.setattr(sys, "argv", [str(program)])
    if says is None:
        with pytest.raises(AssertionError, match="step 3"):
            runpy.run_path(str(program), run_name="__main__")
    else:
        runpy.run_path(str(program), run_name="__main__")
        assert capsys.readouterr().out.splitlines()[-1] == says


def test_steps_that_an_implementation_has_not_executed_are_not_fixed():
    """Its file has no zeros that would count as entries in the fourth step, so that it has left."""
    trace = Trace("offset", "4.4.0", STEPS, provenance={"level": "must"})
    with pytest.raises(ToolError, match="cannot execute the steps after step 4"):
        replay(trace, ["4.4.0"], [OFF_BY_ONE])


def test_a_replay_continues_to_the_recorded_step():
    steps = (OPEN, Operation("append", (1, 0)), Operation("lookup", (1,)), Operation("lookup", (1,)))
    failure = {"step": 3, "participant": "mine", "release": "4.4.0", "against": "kidx", "aspects": ["outcome"]}
    said = []

    def on_result(number, _operation, seen, found):
        said.append((number, seen is not None, found is not None))

    rest = {"expected": None, "actual": None, "clauses": ["OI-7"]}
    found = replay(Trace("offset", "4.4.0", steps, failure | rest), ["4.4.0"], [OFF_BY_ONE], on_result)
    assert (found.verdict, found.steps, found.divergence.step) == ("FAILED", 4, 3)
    assert said[2:] == [(2, True, True), (3, False, True)]
    later = Trace("offset", "4.4.0", (*steps[:3], Operation("flush")), failure | rest)
    found = replay(later, ["4.4.0"], [OFF_BY_ONE])
    assert (found.verdict, found.steps, found.divergence.step) == ("FAILED", 4, 2)


ROOM = (("0.index", ("room",)),)
FINISHED = (("0.timeindex", ("room", "longer")),)


@pytest.mark.parametrize(
    ("clauses", "options", "counts"),
    [
        # An error is an error, unless a clause promises which one it is.
        (("OI-3",), {"expected": Outcome("invalid_argument"), "actual": Outcome("closed")}, False),
        (("LG-12",), {"expected": Outcome("out_of_range"), "actual": Outcome("invalid_argument")}, True),
        (("OI-3",), {"expected": Outcome("invalid_argument"), "actual": Outcome()}, True),
        # Only a caller of the class sees the length of a file, except for the last entry of a finished time index.
        (("OI-2",), {"aspects": ("state", "bytes"), "fields": ("length", "full"), "files": ROOM}, False),
        (("OI-2",), {"aspects": ("state",), "fields": ("length", "entries")}, True),
        (("AI-42a",), {"aspects": ("bytes",), "files": FINISHED}, True),
        # A clean close promises the length of the file, but not that a reader changes it.
        (("AI-42a",), {"aspects": ("bytes",), "files": ROOM}, True),
        (("AI-42c", "AI-42a"), {"aspects": ("bytes",), "files": ROOM}, False),
        # A second close is specific to Java.
        (("AI-20a", "AI-16c"), {"expected": Outcome(), "actual": Outcome("closed")}, False),
        # No result of a broken index is right, and an existing file may have padding.
        (("AI-35", "OI-7"), {}, False),
        (("AI-46", "OI-3"), {"expected": Outcome("invalid_argument"), "actual": Outcome()}, False),
        (("TI-24", "TI-3a"), {"expected": Outcome("invalid_argument"), "actual": Outcome()}, False),
    ],
)
def test_only_visible_divergences_count_at_level_must(clauses, options, counts):
    found = divergence(*clauses, **options)
    assert found.counts("must") is counts
    assert found.counts("observed")


@pytest.mark.parametrize(
    ("clauses", "options", "counts"),
    [
        (("AI-20a",), {"expected": Outcome(), "actual": Outcome("closed")}, True),
        (("AI-3a",), {"aspects": ("state", "bytes"), "fields": ("length",), "files": ROOM}, True),
        (("AI-35",), {}, False),
        (("AI-42b",), {"aspects": ("bytes",), "files": ROOM}, False),
    ],
)
def test_level_api_counts_promises_to_callers_of_the_classes(clauses, options, counts):
    assert divergence(*clauses, **options).counts("api") is counts


RESULT = (5, 5, 0, 100, -1, 0, 68)
"""The result of an append: first and last offset, epoch, largest timestamp, append time, log start offset, size."""


@pytest.mark.parametrize(
    ("name", "clauses", "changed", "counts"),
    [
        # The response to a producer has the first offset, the append time and the log start offset.
        ("append_as_leader", ("LG-86", "LG-98", "LG-1"), {0: 6}, True),
        ("append_as_leader", ("LG-86", "LG-98", "LG-1"), {4: 9}, True),
        ("append_as_leader", ("LG-86", "LG-98", "LG-1"), {5: 1}, True),
        ("append_as_leader", ("LG-86", "LG-98", "LG-1"), {1: 6, 2: -1, 3: 0, 6: 0}, False),
        ("append_as_leader", ("LG-86", "LG-98", "LG-1"), {0: 6, 1: 6}, True),
        # A duplicate has its offset; no page promises a time.
        ("append_as_leader", ("LG-87", "LG-100"), {0: 6}, True),
        ("append_as_leader", ("LG-87", "LG-100"), {4: 100}, False),
        # No client gets the result of a follower.
        ("append_as_follower", ("LG-2", "LG-99"), {0: -1, 4: 9}, False),
        # That a batch may be rejected permits no other offset.
        ("append_as_leader", ("LG-51b", "LG-86", "LG-98", "LG-1"), {0: 6}, True),
        ("append_as_leader", ("LG-51b", "LG-86", "LG-98", "LG-1"), {3: 6}, False),
        ("append_as_leader", ("LG-51b", "LG-86", "LG-98", "LG-1"), None, False),
        ("append_as_leader", ("LG-86", "LG-98", "LG-1"), None, True),
    ],
)
def test_the_result_of_an_append_counts_field_by_field(name, clauses, changed, counts):
    actual = Outcome("invalid_timestamp")
    if changed is not None:
        actual = Outcome(None, tuple(changed.get(number, value) for number, value in enumerate(RESULT)))
    operation = Operation(name, ([{"records": [[0, 100]]}], 0))
    found = replace(divergence(*clauses, expected=Outcome(None, RESULT), actual=actual), operation=operation)
    assert found.counts("must") is counts


class Strange(ReferenceIndex):
    """An index that answers in its own way from some moment on."""

    def __init__(self):
        super().__init__("4.4.0")
        self.name = "strange 4.4.0"
        self.changes = {}

    def perform(self, operation):
        observation = super().perform(operation)
        change = self.changes.get(operation.name)
        if change is None or observation.state is None:
            return observation
        if isinstance(change, str):
            return observation._replace(outcome=Outcome(change))
        return observation._replace(outcome=Outcome(None, change))


def last_difference(scratch, changes, *before, last):
    """Return the divergence if the last of some steps has another result."""
    found, subject = [], Strange()
    lockstep = Lockstep([subject], scratch, releases=["4.4.0"], on_divergence=lambda each: found.append(each) or True)
    lockstep.begin()
    for step in before:
        lockstep.perform(step)
    assert not found
    subject.changes = changes
    lockstep.perform(last)
    lockstep.end()
    return found[0]


APPEND = Operation("append", (1, 0))
OPEN_TIME = Operation("open", ("time", "0.timeindex", 0, 96, True))


@pytest.mark.parametrize(
    ("changes", "steps", "counts"),
    [
        # No broker asks for a slot below 0, or has a position or a timestamp there.
        ({"entry": (9, 9)}, (OPEN, APPEND, Operation("entry", (-536870912,))), False),
        ({"entry": (9, 9)}, (OPEN, APPEND, Operation("entry", (0,))), True),
        ({"lookup": (9, 9)}, (OPEN, Operation("append", (1, -1)), Operation("lookup", (1,))), False),
        ({"lookup": (9, 9)}, (OPEN, APPEND, Operation("lookup", (1,))), True),
        ({"maybe_append": "io"}, (OPEN_TIME, Operation("maybe_append", (-2, 1, False))), False),
        ({"maybe_append": "io"}, (OPEN_TIME, Operation("maybe_append", (-1, 1, False))), True),
        # A file that no append leaves may be rejected on opening, or by the sanity check, or read in any way.
        ({"open": "corrupt"}, (OPEN, APPEND, Operation("crash"), Operation("pad_file", (1, 0)), OPEN), False),
        ({"open": "corrupt"}, (OPEN, APPEND, Operation("crash"), Operation("pad_file", (8, 255)), OPEN), False),
        ({"lookup": (9, 9)}, (OPEN, APPEND, Operation("crash"), Operation("pad_file", (8, 255)), OPEN,
                              Operation("lookup", (1,))), False),
        ({"lookup": (9, 9)}, (OPEN, APPEND, Operation("crash"), Operation("pad_file", (8, 255)), OPEN,
                              Operation("truncate"), APPEND, Operation("lookup", (1,))), True),
        # A lookup of an upper bound skips the first entry, wherever its position comes from (AI-43).
        ({"fetch_upper_bound": (1, 0)}, (OPEN, APPEND, Operation("close"), Operation("flip_bit", (7, 6)), OPEN,
                                         Operation("fetch_upper_bound", (0, 64, 0))), False),
        ({"lookup": (9, 9)}, (OPEN, APPEND, Operation("crash"), Operation("cut_file", (8,)), OPEN,
                              Operation("lookup", (1,))), True),
    ],
)  # fmt: skip
def test_operations_that_no_broker_executes_break_no_promise(tmp_path, changes, steps, counts):
    *before, last = steps
    assert last_difference(tmp_path, changes, *before, last=last).counts("must") is counts


def test_an_unreadable_file_is_no_matter_of_the_entry_layout(tmp_path):
    """The error for a partial entry, or of ``entry``, has precedence over the layout and the last entry."""
    ragged = OPEN, APPEND, Operation("crash"), Operation("pad_file", (1, 0))
    refused = last_difference(tmp_path / "open", {"open": "corrupt"}, *ragged, last=OPEN)
    failing = last_difference(tmp_path / "entry", {"entry": "io"}, OPEN, APPEND, last=Operation("entry", (0,)))
    assert not {"OI-1", "OI-2"} & {*refused.clauses, *failing.clauses}
    assert "OI-8a" in failing.clauses


class OtherRefusal(ReferenceIndex):
    """Index that accepts an append that must be rejected."""

    def __init__(self):
        super().__init__("4.4.0")
        self.name = "other 4.4.0"

    def perform(self, operation):
        observation = super().perform(operation)
        return observation._replace(outcome=Outcome(None, None)) if observation.outcome.error else observation


def test_a_closed_index_breaks_no_promise(tmp_path):
    """Users cannot see the precedence of two errors, offset or closed."""
    steps = (OPEN, Operation("close"), Operation("append", (1 << 40, 0)))
    trace = Trace("offset", "4.4.0", steps, provenance={"level": "must"})
    implementation = OtherRefusal()
    lockstep = Lockstep([implementation], tmp_path, releases=["4.4.0"])
    lockstep.begin()
    *before, last = trace.operations
    for step in before:
        lockstep.perform(step)
    with pytest.raises(DivergenceError) as raised:
        lockstep.perform(last)
    differing = raised.value.divergence
    assert differing.operation.name == "append"
    assert {"OI-3", "OI-5", "AI-8"} & set(differing.clauses)
    assert differing.counts("observed")
    assert not differing.counts("must")
    # The same difference of an index in use counts where its promise is broken.
    assert replace(differing, promised=True, actual=Outcome(None, None)).counts("must")


def test_an_unexpected_error_comes_with_its_text():
    """The text is the program's own; the reference's error has one that says more, and is compared elsewhere."""
    done, full = (Observation(outcome, None) for outcome in (Outcome(), Outcome("io", None, "the disk is full")))
    pairs = compare_with_reference((done, b""), (full, b""), speaks_kafka=False)
    assert pairs["outcome"] == ((None, None), ("io", None, "the disk is full"))
    assert compare_with_reference((full, b""), (full, b""), speaks_kafka=False)["outcome"] == (
        ("io", None),
        ("io", None),
    )
    assert compare_with_reference((done, b""), (full, b""), speaks_kafka=True)["outcome"][1] == ("io", None)
