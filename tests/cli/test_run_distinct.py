"""One difference does not hide the others: a run tells each distinct one once, with all its releases."""

from __future__ import annotations

import json
import re
import shlex
from pathlib import Path

import pytest

THREE = "python:three_defects:open_index"
RUN = ("run", "-i", THREE, "--kafka", "3.9.1", "--kafka", "4.4.0", "--machine", "offset", "--machine", "time")


@pytest.fixture
def faulty(typed):
    """Where ``three_defects`` can be imported."""
    adapter = Path(__file__).parent.parent / "adapters" / "three_defects.py"
    (typed.work / adapter.name).write_text(adapter.read_text())
    return typed


@pytest.mark.thorough
def test_three_defects_are_three_differences_once_each_with_their_releases(faulty):
    done = faulty(*RUN, "--max-examples", "80", "--report", "report", "--json", "-j", "1")
    assert (done.returncode, done.stderr) == (1, "")
    document = json.loads(done.stdout)
    found = {(event["machine"], event["steps"][-1].partition("(")[0]): event for event in document["divergences"]}
    assert len(document["divergences"]) == 3
    assert {place: event["releases"] for place, event in found.items()} == {
        ("offset", "lookup"): ["4.4.0", "3.9.1"],
        ("offset", "truncate_to"): ["4.4.0", "3.9.1"],
        ("time", "lookup"): ["3.9.1"],
    }
    assert all(event["failure"]["release"] == event["releases"][0] for event in found.values())
    assert all(event["machines"] == [event["machine"]] and event["times"] > 1 for event in found.values())
    assert all(event["shrinking"] == "minimal" for event in found.values())
    assert found["offset", "lookup"]["clause"] == "OI-7"
    counts = {(row["machine"], row["release"]): row["divergences"] for row in document["results"]}
    assert counts == {("offset", "3.9.1"): 2, ("offset", "4.4.0"): 2, ("time", "3.9.1"): 1, ("time", "4.4.0"): 0}
    # What is wrong is not held against the rest: other clauses of the same index conform.
    verdicts = next(row["verdicts"] for row in document["results"] if row["machine"] == "offset")
    assert verdicts["OI-7"] == "diverges"
    assert verdicts["OI-3"] == "conforms"

    # Each is replayed by the command that it comes with.
    for event in found.values():
        again = faulty(*shlex.split(event["replay"])[1:])
        assert (again.returncode, again.stdout.splitlines()[-1].partition(" ")[0]) == (1, "FAILED")

    # And the report has them once each, in the rows of all their releases.
    faulty("report", "report", "--junit", "report.xml", "--markdown", "report.md", "--html", "report.html")
    assert "### 3 differences" in (faulty.work / "report.md").read_text()
    assert (faulty.work / "report.html").read_text().count('<details class="difference"') == 3
    failures = re.findall(r'name="OI-7 [^"]*">\s*<failure', (faulty.work / "report.xml").read_text())
    assert len(failures) == 2


def test_the_terminal_has_the_verdict_first_and_each_difference_once(faulty):
    done = faulty(*RUN, "--max-examples", "40", "-j", "1")
    assert done.returncode == 1
    assert done.stdout.count("replay       conformance replay ") == 3
    assert done.stdout.count("  releases     4.4.0, 3.9.1 (2)\n") == 2
    verdict = done.stdout.index("DIVERGES: 3 distinct differences\n")
    assert verdict < done.stdout.index("requirement") < done.stdout.index("release  impl")
    assert done.stdout.splitlines()[-1].startswith("DIVERGES: 3 differences, see above · ")


@pytest.mark.thorough
def test_stop_at_first_lets_an_implementation_leave_with_its_first_difference(faulty):
    done = faulty(*RUN, "--max-examples", "40", "--stop-at-first", "--json", "-j", "1")
    document = json.loads(done.stdout)
    assert done.returncode == 1
    found = [(event["machine"], event["failure"]["release"]) for event in document["divergences"]]
    assert sorted(found) == [("offset", "3.9.1"), ("offset", "4.4.0"), ("time", "3.9.1")]
    assert all(len(event["releases"]) == 1 for event in document["divergences"])


@pytest.mark.thorough
def test_processes_find_what_one_finds(faulty, thorough):
    """However many share the examples, the same seed gives the same examples and the same report."""
    machines = RUN if thorough else RUN[:-2]

    def said(jobs):
        arguments = ("--max-examples", "30", "--json", "-j", jobs)
        document = json.loads(faulty(*machines, *arguments).stdout)
        for row in (document, *document["results"]):
            del row["seconds"]
        del document["run"]["started"]
        return document

    assert said("1") == said("2")
