"""Progress display of a fetch: a bar on a terminal, or a few plain lines."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING

from rich.console import Console
from rich.filesize import decimal
from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TransferSpeedColumn

if TYPE_CHECKING:
    from collections.abc import Iterator

    from conformance.kafka.jar_fetch import Progress as Callback
    from conformance.kafka.jar_fetch import Step


@contextlib.contextmanager
def show_progress(title: str, console: Console | None = None) -> Iterator[Callback]:
    """Yield a progress callback for :func:`conformance.kafka.jar_fetch.class_path`.

    Nothing is displayed if all jars are cached. ``title`` names the jars ("Kafka 3.9.2"). The default console is
    stderr, so that the display does not mix with a command's output.
    """
    console = console or Console(stderr=True)
    if console.is_terminal:
        with _bar(title, console) as callback:
            yield callback
    else:
        yield _lines(title, console)


@contextlib.contextmanager
def _bar(title: str, console: Console) -> Iterator[Callback]:
    columns = (TextColumn("{task.description}"), BarColumn(), DownloadColumn(), TransferSpeedColumn())
    with Progress(*columns, console=console, transient=True) as bar:
        task = bar.add_task(title, total=None, visible=False)

        def callback(step: Step) -> None:
            description = f"{title}: {step.jars}/{step.total_jars} jars"
            bar.update(task, completed=step.size, total=step.total_size, description=description, visible=True)

        yield callback


def _lines(title: str, console: Console) -> Callback:
    # Four lines show the progress in a CI log without hiding other output.
    quarters = 4
    shown = -1

    def callback(step: Step) -> None:
        nonlocal shown
        quarter = quarters * step.size // max(step.total_size, 1)
        if shown < 0:
            shown = 0
            say(f"fetching {title}: {step.total_jars} jars, {decimal(step.total_size)}")
        # The last line is printed when the last jar has been verified and moved into place.
        if shown < quarter < quarters or (step.jars == step.total_jars and shown < quarters):
            shown = quarters if step.jars == step.total_jars else quarter
            say(f"fetched {title}: {step.jars} of {step.total_jars} jars, {decimal(step.size)}")

    def say(text: str) -> None:
        console.print(text, highlight=False, markup=False, soft_wrap=True)

    return callback
