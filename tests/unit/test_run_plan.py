"""The plan of a run: programs that take turns, workers, memory, completeness and determinism."""

from __future__ import annotations

import gc
import shlex
import sys
import time
import warnings
import weakref
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest
from hypothesis import HealthCheck, Phase, settings
from hypothesis.internal.conjecture import providers

from conformance.attribution.tables import clauses_for, operations_for
from conformance.errors import IncompleteError, NotDrivenError, NothingComparedError
from conformance.events import Diverged, Event, Progressed, Result, RunFinished
from conformance.implementations.kidx.index import ReferenceIndex
from conformance.implementations.process import ProcessIndex
from conformance.implementations.protocol import takes
from conformance.implementations.python.objects import PythonObjectIndex
from conformance.kafka.releases import RELEASES
from conformance.operations import Operation
from conformance.runs import determinism
from conformance.runs import plan as plans
from conformance.runs.chunk_workers import ChunkQueue, ChunkQueues
from conformance.runs.chunks import CHUNK, ChunkResult, chunks_of
from conformance.runs.completeness import clauses_compared, compared_in
from conformance.runs.determinism import NondeterminismWarning, without_local_constants
from conformance.runs.gc_tuning import RARE, infrequent_gc
from conformance.runs.plan import Plan
from conformance.runs.profiles import PROFILES, RANDOM, ROUND, Seed, format_seed, parse_seed, resolve_seed
from conformance.runs.runner import run
from conformance.runs.verdicts import _lacks
from conformance.verdict import Comparison, combined

# -- Plan of a run: its profile, its seed, and the chunks that helpers take ahead of it ----------------------------
# Profiles decide how much a run does, and nothing in the environment does.


def test_the_profiles_are_ordered_by_size():
    assert list(PROFILES) == ["dev", "ci", "nightly"]
    assert all(profile.name == name for name, profile in PROFILES.items())
    sizes = [profile.examples * profile.steps for profile in PROFILES.values()]
    assert sizes == sorted(sizes)


def test_dev_and_ci_are_deterministic_and_nightly_is_not():
    assert {name: profile.seed is not None for name, profile in PROFILES.items()} == {
        "dev": True,
        "ci": True,
        "nightly": False,
    }


@pytest.mark.parametrize("name", PROFILES)
def test_settings(name):
    made = PROFILES[name].settings(7)
    assert (made.max_examples, made.stateful_step_count) == (7, PROFILES[name].steps)
    assert made.deadline is None
    assert made.database is None
    assert made.backend == "hypothesis"
    assert not made.derandomize, "the seed is ours"
    assert set(made.phases) == {Phase.generate}
    assert set(made.suppress_health_check) == set(HealthCheck)
    assert not made.print_blob
    assert not made.report_multiple_bugs


def test_no_profile_of_hypothesis_changes_a_run():
    before = settings.get_profile("kidx")
    settings.register_profile("hasty", max_examples=1, stateful_step_count=1, derandomize=True, deadline=1)
    settings.load_profile("hasty")
    try:
        made = PROFILES["dev"].settings(50)
        assert (made.max_examples, made.stateful_step_count, made.derandomize, made.deadline) == (50, 30, False, None)
    finally:
        settings.load_profile("kidx")
    assert settings.get_profile("kidx") is before


def test_a_round_is_a_number_of_whole_hands():
    """Ten examples: after the tenth Hypothesis starts to vary the last one (see ``CHUNK``)."""
    assert CHUNK == 10
    assert ROUND % CHUNK == 0


@pytest.mark.parametrize("name", ["dev", "ci"])
def test_a_fixed_profile_has_the_same_seed_every_time(name):
    assert resolve_seed(None, PROFILES[name].seed) == Seed(0, "fixed")


def test_nightly_draws_a_new_seed_each_time():
    drawn = {resolve_seed(None, PROFILES["nightly"].seed) for _ in range(3)}
    assert {seed.source for seed in drawn} == {"drawn"}
    assert len(drawn) > 1


def test_random_draws_a_seed_for_any_profile():
    drawn = {resolve_seed(RANDOM, 0) for _ in range(3)}
    assert {seed.source for seed in drawn} == {"drawn"}
    assert len(drawn) > 1


@pytest.mark.parametrize("fixed", [None, 0])
def test_a_given_seed_is_used(fixed):
    assert resolve_seed(0, fixed) == Seed(0, "given")
    assert resolve_seed(7, fixed) == Seed(7, "given")


