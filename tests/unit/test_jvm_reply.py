"""A reply of the Java side represents a whole observation: observations that differ have replies that differ."""

from __future__ import annotations

import struct
from types import SimpleNamespace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from conformance.implementations.jvm.exceptions import SILENT
from conformance.implementations.jvm.index import JvmIndex
from conformance.operations import ERROR_KINDS, OK, Observation, Operation, Outcome, State

encode_reply = JvmIndex.encode_reply


def unpacked(name, reply, text=None):
    """Return the observation in a reply; an error's text is on the Java side."""
    index = object.__new__(JvmIndex)
    index.name, index.directory, index._reply = "jvm", "", bytearray(reply) + b"the rest of the buffer"
    index.driver = SimpleNamespace(text=lambda: text)
    return index.observation(Operation(name))


longs = st.integers(-(1 << 63), (1 << 63) - 1)
pairs = st.tuples(longs, longs)
transactions = st.lists(st.tuples(longs, longs, longs, longs), max_size=4).map(tuple)
values = st.one_of(
    st.tuples(st.sampled_from(("flush", "append", "close")), st.none()),
    st.tuples(st.sampled_from(("resize", "delete")), st.booleans()),
    st.tuples(st.sampled_from(("lookup", "entry")), pairs),
    st.tuples(st.just("fetch_upper_bound"), st.none() | pairs),
    st.tuples(st.just("all_aborted"), transactions),
    st.tuples(st.just("collect_aborted"), st.tuples(transactions, st.booleans())),
)
texts = st.text(st.characters(exclude_characters="/", exclude_categories=["Cs"]), min_size=1, max_size=30)
kinds = st.sampled_from([kind for kind in ERROR_KINDS if kind not in SILENT])
refusals = st.builds(Outcome, kinds, st.none(), st.none() | texts) | st.builds(
    Outcome, st.sampled_from(sorted(SILENT)), st.none(), st.none()
)
mapped = st.builds(State, longs, st.integers(0, 1 << 40), st.booleans(), longs, pairs | st.tuples(longs))
unmapped = st.builds(State, longs, st.none(), st.none(), st.none(), st.tuples(longs) | st.just(()))
states = st.none() | mapped | unmapped


@given(named=values, refusal=st.none() | refusals, state=states)
def test_unpacking_inverts_packing(named, refusal, state):
    name, value = named
    outcome = refusal or (OK if value is None else Outcome(None, value))
    observation = Observation(outcome, state)
    reply = encode_reply(Operation(name), observation)
    assert unpacked(name, reply, outcome.text) == observation


@given(named=values, first=states, second=states, text=st.none() | st.text(min_size=1))
def test_different_observations_have_different_replies(named, first, second, text):
    name, value = named
    ones = [Observation(Outcome(None, value), first), Observation(Outcome("corrupt", None, text), first)]
    others = [Observation(Outcome(None, value), second), Observation(Outcome("corrupt", None, None), second)]
    for one in ones:
        for other in others:
            assert (encode_reply(Operation(name), one) == encode_reply(Operation(name), other)) == (one == other)


@pytest.mark.parametrize(
    "observation",
    [
        Observation(Outcome(None, (1 << 64, 0)), None),
        Observation(Outcome(None, ("a", "b")), None),
        Observation(Outcome("failure", None, "it crashed"), None),
        Observation(OK, State(1 << 63, 1, False, 1, (0,))),
    ],
)
def test_an_observation_that_no_reply_can_represent_has_none(observation):
    assert encode_reply(Operation("lookup", (1,)), observation) is None


def test_an_exception_of_no_kind_is_a_failure_with_its_text():
    reply = struct.pack("=3q", -1, -1, 0)
    assert unpacked("flush", reply, "a.b.CException: oh").outcome == Outcome("failure", None, "a.b.CException: oh")


def test_an_empty_list_is_not_nothing():
    nothing, empty = (
        encode_reply(Operation("all_aborted"), Observation(Outcome(None, value), None)) for value in (None, ())
    )
    assert nothing != empty
    assert unpacked("all_aborted", empty).outcome.value == ()
