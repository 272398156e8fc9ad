"""A reply of the Java side says an observation, whole: what differs in anything differs in its bytes."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from conformance.implementations.jvm.reply import HEAD, UnknownExceptionError, packed, unpacked
from conformance.operations import ERROR_KINDS, OK, Observation, Operation, Outcome, State

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
refusals = st.builds(Outcome, st.sampled_from(ERROR_KINDS), st.none(), st.none() | st.text(min_size=1, max_size=30))
mapped = st.builds(State, longs, st.integers(0, 1 << 40), st.booleans(), longs, pairs | st.tuples(longs))
unmapped = st.builds(State, longs, st.none(), st.none(), st.none(), st.tuples(longs) | st.just(()))
states = st.none() | mapped | unmapped


@given(named=values, refusal=st.none() | refusals, state=states)
def test_unpacking_inverts_packing(named, refusal, state):
    name, value = named
    outcome = refusal or (OK if value is None else Outcome(None, value))
    observation = Observation(outcome, state)
    reply = packed(Operation(name), observation)
    assert unpacked(name, bytearray(reply) + b"the rest of the buffer") == observation


@given(named=values, first=states, second=states, text=st.none() | st.text(min_size=1))
def test_different_observations_have_different_replies(named, first, second, text):
    name, value = named
    ones = [Observation(Outcome(None, value), first), Observation(Outcome("corrupt", None, text), first)]
    others = [Observation(Outcome(None, value), second), Observation(Outcome("corrupt", None, None), second)]
    for one in ones:
        for other in others:
            assert (packed(Operation(name), one) == packed(Operation(name), other)) == (one == other)


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
    assert packed(Operation("lookup", (1,)), observation) is None


def test_an_exception_of_no_kind_is_an_error_with_its_text():
    text = b"java.lang.OutOfMemoryError"
    reply = bytearray(HEAD.pack(-1, -1, 0, 0, 0, 0, -1, 0, 0, len(text)) + text)
    with pytest.raises(UnknownExceptionError, match="OutOfMemoryError"):
        unpacked("flush", reply)
