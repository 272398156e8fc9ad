"""Bugs fixed between two locked releases, found by ``diff`` of the two alone, as a contributor would."""

from __future__ import annotations

import re
from typing import NamedTuple

import pytest
from thorough_params import thorough_except

from conformance.clauses import family, load_clauses
from conformance.experiments.mutation.historical import load_bugs
from conformance.experiments.release_diff import Plan, compare
from conformance.kafka.releases import RELEASES
from kidx.dialect import version_of


class Seen(NamedTuple):
    """Divergence by which ``diff`` shows a bug: two adjacent releases, the machine, and the clauses."""

    old: str
    new: str
    machine: str
    clauses: frozenset[str]


FOUND = {
    "KAFKA-806": Seen("3.9.0", "3.9.1", "segment", frozenset({"SEG-3", "SEG-4"})),
    "KAFKA-18723": Seen("3.9.0", "3.9.1", "log", frozenset({"LG-3"})),
    "KAFKA-16310": Seen("3.7.2", "3.8.1", "log", frozenset({"LO-9", "LO-10"})),
    "KAFKA-19221": Seen("4.0.0", "4.0.1", "segment", frozenset({"SEG-24"})),
    "KAFKA-19390": Seen("4.0.1", "4.0.2", "offset", frozenset({"AI-44"})),
    "KAFKA-9491": Seen("2.4.0", "2.4.1", "log", frozenset({"LG-10"})),
    "KAFKA-8710": Seen("2.4.1", "2.5.1", "log", frozenset({"LG-36"})),
    "KAFKA-9373": Seen("2.5.1", "2.6.3", "segment", frozenset({"SEG-24", "SEG-28", "LZ-3"})),
    "KAFKA-10432": Seen("2.5.1", "2.6.3", "log", frozenset({"SEG-31"})),
    "KAFKA-9617": Seen("2.5.1", "2.6.3", "log", frozenset({"LG-65"})),
    "KAFKA-9669": Seen("2.4.1", "2.5.1", "log", frozenset({"LG-55"})),
    "KAFKA-12153": Seen("2.6.3", "2.7.2", "log", frozenset({"LG-11", "LG-31"})),
    "KAFKA-9393": Seen("2.7.2", "2.8.2", "log", frozenset({"LG-34"})),
    "KAFKA-13149": Seen("2.8.2", "3.0.2", "segment", frozenset({"SEG-46"})),
    "KAFKA-14633": Seen("3.5.2", "3.6.2", "segment", frozenset({"SEG-48", "SEG-49"})),
    "KAFKA-19562": Seen("4.3.1", "4.4.0", "transaction", frozenset({"TX-7"})),
    "KAFKA-19690": Seen("4.0.1", "4.0.2", "log", frozenset({"LG-45"})),
    "KAFKA-19446": Seen("4.1.2", "4.2.1", "log", frozenset({"LG-45"})),
    "KAFKA-20979": Seen("4.3.1", "4.4.0", "log", frozenset({"LG-26", "SEG-27"})),
}
NOT_SEEN = {
    "KAFKA-12520": "loading recovers swap files, and no step of the log machine leaves one behind",
    "KAFKA-13603": "it shows in an index file that a shutdown has to write though nothing was appended",
}
"""Bugs that ``diff`` does not show, with the reasons."""
OF_CLEANED_LOGS = {"KAFKA-8764", "KAFKA-13093", "KAFKA-17076", "KAFKA-20452"}
"""Bugs that the machine of compacted logs exercises; it was not checked whether ``diff`` shows them."""
OF_CACHES = {"KAFKA-15536", "KAFKA-17184", "KAFKA-18787", "KAFKA-19970"}
"""Bugs that the machine of the cache of remote indexes exercises, which ``diff`` does not drive."""
OF_POWER = {"KAFKA-3968", "KAFKA-10471", "KAFKA-16541", "KAFKA-21000"}
"""Bugs that only a power failure shows: ``conformance power-loss`` finds them."""
OF_INTERLEAVINGS = {"KAFKA-9835", "KAFKA-19407"}
"""Bugs that only threads show: ``conformance interleave`` finds them."""

PAIRS = sorted({seen[:3] for seen in FOUND.values()})
SHORT = [("3.9.0", "3.9.1", "segment"), ("4.0.1", "4.0.2", "offset")]
FEW = {"offset": 150, "transaction": 400, "segment": 250, "log": 120}
"""Examples of one search unaided."""
SEEDS = range(4)
"""A search that misses one is followed by another: what one seed finds changes with every draw that a machine gets."""


def between_locked_releases():
    """Return tickets of clauses that hold in some locked releases, and of historical bugs fixed between them."""
    tickets = {
        clause.ticket
        for clause in load_clauses().values()
        if clause.ticket and len({clause.applies_to(release) for release in RELEASES}) == 2
    }
    for bug in load_bugs():
        fixed = re.findall(r"\d+\.\d+\.\d+", bug.fixed)
        if any(version_of(RELEASES[0]) < version_of(release) for release in fixed):
            tickets.add(bug.ticket)
    return tickets


def test_every_bug_between_two_locked_releases_is_accounted_for():
    assert (
        between_locked_releases()
        == set(FOUND) | set(NOT_SEEN) | OF_CLEANED_LOGS | OF_CACHES | OF_POWER | OF_INTERLEAVINGS
    )
    for seen in FOUND.values():
        assert RELEASES.index(seen.new) > RELEASES.index(seen.old)
        assert seen.clauses <= set(map(family, load_clauses()))


def told(pair, traces, **budget):
    """Run the comparison; return the tickets of this pair of releases that it does not show."""
    comparison = compare(Plan(*pair[:2], (pair[2],), traces, **budget))
    families = {family(id_) for one in comparison.all for id_ in (*one.implicated.old, *one.implicated.new)}
    here = {ticket: seen.clauses for ticket, seen in FOUND.items() if seen[:3] == pair}
    return comparison, {ticket for ticket, clauses in here.items() if not clauses & families}


@pytest.mark.thorough
@pytest.mark.in_turn(4)
@pytest.mark.jvm
@pytest.mark.parametrize("pair", thorough_except(SHORT, PAIRS), ids="-".join)
def test_diff_shows_them(pair, tmp_path):
    """It runs like the command: the regression traces first, and then drawn examples."""
    comparison, missed = told(pair, tmp_path, max_examples=300 if pair[2] == "transaction" else 40)
    assert missed == set()
    assert all(one.trace.exists() for one in comparison.all)
    assert all(len(one.operations) <= 12 for one in comparison.differences)


@pytest.mark.in_turn(6)
@pytest.mark.jvm
@pytest.mark.thorough
@pytest.mark.timeout(900)
@pytest.mark.parametrize("pair", PAIRS, ids="-".join)
def test_the_machines_find_them_unaided(pair, tmp_path):
    """Nothing that is kept helps: a bug of tomorrow has no trace yet."""
    missed = set(FOUND)
    for seed in SEEDS:
        missed &= told(pair, tmp_path, replays=False, seed=seed, max_examples=FEW[pair[2]])[1]
        if not missed:
            return
    assert missed == set()
