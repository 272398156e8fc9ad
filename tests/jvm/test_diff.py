"""``conformance diff``: what Kafka's own classes of two releases do differently."""

from __future__ import annotations

import json

import pytest
from thorough_params import thorough_param

from conformance.commands.diff import verdict_line
from conformance.errors import ToolError
from conformance.experiments.release_diff import Plan, compare, comparison, describe, describe_texts, to_json
from conformance.experiments.release_diff.error_texts import implicated_by_step, last_implicated
from conformance.implementations.kidx.index import ReferenceIndex
from conformance.machines.offset import OffsetMachine
from conformance.operations import Operation, State
from conformance.operations.state_diff import differing_fields, with_fields_of
from conformance.operations.trace import Trace
from conformance.runs.replay import load_regression_traces, replay
from kidx import OffsetIndex

OPEN = Operation("open", ("offset", "0.index", 0, 64, True))


def diff(old, new, traces, *machines, **budget):
    return compare(Plan(old, new, machines, traces, **budget))


def families(comparison):
    return {family for difference in comparison.differences for family in difference.implicated.families}


def few_or_many(few, many):
    """Search with more examples in CI."""
    return pytest.mark.parametrize("examples", [few, pytest.param(many, marks=pytest.mark.thorough)])


@pytest.fixture(scope="module")
def unmapped(tmp_path_factory):
    """Differences of an offset index between 3.9.2 and 3.9.1."""
    return diff("3.9.1", "3.9.2", tmp_path_factory.mktemp("unmapped"), "offset", seed=1, max_examples=150)


class TestReleases:
    """Kafka itself."""

    pytestmark = pytest.mark.jvm

    @pytest.mark.thorough
    def test_3_9_2_ignores_an_unmapped_index_and_unmaps_before_it_resizes(self, unmapped):
        found = unmapped
        assert {"AI-16", "AI-44"} <= families(found)
        assert not found.texts
        sides = {side for difference in found.differences for side in difference.implicated}
        assert ("AI-16b",) in sides
        assert ("AI-16c",) in sides
        for difference in found.differences:
            assert difference.old.conforms, describe(difference)
            assert difference.new.conforms, describe(difference)
            assert len(difference.operations) <= 8, describe(difference)

    def test_every_trace_is_replayed_by_both_releases(self, unmapped):
        assert unmapped.differences
        for difference in unmapped.differences:
            trace = Trace.load(difference.trace)
            assert trace.operations == difference.operations
            assert trace.failure["release"] == "3.9.1"
            assert replay(trace, ["3.9.1", "3.9.2"], ["jvm"]).verdict == "FIXED"

    def test_4_4_0_no_longer_trims(self, conformance):
        by_clause = self.found_in_4_4_0(conformance, "offset", 60)[0]
        close = by_clause["AI-42b"]
        assert [clause["id"] for clause in close["clauses"]["old"]] == ["AI-42a"]
        assert [step["op"] for step in close["steps"]] == ["open", "close"]
        assert close["changes"]["files"] == "closed.index 0 bytes → 8 bytes"

    @pytest.mark.thorough
    def test_4_4_0_reads_the_whole_version(self, conformance):
        by_clause, texts = self.found_in_4_4_0(conformance, "transaction", 1000)
        version = by_clause["TX-7b"]
        assert version["answers"][-1][0].keys() == {"ok"}
        assert version["answers"][-1][1]["error"] == "unsupported_version"
        assert {clause["id"] for text in texts for clause in text["clauses"]["new"]} == {"TX-7b", "TX-12c"}

    def found_in_4_4_0(self, conformance, machine, examples):
        """Divergences by clause, the simplest of each, and texts."""
        done = conformance("diff", "4.3.1", "4.4.0", "--machine", machine, "--max-examples", examples, "--json")
        assert done.returncode == 1, done.stderr
        document = json.loads(done.stdout)
        assert document["verdict"] == "differs"
        by_clause: dict[str, dict] = {}
        for difference in document["differences"]:
            for clause in difference["clauses"]["new"]:
                by_clause.setdefault(clause["id"], difference)  # the plainest comes first
        return by_clause, document["texts"]

    @few_or_many(60, 200)
    @pytest.mark.thorough
    def test_2_6_equals_2_5_for_a_single_thread(self, tmp_path, examples):
        found = diff("2.5.1", "2.6.3", tmp_path, "offset", "time", "transaction", max_examples=examples)
        assert not found.differs, [describe(difference) for difference in found.differences]

    @pytest.mark.thorough
    @few_or_many(50, 200)
    def test_nothing_differs_between_4_2_1_and_4_3_1(self, conformance, examples):
        machines = ("--machine", "offset", "--machine", "transaction")
        done = conformance("diff", "4.2.1", "4.3.1", *machines, "--max-examples", examples)
        assert done.returncode == 0, done.stdout + done.stderr
        assert "4.2.1 → 4.3.1: no difference · seed 0" in done.stdout

    @pytest.mark.thorough
    def test_texts_are_one_entry(self, tmp_path):
        found = diff("3.4.1", "3.5.2", tmp_path, "time", max_examples=120)
        changed = {change.implicated for change in found.texts}
        assert {("TI-4a",), ("TI-4b",)} <= {side for implicated in changed for side in implicated}
        brief, full = (describe_texts(found, verbose=verbose) for verbose in (False, True))
        assert brief.startswith(f"texts of {len(found.texts)} errors changed (time)")
        assert brief.count("conformance replay") == 2
        assert full.count("conformance replay") == 2 * len(found.texts)
        for change in found.texts:
            assert change.wording.old in full
            assert len(change.operations) <= 8, full

    @pytest.mark.thorough
    def test_a_seed_finds_the_same_again(self, tmp_path):
        first, second = (diff("4.3.1", "4.4.0", tmp_path, "time", max_examples=60, seed=5) for _ in range(2))
        documents = [to_json(found) for found in (first, second)]
        for document in documents:
            del document["seconds"]
        assert documents[0] == documents[1]
        assert documents[0]["differences"]

    def test_an_impossible_request_is_one_line(self, conformance):
        for arguments, said in (
            (("diff", "3.9.1", "3.9.7"), "3.9.7"),
            (("diff", "3.9.1", "3.9.2", "--machine", "sundial"), "unknown machine 'sundial'"),
            (("diff", "3.9.1"), "RELEASE"),
        ):
            done = conformance(*arguments)
            assert done.returncode == 2
            assert said in done.stderr
            assert done.stderr.count("\n") == 1
            assert not done.stdout


