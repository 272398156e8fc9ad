"""``kidx explain``: for each segment, why it still exists, and what will delete it and when."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from kidx.commands.line import say, say_json
from kidx.commands.options import ReleaseOption, resolve_dialect
from kidx.errors import ToolError
from kidx.printable import counted, dated, shell_word

if TYPE_CHECKING:
    from collections.abc import Iterator

    from kidx.startup.fates import Fate, Fates


def explain_command(
    paths: Annotated[list[str], typer.Argument(metavar="PATH ...", help="Partitions or log directories.")],
    *,
    release: ReleaseOption = None,
    config: Annotated[
        Path | None,
        typer.Option("--config", metavar="FILE", help="The broker's server.properties, for topics without settings."),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object per partition.")] = False,
) -> int:
    """Explain for each segment why it still exists, and what will delete it and when.

    The settings come from KRaft's metadata in the log directories, from server.properties, or are Kafka's defaults. The
    next check of retention is computed as the broker's release does it; the broker may be running. Nothing is changed.

    Example: kidx explain /var/lib/kafka/data/orders-0 --kafka 3.9.2
    """
    dialect = resolve_dialect(release)
    from kidx.segment import system_clock  # noqa: PLC0415 -- numpy is only loaded to work
    from kidx.startup.fates import fates  # noqa: PLC0415
    from kidx.startup.settings import read_properties  # noqa: PLC0415

    properties = None if config is None else read_properties(config)
    found = list(fates(paths, dialect, system_clock, properties))
    if not found:
        raise ToolError(f"{', '.join(map(shell_word, paths))}: no partition")
    for each in found:
        if as_json:
            say_json(each.to_json())
        else:
            say(*_lines(each))
    if all(each.problem for each in found):
        raise ToolError("; ".join(f"{shell_word(each.directory)}: {each.problem}" for each in found))
    return int(any(each.problem for each in found))


def _lines(found: Fates) -> Iterator[str]:
    name = shell_word(found.directory)
    if found.problem:
        yield f"{name}: {found.problem}"
        return
    start, watermark, end = found.limits
    total = counted(sum(each.size for each in found.segments), "byte")
    yield f"{name}: {counted(len(found.segments), 'segment')}, {total}; {', '.join(found.settings)}"
    yield f"  log start {start}, high watermark {watermark}, end {end}"
    if found.not_checked:
        yield f"  not checked: {', '.join(found.not_checked)}"
    if found.compaction:
        yield f"  {found.compaction}"
    yield from (f"  {_line(each)}" for each in found.segments)


def _line(each: Fate) -> str:
    what = f"offsets {each.base_offset} to {each.next_offset - 1}" if each.next_offset > each.base_offset else "empty"
    place = f"{each.log.name}  {what}, {counted(each.size, 'byte')}, up to {dated(each.largest_timestamp)}"
    verdict = "goes at the next check: " if each.deleted_by else "stays: "
    return f"{place}: {verdict}{'; '.join(each.why)}"
