"""Results of a run for implementations that are wrong, incomplete, tolerated or broken, and for a wrong reference."""

from __future__ import annotations

from dataclasses import replace

import pytest
from thorough_params import thorough_param

from conformance.attribution.tables import clauses_for
from conformance.errors import ToolError
from conformance.expectations import read_expectations
from conformance.implementations.kidx.index import ReferenceIndex
from conformance.implementations.model import Model
from conformance.lockstep import Lockstep
from conformance.operations import UNSUPPORTED, Observation, Operation, Outcome
from conformance.operations.outcomes import FAILURE
from conformance.operations.trace import Trace
from conformance.runs import runner
from conformance.runs.profiles import PROFILES
from conformance.runs.replay import replay
from kidx import OffsetIndex, TimeIndex
from kidx.dialect import dialect_of

RELEASE = "4.4.0"


def lacking(*operations: str, declared: bool = True):
    """Return the reference without some operations; it may declare that at the start, or only reply so."""

    class Lacking(ReferenceIndex):
        def supports(self, operation):
            return (operation not in operations or not declared) and super().supports(operation)

        def perform(self, operation):
            if operation.name in operations:
                return Observation(UNSUPPORTED, None)
            return super().perform(operation)

    return Lacking


class WithoutStrayBytes(TimeIndex):
    """Index that is better than Kafka: a rejected offset writes nothing (TI-20a, OBSERVED)."""

    def maybe_append(self, timestamp, offset, skip_full_check=False):
        before = self.path.read_bytes() if self.path.exists() else None
        try:
            super().maybe_append(timestamp, offset, skip_full_check)
        finally:
            if before is not None and not self.can_append_offset(offset):
                self.path.write_bytes(before)


class Tidy(ReferenceIndex):
    time_index = WithoutStrayBytes


class OffByOne(OffsetIndex):
    def lookup(self, target, *arguments, **options):
        found = super().lookup(target, *arguments, **options)
        return found._replace(position=found.position ^ 1)


class Wrong(ReferenceIndex):
    offset_index = OffByOne


# -- the dialects -----------------------------------------------------------------------------------------------------


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("release", "behaves_like", "machine"),
    [
        # Not every pair of neighbours differs in what an index shows.
        thorough_param("3.4.1", "3.9.1", "offset"),
        ("3.9.1", "4.0.1", "offset"),
        thorough_param("4.0.1", "3.9.2", "offset"),
        thorough_param("3.9.2", "4.0.1", "time"),
        ("4.3.1", "4.4.0", "transaction"),
        thorough_param("4.4.0", "4.3.1", "offset"),
    ],
)
def test_the_rules_of_a_neighbouring_release_are_distinguished(run_machine, release, behaves_like, machine):
    def of_the_neighbour(_):
        implementation = ReferenceIndex(behaves_like)
        implementation.release = release
        return implementation

    found = run_machine(machine, releases=(release,), neighbour=of_the_neighbour, examples=400, stop_at_first=True)
    assert not found.conforms
    assert len(found.divergences[0].steps) <= 8


# -- what an implementation does not have -----------------------------------------------------------------------------


@pytest.mark.thorough
@pytest.mark.parametrize("declared", [True, thorough_param(False)])
def test_missing_operations_of_an_implementation_are_unsupported_and_the_rest_conforms(run_machine, declared):
    found = run_machine("offset", lacking=lacking("resize", "rename", declared=declared), examples=60)
    assert found.conforms
    (result,) = found.results
    assert {"AI-11a", "AI-21a"} <= {c for c, verdict in result.verdicts.items() if verdict == "unsupported"}
    assert result.verdicts["OI-7"] == result.verdicts["OI-3"] == "conforms"
    assert result.verdicts["AI-13b"] in ("conforms", "not-run")  # a reset exercises it, too
    assert all(result.clauses[clause] == 0 for clause, verdict in result.verdicts.items() if verdict == "unsupported")
    # A failed rename needs a rename, although no rename shows what it has done to the name.
    assert result.verdicts["AI-21b"] == "not-run"