class TestTester:
    """The search itself, with kidx in Kafka's place: it needs no Java and knows what must come out."""

    @pytest.fixture
    def stand_in(self, monkeypatch):
        """Replace Kafka's classes by others."""

        def put(subject):
            monkeypatch.setattr(OffsetMachine, "subject", staticmethod(lambda _, release, __=None: subject(release)))

        return put

    @pytest.mark.thorough
    def test_a_release_does_not_differ_from_itself(self, stand_in, tmp_path):
        stand_in(ReferenceIndex)
        assert not diff("3.9.2", "3.9.2", tmp_path, "offset", max_examples=50).differs

    @pytest.mark.thorough
    def test_a_divergence_without_a_clause_is_a_finding(self, stand_in, tmp_path):
        class Forgetful(OffsetIndex):
            def flush(self):
                self.truncate()

        class Subject(ReferenceIndex):
            def __init__(self, release):
                super().__init__(release)
                if release == "4.3.1":
                    self.offset_index = Forgetful

        stand_in(Subject)
        difference, *others = diff("4.2.1", "4.3.1", tmp_path, "offset", max_examples=200).differences
        assert all("flush" in [operation.name for operation in other.operations] for other in others)
        assert difference.implicated == ((), ())
        assert [operation.name for operation in difference.operations][-1] == "flush"
        assert len(difference.operations) == 3
        said = describe(difference)
        assert "no clause separates the two releases here: a finding" in said
        assert "4.3.1 differs from kidx in its own dialect" in said
        assert f"replay       conformance replay {difference.trace} --kafka 4.2.1" in said

    @pytest.mark.thorough
    def test_a_divergence_in_the_state_alone_does_not_hide_later_ones(self, stand_in, tmp_path):
        class Shifting(OffsetIndex):
            def lookup(self, target):
                found = super().lookup(target)
                return found if self.entries < 2 else found._replace(position=-1)

        class Subject(ReferenceIndex):
            """4.3.1 says of every index with an entry that it is full, and acts otherwise."""

            def __init__(self, release):
                super().__init__(release)
                if release == "4.3.1":
                    self.offset_index = Shifting

            def perform(self, operation):
                seen = super().perform(operation)
                if self.release != "4.3.1" or seen.state is None or not seen.state.entries:
                    return seen
                return seen._replace(state=seen.state._replace(full=True))

        stand_in(Subject)
        found = diff("4.2.1", "4.3.1", tmp_path, "offset", max_examples=400).differences
        assert any(difference.unobserved == ("full",) for difference in found)
        assert any(difference.operations[-1].name == "lookup" for difference in found)

    @pytest.mark.thorough
    def test_an_expected_result_does_not_hide_later_divergences(self, stand_in, tmp_path):
        class Tired(OffsetIndex):
            """Index that hangs in lookups, and loses its entries on a flush after two lookups."""

            asked = 0

            def lookup(self, target):
                self.asked += 1
                return super().lookup(target)._replace(position=-7)

            def flush(self):
                if self.asked >= 2:
                    self.truncate()

        class Subject(ReferenceIndex):
            def __init__(self, release):
                super().__init__(release)
                if release == "4.3.1":
                    self.offset_index = Tired

        stand_in(Subject)
        found = diff("4.2.1", "4.3.1", tmp_path, "offset", max_examples=300, replays=False).differences
        assert {"lookup", "flush"} <= {difference.operations[-1].name for difference in found}

    def test_regression_traces_come_first(self, stand_in, tmp_path):
        stand_in(ReferenceIndex)
        told = diff("4.0.1", "4.0.2", tmp_path, "offset", max_examples=1)
        assert families(told) == {"AI-44"}
        assert not diff("4.0.1", "4.0.2", tmp_path, "offset", max_examples=1, replays=False).differs

    def test_the_time_limit_holds_for_regression_traces(self, stand_in, tmp_path):
        stand_in(ReferenceIndex)
        told = diff("4.0.1", "4.0.2", tmp_path, "offset", max_examples=1, max_time=1e-9)
        assert told.not_replayed == len(load_regression_traces("offset")) - 1 > 0
        assert to_json(told)["traces_not_executed"] == told.not_replayed
        assert verdict_line(told, None).startswith("4.0.1 → 4.0.2: INCOMPLETE: no difference in what was compared · ")

    @pytest.mark.thorough
    def test_it_runs_the_requested_number_of_examples(self, stand_in, tmp_path, monkeypatch):
        monkeypatch.setattr(comparison, "STEPS_PER_EXAMPLE", (5,))
        stand_in(ReferenceIndex)
        assert diff("3.9.2", "3.9.2", tmp_path, "offset", max_examples=250, replays=False).examples >= 250
        assert diff("3.9.2", "3.9.2", tmp_path, "offset", replays=False).examples < 250

    def test_a_control_that_diverges_ends_the_search(self, stand_in, tmp_path):
        class Wrong(OffsetIndex):
            def lookup(self, target):
                return super().lookup(target + 1)

        class Subject(ReferenceIndex):
            offset_index = Wrong

        stand_in(Subject)
        with pytest.raises(ToolError, match=r"kidx 4.2.1 itself diverges from kidx at lookup.*conformance run --kafka"):
            diff("4.2.1", "4.3.1", tmp_path, "offset", max_examples=200)


