"""The tester is tested: kidx with one wrong line is found within few examples, in the wrong aspect.

The trace of the divergence must fail with the defect and be FIXED without it, and it must be short. A selection of the
mutants, one for each way of being wrong; tests/meta/test_mutants.py has all of them, with weaker checks. Without
``--thorough`` only their recorded traces are replayed.
"""

from __future__ import annotations

import json
from dataclasses import replace
from functools import partial
from importlib.resources import files
from pathlib import Path
from typing import NamedTuple

import jsonschema
import pytest
from thorough_params import thorough_param

from conformance.implementations.kidx.index import ReferenceIndex
from conformance.implementations.mutants import implementation_of, mutant
from conformance.operations.trace import Trace
from conformance.runs.divergence_reporter import ANOTHER_WAY
from conformance.runs.replay import replay


class Defect(NamedTuple):
    mutant: str
    aspect: str
    steps: int = 5
    others: int = 0
    """Maximal number of further divergences, where the defect affects several operations or errors."""


DEFECTS = [
    Defect("one-too-low-at-the-warm-edge", "outcome", steps=8),
    Defect("keeps-the-equal-offset", "state"),
    Defect("ignores-the-equal-offset", "outcome"),
    Defect("forgets-the-length-check", "outcome", steps=6),
    Defect("forgets-the-offset-check", "outcome", steps=6),
    Defect("forgets-to-trim", "state"),
    Defect("little-endian", "bytes", others=1),
    Defect("rounds-up", "state", others=1),
    Defect("never-full", "state"),
    Defect("other-words", "text"),
    Defect("other-refusal", "outcome"),
    Defect("copies-instead-of-moving", "bytes"),
    Defect("leaves-a-lock-file", "bytes"),
    Defect("forgets-to-delete", "bytes"),
    Defect("clears-on-truncation", "bytes", others=1),
    Defect("counts-the-bound-out", "outcome"),
    Defect("forgets-the-slot-kept-free", "state"),
    Defect("appends-equal-timestamps", "bytes", others=1),
    Defect("answers-with-the-next", "outcome"),
    Defect("forgets-the-timestamp-check", "outcome", steps=7),
    Defect("no-timestamp-is-zero", "state"),
    Defect("is-always-complete", "outcome"),
    Defect("leaves-out-the-first-offset", "outcome"),
    Defect("swaps-the-offsets", "bytes"),
    Defect("forgets-to-sanity-check", "outcome", steps=7, others=1),
    Defect("remembers-too-much", "state", others=1),
]


@pytest.mark.parametrize("defect", DEFECTS, ids=lambda defect: defect.mutant)
def test_a_recorded_defect_shows_in_the_wrong_aspect_and_soon(kills, defect):
    trace = kills.kill_of(mutant(defect.mutant))
    assert len(trace.operations) <= defect.steps
    again = replay(trace, [trace.release], [f"mutant:{defect.mutant}"])
    assert defect.aspect in again.divergence.aspects
    assert list(again.divergence.aspects) == trace.failure["aspects"]
    assert list(again.divergence.clauses) == trace.failure["clauses"]


@pytest.mark.thorough
@pytest.mark.in_turn(3)
@pytest.mark.parametrize("defect", DEFECTS, ids=lambda defect: defect.mutant)
def test_a_planted_defect_is_found_and_its_trace_distinguishes_it_from_a_sound_one(
    run_machine, implementations, defect
):
    planted = mutant(defect.mutant)
    release = planted.release
    found = run_machine(planted.machine, releases=(release,), spoilt=lambda _: implementation_of(planted, release))
    assert not found.conforms
    assert found.verdict == "diverges"
    divergence, *others = found.divergences
    assert len(others) <= defect.others, [other.signature for other in others]
    failure = divergence.failure
    assert (failure["participant"], failure["against"]) == (f"spoilt {release}", "kidx")
    assert defect.aspect in failure["aspects"]
    assert len(divergence.steps) <= defect.steps, divergence.steps

    (result,) = found.results
    assert result.divergences == len(found.divergences)
    assert all(result.verdicts[clause] == "diverges" for clause in failure["clauses"] if clause in result.verdicts)

    document = json.loads(Path(divergence.trace).read_text("utf-8"))
    jsonschema.validate(document, json.loads((files("conformance") / "schemas/trace.json").read_text("utf-8")))
    trace = Trace.load(divergence.trace)
    implementations["sound"] = ReferenceIndex
    again = replay(trace, [release], ["spoilt"])
    assert (again.verdict, list(again.divergence.aspects)) == ("FAILED", failure["aspects"])
    assert again.steps == len(trace.operations)
    assert replay(trace, [release], ["sound"]).verdict == "FIXED"


TOGETHER = [
    # Each of the second ones could be grouped with the first, which shows after most operations.
    ("never-full", "other-words", "counts-the-bound-out"),
    ("little-endian", "keeps-the-equal-offset", "refuses-positions-going-back"),
    ("rounds-up", "clears-on-truncation"),
    ("leaves-a-lock-file", "forgets-to-delete", "ignores-the-equal-offset"),
    ("forgets-the-slot-kept-free", "appends-equal-timestamps", "answers-with-the-next"),
    ("is-always-complete", "remembers-too-much", "forgets-to-sanity-check"),
]


@pytest.mark.in_turn(3)
@pytest.mark.thorough
@pytest.mark.parametrize("names", TOGETHER, ids="+".join)
def test_defects_planted_together_are_distinguished(run_machine, implementations, names):
    """Each has its own divergence, and none is grouped with a defect that does not show it.

    An occurrence that shares only the clause is shown, too, without a root cause.
    """
    every = [mutant(name) for name in names]
    release = every[0].release
    together = replace(every[0], build=lambda: type("Together", tuple(each.defect for each in every), {}))
    spoilt = implementation_of(together, release)
    found = run_machine(every[0].machine, releases=(release,), examples=300, spoilt=lambda _: spoilt)
    for name, each in zip(names, every, strict=True):
        implementations[name] = partial(implementation_of, each)

    def shown_by(trace):
        trace = Trace.load(trace)
        return {name for name in names if replay(trace, [release], [name]).verdict == "FAILED"}

    own = [shown_by(event.trace) for event in found.divergences]
    assert all({name} in own for name in names), own
    for event, defects in zip(found.divergences, own, strict=True):
        for sight in (each for each in event.related if each["reason"] != ANOTHER_WAY):
            assert shown_by(sight["trace"]) & defects, sight


@pytest.mark.thorough
@pytest.mark.parametrize("machine", [thorough_param("offset"), thorough_param("time"), "transaction"])
def test_a_sound_implementation_is_not_accused(run_machine, thorough, machine):
    examples = 200 if thorough else 80
    found = run_machine(machine, examples=examples, sound=ReferenceIndex, releases=("2.4.1", "3.9.2", "4.4.0"))
    assert found.conforms
    assert (found.verdict, found.divergences) == ("conforms", [])
    for result in found.results:
        assert result.divergences == 0
        assert set(result.verdicts.values()) <= {"conforms", "not-run"}
        assert result.count("conforms") > result.count("not-run")
