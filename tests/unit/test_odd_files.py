"""Whatever an implementation does in its directory is a divergence, and never the end of a run."""

from __future__ import annotations

import os

import pytest

from conformance.events import Diverged, Result
from conformance.implementations.protocol import OptionalMembers
from conformance.lockstep.file_reader import StepFileReader, UnreadableFile, corrupt, overwrite
from conformance.lockstep.scopes.directory import LogParticipant
from conformance.runs.plan import Plan
from conformance.runs.profiles import PROFILES
from conformance.runs.runner import run

ODD = {
    "a directory": lambda path: path.mkdir(),
    "a pipe": os.mkfifo,
    "a link to itself": lambda path: path.symlink_to(path),
}


@pytest.mark.thorough
@pytest.mark.parametrize("kind", ["elsewhere", "vanishing", "directory", "homeless", "additional"])
def test_a_run_reports_what_an_implementation_does_with_its_files(tmp_path, kind):
    events = []
    plan = Plan(
        ("4.4.0",),
        (f"python:tests.adapters.odd_files:{kind}",),
        ("offset",),
        PROFILES["dev"],
        tmp_path,
        max_examples=10,
        replays=False,
        shrink_time=0.2,
        jobs=1,
    )
    assert not run(plan, events.append)
    (result,) = (event for event in events if isinstance(event, Result))
    assert result.examples == 10
    said = [event.failure["actual"] for event in events if isinstance(event, Diverged)]
    assert said
    assert kind != "directory" or "cannot be read: Is a directory" in said


@pytest.fixture(params=ODD)
def odd(request, tmp_path):
    path = tmp_path / "0.index"
    ODD[request.param](path)
    return path


def test_what_cannot_be_read_differs_from_every_file(odd):
    file = StepFileReader()
    file.watch(str(odd))
    assert isinstance(file.read(), UnreadableFile) or odd.is_symlink()
    assert file.read() == file.read_again() != b""
    overwrite(str(odd), b"12345678")
    file.watch(str(odd))
    assert file.read() == b"12345678"
    file.release()


@pytest.mark.parametrize("name", ["write_file", "remove_file", "pad_file"])
def test_a_corruption_replaces_whatever_is_there(odd, name):
    corrupt(odd, name, {"write_file": ("00ff",), "remove_file": (), "pad_file": (2, 7)}[name])
    if not odd.is_symlink():
        assert (odd.read_bytes() if odd.exists() else None) == {
            "write_file": b"\x00\xff",
            "remove_file": None,
            "pad_file": b"\7\7",
        }[name]


def test_a_missing_file_and_a_missing_directory_are_no_error(tmp_path):
    overwrite(str(tmp_path / "0.index"), None)
    overwrite(str(tmp_path / "gone" / "0.index"), b"1")
    assert (tmp_path / "gone" / "0.index").read_bytes() == b"1"


class Nothing(OptionalMembers):
    """Implementation that does nothing itself."""

    name, release = "nothing", "4.4.0"

    def begin(self, _):
        """Begin an example."""

    end = perform = begin


def test_a_log_directory_may_hold_anything(tmp_path):
    participant = LogParticipant(Nothing(), tmp_path / "log")
    participant.begin()
    topic = tmp_path / "log" / participant.below
    topic.mkdir(parents=True)
    for number, make in enumerate(ODD.values()):
        make(topic / f"{number}.index")
    (topic / "7.log").write_bytes(b"1")
    files = participant.read()
    assert files.pop("7.log") == b"1"
    assert all(isinstance(content, UnreadableFile) for content in files.values())
    assert len(files) == len(ODD)
    participant.corrupt("0.index", "write_file", ("07",))
    assert participant.read()["0.index"] == b"\7"
    participant.clear()
    (tmp_path / "log").write_bytes(b"a file instead of the directory")
    assert (participant.read(), participant.listing(), participant.has_names({})) == ({}, [], True)
    participant.begin()
    assert participant.read() == {}
    participant.clear()


def test_a_file_that_vanishes_between_listing_and_reading_is_missing(tmp_path, monkeypatch):
    participant = LogParticipant(Nothing(), tmp_path / "log")
    participant.begin()
    monkeypatch.setattr(LogParticipant, "names", lambda _: {"0.log": 1})
    assert participant.read() == {}
