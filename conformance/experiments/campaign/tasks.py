"""Named pieces of work as Spark tasks, one each: whatever a task finds it leaves where driver and workers can read."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

POLLED: Final = 0.5
"""Seconds between two looks at how far the work is."""

Progress = Callable[[int, int], None]
"""Told how many pieces of work are done, and of how many."""


def run_each(
    spark: SparkSession,
    names: Sequence[str],
    do: Callable[[str], None],
    *,
    progress: Progress | None = None,
    is_done: Callable[[str], bool] | None = None,
) -> None:
    """Does every piece of work in a task of its own; one whose worker dies is done again by another.

    Args:
        spark: a session.
        names: of the pieces.
        do: does one; sent to the workers, so that it must be picklable. Doing the same twice must do no harm.
        progress: told now and then.
        is_done: whether a piece is done, by what it has left; needed for progress.

    Raises:
        Exception: what Spark raises when a task has failed as often as the session allows.
    """
    wanted = list(names)
    if not wanted:
        return

    # An RDD, as a DataFrame's Python functions need pandas.
    tasks = spark.sparkContext.parallelize(wanted, len(wanted))
    if progress is None or is_done is None:
        tasks.foreach(do)
        return
    stop = threading.Event()

    def watch() -> None:
        waiting = set(wanted)
        while not stop.wait(POLLED):
            waiting.difference_update([name for name in waiting if is_done(name)])
            progress(len(wanted) - len(waiting), len(wanted))

    watcher = threading.Thread(target=watch, name="kidx-progress", daemon=True)
    watcher.start()
    try:
        tasks.foreach(do)
    finally:
        stop.set()
        watcher.join()
    progress(len(wanted), len(wanted))
