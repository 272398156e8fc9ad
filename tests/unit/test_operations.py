"""Operations: names, signatures, and how they are shown."""

from __future__ import annotations

import json
import re
from importlib.resources import files

import pytest
from hypothesis import given
from hypothesis import strategies as st

from conformance.implementations.jvm import index
from conformance.implementations.jvm.cache import JvmCache
from conformance.implementations.jvm.log import JvmLog
from conformance.implementations.jvm.segment import JvmSegment
from conformance.implementations.jvm.tiered import JvmTiered
from conformance.operations import (
    ERROR_KINDS,
    FILE_OPERATIONS,
    KINDS,
    OK,
    SIGNATURES,
    UNSUPPORTED,
    Operation,
    Outcome,
    State,
    as_tuples,
    every_signature,
)
from conformance.operations.shortened import shortened
from kidx import errors
from kidx.records import build_batch

# -- Operations and outcomes as plain data: their JSON is the JSON of the line protocol, without loss --------------


LONGS = st.integers(-(1 << 63), (1 << 63) - 1)
VALUES = st.none() | st.booleans() | st.tuples(LONGS, LONGS) | st.tuples(st.lists(st.tuples(LONGS, LONGS)).map(tuple))


@pytest.mark.parametrize("name", every_signature())
def test_an_operation_is_its_request_and_back(name):
    operation = Operation(name, tuple(range(len(every_signature()[name]))))
    request = operation.to_json()
    assert list(request) == ["op", *every_signature()[name]]
    assert Operation.from_json(json.loads(json.dumps(request))) == operation
    assert str(operation).startswith(f"{name}(")


def test_no_two_machines_use_the_same_word():
    assert set(SIGNATURES) <= set(every_signature())
    assert set(SIGNATURES) >= FILE_OPERATIONS


@pytest.mark.parametrize(
    ("request_", "said"),
    [
        ({}, "unknown operation None"),
        ({"op": "nothing"}, "unknown operation 'nothing'"),
        ({"op": "lookup"}, "'lookup' takes target, not "),
        ({"op": "close", "now": 1}, "'close' takes nothing, not now"),
        ({"op": "lookup", "target": 1, "more": 2}, "not more, target"),
    ],
)
def test_an_invalid_request_is_rejected(request_, said):
    with pytest.raises(ValueError, match="operation") as refusal:
        Operation.from_json(request_)
    assert said in str(refusal.value)


@given(value=VALUES)
def test_a_value_is_its_reply_and_back(value):
    outcome = Outcome(None, value)
    assert Outcome.from_json(json.loads(json.dumps(outcome.to_json()))) == outcome


def test_a_collected_result_is_an_object_of_the_protocol():
    reply = {"ok": {"aborted": [[1, 2, 3, 4]], "complete": True}}
    outcome = Outcome(None, (((1, 2, 3, 4),), True))
    assert json.loads(json.dumps(outcome.to_json())) == reply
    assert Outcome.from_json({"ok": {"complete": True, "aborted": [[1, 2, 3, 4]]}}) == outcome


@given(kind=st.sampled_from(ERROR_KINDS), text=st.text(min_size=1) | st.none())
def test_an_error_converts_to_its_reply_and_back(kind, text):
    outcome = Outcome(kind, None, text)
    assert Outcome.from_json(json.loads(json.dumps(outcome.to_json()))) == outcome
    assert str(outcome) == (kind if text is None else f"{kind}: {text}")


def test_unsupported_is_its_reply_and_back():
    assert UNSUPPORTED.to_json() == {"unsupported": True}
    assert Outcome.from_json({"unsupported": True}) == UNSUPPORTED
    assert OK.to_json() == {"ok": None}
    assert str(OK) == "nothing"


@pytest.mark.parametrize("reply", [{}, {"unsupported": False}, {"okay": 1}])
def test_an_invalid_reply_is_rejected(reply):
    with pytest.raises(ValueError, match="an outcome has a key ok, error or unsupported"):
        Outcome.from_json(reply)


@pytest.mark.parametrize(
    "state",
    [
        State(1, 128, False, 1024, (7,)),
        State(0, 0, True, 0, (-1, 0)),
        State(3, None, None, None, ()),
        State(0, 1, False, 8, (0,)),
    ],
)
def test_a_state_is_its_json_and_back(state):
    assert State.from_json(json.loads(json.dumps(state.to_json()))) == state


def test_lists_and_objects_of_a_reply_compare_as_tuples():
    assert as_tuples({"aborted": [[1, 2, 3, 4]], "complete": True}) == (((1, 2, 3, 4),), True)
    assert as_tuples([1, [2, [3]]]) == (1, (2, (3,)))


def test_every_error_of_kidx_has_an_error_kind():
    kinds = {
        error.kind
        for error in vars(errors).values()
        if isinstance(error, type) and issubclass(error, errors.KidxError) and error is not errors.KidxError
    }
    assert kinds <= set(ERROR_KINDS)
    assert set(ERROR_KINDS) - kinds <= {"io"}


# -- Names of operations that Java receives when it is connected: it executes each of them -------------------------


JAVA = files("conformance") / "implementations/jvm/java/conformance"
CASE = re.compile(r'case ("[^>]*") ->|operation\.equals\(("\w+")\)')
LEVELS = [
    pytest.param(index.OPERATIONS, r"Index(Driver|Adapter)", id="index"),
    pytest.param(JvmSegment.operations, r"Segment(Driver|Adapter)", id="segment"),
    pytest.param(JvmLog.operations, "LogDriver", id="log"),
    pytest.param(JvmCache.operations, "CacheDriver", id="cache"),
    pytest.param(JvmTiered.operations, "TieredDriver", id="tiered"),
]


@pytest.mark.parametrize(("operations", "parts"), LEVELS)
def test_java_performs_every_operation_and_no_other(operations, parts):
    sources = [each.read_text("utf-8") for each in JAVA.iterdir() if re.search(parts, each.name)]
    cases = [case or equals for source in sources for case, equals in CASE.findall(source)]
    assert set(re.findall(r'"(\w+)"', " ".join(cases))) == set(operations)


def test_the_kinds_and_the_errors_have_numbers_by_their_place():
    """Java switches on the place of a kind, and looks up an error by the number that Python hands it at the start."""
    source = (JAVA / "IndexDriver.java").read_text("utf-8")
    cases = dict(re.findall(r"case (\d) -> new (\w+)IndexAdapter", source))
    assert [cases.get(str(number), "Transaction").lower() for number in range(len(KINDS))] == list(KINDS)
    assert len(set(ERROR_KINDS)) == len(ERROR_KINDS)


# -- Operations as text: whole batches are described, and other long arguments are cut -----------------------------


def test_batches_are_described_by_their_offsets():
    data = build_batch([(500, b"key", b"value"), (700, b"key", b"value")], base_offset=1000)
    step = Operation("append_records", (data.hex(), 1001, 700, 1000))
    assert shortened(step).startswith(f"append_records(records=<{len(data)} bytes: 1000–1001 at 700>, ")
    assert "<3 bytes: no whole batch>" in shortened(step._replace(args=("000102", *step.args[1:])))


def test_only_a_long_argument_is_cut():
    step = Operation("damage_log_file", ("0.index", "write_file", ["00" * 200]))
    assert shortened(step).endswith("… (404 characters))")
    assert shortened(Operation("lookup", (7,))) == str(Operation("lookup", (7,)))
