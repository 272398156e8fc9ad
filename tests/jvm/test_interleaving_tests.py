"""``interleave --replay FILE --export Ticket.java``: the JUnit test fails on the releases that have the race."""

from __future__ import annotations

import msgspec
import pytest
from kafka_findings import run_tests
from typer.testing import CliRunner

from conformance.cli import app
from conformance.errors import ToolError
from conformance.experiments.output_files import save_json
from conformance.implementations.jvm.bytecode import jars_of
from conformance.implementations.jvm.driver import compile_java
from conformance.kafka.jar_fetch import tool_jar
from conformance.studies.interleave.interrupter import Interrupter, Result
from conformance.studies.interleave.java_test import interleaving_test
from conformance.studies.interleave.scenarios import Case, draw_scenario
from conformance.studies.interleave.study import INTERLEAVE
from conformance.studies.interleave.trace import Interleaving

pytestmark = pytest.mark.jvm

LATE = Case("opened", ("append 0 1000", "append 1 1010", "reopen"), "largestTimestamp", "append 2 1020")
MIXED = Case("offset", ("append 10 100", "append 20 200", "append 30 300"), "lookup 35", "truncateTo 25;append 26 260")
CLOSED = Case("lazy", ("append 10 100", "append 20 200"), "lookup 15", "closeHandler")
FETCHED = next(
    case for case in draw_scenario("replicated", 0).cases("replicated") if case.names == ("readBelow", "append")
)
REMOVED = Case("cache", ("hold 0",), "lookupOffset 0 25", "remove 0")


def document(case, release, scratch):
    """Return the content of the file of a shrunk violation."""
    bench = Interrupter(release, scratch)
    return INTERLEAVE.document(bench, bench.interrupt(case), None)


def said(source, release, directory):
    """Compile a test against the jars of a release, and return what its methods said: nothing if they passed."""
    jars = [*jars_of(release), *(tool_jar(name) for name in ("asm", "asm-tree", "junit"))]
    compile_java([source], jars, directory / "classes")
    results = run_tests([directory / "classes", *jars], directory / "classes", directory)
    return results[f"{source.stem}.sequential"], results[f"{source.stem}.interleaving"]


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("case", "release", "other"),
    [
        pytest.param(LATE, "3.9.2", "4.0.1", id="KAFKA-19407"),
        pytest.param(MIXED, "2.4.0", None, id="IV-2"),
        pytest.param(CLOSED, "3.9.1", None, id="KAFKA-19390"),
        pytest.param(REMOVED, "3.6.2", "4.1.0", id="KAFKA-17184"),
        pytest.param(FETCHED, "2.4.0", "2.5.1", id="KAFKA-9835"),
    ],
)
def test_a_test_fails_only_where_the_race_is(case, release, other, tmp_path):
    content = document(case, release, tmp_path / "search")
    source = tmp_path / "RaceTest.java"
    source.write_text(interleaving_test(content, source), "utf-8")
    sequential, interleaving = said(source, release, tmp_path / "same")
    assert not sequential
    assert interleaving.startswith("org.opentest4j.AssertionFailedError")
    assert f"interrupted before {content.where}" in interleaving
    assert content.result.state in interleaving
    if other:
        assert said(source, other, tmp_path / "other") == ("", "")


def test_the_command_writes_the_test_after_the_replay(tmp_path):
    content = document(MIXED, "4.3.1", tmp_path / "search")
    path, source = (
        save_json(msgspec.to_builtins(content), tmp_path, "interleaving", "interleaving"),
        tmp_path / "RaceTest.java",
    )
    words = ["interleave", "--replay", str(path), "--export", str(source)]
    result = CliRunner().invoke(app, words, standalone_mode=False)
    assert (result.return_value, source.read_text("utf-8")) == (1, interleaving_test(content, source))


@pytest.mark.parametrize(
    ("name", "message"),
    [("Race.py", "writes .java"), ("a-b.java", "not a valid name"), ("Switch.java", "the test needs another class")],
)
def test_a_name_that_cannot_be_is_rejected(name, message, tmp_path):
    members = {"release": "4.3.1", "clause": None, "machine": "offset", "setup": (), "first": "entries"}
    members |= {"others": "truncate", "stop": 0, "back": -1, "where": "", "result": Result("", "", "")}
    content = Interleaving(**members, orders=(), points=())
    with pytest.raises(ToolError, match=message):
        interleaving_test(content, tmp_path / name)
