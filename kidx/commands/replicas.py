"""``kidx compare-replicas``: whether two directories of one partition have the same records, and from where on not."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from kidx.commands.line import say, say_json
from kidx.errors import ToolError
from kidx.printable import shell_word


def replicas_command(
    one: Annotated[Path, typer.Argument(metavar="ONE", help="Directory of a partition.")],
    two: Annotated[Path, typer.Argument(metavar="TWO", help="Directory of the same partition on another broker.")],
    *,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON document instead of text.")] = False,
) -> int:
    """Compare two directories of one partition, such as copies of two brokers; the files are only read.

    The first difference is named with both batches, the side that the leader epochs favour, and the offset to which
    each side would be truncated if the other one became the leader. Replicas of a compacted topic differ without harm.
    Exit code 0: all batches that both should have are the same, 1: they differ.

    Example: kidx compare-replicas /broker-1/orders-0 /broker-2/orders-0
    """
    from kidx.verify.replicas import compare_replicas  # noqa: PLC0415 -- numpy is only loaded to work

    try:
        found = compare_replicas(one, two)
    except OSError as error:
        place = f"{shell_word(str(error.filename))}: " if error.filename else ""
        raise ToolError(f"cannot read {place}{error.strerror or error}") from error
    if as_json:
        say_json(found.to_json())
    else:
        say(*found.lines())
    return int(found.first is not None)
