"""The harness's events in a few runs are unchanged; ``python -m tests.meta.stream`` records them."""

from __future__ import annotations

import pytest

from tests.meta.stream import CASES, events_of, recorded, texts

RUNS = [
    pytest.param(
        name,
        marks=[
            *([pytest.mark.jvm] if case.implementation == "jvm" else []),
            *([pytest.mark.thorough] if case.thorough else []),
        ],
    )
    for name, case in CASES.items()
]


@pytest.mark.parametrize("name", RUNS)
def test_a_run_is_unchanged(name):
    assert events_of(name) == recorded()[name]


def test_schemas_and_help_are_unchanged():
    assert texts() == recorded()["texts"]
