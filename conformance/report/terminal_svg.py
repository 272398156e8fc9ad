"""Picture of a real run, drawn as a terminal, for the README: ``python -m conformance.report.terminal_svg OUT.svg``."""

from __future__ import annotations

import io
import re
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

from rich.console import Console

from conformance.report.terminal import TerminalWriter
from conformance.runs.profiles import PROFILES
from conformance.runs.runner import Plan, run

RELEASES = ("2.4.1", "3.4.1", "3.9.1", "3.9.2", "4.0.1", "4.3.1", "4.4.0")
"""One release for each set of index rules."""


def draw(path: Path, releases: tuple[str, ...] = RELEASES) -> bool:
    """Run the index machines against some releases and save the output as an SVG; return True if all conform."""
    console = Console(record=True, width=116, file=io.StringIO(), force_terminal=False)
    console.print("$ conformance run " + " ".join(f"--kafka {release}" for release in releases), highlight=False)
    with TemporaryDirectory() as traces:
        machines = ("offset", "time", "transaction")
        plan = Plan(releases, ("jvm",), machines, PROFILES["dev"], Path(traces), seed=1)
        with TerminalWriter(console) as writer:
            conforms = run(plan, writer)
    # rich's SVG loads its font from a server; a picture in a repository must not load anything.
    drawn = re.sub(r"@font-face \{.*?\}", "", console.export_svg(title="conformance"), flags=re.DOTALL)
    path.write_text(drawn, "utf-8")
    return conforms


if __name__ == "__main__":
    sys.exit(not draw(Path(sys.argv[1])))
