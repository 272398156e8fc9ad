"""Negative sizes, which only Kafka's classes and kidx receive: the implementation is queried once."""

from __future__ import annotations

import pytest

from conformance.implementations.kidx.index import ReferenceIndex
from conformance.implementations.process import ProcessIndex
from conformance.implementations.protocol import takes
from conformance.implementations.python.objects import PythonObjectIndex
from conformance.operations import Operation

NEGATIVE = Operation("resize", (-12,))


@pytest.mark.parametrize("foreign", [ProcessIndex, PythonObjectIndex])
def test_others_take_no_negative_sizes(foreign):
    assert not takes(foreign, NEGATIVE)
    assert takes(foreign, Operation("resize", (0,)))
    assert takes(foreign, Operation("lookup", (-12,)))


def test_kidx_takes_them():
    assert takes(ReferenceIndex("4.4.0"), NEGATIVE)
