"""The command run: operations, seeds, brokers, and each divergence once."""

from __future__ import annotations

import json
import re
import shlex
import shutil
import signal
from pathlib import Path

import pytest
import wire_proxy
from interrupted import interrupt

from conformance.clauses.machines import FILE_MACHINES, MACHINES
from conformance.kafka.broker import LocalBroker
from conformance.kafka.broker.ports import HOST, free_ports
from conformance.kafka.client import Address, Client
from conformance.machines import MACHINES as MACHINE_TYPES
from conformance.operations import Operation
from conformance.operations.operation import operations_of
from conformance.operations.trace import Trace
from conformance.runs.chunks import run_chunk
from conformance.runs.plan import Plan
from conformance.runs.profiles import PROFILES

# -- ``conformance run --operation``: only some operations are executed, and the verdict says which are not --------


RELEASE = "4.3.1"
SMALL = ("--kafka", RELEASE, "--max-examples", 20, "-j", 1, "--no-shrink")
FEW = ("run", "-i", "mutant:starts-over-after-a-resize", *SMALL)
TWO = ("--operation", "append", "--operation", "lookup")


@pytest.mark.thorough
def test_only_the_named_operations_run_and_the_others_are_said(typed):
    assert typed(*FEW, "--machine", "offset").returncode == 1  # the mutant's defect is in resize
    done = typed(*FEW, "--machine", "offset", *TWO, "--json")
    document = json.loads(done.stdout)
    (result,) = document["results"]
    assert (done.returncode, result["machine"], result["divergences"]) == (3, "offset", 0)
    done_ones = {"open", "append", "lookup", "close", "crash", "delete"}
    assert set(result["operations"]) == done_ones
    assert result["details"]["operations not run"] == sorted(operations_of("offset").keys() - done_ones)
    assert result["verdicts"]["AI-10"] == "not-run"
    assert "--operation append --operation lookup" in document["run"]["command"]


@pytest.mark.thorough
def test_the_verdict_is_incomplete_unless_allowed(typed):
    done = typed(*FEW, *TWO, "--allow-incomplete")
    assert done.returncode == 0
    assert "truncate, truncate_to, write_file, zero_range of the offset machine not run (--operation)" in done.stdout
    assert "\nINCOMPLETE: " in done.stdout
    assert done.stderr == "not run, because they have no append or lookup: transaction, segment, log, cleaned\n"


def test_an_unknown_operation_is_one_line_that_names_the_known_ones(typed):
    done = typed(*FEW, "--machine", "offset", "--operation", "push")
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("conformance: unknown operation 'push' of offset; choose from append, bulk_append, ")
    done = typed(*FEW, "--machine", "offset", "--machine", "log", "--operation", "lookup")
    assert (done.returncode, done.stderr.count("\n")) == (2, 1)
    assert "the log machine has none of the operations; choose from append_as_follower, " in done.stderr


@pytest.mark.thorough
@pytest.mark.parametrize("machine", FILE_MACHINES)
def test_a_machine_runs_with_two_operations(machine, tmp_path):
    wanted = tuple(each.split()[0] for each in MACHINES[machine].needs[1:3])
    plan = Plan((RELEASE,), (), (machine,), PROFILES["dev"], Path(), operations=wanted)
    lockstep = MACHINE_TYPES[machine].new_lockstep([], tmp_path, releases=[RELEASE])
    lockstep.omitted = plan.omitted(machine)
    assert run_chunk(MACHINE_TYPES[machine].bind(lockstep), PROFILES["dev"].settings(10), 3, 10)
    done = {operation for operation, _, _ in lockstep.statistics.kinds}
    assert done >= set(wanted)
    assert done <= operations_of(machine).keys() - plan.omitted(machine)


# -- ``conformance run --seed``: the same version does the same every time, on a warm machine and in a pipeline too


SOUND = """
from kidx import OffsetIndex


def open_index(kind, path, base_offset, max_index_size, writable, release):
    if kind != "offset":
        raise NotImplementedError
    return OffsetIndex(path, base_offset, max_index_size, writable, dialect=release)
"""
TWELVE = ("-i", "python:mine:open_index", "--machine", "offset", "--max-examples", "12")


@pytest.fixture
def said(typed):
    """Run and return the document without times."""
    (typed.work / "mine.py").write_text(SOUND)

    def run(*arguments, **changes):
        done = typed("run", *TWELVE, *arguments, "--json", **changes)
        assert (done.returncode, done.stderr) == (0, "")
        document = json.loads(done.stdout)
        for row in (document, *document["results"]):
            del row["seconds"]
        del document["run"]["started"]
        return document

    return run


