"""Python classes with the adapter interface: a table maps exceptions to errors, and all others are bugs."""

from __future__ import annotations

import struct
from pathlib import Path
from unittest import TestCase

import pytest
from machine_runs import run_machine
from thorough_params import thorough_param

from conformance.errors import ToolError
from conformance.implementations.kidx.index import ReferenceIndex
from conformance.implementations.python.objects import PythonObjectIndex, kind_of, load_factory
from conformance.implementations.spec import implementation_factory
from conformance.lockstep import DivergenceError, Lockstep
from conformance.machines.offset import OffsetMachine
from conformance.machines.time import TimeMachine
from conformance.machines.transaction import TransactionMachine
from conformance.operations import Observation, Operation, Outcome, State
from conformance.operations.outcomes import FAILURE
from conformance.runs.shrinking.divergence import shrink_divergence
from kidx import errors

ADAPTERS = Path(__file__).parents[1] / "adapters"


@pytest.fixture(autouse=True)
def _importable(monkeypatch):
    monkeypatch.syspath_prepend(str(ADAPTERS))


@pytest.fixture
def make(tmp_path):
    def make(name: str, release: str = "4.4.0") -> PythonObjectIndex:
        index = implementation_factory(f"python:python_index:{name}")(release, None)
        index.begin(tmp_path)
        return index

    return make


def perform(index: PythonObjectIndex, name: str, *arguments) -> Observation:
    return index.perform(Operation(name, arguments))


def open_offset(index: PythonObjectIndex) -> Observation:
    return perform(index, "open", "offset", "0.index", 0, 80, True)


def test_it_executes_operations_and_returns_its_state(make, tmp_path):
    index = make("open_index")
    assert open_offset(index) == Observation(Outcome(), State(0, 10, False, 80, (0,)))
    assert perform(index, "append", 7, 120).state == State(1, 10, False, 80, (7,))
    assert perform(index, "lookup", 9).outcome.value == (7, 120)
    assert perform(index, "fetch_upper_bound", 0, 0, 200).outcome == Outcome()
    assert perform(index, "append", 7, 120).outcome.error == "invalid_offset"
    assert perform(index, "resize", 40).outcome == Outcome(None, True)
    assert perform(index, "rename", "1.index").outcome == Outcome()
    assert [path.name for path in tmp_path.iterdir()] == ["1.index"]
    assert perform(index, "crash") == Observation(Outcome(), None)
    assert perform(index, "lookup", 1).outcome.error == "closed"


def test_transactions_are_four_numbers(make):
    index = make("open_index")
    assert perform(index, "open", "transaction", "0.txnindex", 0, -1, True).state == State(0, None, None, None, ())
    assert perform(index, "append_aborted", 1, 2, 3, 4).state.last == (3,)
    assert perform(index, "all_aborted").outcome.value == ((1, 2, 3, 4),)
    assert perform(index, "collect_aborted", 0, 3).outcome.value == (((1, 2, 3, 4),), True)


def test_a_factory_with_a_release_parameter_receives_it():
    factory = load_factory("python_index", "open_index")
    assert PythonObjectIndex(factory, "3.9.2")._options == {"release": "3.9.2"}
    assert PythonObjectIndex(load_factory("python_index", "open_plain"), "3.9.2")._options == {}


@pytest.mark.thorough
@pytest.mark.parametrize("machine", [thorough_param(OffsetMachine), thorough_param(TimeMachine), TransactionMachine])
@pytest.mark.parametrize("release", [thorough_param("3.9.1"), "4.4.0"])
def test_kidx_through_its_own_methods_agrees_with_the_reference(make, tmp_path, machine, release):
    lockstep = Lockstep([make("open_index", release)], tmp_path / "scratch")
    run_machine(machine, lockstep, 60, seed=0)
    assert lockstep.statistics.steps > 1000
    assert not lockstep.statistics.unsupported


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("factory", "operation", "actual"),
    [("open_off_by_one", "lookup", None), ("open_crashing", "truncate_to", FAILURE), ("open_vague", "entry", FAILURE)],
)
def test_a_defect_is_found_and_shrunk(make, tmp_path, factory, operation, actual):
    lockstep = Lockstep([make(factory)], tmp_path / "scratch")
    with pytest.raises(DivergenceError) as error:
        run_machine(OffsetMachine, lockstep, 300, seed=0)
    shortest = shrink_divergence(lockstep, error.value)
    assert shortest.divergence.operation.name == operation
    assert shortest.divergence.actual[0] == actual
    assert len(shortest.operations) <= 4


def test_a_bug_is_a_failure_with_its_traceback_until_the_example_is_over(make, tmp_path):
    index = make("open_crashing")
    open_offset(index)
    observation = perform(index, "truncate_to", 3)
    assert observation.outcome.error == FAILURE
    assert observation.state is None
    assert observation.outcome.text.startswith("raised KeyError in truncate_to(offset=3):\n")
    assert "python_index.py" in observation.outcome.text
    assert "python_object.py" not in observation.outcome.text
    assert perform(index, "append", 7, 120) == observation
    index.end()
    (tmp_path / "0.index").unlink()
    index.begin(tmp_path)
    assert open_offset(index).outcome == Outcome()


def test_a_result_of_another_shape_is_a_failure(make):
    index = make("open_vague")
    open_offset(index)
    perform(index, "append", 7, 120)
    text = perform(index, "entry", 0).outcome.text
    assert text.startswith("returned [7.0, 120.0]: ")


