"""A broker's process, and brokers on a machine."""

from __future__ import annotations

import sys
import time
from pathlib import Path

import pytest

from conformance.errors import ToolError
from conformance.implementations.subject import process as module
from conformance.implementations.subject.process import ServerProcess
from conformance.implementations.wire.endpoint import words_of
from conformance.kafka.broker.ports import HOST, free_ports
from conformance.kafka.client import Address
from conformance.kafka.polling import Deadline

# -- The process of a broker that a run may stop: it listens, ends on request, and leaves nothing running ----------


LISTENS = "import socket, sys, time; {}; s = socket.create_server(('127.0.0.1', int(sys.argv[1]))); time.sleep(600)"
DEAF = "import signal; signal.signal(signal.SIGTERM, signal.SIG_IGN)"


@pytest.fixture
def address():
    return Address(HOST, free_ports(1)[0])


def server(address, extra="pass"):
    return ServerProcess("it", [sys.executable, "-c", LISTENS.format(extra), str(address.port)], address)


@pytest.mark.parametrize("clean", [True, False])
def test_it_starts_again_after_it_was_stopped(address, clean):
    with server(address) as process:
        for _ in range(2):
            assert process.start() == address
            process.stop(clean=clean)


def test_its_child_processes_end_with_it(address, tmp_path):
    note = tmp_path / "pid"
    started = "str(subprocess.Popen(['sleep', '600']).pid)"
    child = f"import pathlib, subprocess; pathlib.Path({str(note)!r}).write_text({started})"
    with server(address, child) as process:
        process.start()
        state = Path(f"/proc/{note.read_text()}/stat")
        assert state.exists()
        process.stop(clean=False)
        deadline = Deadline(20)
        while state.exists() and state.read_text().split()[2] != "Z" and deadline.pause():
            pass  # a signal takes a moment
        assert not state.exists() or state.read_text().split()[2] == "Z"


def test_the_last_output_of_an_ended_server_is_reported(address, monkeypatch):
    keep_last = ServerProcess._keep_last

    def late(self, output):
        self._process.wait()
        time.sleep(1)
        keep_last(self, output)

    monkeypatch.setattr(ServerProcess, "_keep_last", late)
    process = ServerProcess("it", [sys.executable, "-c", "print('no such disk'); raise SystemExit(3)"], address)
    with process, pytest.raises(ToolError, match="it has ended with status 3: no such disk"):
        process.start()


def test_another_server_on_the_port_is_not_mistaken_for_it(address):
    with server(address) as first, server(address) as second:
        first.start()
        with pytest.raises(ToolError, match=r"another server listens at "):
            second.start()


def test_a_server_that_does_not_end_is_killed_and_reported(address, monkeypatch):
    monkeypatch.setattr(module, "END", 1.0)
    with server(address, DEAF) as process:
        process.start()
        with pytest.raises(ToolError, match="does not end within 1 s of SIGTERM"):
            process.stop(clean=True)
        process.start()


@pytest.mark.parametrize(("command", "said"), [("", "is empty"), ("'a", "cannot parse the start command")])
def test_a_start_command_is_one(command, said):
    with pytest.raises(ToolError, match=said):
        words_of(command)