def test_how_a_seed_is_written():
    assert (parse_seed("7"), parse_seed("-1"), parse_seed("random")) == (7, -1, RANDOM)
    for text in ("", "x", "7.5", "RANDOM"):
        with pytest.raises(ValueError, match="neither a number nor 'random'"):
            parse_seed(text)


def test_how_a_seed_is_shown():
    assert [str(Seed(7, source)) for source in ("given", "fixed", "drawn")] == ["7", "7 (fixed)", "7 (drawn)"]
    assert format_seed(7, "") == "7", "of a stream that does not tell"


def chunks(machine, examples=20):
    return list(chunks_of(machine, examples, 0))


def taken(tables):
    found = tables.take()
    return None if found is None else (found[0].machine, found[1].number)


def test_workers_continue_with_the_next_machine_and_the_run_finds_their_results():
    tables = ChunkQueues(ChunkQueue(name, chunks(name), None) for name in ("offset", "time"))
    assert taken(tables) == ("offset", 0)  # before the run has come to it
    offset = tables.advance_to("offset", chunks("offset"), None)
    assert [chunk.number for chunk in (offset.take(), tables.take()[1]) if chunk] == [1, 0]
    assert offset.take() is None
    time_table, chunk = tables.take()
    assert (time_table.machine, chunk.number) == ("time", 1)
    time_table.put(chunk, ChunkResult(1))
    assert tables.advance_to("time", chunks("time"), None) is time_table
    assert time_table.is_done(time_table.chunks[1])
    assert time_table.wait(time_table.chunks[1]).number == 1
    assert tables.take() is None


def test_remaining_chunks_of_a_skipped_machine_are_not_run():
    tables = ChunkQueues(ChunkQueue(name, chunks(name), None) for name in ("offset", "segment", "time"))
    offset = tables.advance_to("offset", chunks("offset"), None)
    tables.advance_to("time", chunks("time"), None)
    assert offset.take() is None
    assert taken(tables) == ("time", 0)


def test_a_machine_that_cannot_start_early_is_run_from_its_own_chunks():
    tables = ChunkQueues(())
    assert tables.take() is None
    late = tables.advance_to("time", chunks("time", 10), time.monotonic() - 1)
    assert late.is_late()
    assert taken(tables) == ("time", 0)
    assert tables.take() is None


# -- Programs for releases with the same rules take turns at drawn examples; all replay the regression traces ------


ADAPTERS = Path(__file__).parents[1] / "adapters"
INDEX = f"exec:{sys.executable} {ADAPTERS / 'line_index.py'} --release {{release}}"
GROWING = f"exec:{sys.executable} {ADAPTERS / 'growing_index.py'}"
OF_2_4 = ("2.4.1", "2.8.2", "3.4.1")
"""Releases with the same rules of indexes."""


def performed(directory, implementation, releases, examples=6, **options):
    events = []
    plan = Plan(
        releases, (implementation,), ("offset",), PROFILES["dev"], directory, seed=1, max_examples=examples, **options
    )
    run(plan, events.append)
    return events


def results(events):
    return {event.release: event for event in events if isinstance(event, Result)}


@pytest.mark.thorough
def test_each_drawn_example_is_for_one_of_the_releases_with_the_same_rules(tmp_path):
    found = results(performed(tmp_path, INDEX, (*OF_2_4, "4.3.1"), replays=False))
    assert {release: result.examples for release, result in found.items()} == dict.fromkeys(OF_2_4, 2) | {"4.3.1": 6}
    assert sum(found[release].steps for release in OF_2_4) == found["4.3.1"].steps
    assert [result.details.get("takes_turns") for result in found.values()] == [3, 3, 3, None]
    # No program is credited with another's steps.
    opened = [found[release].clauses["AI-3a"] for release in OF_2_4]
    assert all(opened)
    alone = results(performed(tmp_path / "alone", INDEX, OF_2_4[:1], replays=False))
    assert sum(opened) == alone["2.4.1"].clauses["AI-3a"]


@pytest.mark.thorough
def test_what_only_others_were_asked_was_not_run(tmp_path):
    """It did not fail: another release had the example with this operation."""
    found = results(performed(tmp_path, INDEX, OF_2_4, examples=3, replays=False))
    assert all(all(result.operations.values()) for result in found.values())
    assert len({tuple(result.operations) for result in found.values()}) > 1


