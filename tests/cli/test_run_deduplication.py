"""One difference does not hide the others: a run tells each distinct one once, with all its releases."""

from __future__ import annotations

import json
import re
import shlex
import shutil
from pathlib import Path

import pytest

THREE = "python:three_defects:open_index"
RUN = ("run", "-i", THREE, "--kafka", "3.9.1", "--kafka", "4.4.0", "--machine", "offset", "--machine", "time")


@pytest.fixture
def faulty(typed):
    """Make ``three_defects`` importable."""
    adapter = Path(__file__).parent.parent / "adapters" / "three_defects.py"
    (typed.work / adapter.name).write_text(adapter.read_text())
    return typed


@pytest.mark.thorough
def test_three_defects_are_three_divergences_with_their_releases(faulty):
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
    assert all(event["machines"] == [event["machine"]] and event["occurrences"] > 1 for event in found.values())
    assert all(event["shrinking"] == "minimal" for event in found.values())
    assert found["offset", "lookup"]["clause"] == "OI-7"
    counts = {(row["machine"], row["release"]): row["divergences"] for row in document["results"]}
    assert counts == {("offset", "3.9.1"): 2, ("offset", "4.4.0"): 2, ("time", "3.9.1"): 1, ("time", "4.4.0"): 0}
    # An error does not affect other results: other clauses of the same index conform.
    verdicts = next(row["verdicts"] for row in document["results"] if row["machine"] == "offset")
    assert verdicts["OI-7"] == "diverges"
    assert verdicts["OI-3"] == "conforms"

    # Each is replayed by the command that it comes with.
    for event in found.values():
        again = faulty(*shlex.split(event["replay"])[1:])
        assert (again.returncode, again.stdout.splitlines()[-1].partition(" ")[0]) == (1, "FAILED")

    # And the report has them once each, in the rows of all their releases.
    faulty("report", "report", "--junit", "report.xml", "--markdown", "report.md", "--html", "report.html")
    assert "### 3 divergences" in (faulty.work / "report.md").read_text()
    assert (faulty.work / "report.html").read_text().count('<details class="difference"') == 3
    failures = re.findall(r'name="OI-7 [^"]*">\s*<failure', (faulty.work / "report.xml").read_text())
    assert len(failures) == 2


@pytest.mark.thorough
def test_one_cause_in_both_kinds_of_index_is_reported_once(typed):
    """The lookups of both skip an entry that is exactly the target."""
    shutil.copy(Path(__file__).parent.parent / "adapters" / "python_index.py", typed.work / "index_of_mine.py")
    both = ("-i", "python:index_of_mine:open_both_off_by_one", "--kafka", "4.4.0", "--level", "must")
    machines = ("--machine", "offset", "--machine", "time")
    done = typed("run", *both, *machines, "--max-examples", "12", "--json", "-j", "1")
    assert (done.returncode, done.stderr) == (1, "")
    (event,) = json.loads(done.stdout)["divergences"]
    assert (event["clause"], event["machines"]) == ("OI-7", ["offset", "time"])
    assert [(sight["clause"], sight["reason"]) for sight in event["related"]] == [
        ("TI-7", "the same goes wrong in the other kind of index")
    ]


@pytest.mark.thorough
def test_the_terminal_has_the_verdict_first_and_each_divergence_once(faulty):
    done = faulty(*RUN, "--max-examples", "40", "-j", "1")
    assert done.returncode == 1
    assert done.stdout.count("replay       conformance replay ") == 3
    assert done.stdout.count("  releases     4.4.0, 3.9.1 (2)\n") == 2
    verdict = done.stdout.index("DIVERGES: 3 unique divergences\n")
    assert verdict < done.stdout.index("requirement") < done.stdout.index("release  implementation")
    assert done.stdout.splitlines()[-1].startswith("DIVERGES: 3 divergences, see above · ")


@pytest.mark.thorough
def test_with_stop_at_first_an_implementation_drops_out_with_its_first_divergence(faulty):
    done = faulty(*RUN, "--max-examples", "40", "--fail-fast", "--json", "-j", "1")
    document = json.loads(done.stdout)
    assert done.returncode == 1
    found = [(event["machine"], event["failure"]["release"]) for event in document["divergences"]]
    assert sorted(found) == [("offset", "3.9.1"), ("offset", "4.4.0"), ("time", "3.9.1")]
    assert all(len(event["releases"]) == 1 for event in document["divergences"])


@pytest.mark.thorough
def test_worker_processes_have_the_same_findings(faulty, thorough):
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
