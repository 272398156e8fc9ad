"""What Java throws and no error kind stands for: a build's failure, or a gap in the table."""

from __future__ import annotations

import pytest

from conformance.errors import ToolError
from conformance.implementations.jvm.exceptions import unknown_outcome
from conformance.implementations.replies import FAILURE, OUT_OF_MEMORY
from conformance.operations import Outcome

THROWN = "java.util.NoSuchElementException: No value present"


def test_a_build_may_throw_anything():
    assert unknown_outcome("jvm:x 4.3.1", THROWN, is_build=True) == Outcome(FAILURE, None, THROWN)


def test_of_a_release_every_exception_is_known():
    with pytest.raises(ToolError, match=r"jvm 4\.3\.1 threw what no error kind stands for: java\.util\.NoSuch"):
        unknown_outcome("jvm 4.3.1", THROWN, is_build=False)


@pytest.mark.parametrize("is_build", [False, True])
def test_memory_and_classes_are_told_alike(is_build):
    assert unknown_outcome("x", "java.lang.OutOfMemoryError: Java heap space", is_build=is_build).error == OUT_OF_MEMORY
    with pytest.raises(ToolError, match=r"not complete.*missing: org\.slf4j\.Logger"):
        unknown_outcome("x", "java.lang.NoClassDefFoundError: org/slf4j/Logger", is_build=is_build)