@pytest.mark.thorough
def test_regression_traces_are_replayed_by_all_of_them(tmp_path):
    found = results(performed(tmp_path, INDEX, OF_2_4, examples=3))
    alone = results(performed(tmp_path / "alone", INDEX, OF_2_4[:1], examples=1))["2.4.1"]
    assert {result.examples for result in found.values()} == {alone.examples}


def test_a_divergence_of_one_of_them_is_found(tmp_path):
    found = performed(tmp_path, f"{GROWING} --defect lookup", OF_2_4, replays=False, level="must", shrink_time=0)
    (difference,) = (event for event in found if isinstance(event, Diverged))
    assert difference.clause == "OI-7"


def test_other_implementations_take_no_turns(tmp_path):
    found = results(performed(tmp_path, "python:tests.adapters.python_index:open_index", OF_2_4, replays=False))
    assert {result.examples for result in found.values()} == {6}


# -- The number of processes of a run ------------------------------------------------------------------------------


MACHINES = ("offset", "time", "transaction", "segment", "log")


def plan(releases=("4.4.0",), profile="dev", **changes):
    return Plan(releases, ("jvm",), MACHINES, PROFILES[profile], Path("traces"), **changes)


@pytest.fixture(autouse=True)
def _four_processors(monkeypatch):
    monkeypatch.setattr(plans, "usable_cpus", lambda: 4)


def test_a_short_run_of_one_release_starts_no_extra_worker():
    assert plans.extra_workers_for(plan(jobs=None), MACHINES) == 0


def test_all_releases_and_long_profiles_use_all_processors():
    assert plans.extra_workers_for(plan(RELEASES, jobs=None), MACHINES) == 3
    assert plans.extra_workers_for(plan(profile="nightly", jobs=None), MACHINES) == 3


def test_a_requested_number_is_used():
    assert [plans.extra_workers_for(plan(jobs=jobs), MACHINES) for jobs in (1, 2, 5)] == [0, 1, 4]


def test_a_plan_has_one_job_by_default():
    assert plans.extra_workers_for(plan(), MACHINES) == 0


def test_a_run_without_machines_starts_no_extra_worker():
    assert plans.extra_workers_for(plan(jobs=5), ()) == 0


# -- Negative sizes, which only Kafka's classes and kidx receive: the implementation is queried once ---------------


NEGATIVE = Operation("resize", (-12,))


@pytest.mark.parametrize("foreign", [ProcessIndex, PythonObjectIndex])
def test_others_take_no_negative_sizes(foreign):
    assert not takes(foreign, NEGATIVE)
    assert takes(foreign, Operation("resize", (0,)))
    assert takes(foreign, Operation("lookup", (-12,)))


def test_kidx_takes_them():
    assert takes(ReferenceIndex("4.4.0"), NEGATIVE)


# -- Collections are rare inside a run, and what they were before afterwards ---------------------------------------


class Node:
    """Something that can be in a cycle."""


def test_thresholds_are_restored_and_nothing_remains_frozen():
    before = gc.get_threshold()
    with infrequent_gc():
        assert gc.get_threshold() == RARE
        assert gc.get_freeze_count() > 0
    assert gc.get_threshold() == before
    assert gc.get_freeze_count() == 0


def test_an_error_passes_and_restores_them_as_well():
    before = gc.get_threshold()
    with pytest.raises(KeyError), infrequent_gc():
        {}["nothing"]
    assert gc.get_threshold() == before
    assert gc.get_freeze_count() == 0


def test_cycles_of_a_run_are_still_found():
    with infrequent_gc():
        node = Node()
        node.itself = node
        gone = weakref.ref(node)
        del node
        gc.collect()
        assert gone() is None


# -- Local constants of Hypothesis: excluded where possible, otherwise a clear warning -----------------------------


ADAPTER = Path(__file__).parents[1] / "adapters" / "line_index.py"


def test_this_hypothesis_allows_it():
    """If this fails, Hypothesis has changed: check how it finds local constants now."""
    found = providers._get_local_constants
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with without_local_constants():
            assert providers._get_local_constants is not found
            assert len(providers._get_local_constants()) == 0
    assert providers._get_local_constants is found


class _OtherShape:
    """Cache that cannot be emptied as in this version."""


def spoil(monkeypatch, how):
    if how == "no function":
        monkeypatch.delattr(providers, "_get_local_constants")
    elif how == "no cache":
        monkeypatch.delattr(providers, "CONSTANTS_CACHE")
    elif how == "another cache":
        monkeypatch.setattr(providers, "CONSTANTS_CACHE", _OtherShape())
    elif how == "no module":
        monkeypatch.setitem(sys.modules, determinism._CONSTANTS, None)
    else:
        monkeypatch.setattr(sys.modules[determinism._CONSTANTS], "Constants", lambda *, needed: needed)