def test_without_a_kind_of_index_nothing_of_it_conforms(run_machine):
    found = run_machine("time", lacking=lacking("open", declared=False), examples=20)
    (result,) = found.results
    assert set(result.verdicts.values()) == {"unsupported"}
    assert not any(result.clauses.values())


@pytest.mark.thorough
def test_the_missing_operations_of_one_do_not_affect_the_others(run_machine):
    found = run_machine("offset", lacking=lacking("lookup", declared=False), sound=ReferenceIndex, examples=40)
    without, sound = found.results
    assert without.divergences == sound.divergences == 0
    assert found.verdict == "incomplete"
    assert without.verdicts["OI-7"] == "unsupported"
    # Nobody looks anything up once one of them has said so; until then the other one did.
    assert sound.verdicts["OI-7"] in ("conforms", "not-run")


@pytest.mark.thorough
def test_a_participant_that_dropped_out_is_credited_with_nothing(run_machine):
    """An example that an implementation leaves counts none of its earlier steps: too little is better than too much."""

    class LeavesLate(ReferenceIndex):
        """Answers "unsupported" to the fifth operation of every example, and does not say that it always will."""

        def begin(self, directory):
            super().begin(directory)
            self.performed = 0

        def perform(self, operation):
            self.performed += 1
            return Observation(UNSUPPORTED, None) if self.performed == 5 else super().perform(operation)

    found = run_machine("offset", leaves=LeavesLate, sound=ReferenceIndex, examples=40)
    left, stayed = found.results
    assert not any(left.clauses.values())
    assert "conforms" not in left.verdicts.values()
    assert sum(stayed.clauses.values()) > 0


@pytest.mark.thorough
def test_a_retired_implementation_is_credited_with_no_later_step(run_machine):
    found = run_machine("offset", wrong=Wrong, sound=ReferenceIndex, examples=100, stop_at_first=True)
    wrong, sound = found.results
    assert not found.conforms
    assert [divergence.failure["participant"] for divergence in found.divergences] == [f"wrong {RELEASE}"]
    assert wrong.verdicts["OI-7"] == "diverges"
    assert sound.verdicts["OI-7"] == "conforms"
    assert sum(wrong.clauses.values()) < sum(sound.clauses.values())


def test_a_replay_against_an_implementation_without_an_operation_has_no_verdict(run_machine, implementations):
    found = run_machine("offset", wrong=Wrong, stop_at_first=True)
    implementations["lacking"] = lacking("lookup")
    trace = Trace.load(found.divergences[0].trace)
    with pytest.raises(ToolError, match=r"lacking 4\.4\.0 does not have 'lookup', step \d+"):
        replay(trace, [RELEASE], ["lacking"])


# -- levels and expectations ------------------------------------------------------------------------------------------


@pytest.mark.thorough
def test_an_observed_divergence_counts_at_level_observed_and_not_at_level_must(run_machine):
    counted = run_machine("time", tidy=Tidy, stop_at_first=True)
    assert not counted.conforms
    assert "TI-20a" in counted.divergences[0].failure["clauses"]
    left_out = run_machine("time", tidy=Tidy, level="must", examples=100)
    assert left_out.conforms
    assert left_out.divergences == []
    (result,) = left_out.results
    assert result.verdicts["TI-20a"] == "tolerated"
    assert result.verdicts["TI-7"] == "conforms"


def test_a_difference_in_a_must_counts_at_level_must(run_machine):
    assert not run_machine("offset", wrong=Wrong, level="must", stop_at_first=True).conforms


def expect(monkeypatch, **entry):
    entry = {"machine": "offset", "releases": ">=2.4.0", "reason": "known", "link": "https://example.org/1"} | entry
    text = "[[expectation]]\n" + "\n".join(f'{key} = "{value}"' for key, value in entry.items())
    monkeypatch.setattr(runner, "load_expectations", lambda: read_expectations("test.toml", text))


@pytest.mark.thorough
def test_an_expected_divergence_is_no_failure(run_machine, monkeypatch):
    expect(monkeypatch, clause="OI-7", implementation="wr*")
    found = run_machine("offset", wrong=Wrong, examples=60)
    assert found.conforms
    (result,) = found.results
    assert result.verdicts["OI-7"] == "expected-divergence"
    assert result.divergences == 0


