"""Java exceptions without an error kind."""

from __future__ import annotations

import pytest

from conformance.errors import ToolError
from conformance.implementations.jvm.exceptions import unmapped_exception
from conformance.operations import Outcome
from conformance.operations.outcomes import FAILURE, OUT_OF_MEMORY

THROWN = "java.util.NoSuchElementException: No value present"


def test_an_unknown_exception_is_a_failure_with_a_trace():
    assert unmapped_exception("jvm 4.3.1", THROWN) == Outcome(FAILURE, None, THROWN)


def test_memory_and_classes_are_known():
    assert unmapped_exception("x", "java.lang.OutOfMemoryError: Java heap space").error == OUT_OF_MEMORY
    with pytest.raises(ToolError, match=r"not complete; add the jar that contains org\.slf4j\.Logger"):
        unmapped_exception("x", "java.lang.NoClassDefFoundError: org/slf4j/Logger")
