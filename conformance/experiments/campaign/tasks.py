"""Jobs as Spark tasks, one task each. A task writes its results to a directory that driver and workers share."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

POLLED: Final = 0.5
"""Seconds between two checks of the progress."""

Progress = Callable[[int, int], None]
"""Function that receives the number of finished jobs, and their total."""


def run_each(
    spark: SparkSession,
    names: Sequence[str],
    do: Callable[[str], None],
    *,
    progress: Progress | None = None,
    is_done: Callable[[str], bool] | None = None,
) -> None:
    """Run every job in a separate task; a job whose worker dies is repeated by another worker.

    Args:
        spark: session.
        names: names of the jobs.
        do: function that does the job with a name. It is sent to the workers, so it must be picklable. It may be called
            more than once for a job.
        progress: callback that is called periodically.
        is_done: function that returns True if the results of a job exist; needed for progress.

    Raises:
        Exception: a task has failed as often as the session allows; Spark raises the error.
    """
    wanted = list(names)
    if not wanted:
        return

    # A DataFrame needs pandas to call a Python function; an RDD does not.
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
