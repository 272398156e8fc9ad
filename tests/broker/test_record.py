"""``conformance record``: a corpus of a real broker, and what becomes of it if the broker fails."""

from __future__ import annotations

import json
import sys
import tempfile
from pathlib import Path

import pytest

from conformance import cli
from conformance.errors import ToolError
from conformance.experiments.golden import CHECKS, load_corpus, record
from conformance.kafka.broker import Broker, BrokerError

GOLDEN = Path(__file__).parents[1] / "golden"


def run(monkeypatch, *arguments):
    monkeypatch.setattr(sys, "argv", ["conformance", "record-golden", *map(str, arguments)])
    with pytest.raises(SystemExit) as ended:
        cli.main()
    return ended.value.code


@pytest.mark.in_turn(3)
@pytest.mark.broker
@pytest.mark.thorough
@pytest.mark.parametrize("release", ["3.9.2", "4.3.1"])
def test_a_recording_equals_the_corpus_in_the_repository(release, tmp_path, monkeypatch, capsys):
    out = tmp_path / "corpus"
    assert run(monkeypatch, "--kafka", release, "--out", out, "--json") == 0
    document = json.loads(capsys.readouterr().out)
    assert document["verdict"] == "conforms"
    assert document["findings"] == []
    assert {each["verdict"] for each in document["indexes"]} == {"exact", "sound"}
    corpus, golden = load_corpus(out), load_corpus(GOLDEN / release)
    assert {name: check(corpus) for name, check in CHECKS.items()} == {name: [] for name in CHECKS}
    assert [(p.name, p.config, p.appends, p.restarts) for p in corpus.partitions] == [
        (p.name, p.config, p.appends, p.restarts) for p in golden.partitions
    ]
    assert document["files"] == sum(len(p.files) + len(p.running) for p in corpus.partitions) + 1
    assert [path.name for path in tmp_path.iterdir()] == ["corpus"]


@pytest.mark.broker
@pytest.mark.thorough
def test_a_broker_that_dies_leaves_no_corpus_and_does_not_change_the_old_one(tmp_path, monkeypatch):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    connect = Broker.connect

    def connect_and_kill(broker):
        client = connect(broker)
        broker._process.kill()
        return client

    monkeypatch.setattr(Broker, "connect", connect_and_kill)
    out = tmp_path / "corpus"
    out.mkdir()
    (out / "corpus.json").write_text("the old one", "utf-8")
    with pytest.raises(BrokerError, match=r"4\.3\.1 died with status"):
        record("4.3.1", out)
    assert [path.name for path in out.iterdir()] == ["corpus.json"]
    assert (out / "corpus.json").read_text("utf-8") == "the old one"
    assert not list(tmp_path.glob(".recording-*"))


# -- without a broker --------------------------------------------------------------------------------------------------


def test_an_invalid_directory_is_rejected_before_anything_is_started(tmp_path):
    (tmp_path / "file").touch()
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "thesis.txt").touch()
    for place, complaint in (
        ("file", "is not a directory"),
        ("full", "neither empty nor a corpus"),
        ("a/b", "a is not a directory"),
    ):
        with pytest.raises(ToolError, match=complaint):
            record("3.9.2", tmp_path / place)


def test_bad_arguments_are_one_line_and_exit_code_2(tmp_path, monkeypatch, capsys):
    for arguments in (("--kafka", "1.0.0", "--out", tmp_path / "x"), ("--kafka", "3.9.2"), ("--out", tmp_path / "x")):
        assert run(monkeypatch, *arguments) == 2
        printed = capsys.readouterr()
        assert printed.out == ""
        assert printed.err.startswith("conformance: ")
        assert printed.err.count("\n") == 1
    assert not list(tmp_path.iterdir())
