"""Frame of the benchmarks: options, the machine, and the table, in the terminal and as a page of ``reports``.

A benchmark declares its options, and a function that yields rows, and sentences about what they were measured with.
"""

from __future__ import annotations

import argparse
import os
import platform
import shlex
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from conformance.report import markdown_escape
from kidx.java import find_java

Rows = Iterator[Sequence[str] | str]
"""Rows of a table as soon as each is measured, and sentences."""


def bench(
    about: str | None,
    heads: Sequence[str],
    rows: Callable[[argparse.Namespace], Rows],
    title: str = "",
    introduction: str = "",
    *,
    apart: Callable[[argparse.Namespace], bool] = lambda _: False,
    **options: Any,
) -> None:
    """Measure, and print each row and each sentence as soon as it is known, and then the table.

    Args:
        about: docstring of the benchmark, for ``--help``.
        title: title of the page that ``--markdown`` writes; without one there is no such option.
        introduction: first paragraphs of the page, with names of options and ``command`` in braces.
        apart: function that does a part of the work in its own process and returns True, if an option says so.
        options: default value of each option, alone or with its help. A list has the choices of a repeatable option,
            or is ``[int]``; a type is the type of an option without a default.
    """
    parser = argparse.ArgumentParser(description=about, formatter_class=argparse.RawDescriptionHelpFormatter)
    for name, option in options.items():
        value, text = option if isinstance(option, tuple) else (option, None)
        more: dict[str, Any] = {"type": type(value), "default": value}
        if value is False:
            more = {"action": "store_true"}
        elif isinstance(value, list):
            more = {"action": "append", **({"type": int} if value == [int] else {"choices": value})}
        elif isinstance(value, type):
            more = {"type": value}
        parser.add_argument(f"--{name.replace('_', '-')}", help=text, **more)
    if title:
        parser.add_argument("--markdown", type=Path, metavar="FILE", help="write the table to a file, too")
    given = parser.parse_args()
    if apart(given):
        return
    command = f"python3 bootstrap.py python -m tests.bench.{Path(sys.argv[0]).stem} {shlex.join(sys.argv[1:])}"
    console, table, said = (
        Console(width=200),
        list[Sequence[str]](),
        [introduction.format(command=command, **vars(given))],
    )
    for each in rows(given):
        (said if isinstance(each, str) else table).append(each)  # type: ignore[arg-type]
        console.print(each if isinstance(each, str) else "; ".join(each), highlight=False, markup=False)
    print_table(console, heads, table)
    if title and given.markdown is not None:
        write_page(given.markdown, title, "\n\n".join(filter(None, said)), heads, table)


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
