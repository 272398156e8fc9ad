"""Recorder of the trace that kills each mutant: ``python -m tests.meta.kills [MUTANT ...]``, in the repository.

It stores the shrunk finding of ``conformance run -i mutant:NAME``, one line per mutant in ``kills.ndjson``. The tests
replay these traces, which takes milliseconds; ``conformance mutate`` shows that the machines find the mutants unaided.
"""

from __future__ import annotations

import io
import json
import sys
import tempfile
from contextlib import redirect_stdout, suppress
from dataclasses import replace
from functools import cache
from pathlib import Path
from unittest.mock import patch

from conformance.cli import main
from conformance.implementations.mutants import MUTANTS, Mutant
from conformance.operations.trace import Trace
from tests.support.kill_file import keep_kill, load_kills

KILLS = Path(__file__).with_suffix(".ndjson")


def record(mutant: Mutant) -> Trace:
    """Return the trace of the first divergence between a mutant and the reference.

    Raises:
        LookupError: None was found.
    """
    words = ["conformance", "run", "-i", f"mutant:{mutant.name}", "--kafka", mutant.release]
    words += ["--machine", mutant.machine, "--profile", "ci", "--seed", "0", "--max-examples", "2000"]
    words += ["--fail-fast", "--json"]
    printed = io.StringIO()
    with tempfile.TemporaryDirectory() as home, patch.dict("os.environ", XDG_STATE_HOME=home):
        with patch.object(sys, "argv", words), redirect_stdout(printed), suppress(SystemExit):
            main()
        divergences = json.loads(printed.getvalue())["divergences"]
        if not divergences:
            raise LookupError(f"{mutant.name} survived")
        trace = Trace.load(divergences[0]["trace"])
    return replace(trace, title=mutant.title, provenance={})


def kill_of(mutant: Mutant) -> Trace:
    """Return the recorded trace."""
    return _recorded_kills()[mutant.name]


@cache
def _recorded_kills():
    return load_kills(KILLS)


if __name__ == "__main__":
    for name in sys.argv[1:] or sorted(MUTANTS.keys() - load_kills(KILLS).keys()):
        keep_kill(KILLS, name, record(MUTANTS[name]))
        print(name, flush=True)  # noqa: T201
