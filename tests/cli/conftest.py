"""Fixtures for end-to-end tests of ``conformance`` with a separate directory and home; the jars are the cached ones.

Most commands run in this process (``tests/conftest.py``). Those that need another environment have their own process,
and so has one example of each kind of command.
"""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from conformance.implementations.jvm.coverage import TOOLS
from conformance.kafka.jar_fetch import class_path, tool_jar

EXECUTABLE = Path(sys.executable).with_name("conformance")
RELEASES = ("2.4.1", "2.8.2", "3.9.1", "3.9.2", "4.3.1", "4.4.0")
"""Releases that the command lines name."""


@pytest.fixture(scope="session")
def jars():
    """Make sure that Kafka's jars are in the cache: fetching is reported on stderr, which tests compare."""
    for release in RELEASES:
        for group in ("index", "segment", "log"):
            class_path(release, group)
    for tool in TOOLS:  # tools of the fuzzer
        tool_jar(tool)


@pytest.fixture(autouse=True)
def _jars_of_tests_with_kafka(request):
    if request.node.get_closest_marker("jvm"):
        request.getfixturevalue("jars")


@pytest.fixture
def kidx(in_process, tmp_path):
    """Return a function that runs a command line of kidx in the test's directory."""
    return lambda *words: in_process("kidx", *words, work=tmp_path)


@pytest.fixture
def typed(tmp_path, in_process):
    """Return a function that runs a command line in ``typed.work``; ``typed.apart`` runs it in a new process."""
    work = tmp_path / "work"
    work.mkdir()
    changed = {"XDG_STATE_HOME": str(tmp_path / "state"), "COLUMNS": "200"}
    command = [EXECUTABLE]
    if not EXECUTABLE.exists():  # a source tree without an installation
        command = [sys.executable, "-c", "from conformance.cli import main; main()"]

    def run(*arguments, **changes):
        if changes:
            return apart(*arguments, **changes)
        return in_process("conformance", *arguments, work=work, environment=changed)

    def apart(*arguments, **changes):
        environment = {**os.environ, **changed, "PYTHONUTF8": "1"}
        environment.pop("KIDX_JAVA_HOME", None)
        return subprocess.run(
            [*command, *map(str, arguments)],
            cwd=work,
            env=environment | {name: str(value) for name, value in changes.items()},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
        )

    run.work, run.state, run.apart, run.command = work, tmp_path / "state", apart, command
    return run