def test_an_expectation_of_another_implementation_matches_nothing(run_machine, monkeypatch):
    expect(monkeypatch, clause="OI-7", implementation="other")
    assert not run_machine("offset", wrong=Wrong, stop_at_first=True).conforms


@pytest.mark.thorough
def test_a_stale_expectation_is_an_error(run_machine, monkeypatch):
    expect(monkeypatch, clause="OI-7", implementation="sound")
    with pytest.raises(ToolError, match=r"an expectation is stale.*test\.toml, entry 1: OI-7"):
        run_machine("offset", sound=ReferenceIndex, examples=60)


@pytest.mark.thorough
def test_an_expectation_whose_clause_the_implementation_lacks_is_not_stale(run_machine, monkeypatch):
    expect(monkeypatch, clause="OI-7", implementation="lacking")
    assert run_machine("offset", lacking=lacking("lookup"), examples=30).verdict == "incomplete"


# -- a reference that is wrong ----------------------------------------------------------------------------------------


def test_a_reference_that_the_model_contradicts_diverges(run_machine, monkeypatch):
    perform = Model.perform

    def contradict(self, operation, **options):
        prediction = perform(self, operation, **options)
        if operation.name == "lookup" and prediction is not None and prediction.outcome.value is not None:
            offset, position = prediction.outcome.value
            return prediction._replace(outcome=prediction.outcome._replace(value=(offset, position + 1)))
        return prediction

    monkeypatch.setattr(Model, "perform", contradict)
    found = run_machine("offset", sound=ReferenceIndex)
    assert not found.conforms
    assert found.verdict == "diverges"
    failure = found.divergences[0].failure
    assert (failure["participant"], failure["against"], failure["aspects"]) == (f"kidx {RELEASE}", "model", ["outcome"])


# -- implementations that break ---------------------------------------------------------------------------------------


class Fails(ReferenceIndex):
    """Its adapter has caught a crash, a late reply or nonsense."""

    speaks_kafka = False

    def perform(self, operation):
        if operation.name == "lookup":
            return Observation(Outcome(FAILURE, None, "no reply to lookup within 5 seconds"), None)
        return super().perform(operation)


class Raises(ReferenceIndex):
    """Index whose adapter has a bug."""

    def perform(self, operation):
        if operation.name == "lookup":
            raise KeyError("a bug in the adapter")
        return super().perform(operation)


@pytest.mark.thorough
def test_a_failure_is_a_divergence(run_machine):
    found = run_machine("offset", fails=Fails)
    assert not found.conforms
    assert found.divergences[0].failure["aspects"][0] == "outcome"
    assert "within 5 seconds" in str(found.divergences[0].failure["actual"])


@pytest.mark.thorough
def test_a_failure_is_never_expected(run_machine, monkeypatch):
    expect(monkeypatch, clause="OI-7", implementation="fails")
    found = run_machine("offset", fails=Fails)
    assert not found.conforms
    assert "within 5 seconds" in str(found.divergences[0].failure["actual"])
    assert not run_machine("offset", level="must", fails=Fails).conforms


class FailsAtTheEnd(ReferenceIndex):
    """Its program cannot close an index once four entries have been appended, and only the end of an example closes."""

    speaks_kafka = False

    def __init__(self, release):
        super().__init__(release)
        self.failures_between_examples = []

    def perform(self, operation):
        if operation.name == "close" and self._index is not None and self._index.entries >= 4:
            return Observation(Outcome(FAILURE, None, "ended (exit status 1) instead of replying"), None)
        return super().perform(operation)

    def end(self):
        if self._index is not None and self._index.entries >= 4:
            self.failures_between_examples.append("ended (exit status 1) instead of replying")
        super().end()


@pytest.mark.thorough
def test_a_failure_between_examples_is_a_divergence_that_replays(run_machine):
    found = run_machine("offset", fails=FailsAtTheEnd)
    assert not found.conforms
    [divergence] = found.divergences
    assert divergence.steps[-1] == "close()"
    assert "instead of replying" in str(divergence.failure["actual"])
    assert replay(Trace.load(divergence.trace), [RELEASE], ["fails"]).verdict == "FAILED"


