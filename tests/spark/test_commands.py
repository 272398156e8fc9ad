"""The command lines with ``--engine spark``; they use the session that runs, as they start one where none does."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import conformance.cli
import kidx.cli

pytestmark = pytest.mark.spark

GOLDEN = Path(__file__).parents[1] / "golden"


@pytest.fixture
def run(spark, capsys, monkeypatch):
    """Run a command line in this process; return exit code, standard output and error."""

    def run_line(main, *arguments):
        monkeypatch.setattr(sys, "argv", [main.__module__, *map(str, arguments)])
        with pytest.raises(SystemExit) as left:
            main()
        captured = capsys.readouterr()
        return left.value.code, captured.out, captured.err

    assert spark.sparkContext is not None
    return run_line


@pytest.fixture
def verified(run, tmp_path, thorough):
    """Verify a broker's directory on Spark as a run of that name; ``verified.data`` is the directory."""
    data = tmp_path / "data"
    others = () if thorough else ("log-append-time-0", "message-*", "restarted-0", "uncompressed-0")
    shutil.copytree(GOLDEN / "3.9.2", data, ignore=shutil.ignore_patterns("running", "*.json", *others))

    def verify(name, *more):
        out = tmp_path / "out"
        return run(kidx.cli.main, "verify", data, "--engine", "spark", "--out", out, "--run-id", name, *more)

    verify.data = data
    return verify


@pytest.mark.thorough
def test_verify_prints_the_same_on_spark(run, verified, tmp_path):
    plain = run(kidx.cli.main, "verify", verified.data, "--json")
    code, out, err = verified("one", "--json")
    said = json.loads(plain[1])
    del said["start"]  # whether a broker would start is not checked on a cluster
    assert (code, json.loads(out)) == (plain[0], said)
    assert f"run one: {tmp_path / 'out' / 'runs' / 'one' / 'report.html'}" in err
    table = tmp_path / "out" / "findings" / "run_id=one"
    assert run(kidx.cli.main, "compare", table, table, "--json")[0] == 0


@pytest.mark.thorough
def test_two_runs_are_a_trend(run, verified, tmp_path):
    names = ("create-time-0", "restarted-0", "uncompressed-0")
    ids = ["rKcGn0ygQ8OEsl1EDgbTnQ", "1Z2y3X4w5V6u7T8s9R0qPA"]
    for name in names[:2]:
        (verified.data / name / "partition.metadata").write_text(f"version: 0\ntopic_id: {ids[0]}\n")
    verified("one", "--json")
    for name in names[1:]:
        (verified.data / name / "partition.metadata").write_text(f"version: 0\ntopic_id: {ids[1]}\n")
    next((verified.data / "create-time-0").glob("*.timeindex")).unlink()
    code, out, _ = verified("two", "--findings", tmp_path / "findings.ndjson")
    assert code == 1
    assert ".timeindex" in (tmp_path / "findings.ndjson").read_text("utf-8")
    tables = [tmp_path / "out" / "findings" / f"run_id={name}" for name in ("one", "two")]
    code, out, _ = run(kidx.cli.main, "compare", *tables)
    assert code == 1
    again, first, *_ = out.splitlines()
    assert again == f"restarted is another topic since two: topic id {ids[1]} instead of {ids[0]} (1 partition)"
    assert "missing" in first
    code, out, _ = run(kidx.cli.main, "compare", *reversed(tables), "--json")
    other = {"topic": "restarted", "earlier": ids[1], "later": ids[0], "partitions": 1}
    assert (code, json.loads(out)["other_topics"]) == (0, [other])
    for both in (tables[0].parent / "run_id=*", f"file:{tables[0].parent}"):  # paths as Spark reads them
        assert run(kidx.cli.main, "compare", both, tables[1], "--json")[0] == 0


@pytest.mark.thorough
def test_a_session_of_the_command_leaves_stderr_to_the_command(tmp_path):
    (tmp_path / "text").write_text("no Parquet", "utf-8")
    code = "import sys; from kidx.cli import main; sys.argv[1:] = ['compare', 'text', 'text']; main()"
    environment = os.environ | {"XDG_STATE_HOME": str(tmp_path / "state")}
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=tmp_path, env=environment, capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("kidx: cannot read the Parquet table text: ")
    assert done.stderr.count("\n") == 1
    assert "log4j" in (tmp_path / "state" / "kidx" / "spark.log").read_text("utf-8")


@pytest.mark.thorough
def test_an_impossible_request_is_one_line(run, tmp_path):
    text = tmp_path / "text"
    text.write_text("no Parquet", "utf-8")
    for arguments, said in (
        (("verify", tmp_path, "--run-id", "x"), "kidx: --out and --run-id require --engine spark\n"),
        (
            ("verify", tmp_path / "no", "--engine", "spark", "--out", tmp_path / "o"),
            "kidx: there is nothing to verify: ",
        ),
        (("compare", tmp_path / "a", tmp_path / "b"), f"kidx: cannot read the Parquet table {tmp_path / 'a'}: "),
        (
            ("compare", text, text),
            f"kidx: cannot read the Parquet table {text}: java.lang.RuntimeException: file:{text}",
        ),
        (
            ("compare", "nosuch://a", "nosuch://b"),
            "kidx: cannot read the Parquet table nosuch://a: org.apache.hadoop.fs.",
        ),
    ):
        code, out, err = run(kidx.cli.main, *arguments)
        assert (code, out) == (2, "")
        assert err.startswith(said)
        assert err.count("\n") == 1
    code, _, err = run(conformance.cli.main, "run", "--seeds", "3")
    assert (code, err) == (2, "conformance: --seeds requires --engine spark; a local run has one seed\n")


@pytest.mark.jvm
@pytest.mark.thorough
def test_a_campaign_is_a_report_of_shards(run, tmp_path):
    line = ("run", "--engine", "spark", "--kafka", "4.4.0", "--machine", "time", "--max-examples", "5")
    code, out, err = run(
        conformance.cli.main, *line, "--seeds", "2", "--seed", "5", "--report", tmp_path / "c", "--json"
    )
    document = json.loads(out)
    assert (code, document["verdict"], document["cells"]) == (0, "conforms", 2)
    assert "2 of 2 runs" in err
    assert {path.parent.name for path in (tmp_path / "c").glob("*/events.ndjson")} == {"4.4.0-time-5", "4.4.0-time-6"}
    code, out, _ = run(conformance.cli.main, "report", tmp_path / "c", "--json")
    assert code == 0