@pytest.mark.thorough
@pytest.mark.parametrize("profile", ["dev", "ci"])
def test_a_run_without_a_seed_is_the_same_twice_and_in_a_pipeline(said, profile):
    """Hypothesis loads its CI profile if ``CI`` is set, and uses an existing database."""
    first = said("--profile", profile)
    assert (first["run"]["seed"], first["run"]["seed_source"]) == (0, "fixed")
    assert said("--profile", profile) == first
    assert said("--profile", profile, CI="true") == first


@pytest.mark.thorough
def test_random_and_nightly_draw_a_seed_and_print_it(said):
    for arguments in (("--seed", "random"), ("--profile", "nightly")):
        runs = [said(*arguments)["run"] for _ in range(2)]
        assert {run["seed_source"] for run in runs} == {"drawn"}
        assert runs[0]["seed"] != runs[1]["seed"]


@pytest.mark.thorough
def test_a_drawn_seed_reproduces_the_run(said):
    drawn = said("--seed", "random")
    given = said("--seed", drawn["run"]["seed"])
    assert given["run"]["seed_source"] == "given"
    assert (given["steps"], given["results"]) == (drawn["steps"], drawn["results"])


@pytest.mark.thorough
def test_the_header_has_the_seed_and_its_source(typed):
    (typed.work / "mine.py").write_text(SOUND)
    assert "· seed 0 (fixed)\n" in typed("run", *TWELVE).stdout
    assert "(drawn)\n" in typed("run", *TWELVE, "--seed", "random").stdout
    assert "· seed 3\n" in typed("run", *TWELVE, "--seed", "3").stdout


@pytest.mark.thorough
def test_a_gate_finds_every_divergence_and_shrinks_none(typed):
    command = ("run", "-i", "mutant:forgets-to-delete", "--machine", "offset", "--max-examples", 5, "--json")
    for words in (("--no-shrink",), ("--no-shrink", "--max-shrink-time", 9)):
        (told,) = json.loads(typed(*command, "--kafka", "4.4.0", *words).stdout)["divergences"]
        assert told["shrinking"] == "not shrunk"


@pytest.mark.thorough
def test_a_trace_of_a_gate_is_shrunk_later(typed):
    """The shrunk trace is what the run itself finds, and stands next to the trace of the gate."""
    command = ("-i", "mutant:starts-over-after-a-resize", "--kafka", "4.4.0")
    examples = ("--machine", "offset", "--max-examples", 20, "-j", 1, "--report", "out")
    (long,) = json.loads(typed("run", *command, *examples, "--no-shrink", "--json").stdout)["divergences"]
    done = typed("replay", long["trace"], *command, "--shrink", "--json")
    document = json.loads(done.stdout)
    (short,) = document["shrunk"]
    assert (done.returncode, document["verdict"], short["shrinking"]) == (1, "FAILED", "minimal")
    assert len(short["steps"]) < len(long["steps"])
    assert (short["clause"], short["signature"]) == (long["clause"], long["signature"])
    assert Path(short["trace"]).parent == Path(long["trace"]).parent
    told = typed("replay", short["trace"], *command, "--shrink")
    assert (told.returncode, f"\nshrunk to {len(short['steps'])} steps (minimal)\n" in told.stdout) == (1, True)
    fixed = typed("replay", short["trace"], "-i", "mutant:remembers-too-much", "--kafka", "4.4.0", "--shrink", "--json")
    assert (fixed.returncode, json.loads(fixed.stdout)["shrunk"]) == (0, [])


# -- End-to-end tests of ``conformance run -i wire:HOST:PORT`` and ``conformance implementations`` -----------------


ONE = ("--kafka", RELEASE, "--max-examples", "1", "--max-time", "20", "--allow-incomplete", "--seed", "3")

ALONE = "--skip-feature requires -i wire:HOST:PORT"


@pytest.fixture(scope="module")
def address(tmp_path_factory):
    with LocalBroker(RELEASE, base=tmp_path_factory.mktemp("typed")) as broker:
        yield Address(HOST, broker.port)


@pytest.mark.broker
@pytest.mark.thorough
def test_a_broker_that_conforms_is_unchanged_afterwards(typed, address):
    with Client(address) as client:
        client.create_topic("mine", {})
        client.await_leader("mine")
        before = set(client.metadata(None).topics)
    done = typed("run", "-i", f"wire:{address}", *ONE, "--json")
    assert done.returncode == 0
    assert done.stderr.startswith("creates topics named kidx-wire-")
    assert f"on {address}, deletes them at the end, and touches no other topic" in done.stderr
    document = json.loads(done.stdout)
    (result,) = document["results"]
    assert result["machine"] == "wire"
    assert result["divergences"] == 0
    assert result["details"]["answers"] > 1_000
    assert result["verdicts"]["LO-6"] == "conforms"
    with Client(address) as client:
        left = set(client.metadata(None).topics)
    assert {topic for topic in left if topic.startswith("kidx-wire-")} == set()
    assert "mine" in left
    assert left - before <= {"__transaction_state"}


