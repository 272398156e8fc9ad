"""Progress of a verification: a bar on a terminal, a few plain lines otherwise."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, Final

from rich.console import Console
from rich.filesize import decimal
from rich.progress import (
    BarColumn,
    DownloadColumn,
    MofNCompleteColumn,
    Progress,
    TextColumn,
    TimeRemainingColumn,
    TransferSpeedColumn,
)

from kidx.discovery import Found, discover
from kidx.printable import printable
from kidx.verify.run import Verification, verify_paths

if TYPE_CHECKING:
    import os
    from collections.abc import Iterable

    from kidx.discovery import Segment
    from kidx.verify.verdicts import SegmentVerdict

_EVERY: Final = 10.0
"""Seconds between two plain lines."""


def verify_with_progress(
    paths: Iterable[str | os.PathLike[str]] | Found,
    *,
    shown: bool = True,
    console: Console | None = None,
    **options: Any,
) -> Verification:
    """Call :func:`kidx.verify.verify_paths`, and show bytes, bytes per second and the remaining time on stderr.

    Args:
        paths: see :func:`kidx.verify.verify_paths`.
        shown: False to show nothing.
        console: receives the progress instead of stderr.
        options: further options of :func:`kidx.verify.verify_paths`.
    """
    found = paths if isinstance(paths, Found) else discover(paths)
    if not shown:
        return verify_paths(found, **options)
    console = console or Console(stderr=True)
    total = _total(found)
    if not console.is_terminal:
        return verify_paths(found, progress=_lines(total, console), **options)
    columns = (
        TextColumn("{task.description}", markup=False),
        BarColumn(),
        DownloadColumn(),
        TransferSpeedColumn(),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=console, transient=True) as bar:
        task = bar.add_task("verify", total=total)

        def advance(segment: Segment, verdict: SegmentVerdict) -> None:
            name = printable(segment.log.parent.name)
            bar.update(task, advance=verdict.bytes_read, description=name)

        return verify_paths(found, progress=advance, **options)


@contextlib.contextmanager
def counting(
    what: str, total: int, *, shown: bool = True, console: Console | None = None
) -> Iterator[Callable[[], None]]:
    """Yield a function that counts one thing, and show how many of ``total`` were counted on stderr.

    Args:
        what: description of the work.
        total: number of things.
        shown: False to show nothing.
        console: receives the progress instead of stderr.
    """
    console = console or Console(stderr=True)
    if not shown:
        yield lambda: None
    elif console.is_terminal:
        with Progress(
            TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), console=console, transient=True
        ) as bar:
            task = bar.add_task(what, total=total)
            yield lambda: bar.advance(task)
    else:
        yield _counted_lines(what, total, console)


def _counted_lines(what: str, total: int, console: Console) -> Callable[[], None]:
    done, said = 0, time.monotonic()

    def advance() -> None:
        nonlocal done, said
        done += 1
        if (now := time.monotonic()) - said >= _EVERY:
            said = now
            console.print(f"{what}: {done:,} of {total:,}", highlight=False)

    return advance


def _total(found: Found) -> int:
    total = 0
    for segment in found.segments:
        for suffix in segment.existing:
            try:
                total += segment.path(suffix).stat().st_size
            except OSError:
                continue
    return total


def _lines(total: int, console: Console) -> Callable[[Segment, SegmentVerdict], None]:
    done, started = 0, time.monotonic()
    said = started

    def advance(_segment: Segment, verdict: SegmentVerdict) -> None:
        nonlocal done, said
        done += verdict.bytes_read
        now = time.monotonic()
        if now - said >= _EVERY:
            said = now
            speed = done / (now - started)
            left = max(0, total - done) / speed if speed else 0
            text = f"verified {decimal(done)} of {decimal(total)}, {decimal(int(speed))}/s, {left:.0f} s left"
            console.print(text, highlight=False)

    return advance
