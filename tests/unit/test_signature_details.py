"""Details that distinguish divergences of one signature in logs, and expectations that name them."""

from __future__ import annotations

import pytest

from conformance.expectations import ExpectationTracker, read_expectations
from conformance.lockstep.divergence import Divergence, FileDifference
from conformance.operations import OK, Operation, Outcome
from conformance.runs.divergences.signatures import signature_detail, signature_of

ASKED = Operation("list_offsets", ((-1, -3, 10, 20),))


def difference(operation, aspect, *, expected=OK, actual=OK, **about):
    who = "mine 4.3.1", "4.3.1", "kidx"
    return Divergence(3, operation, *who, (aspect,), expected, actual, (), **about)


@pytest.mark.parametrize(
    ("divergence", "named"),
    [
        (
            difference(Operation("truncate_log", (1,)), "state", fields=("high_watermark", "end_offset")),
            "truncate_log: state of end_offset, high_watermark",
        ),
        (
            difference(
                Operation("close_log", (True,)),
                "bytes",
                files=tuple(map(FileDifference, ("0.timeindex", "7.timeindex", "leader-epoch-checkpoint"))),
            ),
            "close_log: bytes of .timeindex, leader-epoch-checkpoint",
        ),
        (
            difference(
                ASKED,
                "outcome",
                expected=(None, ((5, 1), (9, 1), None, None)),
                actual=(None, ((5, 1), None, None, (20, 2))),
            ),
            "list_offsets: outcome ok -> ok of -3, times",
        ),
        (
            difference(ASKED, "outcome", expected=(None, ((5, 1),)), actual=Outcome("io", None)),
            "list_offsets: outcome ok -> io",
        ),
        (difference(Operation("append", (1, 2)), "bytes", files=(FileDifference(""),)), "append: bytes"),
    ],
)
def test_the_parts_that_differ_are_named_once_and_in_order(divergence, named):
    assert signature_of(divergence) + signature_detail(divergence) == named


ENTRY = """
[[expectation]]
signature = "{}"
machine = "log"
implementation = "mine"
releases = ">=4.0.0"
reason = "a debt"
link = "https://example.org/7"
"""


@pytest.mark.parametrize(
    ("shape", "is_met"),
    [
        ("truncate_log: state", True),
        ("truncate_log: state of end_offset", True),
        ("truncate_log: state of *end_offset*", True),
        ("truncate_log: state of high_watermark", False),
        ("truncate_log: bytes of end_offset", False),
    ],
)
def test_an_expectation_may_name_them_or_not(shape, is_met):
    ledger = ExpectationTracker(read_expectations("mine.toml", ENTRY.format(shape)))
    found = ledger.find((), "truncate_log: state", "log", "mine", "4.3.1", " of end_offset")
    assert (found == 0) is is_met