@pytest.mark.broker
@pytest.mark.thorough
@pytest.mark.parametrize(("seconds", "number"), [(3.0, signal.SIGINT), (4.0, signal.SIGTERM), (5.5, signal.SIGINT)])
def test_an_interrupted_run_deletes_its_topics(address, seconds, number):
    """The terminal sends the signal to the whole group, in the middle: a nightly run takes minutes on any machine."""
    done = interrupt(
        "conformance",
        *("run", "-i", f"wire:{address}", "--kafka", RELEASE, "--profile", "nightly"),
        number=number,
        seconds=seconds,
        terminal=True,
    )
    assert (done.code, done.left) == (128 + number, [])
    with Client(address) as client:
        assert [topic for topic in client.metadata(None).topics if topic.startswith("kidx-wire-")] == []


@pytest.mark.broker
@pytest.mark.thorough
def test_faulty_broker_reported_once_and_trace_replays(typed, address):
    with wire_proxy.proxy_of(address) as proxy:
        with proxy.spoiling(answers=wire_proxy.earliest_is_next):
            done = typed(
                "run", "-i", f"wire:{proxy.address}", *ONE, "--level", "must", "--max-shrink-time", "60", "--json"
            )
            assert done.returncode == 1
            (told,) = json.loads(done.stdout)["divergences"]
            assert told["clause"] == "LO-1"
            assert told["occurrences"] > 10
            assert len(told["steps"]) <= 2
            replayed = typed(*told["replay"].split()[1:])
            assert replayed.returncode == 1
            assert "FAILED" in replayed.stdout
            replayed = typed(
                *told["replay"].split()[1:], "--skip-feature", "transactions", "--skip-feature", "delete-records"
            )
            assert (replayed.returncode, replayed.stdout.splitlines()[-1][:6]) == (1, "FAILED")
        replayed = typed(*told["replay"].split()[1:])
        assert (replayed.returncode, replayed.stdout.splitlines()[-1][:5]) == (0, "FIXED")


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("-i", "wire:nothing"), "'wire:nothing' must be HOST:PORT, not 'nothing'"),
        (
            ("-i", "wire:localhost:9092", "--skip-feature", "files"),
            "--skip-feature: unknown 'files'; choose from delete-records, transactions",
        ),
        (("-i", "wire:localhost:9092", "--command-config", "nothing"), "cannot read the command config nothing"),
        (("-i", "jvm", "--skip-feature", "transactions"), ALONE),
        (("-i", "wire:localhost:9092", "--machine", "broker"), "the broker machine requires -i broker"),
        (("-i", "jvm", "--machine", "wire"), "the wire machine requires -i wire:HOST:PORT"),
        (("-i", "subject:nothing"), "unknown subject 'nothing'"),
    ],
)
def test_invalid_options_are_one_line(typed, arguments, said):
    done = typed("run", *arguments)
    assert (done.returncode, done.stdout) == (2, "")
    assert said in done.stderr
    assert done.stderr.count("\n") == 1


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (
            ("-i", "wire:localhost:9092", "--skip-feature", "files"),
            "--skip-feature: unknown 'files'; choose from delete-records, transactions",
        ),
        (("-i", "wire:localhost:9092", "--command-config", "nothing"), "cannot read the command config nothing"),
        (("--skip-feature", "transactions"), ALONE),
    ],
)
def test_a_replay_with_invalid_options_is_one_line(typed, tmp_path, arguments, said):
    path = Trace("wire", RELEASE, (Operation("create_topic", ({},)),), None).save(tmp_path)
    done = typed("replay", str(path), *arguments)
    assert (done.returncode, done.stdout) == (2, "")
    assert said in done.stderr
    assert done.stderr.count("\n") == 1


def test_a_missing_broker_is_one_line(typed):
    (port,) = free_ports(1)
    done = typed("run", "-i", f"wire:{HOST}:{port}", "-q")
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith(f"conformance: the broker at {HOST}:{port} cannot be reached")
    assert done.stderr.count("\n") == 1


def test_the_subjects_are_listed(typed):
    done = typed("implementations", "list", "--json")
    assert done.returncode == 0
    named = {subject["name"]: subject for subject in json.loads(done.stdout)}
    assert {"driven": "wire", "language": "Go"}.items() <= named["kfake"].items()
    assert {"driven": "jvm", "language": "Java"}.items() <= named["fluss"].items()
    assert "kfake" in typed("implementations", "list").stdout
    assert typed("implementations", "build", "nothing").returncode == 2


# -- One difference does not hide the others: a run tells each distinct one once, with all its releases ------------


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
