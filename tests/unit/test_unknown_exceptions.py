"""What Java throws and no error kind stands for."""

from __future__ import annotations

import pytest

from conformance.errors import ToolError
from conformance.implementations.jvm.exceptions import unknown_outcome
from conformance.implementations.replies import FAILURE, OUT_OF_MEMORY
from conformance.operations import Outcome

THROWN = "java.util.NoSuchElementException: No value present"


def test_what_is_not_known_is_a_failure_whose_trace_is_kept():
    assert unknown_outcome("jvm 4.3.1", THROWN) == Outcome(FAILURE, None, THROWN)


def test_memory_and_classes_are_known():
    assert unknown_outcome("x", "java.lang.OutOfMemoryError: Java heap space").error == OUT_OF_MEMORY
    with pytest.raises(ToolError, match=r"not complete.*missing: org\.slf4j\.Logger"):
        unknown_outcome("x", "java.lang.NoClassDefFoundError: org/slf4j/Logger")
