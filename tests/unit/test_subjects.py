"""The catalogue of third-party implementations, and messages if one cannot be built or started."""

from __future__ import annotations

import os
import re
import sys
import tomllib
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from conformance.errors import NotDrivenError, ToolError
from conformance.implementations import spec
from conformance.implementations.subject.build import build, place_of
from conformance.implementations.subject.process import server_of
from conformance.implementations.wire.endpoint import open_endpoint
from conformance.kafka.releases import RELEASES
from conformance.machines import files
from conformance.machines.log import LogMachine
from conformance.subjects import SubjectError, load_subject, load_subjects, read_subject

TABLE = {
    "title": "one",
    "about": "for a test",
    "driven": "wire",
    "language": "shell",
    "version": "1",
    "home": "https://example.org",
    "sources": "kfake",
    "needs": ["sh"],
    "build": ["sh", "-c", "echo '{out}' > '{out}/built'"],
    "start": ["sh", "-c", "echo 127.0.0.1:9; cat"],
}


@pytest.fixture(autouse=True)
def cache(tmp_path, monkeypatch):
    monkeypatch.setenv("KIDX_CACHE", str(tmp_path / "cache"))


@pytest.mark.parametrize("subject", load_subjects().values(), ids=lambda subject: subject.name)
def test_a_subject_is_locked_and_has_its_origin(subject):
    assert set(subject.releases) <= set(RELEASES)
    assert subject.home.startswith("https://")
    assert any(subject.version in path.read_text() for path in subject.folder.iterdir())
    assert re.search(r"\d", subject.version)


def test_every_crate_of_krabka_log_is_locked_by_a_checksum():
    """Cargo's own lock would name a registry; the catalogue has its own list instead."""
    folder = load_subject("krabka-log").folder
    packages = tomllib.loads((folder / "locked.toml").read_text("utf-8"))["package"]
    wanted = tomllib.loads((folder / "Cargo.toml").read_text("utf-8"))["dependencies"]
    foreign = {package["name"]: package for package in packages if "source" in package}
    assert all(re.fullmatch("[0-9a-f]{64}", package["checksum"]) for package in foreign.values())
    assert {package["source"] for package in foreign.values()} == {"registry"}
    for name, how in wanted.items():
        assert (how if isinstance(how, str) else how["version"]) == f"={foreign[name]['version']}"
    # Without them it would reject readable batches.
    assert {"flate2", "lz4rip", "snap", "zstd"} <= foreign.keys()


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"driven": "hand"}, "unknown value 'hand' of driven"),
        ({"build": []}, "no build"),
        ({"title": ""}, "no title"),
        ({"colour": "red"}, "unknown key colour"),
        ({"start": "sh"}, "no start"),
    ],
)
def test_a_malformed_entry_is_rejected(change, said):
    with pytest.raises(SubjectError, match=said):
        read_subject("one", TABLE | change)


def test_a_log_of_the_catalogue_is_driven_by_the_log_machine(monkeypatch):
    """Its introduction declares a log; index machines do not drive it."""
    start = [sys.executable, str(Path(__file__).parents[1] / "adapters" / "line_log.py"), "{release}"]
    subject = read_subject("one", TABLE | {"driven": "line", "build": ["true"], "start": start})
    monkeypatch.setattr(files, "load_subject", lambda _: subject)
    monkeypatch.setattr(spec, "load_subject", lambda _: subject)
    log = LogMachine.subject("subject:one", "3.9.2")
    assert log.about.name == "line-log"
    assert place_of(subject).is_dir()
    log.close()
    with pytest.raises(NotDrivenError, match="only the log machine"):
        spec.implementation_factory("subject:one")


def test_an_unknown_subject_is_one_line():
    with pytest.raises(ToolError, match=r"unknown subject 'nothing'; choose from .*kfake"):
        load_subject("nothing")


def test_a_build_is_done_once_and_started():
    subject = read_subject("one", TABLE)
    place = build(subject)
    assert place == place_of(subject)
    assert (place / "built").exists()
    (place / "seen").touch()
    with server_of(subject) as process:
        assert str(process.start()) == "127.0.0.1:9"
    assert (place / "seen").exists()
    assert [path.name for path in place.parent.iterdir()] == [place.name]


def test_concurrent_processes_build_it_once(tmp_path):
    """Each build leaves a line: there is one, though all have found it missing."""
    lines = tmp_path / "lines"
    subject = read_subject("one", TABLE | {"build": ["sh", "-c", f"echo >> '{lines}'; sleep 0.3"]})
    with ThreadPoolExecutor(4) as pool:
        places = set(pool.map(lambda _: build(subject), range(4)))
    assert places == {place_of(subject)}
    assert lines.read_text() == "\n"


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"needs": ["no-such-tool"]}, "the subject one requires no-such-tool on the PATH"),
        ({"build": ["sh", "-c", "echo broken >&2; exit 3"]}, "cannot be built: sh ended with status 3: broken"),
        ({"build": ["/no/such/tool"]}, "cannot be built in .*No such file"),
    ],
)
def test_a_build_that_fails_is_one_line_and_leaves_no_files(tmp_path, change, said):
    subject = read_subject("one", TABLE | change)
    with pytest.raises(ToolError, match=said):
        build(subject)
    assert not place_of(subject).exists()
    assert list(tmp_path.rglob("*-sources")) == []


def test_a_build_with_python_is_for_one_version(monkeypatch, tmp_path):
    subject = read_subject("one", TABLE | {"needs": ["python3"]})
    first = place_of(subject)
    other = tmp_path / "python3"
    other.write_text("#!/bin/sh\necho cpython-399\n")
    other.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=os.pathsep)
    assert place_of(subject) != first


@pytest.mark.parametrize(
    ("start", "said"),
    [
        (["sh", "-c", "exit 1"], "has ended before it printed its address$"),
        (["sh", "-c", "echo no module >&2; exit 1"], "has ended before it printed its address: no module$"),
        (["sh", "-c", "echo welcome"], "the first line of the subject one must be HOST:PORT, not 'welcome'"),
        (["/no/such/program"], "cannot start the subject one"),
    ],
)
def test_a_start_that_fails_is_one_line(start, said):
    with pytest.raises(ToolError, match=said), server_of(read_subject("one", TABLE | {"start": start})) as process:
        process.start()


def test_an_address_needs_no_subject():
    with open_endpoint("wire:localhost:9092") as (address, lacks, process):
        assert (str(address), tuple(lacks), process) == ("localhost:9092", (), None)
