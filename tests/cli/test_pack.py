"""The program in one file runs where neither kidx nor one of its packages is installed."""

import os
import re
import shlex
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "watching.md"


@pytest.mark.thorough
def test_the_commands_of_the_page_verify_without_an_installation(tmp_path):
    (block,) = re.findall(r"```sh\n([^`]*kidx\.pyz[^`]*)```", PAGE.read_text("utf-8"))
    pack, verify = block.splitlines()
    shutil.copytree(ROOT / "tests" / "golden" / "3.9.2" / "create-time-0", tmp_path / "data" / "create-time-0")

    words = shlex.split(pack)
    assert words[0] == "python"
    subprocess.run([sys.executable, *words[1:]], cwd=tmp_path, check=True, capture_output=True)

    words = shlex.split(verify.replace("/var/lib/kafka/data", "data"))
    assert words[0] == "python3"
    environment = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
    environment |= {"XDG_CACHE_HOME": str(tmp_path / "cache")}
    python = sys._base_executable
    for options in ((), ("--jobs", "2")):
        done = subprocess.run(
            [python, *words[1:], *options], cwd=tmp_path, env=environment, capture_output=True, check=False
        )
        assert (done.returncode, done.stderr) == (0, b"")
        assert done.stdout.endswith(b"may I start the broker? yes\n")
    (place,) = (tmp_path / "cache" / "kidx").iterdir()
    assert (place / "lib" / "kidx" / "cli.py").is_file()
    names = {name.split("/")[1] for name in zipfile.ZipFile(tmp_path / "kidx.pyz").namelist() if "/" in name}
    assert not names & {"conformance", "numba", "hypothesis", "jinja2", "pyarrow", "pyspark"}

    hidden = tmp_path / "file"
    hidden.touch()
    environment["XDG_CACHE_HOME"] = str(hidden)
    done = subprocess.run([python, *words[1:]], cwd=tmp_path, env=environment, capture_output=True, check=False)
    assert done.returncode == 1
    assert done.stderr.startswith(b"kidx: cannot unpack into ")
