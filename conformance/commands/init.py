"""``conformance init``: the sources of a new adapter.

An adapter is a program that connects an implementation in any language to ``conformance``. It reads requests from stdin
and writes replies to stdout, one JSON object per line (the line protocol).
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from conformance.commands.options import echo
from conformance.experiments.starter import LANGUAGES, write_starter


def init_command(
    directory: Annotated[Path, typer.Argument(metavar="DIR", help="Directory of the new files; created if missing.")],
    language: Annotated[str, typer.Option("--lang", metavar="LANG", help=f"Language: {', '.join(LANGUAGES)}.")],
) -> int:
    """Write a working adapter for the line protocol: an offset index, a time index and a log.

    Exit code 0: written, 2: a file exists already or cannot be written.

    Example: `conformance init --lang go my-index`
    """
    for path in write_starter(language, directory):
        echo(str(path))
    echo(f"next: {directory / 'README.md'} explains how to build, check and run it")
    return 0