class MakesADirectory(ReferenceIndex):
    """Index that leaves a directory with a file in it next to its file."""

    def begin(self, directory):
        super().begin(directory)
        (directory / "snapshots").mkdir()
        (directory / "snapshots" / "0").touch()


@pytest.mark.thorough
def test_a_created_directory_is_a_divergence_and_is_removed(run_machine):
    found = run_machine("offset", tidy=ReferenceIndex, untidy=MakesADirectory, examples=40)
    assert [divergence.failure["participant"] for divergence in found.divergences] == [f"untidy {RELEASE}"]
    assert "snapshots" in str(found.divergences[0].failure["actual"])


def test_an_exception_out_of_an_adapter_is_not_swallowed(run_machine):
    with pytest.raises(KeyError, match="a bug in the adapter"):
        run_machine("offset", raises=Raises)


# -- the run itself ---------------------------------------------------------------------------------------------------


@pytest.mark.thorough
def test_the_same_seed_finds_the_same(run_machine):
    first, second = (run_machine("offset", wrong=Wrong, seed=7, examples=60) for _ in range(2))
    assert first.divergences[0].steps == second.divergences[0].steps
    assert [r.clauses for r in first.results] == [r.clauses for r in second.results]


@pytest.mark.thorough
def test_hypothesis_shrinks_numbers_as_well(run_machine):
    found = run_machine("offset", wrong=Wrong, profile=PROFILES["dev"], stop_at_first=True)
    opened, *rest = found.divergences[0].steps
    assert "base_offset=0" in opened
    assert [step.partition("(")[0] for step in rest] in (["lookup"], ["append", "lookup"])


@pytest.mark.thorough
def test_every_example_differs_from_the_previous_one(run_machine, monkeypatch):
    """Hypothesis would rather vary the last example than draw a new one; see :mod:`conformance.runs.chunks`."""
    runs = []
    end = Lockstep.end

    def keep(self):
        runs.append(tuple(operation.name for operation in self.operations))
        end(self)

    monkeypatch.setattr(Lockstep, "end", keep)
    run_machine("offset", sound=ReferenceIndex, examples=100)
    assert len(set(runs)) > 0.8 * len(runs)


@pytest.mark.thorough
def test_rules_are_exercised_on_more_than_empty_files(run_machine):
    (result,) = run_machine("offset", sound=ReferenceIndex, examples=200).results
    assert result.clauses["AI-31"] < 2 * result.clauses["AI-33"], "most lookups are in an empty index"
    missing = [clause.id for clause in clauses_for("offset", RELEASE) if not result.clauses[clause.id]]
    assert len(missing) <= 6, missing


@pytest.mark.thorough
def test_an_example_is_counted_for_each_dialect(run_machine):
    found = run_machine("offset", sound=ReferenceIndex, releases=("3.9.1", "4.4.0"), examples=60)
    old, new = found.results
    assert (old.release, new.release) == ("3.9.1", "4.4.0")
    assert old.steps == new.steps
    assert "AI-44a" in old.verdicts
    assert "AI-44b" in new.verdicts
    assert dialect_of("3.9.1").rules("index") != dialect_of("4.4.0").rules("index")


@pytest.mark.thorough
def test_removed_operations_leave_a_trace_of_the_same_divergence(run_machine):
    found = run_machine("offset", wrong=Wrong, stop_at_first=True)
    trace = Trace.load(found.divergences[0].trace)
    assert trace.operations[-1].name == "lookup"
    shorter = [
        replace(trace, operations=trace.operations[:number] + trace.operations[number + 1 :])
        for number in range(1, len(trace.operations) - 1)
    ]
    assert all(isinstance(operation, Operation) for operation in trace.operations)
    for one in shorter:
        left = replay(one, [RELEASE], ["wrong"]).divergence  # an empty index is wrong, too: AI-31 as well as OI-7
        assert left is None or set(left.clauses) != set(found.divergences[0].clauses)
