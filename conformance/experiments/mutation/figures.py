"""Metrics of the harness itself, as a stream of events that ``conformance report`` combines with runs."""

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
    """Provide a function that writes rows to a stream of events. Without a directory, the function discards them.

    The header contains neither implementations nor releases, because the metrics are about the harness.

    Args:
        directory: directory of the stream, or None.
        machines: names of the measured state machines.
        profile: profile that sets the steps per example, or another description of the choice of examples.
        seed: the first random seed.

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

        def on_result(row: Measured) -> None:
            write(row)
            if row.passed is False:
                failing.append(row)

        yield on_result
        write(RunFinished("diverges" if failing else "conforms", 0, time.monotonic() - started))
