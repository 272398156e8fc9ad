"""The ci profile shows every clause that a machine of an index can show, in every set of rules: none is not-run.

Held against the reference alone, as Kafka's classes only agree with it; who does not is found elsewhere.
"""

from __future__ import annotations

import pytest

from conformance.attribution.tables import clauses_for
from conformance.kafka.releases import RELEASES
from conformance.lockstep import Lockstep
from conformance.machines import MACHINES
from conformance.runs.chunks import CHUNK, chunks_of, run_chunk
from conformance.runs.profiles import PROFILES
from kidx.dialect import dialect_of

ONE_OF_EACH = ("3.4.1", "3.9.1", "4.0.1", "4.3.1", "4.4.0")


def test_there_is_one_release_of_each_set_of_rules():
    rules = [dialect_of(release).rules("index") for release in ONE_OF_EACH]
    assert len(set(rules)) == len(rules)
    assert set(rules) == {dialect_of(release).rules("index") for release in RELEASES}


@pytest.mark.in_turn(3)
@pytest.mark.thorough
@pytest.mark.parametrize("machine", ["offset", "time", "transaction"])
def test_every_clause_is_exercised(tmp_path, machine):
    profile = PROFILES["ci"]
    lockstep = Lockstep([], tmp_path, releases=ONE_OF_EACH, model=False)
    missing = {}
    for chunk in chunks_of(machine, profile.examples, profile.seed):
        run_chunk(MACHINES[machine].bind(lockstep), profile.settings(CHUNK), chunk.seed, chunk.examples)
        if not chunk.ends_round:
            continue
        missing = {
            release: [c.id for c in clauses_for(machine, release) if not lockstep.statistics.exercised(release)[c.id]]
            for release in ONE_OF_EACH
        }
        if not any(missing.values()):
            return
    assert not any(missing.values()), missing
