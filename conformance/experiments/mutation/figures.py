"""Figures about the harness itself, as a stream of events that ``conformance report`` puts beside those of runs."""

from __future__ import annotations

import time
from contextlib import contextmanager
from datetime import UTC, datetime
from importlib.metadata import version
from typing import TYPE_CHECKING

from conformance.events import Measured, RunFinished, RunStarted
from conformance.report.ndjson import NdjsonWriter

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from pathlib import Path


@contextmanager
def figures_to(
    directory: Path | None, machines: Sequence[str], *, profile: str, seed: int = 0
) -> Iterator[Callable[[Measured], None]]:
    """Gives what takes the rows, and ends the stream after them; without a directory they are kept nowhere.

    The header names neither implementations nor releases: the rows say nothing about any cell of the matrix.

    Args:
        directory: where the stream goes.
        machines: what was measured.
        profile: of which the steps of an example were taken, or how else they were chosen.
        seed: the first one.

    Raises:
        ToolError: the directory cannot be written.
    """
    if directory is None:
        yield lambda _: None
        return
    started = time.monotonic()
    failing: list[Measured] = []
    with NdjsonWriter(directory) as write:
        now = datetime.now(UTC).isoformat(timespec="seconds")
        versions = {"kidx": version("kidx")}
        write(RunStarted((), (), tuple(dict.fromkeys(machines)), profile, "observed", seed, versions, now))

        def tell(row: Measured) -> None:
            write(row)
            if row.holds is False:
                failing.append(row)

        yield tell
        write(RunFinished("diverges" if failing else "conforms", 0, time.monotonic() - started))
