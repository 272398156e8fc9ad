"""Named jobs as Spark tasks, one each: a task writes its results where driver and workers can read them."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

POLLED: Final = 0.5
"""Seconds between two checks of the progress."""

Progress = Callable[[int, int], None]
"""Function called with the number of finished jobs, and their total."""


def run_each(
    spark: SparkSession,
    names: Sequence[str],
    do: Callable[[str], None],
    *,
    progress: Progress | None = None,
    is_done: Callable[[str], bool] | None = None,
) -> None:
    """Run every job in a separate task; a job whose worker dies is repeated by another.

    Args:
        spark: a session.
        names: names of the jobs.
        do: function that does one job; sent to the workers, so it must be picklable. Repeating a job must be harmless.
        progress: called periodically.
        is_done: returns True if a job has been done, determined from its results; needed for progress.

    Raises:
        Exception: the error of Spark when a task has failed as often as the session allows.
    """
    wanted = list(names)
    if not wanted:
        return

    # An RDD, because Python functions of a DataFrame need pandas.
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
