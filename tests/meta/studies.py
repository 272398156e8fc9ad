"""Recorder of what studies print and write: ``python -m tests.meta.studies [NAME...]`` rewrites ``studies.ndjson``.

Fixed seeds and small budgets, one release each, without brokers: a change of the studies' frame that should change
nothing leaves the file byte-identical. A commit that changes a line says why.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import re
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from typer.testing import CliRunner

from conformance.cli import app
from conformance.errors import ToolError

STUDIES: Final = Path(__file__).with_suffix(".ndjson")
_OFF_BY_ONE: Final = "python:tests.adapters.python_index:open_off_by_one"
_LONGEST: Final = 4000
"""Maximum length of a recorded text; of a longer one the SHA-256 is recorded."""
_TIMES: Final = re.compile(r'("?(?:seconds|started|elapsed|peak_bytes)"?: ?)(?:[\d.]+|"[^"]*")|\b\d+(?:\.\d+)? ?s\b')

# Each study: command lines, executed one after another in an empty directory. A word with * is the first such file.
CASES: Final[dict[str, list[str]]] = {
    "interleave": [
        "interleave --kafka 4.3.1 --machine offset --report out --json --markdown out/page.md",
        "interleave --replay out/traces/*.json --json",
        "interleave --replay out/traces/*.json",
        "interleave --planted offset-entry-before-its-bytes --json",
        "interleave --kafka 4.3.1 --machine offset --report out",
    ],
    "power-loss": [
        "power-loss --kafka 4.3.1 --max-examples 4 --max-shrink-time 0 --report out --json --markdown out/page.md",
        "power-loss --replay out/traces/power-loss-*.json --json",
        "power-loss --replay out/traces/power-loss-*.json",
        "power-loss --kafka 4.3.1 --planted log-not-synced --max-examples 4 --json --markdown out/planted.md",
        "power-loss --kafka 4.3.1 --max-examples 2 --max-shrink-time 0 --report out",
    ],
    "power-loss of a compacted log": [
        "power-loss --kafka 4.3.1 --machine cleaned --max-examples 2 --max-shrink-time 0 --report out --json",
    ],
    "power-loss of a segment": [
        "power-loss --kafka 4.3.1 --machine segment --max-examples 12 --report out --json",
    ],
    "power-loss of a cache": ["power-loss --kafka 4.3.1 --machine cache --max-examples 2 --report out --json"],
    "fuzz": [
        f"fuzz --kafka 4.3.1 -i {_OFF_BY_ONE} --format offset --max-examples 20 --max-time 300 --report out --json",
    ],
    "exhaustive": [f"exhaustive --kafka 4.3.1 -i {_OFF_BY_ONE} --machine offset --length 1 --json"],
    "known-bugs": ["known-bugs KAFKA-588 --json"],
    "diff": [
        "diff 3.9.1 4.3.1 --machine offset --max-examples 10 --max-shrink-time 0 --report out --json",
        "diff 3.9.1 4.3.1 --machine offset --max-examples 10 --max-shrink-time 0 --markdown out/page.md",
    ],
    "vectors": ["vectors --kafka 4.3.1 --out vectors", "vectors --check vectors"],
}


def lines_of(name: str) -> list[str]:
    """Return what a study prints, exits with and writes: a line for each command, then one for each file."""
    lines, before = list[str](), Path.cwd()
    with tempfile.TemporaryDirectory() as directory, contextlib.ExitStack() as stack:
        stack.callback(os.chdir, before)
        os.chdir(directory)
        state = os.environ.get("XDG_STATE_HOME")
        os.environ |= {"XDG_STATE_HOME": directory, "COLUMNS": "120", "NO_COLOR": "1"}
        stack.callback(_restore, state)
        for command in CASES[name]:
            words = [str(min(Path().glob(word))) if "/*" in word or "-*" in word else word for word in command.split()]
            code, text = _called(words)
            lines.append(json.dumps({"study": name, "command": command, "exit": code, "said": _text(text, directory)}))
        for path in _files(Path()):
            text = _text(path.read_text("utf-8", "backslashreplace"), directory)
            lines.append(json.dumps({"study": name, "file": str(path), "content": text}))
    return lines


def _restore(state: str | None) -> None:
    os.environ.pop("XDG_STATE_HOME")
    if state is not None:
        os.environ["XDG_STATE_HOME"] = state


def _called(words: list[str]) -> tuple[int, str]:
    result = CliRunner().invoke(app, words, standalone_mode=False)
    if isinstance(result.exception, ToolError):
        return result.exception.exit_code, f"{result.output}{result.exception}"
    if result.exception is not None:
        raise result.exception
    return result.return_value, result.output


def _files(directory: Path) -> Iterator[Path]:
    """Yield the files, without the page of fuzzing, which is a table of times."""
    found = (path for path in directory.rglob("*") if path.is_file() and path.suffix in {".json", ".md"})
    yield from sorted(path for path in found if path.name != "fuzz.md")


def _text(text: str, directory: str) -> str:
    text = _TIMES.sub(r"\1TIME", text.replace(str(Path(directory).resolve()), "DIR").replace(directory, "DIR"))
    if len(text) <= _LONGEST:
        return text
    return f"{len(text)} characters, SHA-256 {hashlib.sha256(text.encode()).hexdigest()}"


def recorded() -> dict[str, list[str]]:
    """Return the lines of the file by study."""
    found: dict[str, list[str]] = {name: [] for name in CASES}
    for line in STUDIES.read_text("utf-8").splitlines():
        found[json.loads(line)["study"]].append(line)
    return found


if __name__ == "__main__":
    names, kept = sys.argv[1:] or list(CASES), recorded() if STUDIES.exists() else {}
    every = [line for name in CASES for line in (lines_of(name) if name in names else kept.get(name, []))]
    STUDIES.write_text("".join(f"{line}\n" for line in every), "utf-8")
