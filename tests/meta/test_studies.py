"""The output and the files of studies are unchanged; ``python -m tests.meta.studies`` records them."""

from __future__ import annotations

import pytest

from tests.meta.studies import CASES, lines_of, recorded

WITHOUT_JAVA = {"exhaustive", "fuzz", "known-bugs"}


@pytest.mark.thorough
@pytest.mark.parametrize(
    "name", [name if name in WITHOUT_JAVA else pytest.param(name, marks=pytest.mark.jvm) for name in CASES]
)
def test_a_study_is_unchanged(name):
    assert lines_of(name) == recorded()[name]