@pytest.mark.parametrize("how", ["no function", "no cache", "another cache", "no module", "other constants"])
def test_another_hypothesis_is_left_unchanged_with_a_warning(monkeypatch, how):
    spoil(monkeypatch, how)
    found = vars(providers).copy()
    with (
        pytest.warns(NondeterminismWarning, match=r"^Hypothesis \S+ draws constants .* the same seed may give other"),
        without_local_constants(),
    ):
        assert vars(providers) == found
    assert vars(providers) == found


@pytest.mark.thorough
def test_a_run_continues_without_it(monkeypatch, tmp_path):
    """Hypothesis itself works on: only what replaces its function finds nothing to replace."""
    monkeypatch.setattr(sys.modules[determinism._CONSTANTS], "Constants", lambda *, needed: needed)
    monkeypatch.setattr(providers, "_get_local_constants", lambda: providers.GLOBAL_CONSTANTS)
    events = []
    adapter = shlex.join(["exec:" + sys.executable, str(ADAPTER)])
    plan = Plan(("4.4.0",), (adapter,), ("offset",), PROFILES["dev"], tmp_path, seed=1, max_examples=3, replays=False)
    with pytest.warns(NondeterminismWarning):
        run(plan, events.append)
    assert isinstance(events[-1], RunFinished)
    assert events[-1].verdict == "conforms"


# -- A run states what it has compared, from the results of its machines -------------------------------------------


WHOLE = Result(
    "offset",
    "jvm",
    "4.4.0",
    10,
    300,
    1.0,
    0,
    {"OI-7": 3, "OI-1": 0},
    {"OI-7": "conforms", "OI-1": "not-run"},
    operations={"open": 10, "append": 20, "lookup": 3, "trim": 1},
)
IDLE = replace(WHOLE, implementation="mine", steps=0, verdicts={"OI-7": "could-not-run"}, operations={})


def test_a_clause_that_no_step_exercised_does_not_make_a_run_incomplete():
    assert compared_in([WHOLE], 0) == Comparison(34)
    assert compared_in([WHOLE], 0).settle() == 0
    assert clauses_compared([WHOLE], "observed") == (1, 2)


@pytest.mark.parametrize(
    ("operations", "details", "gap"),
    [
        ({"open": 10, "append": 20}, {}, "lookup of the offset machine was not run with jvm 4.4.0"),
        (
            WHOLE.operations,
            {"cut_by_time": True, "not_executed": {"regression traces": [0, 5], "examples": [3, 4]}},
            "3 of 4 examples of the offset machine not run (--max-time)",
        ),
    ],
)
def test_what_was_not_compared_is_a_gap(operations, details, gap):
    compared = compared_in([replace(WHOLE, operations=operations, details=details)], 0)
    assert [each for each in compared.gaps if each.startswith(gap)] == list(compared.gaps)
    assert compared.conclusion == "incomplete"
    with pytest.raises(IncompleteError, match="--allow-incomplete accepts this"):
        compared.settle()
    assert compared.settle(allow_incomplete=True) == 0
    assert replace(compared, differences=1).settle() == 1


@pytest.mark.parametrize(
    ("operations", "details", "failure"),
    [
        ({"open": 10, "append": 20, "lookup": 0}, {}, "lookup of the offset machine could not run with jvm 4.4.0"),
        ({"open": 9, "append": 9}, {"lacks": ["lookup"]}, "jvm 4.4.0 does not have lookup, without which the"),
        (WHOLE.operations | {"trim": 0}, {}, "trim of the offset machine could not run with jvm"),
        (
            WHOLE.operations,
            {"failures": {"not executed": 7, "examples": 9}},
            "7 of 9 examples of the offset machine not run with jvm 4.4.0, which failed too often",
        ),
        (WHOLE.operations, {"ended": "the broker is gone"}, "the offset machine ended early with jvm 4.4.0: the"),
    ],
)
def test_what_could_not_run_is_never_accepted(operations, details, failure):
    compared = compared_in([replace(WHOLE, operations=operations, details=details)], 0)
    assert [each for each in compared.failures if each.startswith(failure)] == list(compared.failures)
    assert (compared.conclusion, compared.gaps) == ("incomplete", ())
    with pytest.raises(IncompleteError) as error:
        compared.settle(allow_incomplete=True)
    assert "--allow-incomplete" not in str(error.value)


