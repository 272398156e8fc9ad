"""Output of the benchmarks: the machine, and the table, in the terminal and as a page of ``reports``."""

from __future__ import annotations

import os
import platform
from collections.abc import Iterable, Sequence
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING

from rich.table import Table

from conformance.report import markdown_escape
from kidx.java import find_java

if TYPE_CHECKING:
    from rich.console import Console


def machine(*packages: str) -> str:
    """Return a line with processor, load and versions, including the versions of the packages."""
    processor = platform.processor()
    for line in Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            processor = line.partition(":")[2].strip()
            break
    versions = [f"Python {platform.python_version()}", *(f"{name} {version(name)}" for name in packages)]
    versions.append(f"Java {find_java().version}")
    return f"{processor}, {os.cpu_count()} cores, load {os.getloadavg()[0]:.1f}; {', '.join(versions)}"


def processor_seconds(root: int | None = None) -> float:
    """Return seconds of processor time of a process, by default of this one, and of all its descendants."""
    parents: dict[int, int] = {}
    seconds: dict[int, float] = {}
    for status in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = status.read_text("utf-8").rpartition(")")[2].split()
        except (FileNotFoundError, ProcessLookupError):
            continue
        process = int(status.parent.name)
        parents[process] = int(fields[1])
        seconds[process] = sum(map(int, fields[11:15])) / os.sysconf("SC_CLK_TCK")  # with children that have ended
    ours = {os.getpid() if root is None else root}
    while more := {process for process, parent in parents.items() if parent in ours} - ours:
        ours |= more
    return sum(seconds.get(process, 0) for process in ours)


def print_table(console: Console, heads: Sequence[str], rows: Iterable[Sequence[str]]) -> None:
    """Print a table."""
    table = Table(*heads, box=None, pad_edge=False)
    for row in rows:
        table.add_row(*row)
    console.print(table)


def write_page(path: Path, title: str, introduction: str, heads: Sequence[str], rows: Iterable[Sequence[str]]) -> None:
    """Write a page with a table as Markdown."""
    path.write_text(f"# {title}\n\n{introduction}\n\n{markdown_table(heads, rows)}", "utf-8")


def markdown_table(heads: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Return a table as Markdown."""
    return "".join(f"{line}\n" for line in markdown_escape.table([*heads], map(list, rows), numbers=len(heads)))