def test_implicated_clauses_name_their_counterpart():
    assert implicated_by_step("3.9.1", "3.9.2", ["AI-16b", "OI-1"], []) == (("AI-16b",), ("AI-16c",))
    assert implicated_by_step("3.9.2", "3.9.1", [], ["AI-16b"]) == (("AI-16c",), ("AI-16b",))
    assert not implicated_by_step("4.2.1", "4.3.1", ["AI-16c"], ["AI-16c"]).families


def test_implicated_clauses_may_belong_to_an_earlier_step():
    steps = [("AI-44a",), ("OI-7",)]
    assert last_implicated("3.9.1", "3.9.2", steps, [(), ("OI-7",)]).families == {"AI-44"}


def test_states_are_compared_field_by_field():
    old, new = State(1, 8, False, 64, (0,)), State(2, 8, True, 64, (0,))
    assert [name for name, _, _ in differing_fields(old, new)] == ["entries", "full"]
    assert with_fields_of(new, old, {"full"}) == State(2, 8, False, 64, (0,))
    assert with_fields_of(new, None, {"full"}) == new
    assert list(differing_fields(None, new)) == [("", None, new)]


@pytest.mark.jvm
class TestSegments:
    """The same for the releases' own segments: each divergence as text and with a trace."""

    @pytest.mark.parametrize(
        ("old", "new", "expected"),
        [
            # An append call has several entries now (KAFKA-806).
            pytest.param("3.9.0", "3.9.1", {"SEG-4", "SEG-10"}, marks=pytest.mark.thorough),
            # And has one again: 4.0 was cut before.
            pytest.param("3.9.1", "4.0.0", {"SEG-4", "SEG-10", "SEG-50"}, marks=pytest.mark.thorough),
            thorough_param("4.3.1", "4.4.0", {"SEG-24"}),  # the last entry is left to the shutdown
        ],
    )
    def test_changes_of_a_release_are_found(self, old, new, expected, tmp_path):
        found = diff(old, new, tmp_path, "segment", max_examples=90)
        assert expected <= families(found)
        for difference in found.differences:
            assert len(difference.operations) <= 5, describe(difference)
            assert old in describe(difference)
            trace = Trace.load(difference.trace)
            assert replay(trace, [old, new], ["jvm"]).verdict == "FIXED"