class Stub:
    entries, max_entries, is_full, length, last_offset = 0, 10, False, 80, 0

    def __init__(self, *_):
        pass

    def lookup(self, _):
        return 2**63, 0

    def resize(self, _):
        return 1

    def collect_aborted_txns(self, *_):
        return [(1, 2, 3)], True


def stub(directory: Path, **attributes) -> PythonObjectIndex:
    index = PythonObjectIndex(type("Stub", (Stub,), attributes), "4.4.0")
    index.begin(directory)
    return index


@pytest.mark.parametrize(
    ("operation", "text"),
    [
        (Operation("lookup", (1,)), "64-bit integers"),
        (Operation("resize", (8,)), "expected True or False"),
        (Operation("collect_aborted", (0, 9)), "has four numbers"),
    ],
)
def test_every_shape_is_checked(tmp_path, operation, text):
    index = stub(tmp_path)
    open_offset(index)
    assert text in index.perform(operation).outcome.text


@pytest.mark.parametrize(
    ("attributes", "text"),
    [
        ({"entries": 1.0}, "TypeError"),
        ({"is_full": 1}, "expected True or False"),
        ({"length": property(lambda _: 1 // 0)}, "ZeroDivisionError"),
        ({"length": property(lambda self: self.is_full.no_such_attribute)}, "no_such_attribute"),
    ],
)
def test_a_broken_state_is_a_failure(tmp_path, attributes, text):
    observation = open_offset(stub(tmp_path, **attributes))
    assert observation.outcome.error == FAILURE
    assert observation.state is None
    assert text in observation.outcome.text
    assert "its state after open(" in observation.outcome.text


def test_a_factory_without_a_signature_is_fine():
    assert PythonObjectIndex(type, "4.4.0")._options == {}


def test_plain_exceptions_are_errors(make):
    index = make("open_plain")
    open_offset(index)
    assert perform(index, "append", 2**31, 0).outcome.error == "offset_overflow"
    assert perform(index, "bulk_append", 1, 0, 1, 1, 11).outcome.error == "invalid_argument"


def test_missing_methods_are_known_from_the_start(make):
    index = make("open_small")
    assert not index.supports("entry")
    assert not index.reports_state
    assert index.supports("append")
    assert index.supports("bulk_append")
    assert open_offset(index) == Observation(Outcome(), None)
    assert perform(index, "entry", 0).outcome.error == "unsupported"
    assert perform(index, "append", 7, 120).outcome == Outcome()
    assert perform(index, "open", "time", "0.timeindex", 0, 80, True).outcome.error == "unsupported"
    assert index.supports("open")


def test_a_closed_index_may_omit_its_state(make):
    index = make("open_forgetful")
    open_offset(index)
    assert perform(index, "close") == Observation(Outcome(), None)


def test_damage_is_the_harnesss_business(make):
    assert not make("open_index").supports("flip_bit")
    assert ReferenceIndex("4.4.0").supports("rename")


class WordedError(Exception):
    kind = "corrupt"


class NonsenseError(ValueError):
    kind = "something else"


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        (errors.InvalidOffsetError("x"), "invalid_offset"),
        (errors.ReadOnlyError("x"), "read_only"),
        (errors.ClosedError("x"), "closed"),
        (WordedError(), "corrupt"),
        (NonsenseError(), "invalid_argument"),
        (NotImplementedError(), "unsupported"),
        (PermissionError(), "io"),
        (OverflowError(), "offset_overflow"),
        (IndexError(), "out_of_bounds"),
        (BufferError(), "buffer_overflow"),
        (ValueError(), "invalid_argument"),
        (RuntimeError(), "illegal_state"),
        (UnicodeDecodeError("utf-8", b"", 0, 1, "x"), None),
        (RecursionError(), None),
        (KeyError(), None),
        (TypeError(), None),
        (AttributeError(), None),
        (AssertionError(), None),
        (struct.error(), None),
    ],
    ids=lambda value: type(value).__name__ if isinstance(value, Exception) else str(value),
)
def test_exceptions_are_mapped_to_errors_by_a_table(error, kind):
    assert kind_of(error) == kind


@pytest.mark.parametrize(
    ("module", "name", "text"),
    [
        ("no_such_module", "f", "no_such_module"),
        ("python_index", "no_such_factory", "has no no_such_factory"),
        ("python_index", "not_callable", "not a function or class but int"),
        ("broken_module", "f", "ZeroDivisionError"),
        ("exiting_module", "f", "SystemExit"),
    ],
)
def test_a_factory_that_cannot_be_imported_is_one_clear_line(tmp_path, monkeypatch, module, name, text):
    (tmp_path / "broken_module.py").write_text("1 / 0\n")
    (tmp_path / "exiting_module.py").write_text("raise SystemExit(0)\n")
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    with pytest.raises(ToolError, match=text) as error:
        load_factory(module, name)
    assert "\n" not in str(error.value)


def test_the_working_directory_can_be_imported_from(tmp_path, monkeypatch):
    (tmp_path / "my_own_index.py").write_text("def open_index(*arguments):\n    raise NotImplementedError\n")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("sys.path", [entry for entry in __import__("sys").path if entry])
    assert callable(load_factory("my_own_index", "open_index"))


def test_the_machine_of_the_page_runs_under_pytest():
    """The page about tests of an implementation has a machine with one more rule."""
    page = (Path(__file__).parents[2] / "docs" / "testing-an-implementation.md").read_text("utf-8")
    code = page.rpartition("```python\n")[2].partition("```")[0]
    names = {}
    exec(code.replace("my_classes:open_index", "tests.adapters.python_index:open_index"), names)  # noqa: S102 -- ours
    assert issubclass(names["TestMine"], TestCase)
