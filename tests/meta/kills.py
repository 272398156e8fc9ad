"""Records for every mutant the trace that kills it: ``python -m tests.meta.kills [MUTANT ...]``, in the repository.

What ``conformance run -i mutant:NAME`` finds and shrinks, one file a mutant in ``tests/meta/kills``. The tests perform
these traces, which takes milliseconds; that the machines find the mutants unaided is what ``conformance power`` shows.
"""

from __future__ import annotations

import io
import json
import sys
import tempfile
from contextlib import redirect_stdout, suppress
from dataclasses import replace
from pathlib import Path
from unittest.mock import patch

from conformance.cli import main
from conformance.implementations.mutants import MUTANTS, Mutant
from conformance.operations.trace import Trace

KILLS = Path(__file__).with_name("kills")


def record(mutant: Mutant) -> Trace:
    """The trace of the first difference between a mutant and the reference.

    Raises:
        LookupError: none was found.
    """
    words = ["conformance", "run", "-i", f"mutant:{mutant.name}", "--kafka", mutant.release]
    words += ["--machine", mutant.machine, "--profile", "ci", "--seed", "0", "--max-examples", "2000"]
    words += ["--stop-at-first", "--json"]
    printed = io.StringIO()
    with tempfile.TemporaryDirectory() as home, patch.dict("os.environ", XDG_STATE_HOME=home):
        with patch.object(sys, "argv", words), redirect_stdout(printed), suppress(SystemExit):
            main()
        divergences = json.loads(printed.getvalue())["divergences"]
        if not divergences:
            raise LookupError(f"{mutant.name} survived")
        trace = Trace.load(divergences[0]["trace"])
    return replace(trace, title=mutant.title, made_by={})


def kill_of(mutant: Mutant) -> Trace:
    """The recorded trace."""
    return Trace.load(KILLS / f"{mutant.name}.json")


if __name__ == "__main__":
    for name in sys.argv[1:] or [name for name in MUTANTS if not (KILLS / f"{name}.json").exists()]:
        made = record(MUTANTS[name]).save(KILLS)
        made.rename(KILLS / f"{name}.json")
        print(name, flush=True)  # noqa: T201
