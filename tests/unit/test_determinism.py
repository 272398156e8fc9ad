"""Local constants of Hypothesis: excluded where possible, otherwise a clear warning."""

from __future__ import annotations

import shlex
import sys
import warnings
from pathlib import Path

import pytest
from hypothesis.internal.conjecture import providers

from conformance.events import RunFinished
from conformance.runs import determinism
from conformance.runs.determinism import NondeterminismWarning, without_local_constants
from conformance.runs.profiles import PROFILES
from conformance.runs.runner import Plan, run

ADAPTER = Path(__file__).parents[1] / "adapters" / "line_index.py"


def test_this_hypothesis_allows_it():
    """If this fails, Hypothesis has changed: check how it finds local constants now."""
    found = providers._get_local_constants
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with without_local_constants():
            assert providers._get_local_constants is not found
            assert len(providers._get_local_constants()) == 0
    assert providers._get_local_constants is found


class _OtherShape:
    """Cache that cannot be emptied as in this version."""


def spoil(monkeypatch, how):
    if how == "no function":
        monkeypatch.delattr(providers, "_get_local_constants")
    elif how == "no cache":
        monkeypatch.delattr(providers, "CONSTANTS_CACHE")
    elif how == "another cache":
        monkeypatch.setattr(providers, "CONSTANTS_CACHE", _OtherShape())
    elif how == "no module":
        monkeypatch.setitem(sys.modules, determinism._CONSTANTS, None)
    else:
        monkeypatch.setattr(sys.modules[determinism._CONSTANTS], "Constants", lambda *, needed: needed)


@pytest.mark.parametrize("how", ["no function", "no cache", "another cache", "no module", "other constants"])
def test_another_hypothesis_is_left_unchanged_with_a_warning(monkeypatch, how):
    spoil(monkeypatch, how)
    found = vars(providers).copy()
    with (
        pytest.warns(NondeterminismWarning, match=r"^Hypothesis \S+ draws constants .* the same seed may give other"),
        without_local_constants(),
    ):
        assert vars(providers) == found
    assert vars(providers) == found


@pytest.mark.thorough
def test_a_run_continues_without_it(monkeypatch, tmp_path):
    """Hypothesis itself works on: only what replaces its function finds nothing to replace."""
    monkeypatch.setattr(sys.modules[determinism._CONSTANTS], "Constants", lambda *, needed: needed)
    monkeypatch.setattr(providers, "_get_local_constants", lambda: providers.GLOBAL_CONSTANTS)
    events = []
    adapter = shlex.join(["exec:" + sys.executable, str(ADAPTER)])
    plan = Plan(("4.4.0",), (adapter,), ("offset",), PROFILES["dev"], tmp_path, seed=1, max_examples=3, kept=False)
    with pytest.warns(NondeterminismWarning):
        run(plan, events.append)
    assert isinstance(events[-1], RunFinished)
    assert events[-1].verdict == "conforms"