def test_releases_that_take_turns_share_a_rare_operation():
    without = replace(WHOLE, release="4.3.1", operations=WHOLE.operations | {"trim": 0})
    assert compared_in([WHOLE, without], 0).conclusion == "conforms"


def test_an_implementation_without_a_comparison_is_idle_beside_one_that_has_some():
    compared = compared_in([WHOLE, IDLE], 0)
    assert compared.conclusion == "nothing-compared"
    assert compared.idle == ("mine: it answers with unsupported wherever something is opened",)
    with pytest.raises(NothingComparedError, match="nothing was compared: mine: "):
        compared.settle(allow_incomplete=True)
    other = replace(
        WHOLE, machine="time", implementation="mine", operations={"open": 1, "maybe_append": 1, "lookup": 1}
    )
    told = compared_in([WHOLE, IDLE, other], 0)
    assert told.conclusion == "incomplete"
    assert told.failures[0].startswith("the offset machine could not run with mine 4.4.0")


def test_an_old_stream_without_operations_counts_its_steps():
    assert compared_in([replace(WHOLE, operations={})], 0) == Comparison(300)


def test_parts_are_added():
    parts = [Comparison(1, gaps=("a",)), Comparison(2, 1, gaps=("a", "b")), Comparison(0, failures=("d",), idle=("c",))]
    assert combined(parts) == Comparison(3, 1, ("a", "b"), ("d",), ("c",))
    assert combined([]).conclusion == "nothing-compared"


# -- Machines that an implementation lacks are unsupported, and none of their metrics are shown --------------------


OFFSET_ONLY = "python:tests.adapters.python_index:open_small"
OPENS = """
import json, sys
REPLIES = {"open": {"ok": None}, "close": {"ok": None}, "start": {
    "ok": {"name": "opens", "version": "1", "language": "python", "kinds": ["offset"]}}}
for line in sys.stdin:
    print(json.dumps(REPLIES.get(json.loads(line)["op"], {"unsupported": True})), flush=True)
"""
"""A program with an offset index that can be opened and closed, and nothing else."""


@pytest.fixture
def program(tmp_path):
    (tmp_path / "opens.py").write_text(OPENS)
    return f"exec:{sys.executable} {tmp_path / 'opens.py'}"


def carried_out(implementation, directory, *machines):
    events: list[Event] = []
    plan = Plan(
        ("4.4.0",),
        (implementation,),
        machines,
        PROFILES["dev"],
        directory,
        max_examples=2,
        replays=False,
        shrink_time=0,
    )
    run(plan, events.append)
    return events


@pytest.mark.parametrize("is_program", [False, True])
def test_a_machine_of_another_kind_is_unsupported(is_program, program, tmp_path):
    events = carried_out(program if is_program else OFFSET_ONLY, tmp_path, "offset", "transaction")
    offset, transaction = (event for event in events if isinstance(event, Result))
    assert not offset.unsupported
    assert transaction.unsupported
    assert (transaction.examples, transaction.steps, transaction.divergences) == (0, 0, 0)


@pytest.mark.thorough
def test_a_kind_that_a_program_does_not_name_is_not_driven(program, tmp_path):
    events = carried_out(program, tmp_path, "offset", "time")
    assert {event.machine for event in events if isinstance(event, Progressed)} == {"offset"}
    with pytest.raises(NotDrivenError, match="has no time index: its reply to start names offset"):
        carried_out(program, tmp_path, "time")


@pytest.mark.parametrize(
    ("machine", "clause", "operation"),
    [("offset", "OI-8a", "entry"), ("segment", "SEG-20", "should_roll"), ("log", "LG-40", "expire_producers")],
)
def test_a_clause_of_missing_operations_is_unsupported(machine, clause, operation):
    """Of segments and logs as well as of index files."""
    wanted = operations_for(machine, clause)
    assert operation in wanted
    subject = SimpleNamespace(supports=lambda name: name not in wanted)
    assert _lacks(machine, subject, clause, set())
    everything = SimpleNamespace(supports=lambda _: True)
    assert not _lacks(machine, everything, clause, set())
    assert _lacks(machine, everything, clause, set(wanted))


def test_every_machine_of_files_has_a_table():
    for machine in ("offset", "time", "transaction", "segment", "log", "cleaned"):
        with_operations = [clause for clause in clauses_for(machine, "4.4.0") if operations_for(machine, clause.id)]
        assert len(with_operations) > 10, machine
