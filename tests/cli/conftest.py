"""``conformance`` as a user types it, in a directory and with a home of its own; the jars are the user's."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

EXECUTABLE = Path(sys.executable).with_name("conformance")


@pytest.fixture
def typed(tmp_path):
    """Runs a command line of ours; ``typed.work`` is where it runs."""
    work = tmp_path / "work"
    work.mkdir()
    environment = dict(os.environ, XDG_STATE_HOME=str(tmp_path / "state"), COLUMNS="200", PYTHONUTF8="1")

    def run(*arguments, **changes):
        return subprocess.run(
            [EXECUTABLE, *map(str, arguments)],
            cwd=work,
            env=environment | changes,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
        )

    run.work = work
    return run
